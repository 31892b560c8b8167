// Package caddyhttp is the part of the notification gateway that knows Caddy:
// the HTTP handler http.handlers.notify, its Caddyfile, and the app notify
// with what all sites share. It reads requests into messages and writes what
// became of them; package notifier does the rest.
//
// In this package, caddyhttp.X stands for X of Caddy's own package of that
// name.
package caddyhttp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler is a notification gateway. It takes a message over HTTP and sends it
// to every destination that a notification URL describes: chat, mail, SMS,
// push, incident tools, webhooks.
//
// It answers `POST /notify`, where the client brings the URLs, and
// `POST /notify/{KEY}`, where they are those of a key in the configuration,
// each with or without a slash at the end. Every other path is the next
// handler's. Put it below a prefix with `handle_path`.
//
// The request is JSON, a form or a multipart form with the fields `body`,
// `title`, `type` (`info`, `success`, `warning`, `failure`), `format` (`text`,
// `markdown`, `html`), `tag`, `attach` and `urls`. The answer has status 200
// when every destination has taken the message and 424 when one has not; it is
// plain text, JSON or HTML, as the `Accept` header asks (without one, an error
// is JSON if the request was); `application/x-ndjson`
// gets each result as soon as it is known.
//
// In answer to `GET` at the same addresses, a browser gets a page on which to
// write a message, and `GET /notify/openapi.json` describes the API.
//
// The handler sets no placeholders, and resolves none in what clients send.
type Handler struct {
	Settings

	shared   sharedRef
	resolved *resolved
	log      *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.notify",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.log = ctx.Logger()
	if err := h.shared.load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	app, err := ctx.App("notify")
	if err != nil {
		return fmt.Errorf("loading the notify app: %w", err)
	}
	if h.resolved, err = h.over(app.(*App).resolved, h.shared.parse, h.log); err != nil {
		return err
	}
	app.(*App).sites = append(app.(*App).sites, h.resolved)
	return nil
}

// Cleanup implements caddy.CleanerUpper. Requests under way finish.
func (h *Handler) Cleanup() error { return h.shared.release() }

// ServeHTTP implements caddyhttp.MiddlewareHandler. A request may outlive its
// configuration: nothing here depends on the module's context.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	name, ok := route(r.URL.Path)
	if !ok || hasEncodedSlash(r.URL) {
		return next.ServeHTTP(w, r)
	}
	var resp *api.Response
	switch {
	case name == openAPIName && strings.HasSuffix(r.URL.Path, "/"):
		// The description names the server relative to its own address.
		resp = api.Errorf(http.StatusNotFound, "the description of the API has no slash at the end of its address; remove it").Response()
	case name == openAPIName:
		if err := api.ServeOpenAPI(w, r, version); err != nil {
			resp = h.errorResponse(err)
		}
	case r.Method != http.MethodPost:
		resp = h.compose(w, r, name)
	case r.URL.RawQuery == previewQuery:
		resp = h.preview(w, r, name)
	default:
		resp = h.notify(w, r, name)
	}
	if resp == nil {
		return nil // the response is written
	}
	if c := h.log.Check(zapcore.DebugLevel, "request refused"); c != nil && resp.Status/100 == 4 {
		c.Write(zap.Int("status", resp.Status), zap.String("reason", resp.Error))
	}
	resp.Write(w, r)
	return nil
}

// openAPIName is the address of the API's description below /notify. No key has
// this name, since the name of a key has no dot.
const openAPIName = "openapi.json"

// hasEncodedSlash reports whether the path of u contains %2F. The handler does
// not answer such an address: to a path matcher in front of an authentication
// handler, /notify/ops and /notify/ops%2F are different addresses, so that the
// second would get around a password for the first.
func hasEncodedSlash(u *url.URL) bool {
	return strings.Contains(strings.ToLower(u.RawPath), "%2f")
}

// route reports whether the handler answers a path, and returns the key in it,
// or "" for /notify. The key may not exist.
func route(path string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/notify")
	if !ok {
		return "", false
	}
	if rest == "" || rest == "/" {
		return "", true
	}
	key, ok = strings.CutPrefix(rest, "/")
	key = strings.TrimSuffix(key, "/")
	if !ok || key == "" || strings.Contains(key, "/") {
		return "", false
	}
	return key, true
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ zapcore.ObjectMarshaler     = (*Handler)(nil)
)

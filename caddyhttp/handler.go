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
// It handles `POST /notify`, with the URLs in the request,
// `POST /notify/{KEY}`, with the URLs of a key in the configuration, and
// `POST /notify/{KEY}/{SOURCE}`, with a message in the format of another program,
// such as `grafana`, each with or without a slash at the end. Requests for other
// paths go to the next handler. To put it below a prefix, use `handle_path`.
//
// A request is JSON, a form, a multipart form or plain text. Its fields are
// `body`, `title`, `type` (`info`, `success`, `warning`, `failure`), `format`
// (`text`, `markdown`, `html`), `tag`, `attach` and `urls`. The response has
// the status 200 if every required destination has the message and 424 if one
// does not. Its format depends on the `Accept` header: plain text, JSON, HTML,
// or `application/x-ndjson` for each result as soon as it is known. Without the
// header it is plain text, and JSON for the error of a JSON request.
//
// `GET` at the same addresses shows browsers a page with a form for messages.
// `GET /notify/openapi.json` describes the API.
//
// The handler sets no placeholders, and it does not replace placeholders in
// what clients send.
type Handler struct {
	Settings

	shared   sharedRef
	app      *App
	resolved *resolved
	log      *zap.Logger
	refusals *refusalLog
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
	h.log, h.refusals = ctx.Logger(), &refusalLog{}
	if err := h.shared.load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	m, err := ctx.App("notify")
	if err != nil {
		return fmt.Errorf("loading the notify app: %w", err)
	}
	h.app = m.(*App)
	if h.resolved, err = h.resolve(h.app.resolved, h.shared.parse, h.log); err != nil {
		return logRejected(h.log, err)
	}
	if err := checkFallbacks(h.resolved.keys, h.app.Queue != nil, h.Caddyfile); err != nil {
		return logRejected(h.log, err)
	}
	if h.resolved.saved, err = newSavedKeys(h.resolved, h.app.saved, h.shared.sender, h.log); err != nil {
		return logRejected(h.log, h.Caddyfile.locate("configs", prefixError("configs", err)))
	}
	h.Caddyfile.trim()
	h.app.sites = append(h.app.sites, h.resolved)
	return nil
}

// Cleanup implements caddy.CleanerUpper. Requests under way finish.
func (h *Handler) Cleanup() error {
	if h.resolved != nil {
		h.resolved.saved.close()
	}
	return h.shared.release()
}

// ServeHTTP implements caddyhttp.MiddlewareHandler. It does not use the
// module's context, because a request can outlive its configuration.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if id, ok := messageRoute(r.URL.Path); ok && h.app.queueSettings != nil && !hasEncodedSlash(r.URL) {
		h.serveMessage(w, r, id).Write(w, r)
		return nil
	}
	if a, ok := sourceRoute(r.URL.Path); ok && !hasEncodedSlash(r.URL) {
		if resp := h.serveSource(w, r, a); resp != nil {
			resp.Write(w, r)
		}
		return nil
	}
	if a, ok := configRoute(r.URL.Path); ok && h.resolved.saved != nil && !hasEncodedSlash(r.URL) {
		h.serveConfig(w, r, a)
		return nil
	}
	key, ok := route(r.URL.Path)
	if !ok || hasEncodedSlash(r.URL) {
		return next.ServeHTTP(w, r)
	}
	var resp *api.Response // nil if the response is written
	switch {
	case key == openAPIName && strings.HasSuffix(r.URL.Path, "/"):
		// The description names the server relative to its own address.
		resp = api.Errorf(http.StatusNotFound, "the address of the API's description has no slash at the end; remove it").Response()
	case key == openAPIName:
		if err := api.ServeOpenAPI(w, r, version); err != nil {
			resp = h.errorResponse(err)
		}
	case r.Method != http.MethodPost:
		resp = h.servePage(w, r, key)
		if resp != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.refuse(r, key, resp.Status, resp.Error, nil)
		}
	case r.URL.RawQuery == previewQuery:
		resp = h.servePreview(w, r, key)
	default:
		resp = h.notify(w, r, key)
	}
	if resp == nil {
		return nil
	}
	if c := h.log.Check(zapcore.DebugLevel, "request rejected"); c != nil && resp.Status/100 == 4 {
		c.Write(zap.Int("status", resp.Status), zap.String("reason", resp.Error))
	}
	resp.Write(w, r)
	return nil
}

// openAPIName is the name of the API's description below /notify. No key has
// this name, since key names have no dots.
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

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
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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
// plain text, JSON or HTML, as the `Accept` header asks; `application/x-ndjson`
// gets each result as soon as it is known.
//
// In answer to `GET` at the same addresses, a browser gets a page on which to
// write a message, and `GET /notify/openapi.json` describes the API.
//
// The handler sets no placeholders, and resolves none in what clients send.
type Handler struct {
	Settings

	engine engineRef
	rules  *rules
	log    *zap.Logger
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
	if err := h.engine.load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	app, err := ctx.App("notify")
	if err != nil {
		return fmt.Errorf("loading the notify app: %w", err)
	}
	if h.rules, err = h.over(app.(*App).rules, h.engine.parse, h.log); err != nil {
		return err
	}
	app.(*App).sites = append(app.(*App).sites, h.rules)
	return nil
}

// Cleanup implements caddy.CleanerUpper. Requests under way finish.
func (h *Handler) Cleanup() error { return h.engine.release() }

// ServeHTTP implements caddyhttp.MiddlewareHandler. A request may outlive its
// configuration: nothing here depends on the module's context.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	name, stateful, ours := route(r.URL.Path)
	if !ours {
		return next.ServeHTTP(w, r)
	}
	var a *answer
	switch {
	case name == openAPIName && strings.HasSuffix(r.URL.Path, "/"):
		// The server's address in the description is relative to its own.
		a = refuse(http.StatusNotFound, "the description of the API has no slash at the end of its address").answer()
	case name == openAPIName:
		a = h.describe(w, r)
	case r.Method != http.MethodPost:
		a = h.compose(w, r, name, stateful)
	case r.URL.RawQuery == previewQuery:
		a = h.preview(w, r, name, stateful)
	default:
		a = h.notify(w, r, name, stateful)
	}
	if a == nil {
		return nil // it is written already
	}
	if c := h.log.Check(zapcore.DebugLevel, "request refused"); c != nil && a.status/100 == 4 {
		c.Write(zap.Int("status", a.status), zap.String("reason", a.err))
	}
	a.unasked = r.Method != http.MethodPost
	a.write(w, r)
	return nil
}

// route says whether a path is one of the gateway's, and which key it names,
// though there may be no such key.
func route(path string) (name string, stateful, ours bool) {
	rest, ours := strings.CutPrefix(path, "/notify")
	if !ours {
		return "", false, false
	}
	if rest == "" || rest == "/" {
		return "", false, true
	}
	name, ours = strings.CutPrefix(rest, "/")
	name = strings.TrimSuffix(name, "/")
	if !ours || name == "" || strings.Contains(name, "/") {
		return "", false, false
	}
	return name, true, true
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ zapcore.ObjectMarshaler     = (*Handler)(nil)
)

package caddyhttp

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

func init() {
	caddy.RegisterModule(new(Handler))
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

	*httpapi.API `json:"-"`

	shared sharedRef
	app    *App
}

// CaddyModule returns the Caddy module information. Its receiver is a pointer,
// because a handler must not be copied while requests use it.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.notify",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.API = &httpapi.API{Log: ctx.Logger(), ParseDuration: caddy.ParseDuration}
	if err := h.shared.load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	m, err := ctx.App("notify")
	if err != nil {
		return fmt.Errorf("loading the notify app: %w", err)
	}
	h.app = m.(*App)
	settled, err := h.resolve(h.app.settled, nil, h.shared.parse, h.Log)
	if err != nil {
		return logRejected(h.Log, err)
	}
	h.Resolved, h.API.App, h.API.Shared = settled.Site, &h.app.Gateway, h.shared.Dispatcher
	h.Resolved.Devices = newKeyDevices(h.app, h.Resolved).Receivers()
	if err := h.checkEffects(); err != nil {
		return logRejected(h.Log, err)
	}
	owner := h.configsOwner(h)
	if h.Configs == nil {
		owner = h.app.configsOwner(h.app)
	}
	if h.Saved, err = newSavedKeys(settled, h.app.spaces, owner, true, h.shared.Sender, h.Log); err != nil {
		return logRejected(h.Log, h.Caddyfile.locate("configs", errs.Prefix("configs", err)))
	}
	h.Resolved.Saved = h.Saved.Finder()
	if err := h.checkReaders(); err != nil {
		return logRejected(h.Log, err)
	}
	h.Prepare(console.New(h.API))
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && h.Has.Inbox {
		server.RegisterOnShutdown(h.Streams.Stop)
	}
	h.Caddyfile.trim()
	return logRejected(h.Log, h.app.addSite(ctx, h))
}

// Cleanup implements caddy.CleanerUpper. Requests under way finish.
func (h *Handler) Cleanup() error {
	if h.API != nil {
		h.Streams.Stop()
		h.Saved.Close()
	}
	return h.shared.release()
}

// ServeHTTP implements caddyhttp.MiddlewareHandler. It does not use the
// module's context, because a request can outlive its configuration.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !h.Serve(w, httpapi.WithEnvironment(r, &requestEnvironment)) {
		return next.ServeHTTP(w, r)
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ zapcore.ObjectMarshaler     = (*Handler)(nil)
)

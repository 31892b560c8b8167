package caddyhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/early"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

func init() {
	caddy.RegisterModule(new(Handler))
	environment.Register(requestEnvironment)
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
// After a request, these placeholders have a value, for handlers around this one such as
// `log_append`, and for `header` with `>` or `defer`:
//
// Placeholder | Description
// ------------|-------------
// `{http.notify.id}` | The ID of the message, if there is a queue
// `{http.notify.key}` | The name of the key in the request, which may not exist
// `{http.notify.status}` | The HTTP status of the answer, or of the last line of a stream
// `{http.notify.delivered}` | How many destinations have the message
// `{http.notify.failed}` | How many destinations could not get it
// `{http.notify.error}` | Why the request failed, without secrets
//
// The handler does not replace placeholders in what clients send.
type Handler struct {
	Settings // embedded for JSON; Handler has most of its methods from Settings

	api  *httpapi.API
	home bool // see Console.Home

	handsOver bool // errors are Caddy's: see Settings.Errors

	shared process.Use
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
	log := ctx.Logger()
	if err := h.shared.Load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	m, err := ctx.App("notify")
	if err != nil {
		return fmt.Errorf("loading the notify app: %w", err)
	}
	h.app = m.(*App)
	h.app.addFiles(&h.Settings, h.locate(handlerID, h))
	settled, err := h.resolve(h.app.settled, nil, h.shared.Parse, log)
	if err != nil {
		return block.LogRejected(log, err)
	}
	h.handsOver = settled.errors == errorsCaddy
	h.home = settled.console != nil && settled.console.Home
	settled.Site.Devices = newKeyDevices(h.app, settled.Site).Receivers()
	owner := h.configsOwner(h)
	if h.Configs == nil {
		owner = h.app.configsOwner(h.app)
	}
	keys, err := newSavedKeys(settled, h.app.spaces, owner, true, h.shared.Sender, log)
	if err != nil {
		return block.LogRejected(log, h.Caddyfile.Locate("configs", errs.Prefix("configs", err)))
	}
	settled.Site.Saved = keys.Finder()
	h.api = httpapi.New(httpapi.Options{
		Resolved: settled.Site, Sources: settled.sources, App: &h.app.gateway, Saved: keys,
		Logins:        sync.OnceValue(func() map[string]bool { return h.app.Routes().Logins(h.api) }),
		ParseDuration: caddy.ParseDuration, Log: log,
	}, console.New)
	if err := cmp.Or(h.checkEffects(), h.checkReaders(), h.checkUse(), h.checkErrorRoutes(serverOf(ctx))); err != nil {
		return block.LogRejected(log, err)
	}
	if server := serverOf(ctx); server != nil {
		server.RegisterConnContext(early.ConnContext)
		if h.api.Has.Queue {
			server.RegisterOnShutdown(h.api.Streams.Stop)
		}
	}
	h.Caddyfile = h.Caddyfile.Trimmed()
	return block.LogRejected(log, h.app.addSite(ctx, h))
}

// serverOf returns the server whose routes are provisioned, or nil if it is unknown.
func serverOf(ctx caddy.Context) *caddyhttp.Server {
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	return server
}

// Cleanup implements caddy.CleanerUpper. Requests under way finish.
func (h *Handler) Cleanup() error {
	if h.api != nil {
		h.api.Streams.Stop()
		h.api.Closing.Stop()
		h.api.Saved.Close()
	}
	return h.shared.Release()
}

// ServeHTTP implements caddyhttp.MiddlewareHandler. It does not use the
// module's context, because a request can outlive its configuration.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	switch {
	case h.handsOver:
		return h.serveOrFail(w, r, next)
	case h.api.Serve(w, r):
		return nil
	case h.home && isHome(r):
		return serveHome(w, r, next)
	}
	return next.ServeHTTP(w, r)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ zapcore.ObjectMarshaler     = (*Handler)(nil)
)

// requestEnvironment tells what Caddy knows of a request.
var requestEnvironment = environment.Environment{
	User: func(r *http.Request) (user string) {
		if values, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
			user, _ = values.GetString("http.auth.user.id")
		}
		return user
	},
	ClientIP: func(r *http.Request) string {
		text, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
		return text
	},
	Original: func(r *http.Request) *url.URL {
		if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
			return original.URL
		}
		return r.URL
	},
	Trusted: func(r *http.Request) bool {
		trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
		return trusted
	},
	Hide: func(r *http.Request) { caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true) },
	Provide: func(r *http.Request, value func(name string) (any, bool)) {
		if values, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
			values.Map(value)
		}
	},
	Server: func(r *http.Request) string {
		if server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server != nil {
			return server.Name()
		}
		return ""
	},
}

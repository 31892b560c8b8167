package caddyhttp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
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

	shared   sharedRef
	app      *App
	resolved *resolved
	routes   routeTable
	has      siteRoutes

	configActions []configAction

	streams *streams

	log      *zap.Logger
	refusals *refusalLog
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
	h.resolved.devices = newKeyDevices(h.app, h.resolved)
	for name := range h.Keys {
		h.resolved.keys[name].ofSite = true
	}
	if err := h.checkEffects(); err != nil {
		return logRejected(h.log, err)
	}
	owner := h.configsOwner(h)
	if h.Configs == nil {
		owner = h.app.configsOwner(h.app)
	}
	if h.resolved.saved, err = newSavedKeys(h.resolved, h.app.saved, owner, true, h.shared.sender, h.log); err != nil {
		return logRejected(h.log, h.Caddyfile.locate("configs", prefixError("configs", err)))
	}
	if err := h.checkReaders(); err != nil {
		return logRejected(h.log, err)
	}
	h.routes, h.configActions = newRouteTable(routeSpecs()), configActions()
	h.has = siteRoutes{queue: h.app.queueSettings != nil, configs: h.resolved.saved != nil, push: h.resolved.push != nil, console: h.resolved.managers != nil && h.resolved.page, inbox: h.app.queueSettings != nil && h.resolved.hasInboxes()}
	h.streams = &streams{ending: make(chan struct{})}
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && h.has.inbox {
		server.RegisterOnShutdown(h.streams.stop)
	}
	h.Caddyfile.trim()
	return logRejected(h.log, h.app.addSite(ctx, h))
}

// Cleanup implements caddy.CleanerUpper. Requests under way finish.
func (h *Handler) Cleanup() error {
	h.streams.stop()
	if h.resolved != nil {
		h.resolved.saved.close()
	}
	return h.shared.release()
}

// ServeHTTP implements caddyhttp.MiddlewareHandler. It does not use the
// module's context, because a request can outlive its configuration.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	at, ok, err := h.routes.parseRequest(r, &h.has)
	if !ok {
		return next.ServeHTTP(w, r)
	}
	h.hideInvitation(r)
	w = answerEarly(w, r)
	var resp *api.Response
	if err == nil {
		resp = at.serve(h, w, r, &at)
	} else {
		resp = h.refuseConfigID(r, &at, err)
	}
	if resp == nil {
		return nil
	}
	if c := h.log.Check(zapcore.DebugLevel, "request rejected"); c != nil && resp.Status/100 == 4 {
		c.Write(zap.Int("status", resp.Status), zap.String("reason", resp.Error))
	}
	if resp.Status == http.StatusUnauthorized {
		askForSecret(w, at.access)
	}
	if h.has.console && api.PrefersHTML(r) {
		resp.Frame = h.frame(r, "")
	}
	resp.Write(w, r)
	return nil
}

// serveNotify answers a request for a key or, without one, for messages with URLs:
// a message, a preview, or the page.
func (h *Handler) serveNotify(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	beat, isBeat := beatQuery(r)
	switch {
	case at.key != "" && isInvited(r):
		return h.serveInvited(w, r, at.key)
	case isBeat:
		return h.serveBeat(w, r, at, beat)
	case r.Method != http.MethodPost:
		resp := h.servePage(w, r, at.key)
		if resp != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.refuse(r, at.key, resp.Status, resp.Error, nil)
		}
		return resp
	case isPreview(r.URL.RawQuery) && at.byHeader:
		return h.servePreview(w, r, "") // it sends nothing
	case isPreview(r.URL.RawQuery):
		return h.servePreview(w, r, at.key)
	case at.byHeader:
		return h.notifyNamed(w, r, at)
	}
	return h.notify(w, r, at.key)
}

// serveOpenAPI writes the description of the API.
func (h *Handler) serveOpenAPI(w http.ResponseWriter, r *http.Request, _ *route) *api.Response {
	if strings.HasSuffix(r.URL.Path, "/") {
		// The description names the server relative to its own address.
		return api.Errorf(http.StatusNotFound, "the address of the API's description has no slash at the end; remove it").Response()
	}
	if err := api.ServeOpenAPI(w, r, version); err != nil {
		return h.errorResponse(err)
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

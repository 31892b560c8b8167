package caddyhttp

import (
	"net/http"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/version"
)

// httpAPI answers the requests of a site.
type httpAPI struct {
	resolved *site.Site
	app      *gateway.Gateway
	shared   *dispatch.Dispatcher
	saved    *saved.Keys // nil if the site has none
	routes   routeTable
	has      siteRoutes
	pages    pageFuncs

	configActions []configAction

	streams *inbox.Streams

	log      *zap.Logger
	refusals refusalLog
}

// pageFuncs are what the pages do for the API.
type pageFuncs struct {
	console  func(w http.ResponseWriter, r *http.Request, at *route) *api.Response // answers a request to the console
	appFile  func(w http.ResponseWriter, r *http.Request, at *route) *api.Response // writes a file of the app for devices
	manifest func(w http.ResponseWriter, r *http.Request, at *route) *api.Response
	send     func(w http.ResponseWriter, r *http.Request, key string) *api.Response // writes the page to send from
	preview  func(w http.ResponseWriter, r *http.Request, key string) *api.Response // writes a message as it will look
	invited  func(w http.ResponseWriter, r *http.Request, key string) *api.Response // writes the page of an invitation

	keys     func(w http.ResponseWriter, r *http.Request, key string) error // writes the list of keys
	draft    func(w http.ResponseWriter, r *http.Request, key string, status int, d *draft) error
	newToken func(w http.ResponseWriter, r *http.Request, key, token string, count int) error

	// actions are those of the page of a saved key.
	actions []configAction

	// frame returns what surrounds a page for the client of r. here is the route of the
	// place that the page is in; "" for none.
	frame func(r *http.Request, here string) view.Frame
}

// prepare makes the API ready for requests. The site is complete.
func (h *httpAPI) prepare(pages pageFuncs) {
	h.pages = pages
	h.routes, h.configActions = newRouteTable(routeSpecs()), configActions(pages.actions)
	h.has = siteRoutes{queue: h.app.QueueSettings != nil, configs: h.saved != nil, push: h.resolved.Push != nil, console: h.resolved.Managers != nil && h.resolved.Page, inbox: h.app.QueueSettings != nil && h.resolved.HasInboxes()}
	h.streams = &inbox.Streams{Ending: make(chan struct{})}
}

// serve answers a request, and reports whether its path is one of the gateway.
func (h *httpAPI) serve(w http.ResponseWriter, r *http.Request) bool {
	at, ok, err := h.routes.parseRequest(r, &h.has)
	if !ok {
		return false
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
		return true
	}
	if c := h.log.Check(zapcore.DebugLevel, "request rejected"); c != nil && resp.Status/100 == 4 {
		c.Write(zap.Int("status", resp.Status), zap.String("reason", resp.Error))
	}
	if resp.Status == http.StatusUnauthorized {
		site.AskForSecret(w, at.access)
	}
	if h.has.console && api.PrefersHTML(r) {
		resp.Frame = h.pages.frame(r, "")
	}
	resp.Write(w, r)
	return true
}

// site returns the ID of the site.
func (h *httpAPI) site() string { return h.app.SiteOf(h.resolved) }

// writePage writes a page in its frame. here is as in frame.
func (h *httpAPI) writePage(w http.ResponseWriter, r *http.Request, status int, here string, p view.Page) error {
	return view.Write(w, r, status, h.pages.frame(r, here), p)
}

// serveNotify answers a request for a key or, without one, for messages with URLs:
// a message, a preview, or the page.
func (h *httpAPI) serveNotify(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	beat, isBeat := beatQuery(r)
	switch {
	case at.key != "" && isInvited(r):
		return h.pages.invited(w, r, at.key)
	case isBeat:
		return h.serveBeat(w, r, at, beat)
	case r.Method != http.MethodPost:
		resp := h.pages.send(w, r, at.key)
		if resp != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.refuse(r, at.key, resp.Status, resp.Error, nil)
		}
		return resp
	case isPreview(r.URL.RawQuery) && at.byHeader:
		return h.pages.preview(w, r, "") // it sends nothing
	case isPreview(r.URL.RawQuery):
		return h.pages.preview(w, r, at.key)
	case at.byHeader:
		return h.notifyNamed(w, r, at)
	}
	return h.notify(w, r, at.key)
}

// serveOpenAPI writes the description of the API.
func (h *httpAPI) serveOpenAPI(w http.ResponseWriter, r *http.Request, _ *route) *api.Response {
	if strings.HasSuffix(r.URL.Path, "/") {
		// The description names the server relative to its own address.
		return api.Errorf(http.StatusNotFound, "the address of the API's description has no slash at the end; remove it").Response()
	}
	if err := api.ServeOpenAPI(w, r, version.Current); err != nil {
		return h.errorResponse(err)
	}
	return nil
}

package console

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
)

// Pages writes the console of a site, and the frame of all its pages. Each page is a small
// type of its own.
type Pages struct {
	*shared
	places  []consolePlace
	actions []consoleAction
	send    *sendPages
}

// shared is what every page is built on.
type shared struct {
	*httpapi.Base
	api *httpapi.API
}

// New returns what the pages of a site do.
func New(h *httpapi.API) httpapi.PageFuncs {
	base := &shared{h.Base, h}
	messages := &messagePages{base, &queueActions{base}}
	add := &builder{base}
	key := &keyPages{base, add, messages}
	p := &pageSet{
		page: key, builder: add, messages: messages,
		queue: messages.queue, tests: &keyTests{base, key, add}, devices: &keyDevices{base, key},
		keys: &keysPage{base}, queued: &queuePage{base, messages.queue}, incidents: &incidentPages{base}, silences: &silencePages{base},
	}
	p.now = &nowPage{base, p.keys, messages.queue, p.incidents}
	send, files := &sendPages{base, key}, &appFiles{base}
	console := &Pages{base, p.places(), p.consoleActions(), send}
	return httpapi.PageFuncs{
		Console: console.serveConsole, AppFile: files.serveAppFile, Manifest: files.serveManifest, Send: send.servePage, Preview: send.servePreview, Invited: send.serveInvited,
		Keys: p.keys.serveKeysPage, Draft: key.writeKeyPage, NewToken: key.writeNewToken, Frame: console.frame, Actions: p.keyActions(),
	}
}

// pageSet has the pages of keys and of the console.
type pageSet struct {
	page      *keyPages
	builder   *builder
	messages  *messagePages
	queue     *queueActions
	tests     *keyTests
	devices   *keyDevices
	keys      *keysPage
	queued    *queuePage
	incidents *incidentPages
	silences  *silencePages
	now       *nowPage
}

// keyFunc answers a request to a page of a key.
type keyFunc func(w http.ResponseWriter, r *http.Request, key string) error

// ofKey returns do for the key of a route.
func ofKey(do keyFunc) consoleFunc {
	return func(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error { return do(w, r, at.Key) }
}

// keyActions returns the actions at /cfg/{KEY}.
func (p *pageSet) keyActions() []httpapi.ConfigAction {
	return []httpapi.ConfigAction{
		{Pattern: httpapi.RouteKey, Change: false, Query: "", Fixed: true, Do: ofKey(p.page.serveKeyPage)},
		{Pattern: httpapi.RouteKey, Change: true, Query: testQuery, Fixed: true, Do: ofKey(p.tests.serveTest)},
		{Pattern: httpapi.RouteKey, Change: true, Query: retryQuery, Fixed: true, Do: ofKey(p.queue.retryQueued)},
		{Pattern: httpapi.RouteKey, Change: true, Query: dropQuery, Fixed: true, Do: ofKey(p.queue.dropQueued)},
		{Pattern: httpapi.RouteKey, Change: true, Query: buildQuery, Fixed: true, Do: ofKey(p.builder.postBuilder)},
	}
}

// consolePlace is an entry of the navigation.
type consolePlace struct {
	name  string
	route string
	on    func(s *httpapi.SiteRoutes) bool // nil for always
}

// places returns the navigation of the console.
func (p *pageSet) places() []consolePlace {
	return []consolePlace{
		{"Now", httpapi.RouteConsole, nil},
		{"Messages", httpapi.RouteConsoleMessages, nil},
		{"Keys", httpapi.RouteConsoleKeys, nil},
		{"Queue", httpapi.RouteConsoleQueue, httpapi.WithQueue},
		{"Silences", httpapi.RouteConsoleSilences, httpapi.WithQueue},
	}
}

// frame returns what surrounds a page for the client of r. here is the route of the
// place that the page is in; "" for none.
func (h *Pages) frame(r *http.Request, here string) view.Frame {
	f := view.Frame{Root: api.RootOf(r.URL.Path)}
	if !h.Has.Console || h.MayManage(r) != nil {
		return f
	}
	f.User = environment.User(r)
	for _, p := range h.places {
		if p.on != nil && !p.on(&h.Has) {
			continue
		}
		place := view.Place{Name: p.name, Address: f.Root + p.route[1:], Here: p.route == here}
		if p.route == httpapi.RouteConsole {
			s := h.situation(r.Context())
			place.Counts = true
			place.Count, place.Trouble = s.trouble()
		}
		f.Places = append(f.Places, place)
	}
	return f
}

// consoleFunc answers a request to a page of the console.
type consoleFunc func(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error

// consoleAction is what a request to a route of the console does.
type consoleAction struct {
	pattern string // of the route
	change  bool   // a POST rather than a GET or HEAD
	query   string // a parameter that the query must have; "" for none
	do      consoleFunc
}

// consoleActions returns the actions of the console. If several match a request, the first
// counts.
func (p *pageSet) consoleActions() []consoleAction {
	return []consoleAction{
		{httpapi.RouteConsole, false, "", p.now.serveNowPage},
		{httpapi.RouteConsole, true, acknowledgeQuery, p.incidents.postIncident(acknowledgeQuery)},
		{httpapi.RouteConsole, true, resolveQuery, p.incidents.postIncident(resolveQuery)},
		{httpapi.RouteConsole, true, hurryQuery, p.queued.hurryQueue},
		{httpapi.RouteConsoleKeys, false, "", ofKey(p.keys.serveKeysPage)},
		{httpapi.RouteConsoleKey, false, "", ofKey(p.page.serveKeyPage)},
		{httpapi.RouteConsoleKey, true, buildQuery, ofKey(p.builder.postBuilder)},
		{httpapi.RouteConsoleKey, true, testQuery, ofKey(p.tests.serveTest)},
		{httpapi.RouteConsoleKey, true, retryQuery, ofKey(p.queue.retryQueued)},
		{httpapi.RouteConsoleKey, true, dropQuery, ofKey(p.queue.dropKey)},
		{httpapi.RouteConsoleKey, true, hurryQuery, ofKey(p.queue.hurryKey)},
		{httpapi.RouteConsoleKey, true, httpapi.InviteQuery, ofKey(p.devices.postInvite)},
		{httpapi.RouteConsoleKey, true, revokeQuery, ofKey(p.devices.postRevoke)},
		{httpapi.RouteConsoleMessages, false, "", p.messages.serveMessagesPage},
		{httpapi.RouteConsoleMessage, false, "", p.messages.serveMessagePage},
		{httpapi.RouteConsoleMessage, true, retryQuery, p.messages.change(retryQuery, retryMessage)},
		{httpapi.RouteConsoleMessage, true, dropQuery, p.messages.change(dropQuery, dropMessage)},
		{httpapi.RouteConsoleQueue, false, "", p.queued.serveQueuePage},
		{httpapi.RouteConsoleQueue, true, hurryQuery, p.queued.hurryQueue},
		{httpapi.RouteConsoleQueue, true, dropQuery, p.queued.dropQueue},
		{httpapi.RouteConsoleIncidents, false, "", p.incidents.serveIncidentsPage},
		{httpapi.RouteConsoleIncidents, true, acknowledgeQuery, p.incidents.postIncident(acknowledgeQuery)},
		{httpapi.RouteConsoleIncidents, true, resolveQuery, p.incidents.postIncident(resolveQuery)},
		{httpapi.RouteConsoleIncidents, true, forgetQuery, p.incidents.postForget},
		{httpapi.RouteConsoleSilences, false, "", p.silences.serveSilencesPage},
		{httpapi.RouteConsoleSilences, true, makeQuery, p.silences.postSilence},
		{httpapi.RouteConsoleSilences, true, endQuery, p.silences.postSilenceEnd},
	}
}

// serveConsole answers a request to a page of the console.
func (h *Pages) serveConsole(w http.ResponseWriter, r *http.Request, at *httpapi.Route) *api.Response {
	err := h.checkConsole(w, r, at)
	if err == nil && at.Pattern == httpapi.RouteConsoleKey && r.URL.Query().Has(sendQuery) {
		return h.send.serveManaged(w, r, at)
	}
	if err == nil {
		err = h.doConsole(w, r, at)
	}
	if err == nil {
		return nil
	}
	resp := h.ErrorResponse(err)
	if resp.Status == http.StatusForbidden {
		resp.Title = "You cannot use the console"
	}
	if httpapi.IsChange(r) {
		resp.Title, resp.BackURL = "Not changed", httpapi.RelativeAddress(r)
		h.Refuse(r, at.Lookup(), resp.Status, resp.Error, err)
	}
	return resp
}

// checkConsole returns an error if the client of r may not do what it asks of the console.
func (h *Pages) checkConsole(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
	if err := at.CheckMethod(w, r); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.MayManage(r); err != nil {
		return err
	}
	if httpapi.IsChange(r) {
		return httpapi.CheckOwnOrigin(r)
	}
	return nil
}

// doConsole answers a request that checkConsole lets through.
func (h *Pages) doConsole(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
	query, change := r.URL.Query(), httpapi.IsChange(r)
	for _, a := range h.actions {
		if a.pattern == at.Pattern && a.change == change && (a.query == "" || query.Has(a.query)) {
			return a.do(w, r, at)
		}
	}
	return api.Errorf(http.StatusBadRequest, "there is nothing to do; use the buttons of the page")
}

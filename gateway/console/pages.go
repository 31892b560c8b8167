package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// Pages writes the pages of a site.
type Pages struct {
	*httpapi.API
}

// New returns what the pages of a site do.
func New(h *httpapi.API) httpapi.PageFuncs {
	p := &Pages{h}
	action := func(do func(w http.ResponseWriter, r *http.Request, key string) error) func(*httpapi.API, http.ResponseWriter, *http.Request, string) error {
		return func(_ *httpapi.API, w http.ResponseWriter, r *http.Request, key string) error { return do(w, r, key) }
	}
	return httpapi.PageFuncs{
		Console: p.serveConsole, AppFile: p.serveAppFile, Manifest: p.serveManifest, Send: p.servePage, Preview: p.servePreview, Invited: p.serveInvited,
		Keys: p.serveKeysPage, Draft: p.writeKeyPage, NewToken: p.writeNewToken, Frame: p.frame,
		Actions: []httpapi.ConfigAction{
			{Pattern: httpapi.RouteKey, Change: false, Query: "", Fixed: true, Do: action(p.serveKeyPage)},
			{Pattern: httpapi.RouteKey, Change: true, Query: testQuery, Fixed: true, Do: action(p.serveTest)},
			{Pattern: httpapi.RouteKey, Change: true, Query: retryQuery, Fixed: true, Do: action(p.retryQueued)},
			{Pattern: httpapi.RouteKey, Change: true, Query: dropQuery, Fixed: true, Do: action(p.dropQueued)},
			{Pattern: httpapi.RouteKey, Change: true, Query: buildQuery, Fixed: true, Do: action(p.postBuilder)},
		},
	}
}

// consolePlace is an entry of the navigation.
type consolePlace struct {
	name    string
	route   string
	on      func(s *httpapi.SiteRoutes) bool // nil for always
	trouble func(h *Pages) (t string)        // what is wrong there; nil for nothing
}

func consolePlaces() []consolePlace {
	return []consolePlace{
		{"Keys", httpapi.RouteConsole, nil, nil},
		{"Messages", httpapi.RouteConsoleMessages, nil, nil},
		{"Queue", httpapi.RouteConsoleQueue, httpapi.WithQueue, (*Pages).queueTrouble},
		{"Incidents", httpapi.RouteConsoleIncidents, httpapi.WithQueue, (*Pages).incidentTrouble},
		{"Silences", httpapi.RouteConsoleSilences, httpapi.WithQueue, nil},
	}
}

// queueTrouble returns how many of the operator's destinations are down, or "". It
// costs nothing, because each page of the console has it.
func (h *Pages) queueTrouble() string {
	select {
	case <-h.App.Engine.Started:
	default:
		return ""
	}
	if h.App.Rooms == nil {
		return ""
	}
	if n := h.App.Rooms.Outbox.Queue.Count().Down; n > 0 {
		return fmt.Sprintf("%d down", n)
	}
	return ""
}

// frame returns what surrounds a page for the client of r. here is the route of the
// place that the page is in; "" for none.
func (h *Pages) frame(r *http.Request, here string) view.Frame {
	f := view.Frame{Root: httpapi.RootOf(r.URL.Path)}
	if !h.Has.Console || h.MayManage(r) != nil {
		return f
	}
	f.User = httpapi.RequestUser(r)
	for _, p := range consolePlaces() {
		if p.on != nil && !p.on(&h.Has) {
			continue
		}
		place := view.Place{Name: p.name, Address: f.Root + p.route[1:], Here: p.route == here}
		if p.trouble != nil {
			place.Trouble = p.trouble(h)
		}
		f.Places = append(f.Places, place)
	}
	return f
}

// consoleAction is what a request to a route of the console does.
type consoleAction struct {
	pattern string // of the route
	change  bool   // a POST rather than a GET or HEAD
	query   string // a parameter that the query must have; "" for none
	do      func(h *Pages, w http.ResponseWriter, r *http.Request, at *httpapi.Route) error
}

// consoleActions returns the actions. If several match a request, the first counts.
func consoleActions() []consoleAction {
	ofKey := func(do func(h *Pages, w http.ResponseWriter, r *http.Request, key string) error) func(*Pages, http.ResponseWriter, *http.Request, *httpapi.Route) error {
		return func(h *Pages, w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
			return do(h, w, r, at.Key)
		}
	}
	return []consoleAction{
		{httpapi.RouteConsole, false, "", ofKey((*Pages).serveKeysPage)},
		{httpapi.RouteConsoleKey, false, "", ofKey((*Pages).serveKeyPage)},
		{httpapi.RouteConsoleKey, true, buildQuery, ofKey((*Pages).postBuilder)},
		{httpapi.RouteConsoleKey, true, testQuery, ofKey((*Pages).serveTest)},
		{httpapi.RouteConsoleKey, true, retryQuery, ofKey((*Pages).retryQueued)},
		{httpapi.RouteConsoleKey, true, dropQuery, ofKey((*Pages).dropKey)},
		{httpapi.RouteConsoleKey, true, hurryQuery, ofKey((*Pages).hurryKey)},
		{httpapi.RouteConsoleKey, true, httpapi.InviteQuery, ofKey((*Pages).postInvite)},
		{httpapi.RouteConsoleKey, true, revokeQuery, ofKey((*Pages).postRevoke)},
		{httpapi.RouteConsoleMessages, false, "", (*Pages).serveMessagesPage},
		{httpapi.RouteConsoleMessage, false, "", (*Pages).serveMessagePage},
		{httpapi.RouteConsoleMessage, true, retryQuery, changeMessagePage(retryQuery, outbox.RetryMessage)},
		{httpapi.RouteConsoleMessage, true, dropQuery, changeMessagePage(dropQuery, outbox.DropMessage)},
		{httpapi.RouteConsoleQueue, false, "", (*Pages).serveQueuePage},
		{httpapi.RouteConsoleQueue, true, hurryQuery, (*Pages).hurryQueue},
		{httpapi.RouteConsoleQueue, true, dropQuery, (*Pages).dropQueue},
		{httpapi.RouteConsoleIncidents, false, "", (*Pages).serveIncidentsPage},
		{httpapi.RouteConsoleIncidents, true, forgetQuery, (*Pages).postForget},
		{httpapi.RouteConsoleSilences, false, "", (*Pages).serveSilencesPage},
		{httpapi.RouteConsoleSilences, true, makeQuery, (*Pages).postSilence},
		{httpapi.RouteConsoleSilences, true, endQuery, (*Pages).postSilenceEnd},
	}
}

// serveConsole answers a request to a page of the console.
func (h *Pages) serveConsole(w http.ResponseWriter, r *http.Request, at *httpapi.Route) *api.Response {
	err := h.doConsole(w, r, at)
	if err == nil {
		return nil
	}
	resp := h.ErrorResponse(err)
	if resp.Status == http.StatusForbidden {
		resp.Title = "You cannot use the console"
	}
	if httpapi.IsChange(r) {
		resp.Title, resp.BackURL = "Not changed", httpapi.RelativeAddress(r)
		h.Refuse(r, at.Key, resp.Status, resp.Error, err)
	}
	return resp
}

func (h *Pages) doConsole(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
	if !slices.Contains(at.Methods, r.Method) {
		w.Header().Set("Allow", strings.Join(at.Methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method, at.Methods[0])
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.MayManage(r); err != nil {
		return err
	}
	change := httpapi.IsChange(r)
	if change {
		if err := httpapi.CheckOwnOrigin(r); err != nil {
			return err
		}
	}
	query := r.URL.Query()
	for _, a := range consoleActions() {
		if a.pattern == at.Pattern && a.change == change && (a.query == "" || query.Has(a.query)) {
			return a.do(h, w, r, at)
		}
	}
	return api.Errorf(http.StatusBadRequest, "there is nothing to do; use the buttons of the page")
}

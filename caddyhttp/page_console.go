package caddyhttp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// pages writes the pages of a site.
type pages struct {
	*httpAPI
}

// newPages returns what the pages of a site do.
func newPages(h *httpAPI) pageFuncs {
	p := &pages{h}
	action := func(do func(w http.ResponseWriter, r *http.Request, key string) error) func(*httpAPI, http.ResponseWriter, *http.Request, string) error {
		return func(_ *httpAPI, w http.ResponseWriter, r *http.Request, key string) error { return do(w, r, key) }
	}
	return pageFuncs{
		console: p.serveConsole, appFile: p.serveAppFile, manifest: p.serveManifest, send: p.servePage, preview: p.servePreview, invited: p.serveInvited,
		keys: p.serveKeysPage, draft: p.writeKeyPage, newToken: p.writeNewToken, frame: p.frame,
		actions: []configAction{
			{routeKey, false, "", true, action(p.serveKeyPage)},
			{routeKey, true, testQuery, true, action(p.serveTest)},
			{routeKey, true, retryQuery, true, action(p.retryQueued)},
			{routeKey, true, dropQuery, true, action(p.dropQueued)},
			{routeKey, true, buildQuery, true, action(p.postBuilder)},
		},
	}
}

// consolePlace is an entry of the navigation.
type consolePlace struct {
	name    string
	route   string
	on      func(s *siteRoutes) bool  // nil for always
	trouble func(h *pages) (t string) // what is wrong there; nil for nothing
}

func consolePlaces() []consolePlace {
	return []consolePlace{
		{"Keys", routeConsole, nil, nil},
		{"Messages", routeConsoleMessages, nil, nil},
		{"Queue", routeConsoleQueue, withQueue, (*pages).queueTrouble},
		{"Incidents", routeConsoleIncidents, withQueue, (*pages).incidentTrouble},
		{"Silences", routeConsoleSilences, withQueue, nil},
	}
}

// queueTrouble returns how many of the operator's destinations are down, or "". It
// costs nothing, because each page of the console has it.
func (h *pages) queueTrouble() string {
	select {
	case <-h.app.Started:
	default:
		return ""
	}
	if h.app.Rooms == nil {
		return ""
	}
	if n := h.app.Rooms.Count().Down; n > 0 {
		return fmt.Sprintf("%d down", n)
	}
	return ""
}

// frame returns what surrounds a page for the client of r. here is the route of the
// place that the page is in; "" for none.
func (h *pages) frame(r *http.Request, here string) view.Frame {
	f := view.Frame{Root: rootOf(r.URL.Path)}
	if !h.has.console || h.mayManage(r) != nil {
		return f
	}
	f.User = requestUser(r)
	for _, p := range consolePlaces() {
		if p.on != nil && !p.on(&h.has) {
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
	do      func(h *pages, w http.ResponseWriter, r *http.Request, at *route) error
}

// consoleActions returns the actions. If several match a request, the first counts.
func consoleActions() []consoleAction {
	ofKey := func(do func(h *pages, w http.ResponseWriter, r *http.Request, key string) error) func(*pages, http.ResponseWriter, *http.Request, *route) error {
		return func(h *pages, w http.ResponseWriter, r *http.Request, at *route) error { return do(h, w, r, at.key) }
	}
	return []consoleAction{
		{routeConsole, false, "", ofKey((*pages).serveKeysPage)},
		{routeConsoleKey, false, "", ofKey((*pages).serveKeyPage)},
		{routeConsoleKey, true, buildQuery, ofKey((*pages).postBuilder)},
		{routeConsoleKey, true, testQuery, ofKey((*pages).serveTest)},
		{routeConsoleKey, true, retryQuery, ofKey((*pages).retryQueued)},
		{routeConsoleKey, true, dropQuery, ofKey((*pages).dropKey)},
		{routeConsoleKey, true, hurryQuery, ofKey((*pages).hurryKey)},
		{routeConsoleKey, true, inviteQuery, ofKey((*pages).postInvite)},
		{routeConsoleKey, true, revokeQuery, ofKey((*pages).postRevoke)},
		{routeConsoleMessages, false, "", (*pages).serveMessagesPage},
		{routeConsoleMessage, false, "", (*pages).serveMessagePage},
		{routeConsoleMessage, true, retryQuery, changeMessagePage(retryQuery, outbox.RetryMessage)},
		{routeConsoleMessage, true, dropQuery, changeMessagePage(dropQuery, outbox.DropMessage)},
		{routeConsoleQueue, false, "", (*pages).serveQueuePage},
		{routeConsoleQueue, true, hurryQuery, (*pages).hurryQueue},
		{routeConsoleQueue, true, dropQuery, (*pages).dropQueue},
		{routeConsoleIncidents, false, "", (*pages).serveIncidentsPage},
		{routeConsoleIncidents, true, forgetQuery, (*pages).postForget},
		{routeConsoleSilences, false, "", (*pages).serveSilencesPage},
		{routeConsoleSilences, true, makeQuery, (*pages).postSilence},
		{routeConsoleSilences, true, endQuery, (*pages).postSilenceEnd},
	}
}

// serveConsole answers a request to a page of the console.
func (h *pages) serveConsole(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	err := h.doConsole(w, r, at)
	if err == nil {
		return nil
	}
	resp := h.errorResponse(err)
	if resp.Status == http.StatusForbidden {
		resp.Title = "You cannot use the console"
	}
	if isChange(r) {
		resp.Title, resp.BackURL = "Not changed", relativeAddress(r)
		h.refuse(r, at.key, resp.Status, resp.Error, err)
	}
	return resp
}

func (h *pages) doConsole(w http.ResponseWriter, r *http.Request, at *route) error {
	if !slices.Contains(at.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(at.methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method, at.methods[0])
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.mayManage(r); err != nil {
		return err
	}
	change := isChange(r)
	if change {
		if err := checkOwnOrigin(r); err != nil {
			return err
		}
	}
	query := r.URL.Query()
	for _, a := range consoleActions() {
		if a.pattern == at.pattern && a.change == change && (a.query == "" || query.Has(a.query)) {
			return a.do(h, w, r, at)
		}
	}
	return api.Errorf(http.StatusBadRequest, "there is nothing to do; use the buttons of the page")
}

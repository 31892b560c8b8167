package console

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/bars"
	"github.com/caddy-notify/caddy-notify/gateway/console/beats"
	"github.com/caddy-notify/caddy-notify/gateway/console/failures"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/openapi"
)

// shared is the part that all pages have in common.
type shared struct {
	*httpapi.Base
	api      *httpapi.API
	failures failures.Open
}

// New returns the functions for the pages of a site.
func New(h *httpapi.API) httpapi.PageFuncs {
	base := &shared{Base: h.Base, api: h}
	messages := &messagePages{base, &queueActions{base}}
	add := &builder{base}
	key := &keyPages{base, add, messages}
	p := &pageSet{
		page: key, builder: add, messages: messages,
		queue: messages.queue, tests: &keyTests{base, key, add}, devices: &keyDevices{base, key},
		keys: &keysPage{base}, queued: &queuePage{base, messages.queue}, incidents: &incidentPages{base}, silences: &silencePages{base, messages},
		beats: beats.Pages{API: h},
	}
	p.now = &nowPage{base, p.keys, messages, p.incidents}
	p.send = &sendPages{base, key}
	files := &appFiles{base}
	return httpapi.PageFuncs{
		AppFile: files.serveAppFile, Manifest: files.serveManifest, Send: p.send.servePage, Preview: p.send.servePreview,
		Invited: p.send.serveInvited,
		Draft:   key.writeKeyPage, NewToken: key.writeNewToken, Frame: base.frame, Actions: p.actions(),
	}
}

// bars returns the bars of the site. q is nil without a queue, or if it cannot be read.
func (h *shared) bars(r *http.Request, q *gateway.Rooms) *bars.Bars {
	return bars.New(r.Context(), h.Site(), q, &h.Shared.Tally, httpapi.AddressOf(r, httpapi.RouteConsoleMessages))
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
	beats     beats.Pages
	now       *nowPage
	send      *sendPages
}

// consolePlace is an entry of the navigation.
type consolePlace struct {
	name  string
	route string
	on    func(s *httpapi.SiteRoutes) bool // whether it is shown; nil for always
}

// places is the navigation of the console.
var places = []consolePlace{
	{"Now", httpapi.RouteConsole, nil},
	{"Messages", httpapi.RouteConsoleMessages, nil},
	{"Keys", httpapi.RouteConsoleKeys, nil},
	{"Beats", httpapi.RouteConsoleBeats, httpapi.WithBeats},
	{"Queue", httpapi.RouteConsoleQueue, httpapi.WithQueue},
	{"Silences", httpapi.RouteConsoleSilences, httpapi.WithQueue},
}

// frame returns the frame of a page for the client of r. here is the route of the page's place; ""
// for none.
func (h *shared) frame(r *http.Request, here string) view.Frame {
	f := view.Frame{Root: api.RootOf(r.URL.Path)}
	if !h.Has.Console || h.MayManage(r) != nil {
		return f
	}
	f.User = environment.User(r)
	for _, p := range places {
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

// actions returns the handling of requests to the pages. Programs also use ?test of a key.
func (p *pageSet) actions() []httpapi.Action {
	get := func(pattern, query string, do httpapi.ActionFunc) httpapi.Action {
		return httpapi.Action{Pattern: pattern, Query: query, Do: do}
	}
	post := func(pattern, query string, do httpapi.ActionFunc) httpapi.Action {
		return httpapi.Action{Pattern: pattern, Query: query, Do: do, Change: true}
	}
	key := httpapi.OfKey
	acknowledge, resolve := p.incidents.postIncident(acknowledgeQuery), p.incidents.postIncident(resolveQuery)
	return []httpapi.Action{
		get(httpapi.RouteConsole, "", p.now.serveNowPage),
		post(httpapi.RouteConsole, acknowledgeQuery, acknowledge),
		post(httpapi.RouteConsole, resolveQuery, resolve),
		post(httpapi.RouteConsole, hurryQuery, p.queued.hurryQueue),
		get(httpapi.RouteConsoleKeys, "", p.keys.serveKeysPage),
		get(httpapi.RouteConsoleKey, sendQuery, p.send.serveManaged),
		post(httpapi.RouteConsoleKey, sendQuery, p.send.serveManaged),
		get(httpapi.RouteConsoleKey, "", key(p.page.serveKeyPage)),
		post(httpapi.RouteConsoleKey, buildQuery, key(p.builder.postBuilder)),
		post(httpapi.RouteConsoleKey, testQuery, key(p.tests.serveTest)),
		{Pattern: httpapi.RouteKey, Query: testQuery, Do: key(p.tests.serveTest), Change: true, About: openapi.TestQuery()},
		post(httpapi.RouteConsoleKey, retryQuery, key(p.queue.retryQueued)),
		post(httpapi.RouteConsoleKey, dropQuery, key(p.queue.dropKey)),
		post(httpapi.RouteConsoleKey, hurryQuery, key(p.queue.hurryKey)),
		post(httpapi.RouteConsoleKey, httpapi.InviteQuery, key(p.devices.postInvite)),
		post(httpapi.RouteConsoleKey, revokeQuery, key(p.devices.postRevoke)),
		get(httpapi.RouteConsoleMessages, "", p.messages.serveMessagesPage),
		get(httpapi.RouteConsoleMessage, "", p.messages.serveMessagePage),
		post(httpapi.RouteConsoleMessage, retryQuery, p.messages.change(retryMessage)),
		post(httpapi.RouteConsoleMessage, dropQuery, p.messages.change(dropMessage)),
		post(httpapi.RouteConsoleMessage, withdrawQuery, p.messages.postWithdraw),
		get(httpapi.RouteConsoleQueue, "", p.queued.serveQueuePage),
		post(httpapi.RouteConsoleQueue, hurryQuery, p.queued.hurryQueue),
		post(httpapi.RouteConsoleQueue, dropQuery, p.queued.dropQueue),
		get(httpapi.RouteConsoleBeats, "", p.beats.ServePage),
		get(httpapi.RouteConsoleIncidents, "", p.incidents.serveIncidentsPage),
		post(httpapi.RouteConsoleIncidents, acknowledgeQuery, acknowledge),
		post(httpapi.RouteConsoleIncidents, resolveQuery, resolve),
		post(httpapi.RouteConsoleIncidents, forgetQuery, p.incidents.postForget),
		get(httpapi.RouteConsoleSilences, "", p.silences.serveSilencesPage),
		post(httpapi.RouteConsoleSilences, makeQuery, p.silences.postSilence),
		post(httpapi.RouteConsoleSilences, extendQuery, p.silences.postSilenceLonger),
		post(httpapi.RouteConsoleSilences, endQuery, p.silences.postSilenceEnd),
	}
}

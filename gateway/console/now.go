package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/beats"
	"github.com/caddy-notify/caddy-notify/gateway/console/failures"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// nowPage shows the situation: open incidents, failing destinations, and the keys.
type nowPage struct {
	*shared
	keys      *keysPage
	messages  *messagePages
	incidents *incidentPages
}

// Limits of the page, which links to longer lists.
const (
	maxNowIncidents = 20
	maxNowDown      = 20
	maxNowKeys      = 25
)

// The query parameters of the buttons of incidents.
const (
	acknowledgeQuery = "acknowledge"
	resolveQuery     = "resolve"
)

// keyListQueries are the parameters of the list of keys, which the page's address once showed.
var keyListQueries = []string{"key", "search", "state", "page"}

// serveNowPage shows the situation.
func (h *nowPage) serveNowPage(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	query := r.URL.Query()
	if slices.ContainsFunc(keyListQueries, query.Has) {
		return httpapi.SeeOther(w, httpapi.AddressOf(r, httpapi.RouteConsoleKeys), r.URL.RawQuery)
	}
	names, err := h.keyNames(r.Context())
	if err != nil {
		return err
	}
	p := view.NowPage{
		Root: api.RootOf(r.URL.Path), Now: time.Now(), Keys: len(names), Lost: -1, Done: nowDone(query),
		MayAdd: h.MayManageSaved(r) == nil,
	}
	states, err := h.health(r.Context())
	if err != nil {
		p.Problem = httpapi.ErrQueueUnread
	}
	p.Stored, p.Last = states.q != nil, h.lastMessage(r.Context(), states.q)
	s := h.situation(r.Context())
	if states.q != nil {
		h.setQueue(r, &p, states.q)
		h.setIncidents(r, &p, &s)
		h.setQuestions(r, &p, states.q)
		h.setDown(r, &p, &s)
	}
	h.setFailures(r, &p, &s)
	rough := h.roughStates(states, names)
	names = selectKeys(names, rough, &view.KeysPage{})
	slices.SortStableFunc(names, func(a, b string) int { // quiet keys come last
		switch silent := rough[a] == view.Silent; {
		case silent == (rough[b] == view.Silent):
			return 0
		case silent:
			return 1
		}
		return -1
	})
	p.MoreKeys = max(len(names)-maxNowKeys, 0)
	p.Rows = h.keys.listKeys(r, states, names[:min(len(names), maxNowKeys)])
	above := map[string]bool{}
	for _, t := range p.Troubled {
		for _, d := range t.Destinations {
			for _, k := range d.Keys {
				above[k.Name] = true
			}
		}
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		row.Send, row.Hurry = "", "" // the page of the key has the buttons, and failing destinations are listed above
		if above[row.Name] && row.Health != nil {
			row.Health.Cause = "" // it is above, too
		}
	}
	p.Sentence, p.State = s.sentence(&p)
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsole, p)
}

// nowDone returns a text about what a button of the page has done.
func nowDone(query url.Values) string {
	switch query.Get("done") {
	case acknowledgeQuery:
		if n, err := strconv.Atoi(query.Get("count")); err == nil && n > 1 {
			return fmt.Sprintf("You take care of %d incidents. Nobody else is told.", n)
		}
		return "You take care of it. Nobody else is told."
	case resolveQuery:
		return "It is resolved. Those who were told of it are told that."
	case "over":
		return "Somebody was faster: it was acknowledged before, or it is over."
	}
	return doneText(query)
}

// situation is what needs somebody's attention.
type situation struct {
	open, silenced int // open incidents of which somebody is told, and of which nobody is
	acknowledged   int // incidents
	down, failing  int // failing destinations without a further attempt
	retried        int // failing destinations with a further attempt
	late           int // beats that are late or have failed
	keys           int // failing keys without a destination in the queue
	failures       []failures.Failure
}

// urgent returns, in words, what somebody must do something about, and the number of such things.
func (s *situation) urgent() (n int, parts []string) {
	for _, x := range []struct {
		n            int
		one, several string
	}{
		{s.open, "incident open", "incidents open"},
		{s.down, "destination down", "destinations down"},
		{s.failing, "destination failing", "destinations failing"},
		{s.late, "beat late or failed", "beats late or failed"},
		{s.keys, "key fails", "keys fail"},
	} {
		if n += x.n; x.n > 0 {
			parts = append(parts, view.Count(x.n, x.one, x.several))
		}
	}
	if s.open > 0 && s.silenced > 0 {
		parts[0] += fmt.Sprintf(", %d more silenced", s.silenced)
	}
	return n, parts
}

// sentence returns the situation in words, and its state.
func (s *situation) sentence(p *view.NowPage) (string, view.State) {
	_, parts := s.urgent()
	if p.Problem != "" {
		parts = append([]string{strings.TrimSuffix(p.Problem, ".")}, parts...)
	}
	if p.Watchdog != nil {
		parts = append(parts, "the watchdog is not told")
	}
	state := view.Failing
	if len(parts) == 0 {
		state = view.Waiting
	}
	if s.retried > 0 {
		parts = append(parts, view.Count(s.retried, "destination tried again", "destinations tried again"))
	}
	if s.open == 0 && s.silenced > 0 {
		parts = append(parts, view.Count(s.silenced, "incident silenced", "incidents silenced"))
	}
	if s.acknowledged > 0 {
		parts = append(parts, view.Count(s.acknowledged, "incident acknowledged", "incidents acknowledged"))
	}
	if n := len(p.Questions); n > 0 {
		parts = append(parts, view.Count(n, "question waits for an answer", "questions wait for an answer"))
	}
	if n := len(s.failures); n > 0 {
		parts = append(parts, view.Count(n, "failure", "failures")+", not followed by a success")
	}
	switch {
	case len(parts) > 0:
		return sentenceCase(strings.Join(parts, ", ")), state
	case p.Keys == 0:
		return "No keys yet", view.Silent
	}
	return "All quiet: " + view.Count(p.Keys, "key", "keys"), view.Fine
}

// sentenceCase returns a text with its first letter in upper case.
func sentenceCase(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[size:]
}

// trouble returns the navigation's text about the situation, and its number.
func (s *situation) trouble() (n int, text string) {
	n, parts := s.urgent()
	return n, strings.Join(parts, ", ")
}

// situation returns the site's open incidents and failing destinations. If the queue cannot be
// read, which pages report elsewhere, it leaves out the queue's part.
func (h *shared) situation(ctx context.Context) (s situation) {
	select {
	case <-h.App.Started:
	default:
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	q := h.App.Rooms
	s.keys, s.failures = h.failingKeys(ctx, q), h.failures.Of(ctx, h.Site(), q, &h.Shared.History)
	if q == nil {
		return s
	}
	if h.hasRules() {
		if places, err := alerting.PlacesOfSite(ctx, h.Resolved, h.Site(), "", nil); err == nil {
			s.open, _ = q.Alerts.Incidents.Count(ctx, places, notifier.Open)
			s.silenced, _ = q.Alerts.Incidents.CountSilent(ctx, places)
			s.open = max(s.open-s.silenced, 0) // the one counts now, the other as it was some seconds ago
			s.acknowledged, _ = q.Alerts.Incidents.Count(ctx, places, notifier.Acknowledged)
		}
	}
	for _, k := range h.Resolved.Keys {
		s.late += len((beats.Pages{API: h.api}).Troubles(ctx, q, k))
	}
	if n := q.Outbox.Queue.Destinations.Count(); n.Down+n.Failing > 0 {
		all, _ := h.troubled(ctx, q)
		for _, d := range all {
			switch {
			case d.health.State == view.Down:
				s.down++
			case d.health.State != view.Failing:
			case d.health.Urgent():
				s.failing++
			default:
				s.retried++
			}
		}
	}
	return s
}

// failingKeys returns the number of failing keys of which the queue has no destination: all of them
// without a queue, and otherwise keys that do not use it.
func (h *shared) failingKeys(ctx context.Context, q *gateway.Rooms) (n int) {
	var names []string
	if q == nil {
		names, _ = h.keyNames(ctx) // the page of keys shows the error
	}
	for name, k := range h.Resolved.Keys {
		if q != nil && k.Unqueued {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return 0
	}
	for _, state := range h.roughStates(h.remembered(), names) {
		if state == view.Failing {
			n++
		}
	}
	return n
}

// lastMessage returns the time of the site's latest message, or the zero time if unknown.
func (h *nowPage) lastMessage(ctx context.Context, q *gateway.Rooms) time.Time {
	if q == nil {
		for _, e := range h.Shared.History.List() {
			if e.Site == h.Site() && e.Outcome != site.OutcomeRefused {
				return e.Time
			}
		}
		return time.Time{}
	}
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	entries, _, err := q.Outbox.Messages().Page(ctx, uuid.UUID{}, messagesPerRead)
	if err != nil {
		return time.Time{}
	}
	for _, e := range entries {
		if queued.SiteID(e.Message) == h.Site() {
			return e.Message.Created
		}
	}
	return time.Time{}
}

// setQueue sets the state of the queue as a whole.
func (h *nowPage) setQueue(r *http.Request, p *view.NowPage, q *gateway.Rooms) {
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	p.Watchdog = beats.WatchdogTrouble(ctx, q.Beats)
	s, err := q.Outbox.Queue.Stats(ctx)
	if err != nil {
		p.Problem = httpapi.ErrQueueUnread
		return
	}
	if reason := h.App.Unavailable(ctx); reason != "" {
		p.Problem = "No message can be stored now: " + reason + "."
	}
	if len(h.App.Conf.Sites) == 1 { // the numbers cover all sites
		p.Waiting, p.Lost = s.Sending, s.Dead
		if states, err := q.Outbox.Queue.Destinations.All(ctx); err == nil { // what rules hold does not count as waiting
			for i := range states {
				p.Waiting += states[i].Waiting
			}
		}
	}
}

// setIncidents sets the incidents that are open or acknowledged.
func (h *nowPage) setIncidents(r *http.Request, p *view.NowPage, s *situation) {
	p.AllOpen = p.Root + httpapi.RouteConsoleIncidents[1:]
	if !h.hasRules() {
		return
	}
	p.More = s.open + s.silenced + s.acknowledged
	for _, stage := range []notifier.IncidentState{notifier.Open, notifier.Acknowledged} {
		by := alerting.IncidentQuery{Stage: stage, Limit: maxNowIncidents - len(p.Incidents), Fold: true}
		if by.Limit == 0 {
			break
		}
		rows, _, err := h.api.Incidents.SiteRows(r.Context(), &by)
		if err != nil {
			p.Problem = httpapi.ErrQueueUnread
			return
		}
		for i := range rows {
			row := h.incidents.incidentRows(r, &rows[i], p.Now, p.Root+httpapi.RouteConsole[1:])
			p.Incidents, p.More = append(p.Incidents, row), p.More-rows[i].Count
		}
	}
	p.More = max(p.More, 0)
}

// setDown sets the destinations that fail.
func (h *nowPage) setDown(r *http.Request, p *view.NowPage, s *situation) {
	if s.down+s.failing+s.retried == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	q := h.App.Rooms
	all, err := h.troubled(ctx, q)
	if err != nil {
		p.Problem = httpapi.ErrQueueUnread
		return
	}
	of := h.bars(r, q)
	var shown []view.QueuedDestination
	for _, d := range all {
		if d.health.State != view.Down && d.health.State != view.Failing {
			continue
		}
		if len(shown) == maxNowDown {
			p.MoreDown++
			continue
		}
		shown = append(shown, h.troubledRow(r, of, &d, p.Root+httpapi.RouteConsole[1:]))
	}
	p.Troubled = view.ByState(shown)
}

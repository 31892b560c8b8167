package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/bars"
	"github.com/caddy-notify/caddy-notify/gateway/console/inline"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// messagePages lists and shows messages.
type messagePages struct {
	*shared
	queue *queueActions
}

// Limits of the list of messages.
const (
	maxListedMessages = 50   // per page
	maxMessageScan    = 2000 // messages searched for a page
	messagesPerRead   = 50
)

// messageFilter selects messages. Zero fields select all.
type messageFilter struct {
	key, state, kind string
	since            time.Time
	title            string // a part of it, in any case
	half             bars.Half
}

// fits reports whether the filter, except its title, selects a message or a refusal.
func (f *messageFilter) fits(m *view.ListedMessage) bool {
	return (f.key == "" || f.key == m.Key) && (f.state == "" || f.state == string(m.Outcome)) &&
		(f.kind == "" || f.kind == m.Type) && !m.Time.Before(f.since)
}

// fitsTitle reports whether the filter selects messages with the title, which may be "".
func (f *messageFilter) fitsTitle(title string) bool {
	return strings.Contains(strings.ToLower(title), strings.ToLower(f.title))
}

// messageList is a part of the messages of a site, the latest first.
type messageList struct {
	messages []view.ListedMessage
	stored   bool      // they are from the queue, not the history
	next     uuid.UUID // messages before it come next; zero if there are no more
	scanned  bool      // older messages were not searched, because these were enough
	until    time.Time // time of the oldest searched message
}

// messageSearch looks for messages that came to the site and for refused requests.
type messageSearch struct {
	pages  *messagePages
	r      *http.Request
	filter messageFilter
	titles *titles   // finds titles; nil for none
	before uuid.UUID // searches messages before it; zero for the latest
	scan   int       // maximum number of messages searched

	list messageList // the result
}

// listMessages returns the result of a search in the queue or, without one, in the history.
func (h *messagePages) listMessages(r *http.Request, s messageSearch) (messageList, error) {
	s.pages, s.r = h, r
	q, err := h.App.Open(nil)
	if err != nil {
		return s.list, err
	}
	if q == nil {
		s.addHistory(func(*history.Entry) bool { return true })
		return s.list, nil
	}
	s.list.stored, s.list.next = true, s.before
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	at := s.filter.half.Before()
	if s.before == (uuid.UUID{}) {
		s.list.next = at
	}
	err = s.scanQueue(ctx, q.Outbox.Messages())
	if err == nil && len(s.list.messages) == 0 && s.before == (uuid.UUID{}) && at != s.before { // IDs are later if the clock was set back
		s.list.next = s.before
		err = s.scanQueue(ctx, q.Outbox.Messages())
	}
	if err != nil {
		return s.list, err
	}
	s.addRefusals()
	return s.list, nil
}

// scanQueue adds the messages of the queue that fit, until there are enough, no more follow, or
// s.scan messages were searched.
func (s *messageSearch) scanQueue(ctx context.Context, m outbox.Messages) error {
	for scanned := 0; len(s.list.messages) < maxListedMessages && s.filter.state != string(view.Refused); {
		entries, next, err := m.Page(ctx, s.list.next, messagesPerRead)
		if err != nil {
			return err
		}
		s.list.next = next
		fitting, err := s.fitting(entries)
		if err != nil {
			return err
		}
		if s.titles != nil {
			if err := s.titles.set(ctx, fitting); err != nil {
				return err
			}
		}
		for _, m := range fitting {
			if s.filter.fitsTitle(m.Title) {
				s.list.messages = append(s.list.messages, m)
			}
		}
		if scanned += len(entries); s.list.next == (uuid.UUID{}) {
			return nil
		}
		if scanned >= s.scan {
			s.list.scanned = true
			return nil
		}
	}
	return nil
}

// fitting returns the entries that came to the site and fit, apart from their titles. No more
// follow after one that is too old.
func (s *messageSearch) fitting(entries []*queue.Entry) ([]view.ListedMessage, error) {
	out, siteID := make([]view.ListedMessage, 0, len(entries)), s.pages.Site()
	for _, e := range entries {
		s.list.until = e.Message.Created
		if m := s.pages.queueMessage(s.r, e); m.Time.Before(s.filter.since) {
			s.list.next = uuid.UUID{}
		} else if queued.SiteID(e.Message) == siteID && outbox.SentAs(e) == (uuid.UUID{}) &&
			(m.Outcome != view.Planned || s.filter.state == string(view.Planned)) && s.filter.fits(&m) &&
			s.filter.half.Fits(e, queued.Message(e).Results) {
			if err := s.titles.setKept(&m, e.Message); err != nil {
				return nil, err
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// addRefusals adds the refused requests from the time range of the messages, in order.
func (s *messageSearch) addRefusals() {
	begin, end := time.Time{}, time.Now().Add(time.Hour)
	if s.list.next != (uuid.UUID{}) {
		begin = messageTime(s.list.next)
	}
	if s.before != (uuid.UUID{}) {
		end = messageTime(s.before)
	}
	s.addHistory(func(e *history.Entry) bool {
		return e.Outcome == site.OutcomeRefused && !e.Time.Before(begin) && e.Time.Before(end)
	})
	slices.SortStableFunc(s.list.messages, func(a, b view.ListedMessage) int { return b.Time.Compare(a.Time) })
}

// addHistory adds the entries of the site's history that belong there and fit.
func (s *messageSearch) addHistory(belongs func(*history.Entry) bool) {
	siteID := s.pages.Site()
	for _, e := range s.pages.Shared.History.List() {
		if e.Site != siteID || !belongs(&e) || !s.filter.half.FitsHistory(e.Time, e.Results) {
			continue
		}
		if m := s.pages.historyMessage(s.r, &e); s.filter.fits(&m) && s.filter.fitsTitle("") {
			s.list.messages = append(s.list.messages, m)
		}
	}
}

// historyMessage returns an entry of the history as the pages show it.
func (h *messagePages) historyMessage(r *http.Request, e *history.Entry) view.ListedMessage {
	m := view.ListedMessage{
		Time: e.Time, Source: e.Source, Outcome: view.Outcome(e.Outcome), Incident: e.Incident, Type: string(e.Type),
		Count: e.Count, Client: e.Client,
	}
	if e.Key != "" {
		m.Key, m.KeyAddress = string(e.Key), httpapi.ConsoleKey(r, string(e.Key))
	}
	if e.Outcome == site.OutcomeRefused {
		m.Reason = fmt.Sprintf("%d: %s", e.Status, e.Error)
		return m
	}
	if e.Omitted == 0 {
		results := make([]message.QueuedResult, len(e.Results))
		for i, x := range e.Results {
			results[i].Result = x
		}
		_, m.Says = saysOf(results, "")
	}
	m.Lines, m.More = resultLines(e.Results)
	m.More += e.Omitted
	return m
}

// queueMessage returns a message of the queue as the pages show it.
func (h *messagePages) queueMessage(r *http.Request, e *queue.Entry) view.ListedMessage {
	stored := h.results(r.Context(), e)
	m := view.ListedMessage{
		ID: stored.ID, Address: httpapi.AddressOf(r, httpapi.RouteConsoleMessages) + "/" + stored.ID, Time: stored.Created,
		Outcome: view.Outcome(stored.State), Incident: stored.Incident,
	}
	var s queued.Summary
	if s.Decode(e.Message.Summary) == nil {
		m.Key, m.Source, m.Type = s.Key, s.Source, string(s.Type)
		if m.Key != "" {
			m.KeyAddress = httpapi.ConsoleKey(r, m.Key)
		}
	}
	m.Outcome, m.Says = saysOf(stored.Results, h.takenBy(r, e, s.Type, stored.Results))
	if s.Asks && m.Outcome != view.Failed {
		if x, err := h.App.Rooms.Questions.Get(r.Context(), e.Message.ID); err == nil {
			m.Outcome, m.Says = saysOfQuestion(x, m.Outcome)
		}
	}
	results := make([]message.Result, len(stored.Results))
	for i, r := range stored.Results {
		results[i] = r.Result
	}
	m.Lines, m.More = resultLines(results)
	return m
}

// results returns a message with its results. The result of a step that a silence keeps back has the
// end of the silence in place of the beginning of the step.
func (h *messagePages) results(ctx context.Context, e *queue.Entry) *message.QueuedMessage {
	m := queued.Message(e)
	if !slices.ContainsFunc(m.Results, isNextStep) {
		return m
	}
	alerts := h.App.Rooms.Alerts
	x := alerts.Incidents.OfMessage(ctx, e.Message)
	if x == nil {
		return m
	}
	silenced, err := alerts.Silences.Of(ctx, x)
	if err != nil {
		return m // the page shows the rest
	}
	for i := range m.Results {
		if r := &m.Results[i]; isNextStep(*r) && silenced.Keeps(r.Destination, *r.Next) {
			r.Next, r.Until = nil, &silenced.Until
		}
	}
	return m
}

// isNextStep reports whether a result is that of a step that has not begun.
func isNextStep(r message.QueuedResult) bool {
	return r.Rule == notifier.RuleEscalating && r.Next != nil
}

// takenBy returns who takes care of the incident of a message, or "". An acknowledgement does not
// apply to a message that arrived after it.
func (h *messagePages) takenBy(r *http.Request, e *queue.Entry, typ notifier.Type, results []message.QueuedResult) string {
	ended := slices.ContainsFunc(results, func(x message.QueuedResult) bool { return x.Rule == notifier.RuleAcknowledged })
	if !ended && typ != notifier.Failure && typ != notifier.Warning {
		return ""
	}
	x := h.App.Rooms.Alerts.Incidents.OfMessage(r.Context(), e.Message)
	switch {
	case x == nil:
		return ""
	case ended:
		return cmp.Or(x.Acknowledged.By, x.ResolvedBy)
	case e.Message.Created.Before(x.Acknowledged.At):
		return x.Acknowledged.By
	}
	return ""
}

// resultLines returns the failures among results, one per line, then a line for each other outcome,
// and the number of failures left out.
func resultLines(all []message.Result) (lines []string, more int) {
	others := map[view.Outcome][]string{}
	for _, r := range all {
		outcome := view.Outcome(r.Status)
		switch {
		case r.Rule == notifier.RulePlanned && r.Until != nil:
			continue // the line of the message says when
		case r.Rule == notifier.RuleEscalating && r.Until != nil:
			outcome = view.Held
		case r.Rule == notifier.RuleEscalating && r.Status == message.StatusQueued:
			outcome = view.Later
		case r.Error == nil, r.Status == message.StatusCancelled, r.Status == notifier.Skipped:
		case len(lines) == maxPageResults:
			more++
			continue
		default:
			lines = append(lines, r.Name+": "+*r.Error)
			continue
		}
		names := others[outcome]
		// A destination has a result in each round of an escalation.
		if again := outcome == view.Later || outcome == view.Held || outcome == view.Skipped; !again || !slices.Contains(names, r.Name) {
			others[outcome] = append(names, r.Name)
		}
	}
	for _, x := range []struct {
		outcome view.Outcome
		text    string
	}{
		{view.Delivered, "Delivered to "},
		{view.Queued, "Waiting for "},
		{view.Later, "Later, unless acknowledged: "},
		{view.Held, "A silence keeps it from "},
		{view.Skipped, "Not needed for "},
		{view.Cancelled, "Cancelled for "},
	} {
		if names := others[x.outcome]; len(names) > 0 {
			lines = append(lines, x.text+inline.Names(names)+".")
		}
	}
	return lines, more
}

// sinceChoices are the values of the filter's field since.
var sinceChoices = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

// serveMessagesPage lists messages.
func (h *messagePages) serveMessagesPage(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	query := r.URL.Query()
	p := view.MessagesPage{
		Root: api.RootOf(r.URL.Path),
		Filter: view.MessageFilter{
			Key: query.Get("key"), State: query.Get("state"), Type: query.Get("type"), Since: query.Get("since"),
			Title: strings.TrimSpace(query.Get("title")),
		},
	}
	p.Titles, p.Stored = p.Filter.Title != "" || h.Resolved.HasInboxes() || h.Resolved.Titles, h.Has.Queue
	p.Lacks = h.lacksTitles()
	f := messageFilter{key: p.Filter.Key, state: p.Filter.State, kind: p.Filter.Type, title: p.Filter.Title}
	if p.Filter.Since != "" {
		d, ok := sinceChoices[p.Filter.Since]
		if !ok {
			return api.Errorf(http.StatusBadRequest, "since must be 1h, 24h or 7d")
		}
		f.since = time.Now().Add(-d)
	}
	var err error
	if f.half, err = bars.ParseHalf(query); err != nil {
		return err
	}
	var before uuid.UUID
	if text := query.Get("before"); text != "" {
		if before, err = uuid.Parse(text); err != nil {
			return api.Errorf(http.StatusBadRequest, "before is malformed; use the links of the page")
		}
	}
	address := func(before uuid.UUID, without ...string) string {
		v := url.Values{}
		for _, name := range append([]string{"key", "state", "type", "since", "title"}, bars.Queries...) {
			if value := query.Get(name); value != "" && !slices.Contains(without, name) {
				v.Set(name, value)
			}
		}
		if before != (uuid.UUID{}) {
			v.Set("before", before.String())
		}
		if len(v) == 0 {
			return p.Root + httpapi.RouteConsoleMessages[1:]
		}
		return p.Root + httpapi.RouteConsoleMessages[1:] + "?" + v.Encode()
	}
	if before != (uuid.UUID{}) {
		p.Newest = address(uuid.UUID{})
	}
	p.Filter.Chips = f.half.Chips(func(name string) string { return address(uuid.UUID{}, name) })
	if names, err := h.keyNames(r.Context()); err == nil && len(names) <= MaxListedKeys {
		p.Keys = names
	}
	switch list, err := h.listMessages(r, messageSearch{filter: f, titles: h.titles(r), before: before, scan: maxMessageScan}); {
	case err != nil:
		p.Problem = httpapi.ErrQueueUnread
	default:
		p.Messages, p.Scanned, p.Until = view.Group(list.messages, len(list.messages)), list.scanned, list.until
		if list.next != (uuid.UUID{}) {
			p.Older = address(list.next)
		}
		p.Hint = messagesHint(list.stored, p.Titles, h.Resolved.Titles)
		if before == (uuid.UUID{}) && f.state == "" && f.kind == "" && f.title == "" && f.half == (bars.Half{}) {
			if err := h.setPlanned(r, &p, &f); err != nil {
				p.Problem = httpapi.ErrQueueUnread
			}
		}
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleMessages, p)
}

// maxListedPlanned is the maximum number of planned messages on a page.
const maxListedPlanned = 20

// setPlanned sets the planned messages of the site that fit.
func (h *messagePages) setPlanned(r *http.Request, p *view.MessagesPage, f *messageFilter) error {
	q, err := h.App.Open(nil)
	if q == nil || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	siteID := h.Site()
	all, err := q.Planned.List(ctx, func(x *planned.Message) bool {
		return x.Site == siteID && (f.key == "" || f.key == x.Key)
	})
	if err != nil {
		return err
	}
	if p.Later = max(len(all)-maxListedPlanned, 0); p.Later > 0 {
		all = all[:maxListedPlanned]
	}
	titles := h.titles(r)
	for _, x := range all {
		title, err := titles.ofPlanned(ctx, q, x.Key, x.ID)
		if err != nil {
			return err
		}
		address := httpapi.AddressOf(r, httpapi.RouteConsoleMessages) + "/" + x.ID.String()
		p.Planned = append(p.Planned, view.PlannedMessage{
			Title: title, ID: x.ID.String(), Address: address, Cancel: address + "?" + dropQuery, Key: x.Key,
			KeyAddress: httpapi.ConsoleKey(r, x.Key),
			Tags:       x.Tags, At: x.At,
		})
	}
	return nil
}

// messagesHint says which messages are listed. titles means that the page has titles, and kept that the
// site keeps them.
func messagesHint(stored, titles, kept bool) string {
	switch {
	case !stored:
		return "These are the latest messages and refused requests since the gateway started."
	case titles && !kept:
		return "A title is shown if the inbox of the key has the message. Refused requests are the latest since the gateway started."
	}
	return "Refused requests are the latest since the gateway started."
}

// pageMessage returns the message in the address of a page.
func (h *messagePages) pageMessage(r *http.Request, at *httpapi.Route) (*gateway.Rooms, *queue.Entry, error) {
	q, err := h.App.Open(nil)
	if err == nil && q == nil {
		err = outbox.ErrNoMessage
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	e, err := h.FindMessage(ctx, q, at.ID)
	if err == nil {
		err = q.Outbox.Messages().Follow(ctx, e)
	}
	return q, e, httpapi.Answer(err)
}

// serveMessagePage shows a message of the queue.
func (h *messagePages) serveMessagePage(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
	q, e, err := h.pageMessage(r, at)
	if err != nil {
		return err
	}
	titles, shown := h.titles(r), []view.ListedMessage{h.queueMessage(r, e)}
	if err := cmp.Or(titles.setKept(&shown[0], e.Message), titles.set(r.Context(), shown)); err != nil {
		return outbox.Unread(err)
	}
	p := view.MessagePage{Root: api.RootOf(r.URL.Path), Message: shown[0]}
	if p.Message.Kept {
		p.Inbox = inboxAt(r, &p.Message)
	}
	if x, err := q.Questions.Get(r.Context(), e.Message.ID); err == nil {
		p.Question = pageQuestion(x)
	}
	if x := q.Alerts.Incidents.OfMessage(r.Context(), e.Message); x != nil {
		p.Incident = h.ListedIncident(r, x).Address
	}
	var keys []string
	if m := &p.Message; m.Key != "" {
		keys = append(keys, m.Key)
		query := url.Values{"key": {m.Key}}
		switch {
		case m.Incident != "":
			query.Set("incident", m.Incident)
		case m.Title != "":
			query.Set("title", m.Title)
		default:
			query.Set("tag", rules.AllTags)
		}
		p.Silence = httpapi.SilenceAddress(r, query)
	}
	if p.Message.Outcome == view.Planned {
		p.Planned = e.Jobs[0].Due
		if p.Message.Title, err = h.titles(r).ofPlanned(r.Context(), q, p.Message.Key, e.Message.ID); err != nil {
			return outbox.Unread(err)
		}
	}
	p.Keep = view.Length(h.App.Conf.QueueSettings.Keep)
	rounds := map[string]int{} // indexes of later steps, by destination
	listed := map[string]bool{}
	for i, result := range h.results(r.Context(), e).Results {
		j, at := &e.Jobs[i], result.Destination+" "+result.Name // the job has no stored destination
		waits, step := j.Status.Waits(), result.Rule == notifier.RuleEscalating
		p.Retry = p.Retry || waits && !step || j.Status == queue.Dead
		p.Drop = p.Drop || waits || j.Status == queue.Dead
		if n, ok := rounds[at]; ok && waits && step {
			p.Deliveries[n].Again++
			continue
		}
		if result.Status == notifier.Skipped && result.Error == nil && listed[at] {
			continue // a later round that was not needed
		}
		listed[at] = true
		if waits && step {
			rounds[at] = len(p.Deliveries)
		}
		d := newPageDelivery(result, j)
		if s := h.silencesOf(r, keys, func(_ *site.Key, t notifier.Target) bool { return t.String() == d.URL }); len(s) > 0 {
			d.Silence = s[0]
		}
		p.Deliveries = append(p.Deliveries, d)
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleMessages, p)
}

// newPageDelivery returns a delivery as the page of its message shows it.
func newPageDelivery(r message.QueuedResult, j *queue.Job) view.Delivery {
	d := view.Delivery{
		Named: named(r.Service, r.Destination), URL: r.Destination, Outcome: view.Outcome(r.Status), Attempts: r.Attempts,
		Tags: strings.Join(r.Tags, ", "),
	}
	if r.Error != nil {
		d.Error = *r.Error
	} else if r.Status == notifier.Delivered {
		d.Elapsed = formatElapsed(r.ElapsedMS)
	}
	switch {
	case j.Status == queue.Dead:
		d.Outcome = view.GivenUp
	case j.Status == queue.Sending:
		d.Says.Text = "being sent now"
	case j.Status == queue.Held && r.Rule == "":
		d.Says.Text = "after an earlier message about the incident"
	case j.Status == queue.Held:
		d.Outcome, d.Says = saysHeldDelivery(&r)
	case r.Rule != "":
		d.Says.Text = ruleWords[r.Rule]
	case r.Optional:
		d.Says.Text = "optional"
	}
	if j.Status == queue.Queued && r.NextAttempt != nil {
		d.Next = *r.NextAttempt
	}
	for _, t := range queued.Tries(j.Result) {
		if last := len(d.Tries) - 1; last >= 0 && d.Tries[last].Error == t.Error {
			d.Tries[last].Time = t.At
			d.Tries[last].Count++
			continue
		}
		d.Tries = append(d.Tries, view.Try{Time: t.At, First: t.At, Error: t.Error, Count: 1})
	}
	return d
}

// saysHeldDelivery says what a delivery held by a rule waits for.
func saysHeldDelivery(r *message.QueuedResult) (view.Outcome, view.Says) {
	out := view.Says{Text: "a rule holds it"}
	switch r.Rule {
	case notifier.RulePlanned:
		return view.Planned, view.Says{Text: "its destinations are looked up when the message is due"}
	case notifier.RuleEscalating:
		out = view.Says{Text: "step " + strconv.Itoa(r.Step) + " begins"}
		switch {
		case r.Until != nil:
			out = view.Says{Text: "a silence keeps it back until", At: *r.Until}
		case r.Next != nil:
			out.At, out.Then = *r.Next, "unless somebody acknowledges"
		}
		return view.Later, out
	case notifier.RuleSilenced:
		out.Text = "a silence holds it"
	case notifier.RuleDigested:
		out.Text = "it will be in a digest"
	}
	if r.Until != nil {
		if out.At = *r.Until; r.Rule != notifier.RuleDigested {
			out.Text += " until"
		}
	}
	return view.Held, out
}

// ruleWords are the reasons why a rule has kept a message from a destination.
var ruleWords = map[notifier.Rule]string{
	notifier.RuleAcknowledged: "somebody has acknowledged the incident",
	notifier.RuleSilenced:     "a silence matched it",
	notifier.RuleDigested:     "sent in a digest",
	notifier.RuleSuppressed:   "known there already",
	notifier.RuleSuperseded:   "a newer message tells it",
	notifier.RuleHeld:         "it did not last",
	notifier.RuleEscalating:   "its step had not begun",
	message.RuleDecided:       "the question is not open any more",
}

// formatElapsed returns a time as "3 ms" or "1.2 s".
func formatElapsed(ms int64) string {
	switch {
	case ms <= 0:
		return "less than 1 ms"
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}

// changeFunc changes the deliveries of a message and returns the number of changed ones.
type changeFunc func(ctx context.Context, m outbox.Messages, id uuid.UUID) (int, error)

func retryMessage(ctx context.Context, m outbox.Messages, id uuid.UUID) (int, error) {
	n, err := m.Retry(ctx, id)
	return n.Dead + n.Queued, err
}

func dropMessage(ctx context.Context, m outbox.Messages, id uuid.UUID) (int, error) {
	return m.Drop(ctx, id)
}

// change returns the action that changes a message and shows it again.
func (h *messagePages) change(do changeFunc) httpapi.ActionFunc {
	return func(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
		q, e, err := h.pageMessage(r, at)
		if err != nil {
			return err
		}
		n, err := do(r.Context(), messagesOf(r, q), e.Message.ID)
		if err != nil {
			return err
		}
		return h.queue.changedDeliveries(w, r, httpapi.AddressOf(r, httpapi.RouteConsoleMessages)+"/"+at.ID, n)
	}
}

package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Delivery is a message with all that sending it needs.
type Delivery struct {
	Message   *notifier.Message
	To        *message.Selection
	Settings  *site.Site
	Published *message.Published // what the inbox keeps for ntfy's clients; nil for nothing
	Question  *message.Ask       // nil for a message that asks nothing
	Memory    *memory.Allocation // of the request; nil for no limit

	Origin
	Answer
	Handling
	Alert
	Schedule
	Queued
	Hooks
}

// Handling has the settings of a message's key. The zero value is for a message without a key.
type Handling struct {
	Logger *zap.Logger   // gets a line for each destination; nil for none
	Rules  *rules.Rules  // nil for none
	Inbox  time.Duration // how long the key keeps its messages readable; 0 for not at all
}

// Alert is what is known of a message's incident in addition to the message itself.
type Alert struct {
	IncidentID string // the public ID of the incident; "" for none, and of further attempts
	Priority   string // of the alert of an incident tool, as its client calls it; "" for none
	By         string // who resolves the incident on its page; "" for a program
	Steps      []int  // of an escalation, by the targets; nil for none

	// OpenAlerts keeps the alert that the message opens; nil for a message that opens none.
	OpenAlerts *OpenAlerts
}

// Schedule says when a message is sent.
type Schedule struct {
	Later *queued.Later // nil for now

	// Released means that this is a planned message that is due. It replaces the planned one in the
	// queue, so that there is room for it.
	Released bool
}

// Queued is what the queue knows of a message. The zero value is for a message that is not queued.
type Queued struct {
	ID      uuid.UUID
	NewID   uuid.UUID    // the ID that the message got as it came in, for the queue; zero if it had one
	Trace   queued.Trace // of the request, for the attempts of the queue
	Attempt *Attempt     // if the queue makes the delivery; nil for a message that has come in

	// With, if set, is a change of records in the transaction that stores the message. The message
	// is then stored before it is sent.
	With *queue.Ruled
}

// Hooks are functions that are called while a message is delivered. Each may be nil.
type Hooks struct {
	// Resources are what the message takes. They are closed when the last delivery has ended.
	Resources Closer

	// Repeated is set if the queue repeats deliveries that fail temporarily (see
	// [notifier.Options]).
	Repeated func(i int, r *notifier.Result) zapcore.Level

	// Held is called before each attempt (see [notifier.Options]).
	Held func() error

	// Done is called with each result as soon as it is known, by several goroutines at once.
	Done func(i int, r notifier.Result)
}

// Closer is what is closed when it is no longer needed.
type Closer interface{ Close() }

// CloseFunc is a function that is a [Closer].
type CloseFunc func()

// Close implements [Closer].
func (f CloseFunc) Close() { f() }

// Release closes the resources of the message.
func (h Hooks) Release() {
	if h.Resources != nil {
		h.Resources.Close()
	}
}

// Origin is where a message comes from.
type Origin struct {
	Source string // one of the sources of package site
	Format string // the source with the message's format; "" for the gateway's own
	Key    string // "" for a message without a key
	Site   string // the ID of the message's site

	// Stored is the place of the key in the job that the message is in; zero for that of the
	// configuration. See [Delivery.At].
	Stored site.Place

	key *site.Key // nil for none
}

// Answer is how the client of a request is answered.
type Answer struct {
	Idempotency Idempotency

	// Single means that the client expects one response in a fixed form, not a stream.
	Single bool

	// Program means that the client is a program. After an error, it sends the message again to all
	// destinations.
	Program bool
}

// Attempt is an attempt of the queue, for a message that was counted when it came in.
type Attempt struct {
	Before  int           // how many attempts there were
	Last    time.Time     // when the last one of them was made; zero if that is not known
	Resumed *ResumedTrace // the trace that the attempt goes on with; nil for none
}

// NewDelivery returns the delivery of a message to targets under the settings of a site, whose ID
// is siteID. Every source uses it and, for a key, [Delivery.ToKey], so that the fields of every
// message are set here. source is one of the sources of package site. The message gets the identity
// of the site and, if it has none, the time and an ID.
func NewDelivery(settings *site.Site, source, siteID string, m *notifier.Message, to *message.Selection) Delivery {
	m.Identity, m.Source = settings.Identity, m.Format
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	m.Digest = source == site.SourceDigest
	var queued Queued
	if m.ID == "" {
		queued.NewID = queue.NewID()
		m.ID = queued.NewID.String()
	}
	return Delivery{
		Message: m, To: to, Settings: settings, Queued: queued,
		Origin: Origin{Source: source, Site: siteID},
	}
}

// ToKey returns d as a delivery for a key, with its logger, rules, inbox and limits.
func (d Delivery) ToKey(k *site.Key) Delivery {
	d.Key, d.Logger, d.Rules, d.Inbox, d.key = k.Name, k.Log, k.Rules, k.Inbox, k
	if k.Rules.IsStep() && d.Source != site.SourceTest {
		d.setSteps()
	}
	if k.Limits != nil {
		d.To.Limits = k.Limits
	}
	return d
}

// Idempotency identifies a message that is sent again.
type Idempotency struct {
	Key        string // of the client, unique among clients; "" for none
	EarlierKey string // the Key that an earlier version made of the client's key; "" for none
	Request    []byte // a hash of the request
}

// Send sends a message from any source and records the outcome in metrics, the
// history, the trace of ctx and events.
func (s *Dispatcher) Send(ctx context.Context, d Delivery) *notifier.Report {
	sent, trace := s.SendNow(ctx, d)
	report := ReportOf(d.To, sent)
	trace.End(report.OK())
	s.Conclude(d, sent.Results, report)
	return report
}

// ReportOf returns the report on all deliveries of a message (see [message.Selection.Report]). It
// marks the failures of devices that do not count.
func ReportOf(to *message.Selection, sent *notifier.Report) *notifier.Report {
	return queued.IgnoreDevices(to.Report(sent))
}

// SendNow sends a message and waits for all results. The caller ends the trace and
// calls Conclude.
func (s *Dispatcher) SendNow(ctx context.Context, d Delivery) (*notifier.Report, *MessageTrace) {
	ctx, o, trace := s.begin(ctx, &d)
	return s.Sender.Send(ctx, d.Message, d.To.Targets, o), trace
}

// Start begins to send a message. The caller waits for the deliveries, ends the
// trace and calls Conclude.
func (s *Dispatcher) Start(ctx context.Context, d Delivery) (notifier.Sending, *MessageTrace) {
	ctx, o, trace := s.begin(ctx, &d)
	return s.Sender.Start(ctx, d.Message, d.To.Targets, o), trace
}

// begin begins the trace of a message, and returns the context and the options to send it with.
func (s *Dispatcher) begin(ctx context.Context, d *Delivery) (context.Context, notifier.Options, *MessageTrace) {
	ctx, trace := startTrace(ctx, d)
	if trace == nil { // then nothing reads the values of the request, among which every HTTP request would search
		ctx = context.Background()
	}
	var id fmt.Stringer
	if d.ID != (uuid.UUID{}) {
		id = d.ID
	}
	var observers []notifier.Observer
	if trace != nil {
		observers = append(observers, trace.observer())
	}
	// The outcome is noted before d.Done: after it, the client may send the next message.
	if incident := d.IncidentOf(); incident != "" {
		observers = append(observers, s.Incidents.observer(incident, d.Message, d.To.Targets))
		if d.OpenAlerts != nil && StateOf(d.Message) == notifier.Open {
			observers = append(observers, d.OpenAlerts.observer(d.alert(), d.Message, d.To.Targets))
		}
	}
	if d.Key != "" {
		observers = append(observers, s.count(d))
	}
	if done := d.Done; done != nil { // d.Done would move all of d to the heap
		observers = append(observers, notifier.Observer{End: func(_ context.Context, i int, r notifier.Result) { done(i, r) }})
	}
	return ctx, notifier.Options{
		Timeout:   d.Settings.Limits.Timeout,
		Transient: d.To.Transient,
		Logger:    d.Logger,
		Repeated:  d.Repeated,
		Held:      d.Held,
		ID:        id,
		Observers: observers,
		Limits:    d.To.Limits,
		Memory:    d.Memory,
		Header:    traceHeader(d.Settings),
	}, trace
}

// count returns the observer that counts the deliveries of a message to a key.
func (s *Dispatcher) count(d *Delivery) notifier.Observer {
	key, targets, repeats, last := site.KeyID{Site: d.Site, Key: d.Key}, d.To.Targets, d.Repeated != nil, time.Time{}
	if d.Attempt != nil {
		last = d.Attempt.Last
	}
	return notifier.Observer{End: func(_ context.Context, i int, r notifier.Result) {
		s.Tally.Observe(time.Now(), key, targets[i], &r, repeats, last)
	}}
}

// Conclude records the outcome of a message. made are the deliveries that were made; report has all
// deliveries of the message.
func (s *Dispatcher) Conclude(d Delivery, made []notifier.Result, report *notifier.Report) {
	outcome := outcomeOfMessage(report.Results)
	if d.Attempt == nil { // otherwise it was counted before
		s.Metrics.Sent(d.Settings.ConfiguredName(d.Key), outcome, d.Message.Attachments)
	}
	s.Metrics.Made(made)
	if d.Attempt != nil && outcome != site.OutcomeDelivered {
		return // it is tried again, or Outbox.Settled records that it is not
	}
	s.History.Add(d.HistoryEntry(outcome), report.Results)
	s.Emit(d, outcome, report.Results)
}

// HistoryEntry returns the entry of the message without its results.
func (d *Delivery) HistoryEntry(outcome string) history.Entry {
	e := history.Entry{
		Key: history.KeyName(d.Key), Time: d.Message.Time, Source: d.Source, Outcome: outcome, Site: d.Site, Type: d.Message.Type,
		Incident: strings.Clone(d.Message.Incident.Name), IncidentID: d.IncidentID,
	}
	if d.ID != (uuid.UUID{}) {
		e.ID = d.Message.ID // d.ID as text
	}
	return e
}

// outcomeOfMessage returns the outcome of a message with these results.
func outcomeOfMessage(results []notifier.Result) string {
	outcome := site.OutcomeDelivered
	for _, r := range results {
		switch {
		case message.Failed(r):
			return site.OutcomeFailed
		case r.Status == message.StatusQueued:
			outcome = site.OutcomeQueued
		}
	}
	return outcome
}

// IncidentOf returns the queue's ID of a message's incident, or "". It differs for keys of the same
// name in several sites or spaces.
func (d *Delivery) IncidentOf() string {
	if d.Message.Incident.ID == "" {
		return ""
	}
	return IncidentAt(d.At(), d.Message.Incident.ID)
}

// IncidentAt returns the queue's ID of an incident of the key at a place; "" for the ID "".
func IncidentAt(at site.Place, id string) string {
	if id == "" {
		return ""
	}
	return strings.Join([]string{at.Home, at.Key, id}, "\x00")
}

// StateOf returns the state that a message tells of its incident.
func StateOf(m *notifier.Message) notifier.IncidentState {
	if m.Incident.State != "" {
		return m.Incident.State
	}
	return notifier.StateOf(m.Type)
}

// At returns the place of the message's key, or of its site if it has no key. It is unique among
// the keys of all sites and spaces. It is not a field because most messages do not need it.
func (d *Delivery) At() site.Place {
	switch {
	case d.Stored != site.Place{}:
		return d.Stored
	case d.key != nil:
		return d.key.Place(d.Site)
	}
	return site.Place{Home: "site " + d.Site}
}

// Place returns the place of the message's key as text.
func (d *Delivery) Place() string { return d.At().String() }

// A message that escalates has a job for each destination with a number and each round. The first
// step is sent at once. The other jobs are held; the record of the incident has the step of each.

// setSteps takes the numbers of the targets as steps, not as positions in a chain.
func (d *Delivery) setSteps() {
	to := *d.To
	to.Targets = slices.Clone(to.Targets)
	d.Steps = make([]int, len(to.Targets))
	for i := range to.Targets {
		t := &to.Targets[i]
		if d.Steps[i] = t.Number; t.Number == 0 {
			d.Steps[i] = rules.StepOf(t.Tags)
		}
		if !d.Rules.For(t.Tags).IsStep() {
			d.Steps[i] = 0
		}
		t.Chain, t.Number = "", 0
	}
	d.To = &to
}

// KnownIncident returns the text that names the record of a message's incident, or "" if it has
// none.
func (d *Delivery) KnownIncident() string {
	switch {
	case d.Rules.Empty():
		return ""
	case d.Message.Incident.ID == "" && d.Rules.Escalate != nil && (d.Message.Type != notifier.Info || d.Question != nil):
		return d.Place() + "\x00" + OwnIncident(d.ID) // a message that escalates opens its own incident
	}
	return d.IncidentOf()
}

// OwnIncident returns the incident name of a message that names no incident.
func OwnIncident(message uuid.UUID) string { return "message " + message.String() }

// Keeps reports whether the inbox of the key keeps the message. It does not keep messages that
// repeat others, which are digests and further steps of an escalation, and tests of a destination.
func (d *Delivery) Keeps() bool {
	switch d.Source {
	case site.SourceDigest, site.SourceTest:
		return false
	case site.SourceEscalation:
		return d.Inbox > 0 && d.By != ""
	}
	return d.Inbox > 0
}

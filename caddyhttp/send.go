package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// delivery is a message with all that sending it needs.
type delivery struct {
	message    *notifier.Message
	to         *api.Selection
	settings   *site.Site
	logger     *zap.Logger          // gets a line for each destination; nil for none
	source     string               // one of the sources above
	format     string               // the name of the source whose format the message has; "" for the gateway's own
	key        string               // "" for a message without a key
	site       string               // the ID of the site that the message came to
	home       string               // where the key is defined; see incidentOf
	rules      *rules.Rules         // of the key; nil for none
	inbox      time.Duration        // how long the key keeps its messages readable; 0 for not at all
	incidentID string               // the public ID of the incident; "" for none, and of further attempts
	by         string               // who resolves the incident on its page; "" for a program
	steps      []int                // of an escalation, by the targets; nil for none
	memory     *notifier.Allocation // of the request; nil for no limit

	// release, if set, releases what the message holds. It is called when no
	// delivery is under way.
	release func()

	// with, if set, is a change of records in the transaction that stores the message,
	// which is stored before it is sent.
	with *queue.Ruled

	id          uuid.UUID    // in the queue; zero without a queue
	trace       queued.Trace // of the request, for the attempts of the queue
	idempotency idempotency  // of the request

	// single means that the client expects one response in a fixed form, so that
	// Accept cannot ask for a stream.
	single bool

	// program means that the client is a program that sends the message again to all
	// destinations after an error (see [api.NewProgramResponse]).
	program bool

	// attempt means that the queue makes the delivery, of a message that was
	// counted before.
	attempt bool

	// resumed, if set, is the trace that an attempt of the queue goes on with. tries is how
	// many attempts there were before.
	resumed *resumedTrace
	tries   int

	// repeated, if set, means that the queue repeats what fails temporarily (see
	// [notifier.Options]).
	repeated func(i int, r *notifier.Result) zapcore.Level

	// done, if set, is called with each result as soon as it is known, by
	// several goroutines at once.
	done func(i int, r notifier.Result)
}

// newDelivery returns the delivery of a message under the settings of a site. All
// ways in use it and, for a key, toKey: what is set for every message is set here.
func newDelivery(settings *site.Site, source, siteID string, m *notifier.Message, to *api.Selection) delivery {
	m.Identity = settings.Identity
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	m.Digest = source == site.SourceDigest
	if settings.Push != nil && m.ID == "" {
		m.ID = queue.NewID().String()
	}
	return delivery{message: m, to: to, settings: settings, source: source, site: siteID, home: "site " + siteID}
}

// toKey returns d as a delivery for a key, with its rules.
func (d delivery) toKey(k *site.Key) delivery {
	d.key, d.logger, d.home, d.rules = k.Name, k.Log, k.Home(d.site), k.Rules
	d.inbox = k.Inbox
	if k.Rules.IsStep() && d.source != site.SourceTest {
		d.setSteps()
	}
	if k.Limits != nil {
		d.to.Limits = k.Limits
	}
	return d
}

// idempotency identifies a message that is sent again.
type idempotency struct {
	key     string // of the client, unique among clients; "" for none
	request []byte // a hash of the request
}

// answer sends the message of a request and returns the response. With a queue,
// deliveries that are not final in time are stored and made later. answer calls
// d.release when no delivery of the request is in progress any more, possibly
// after it returns.
//
// Nothing is stored before the response if there is no queue or all
// destinations are fast.
func (h *httpAPI) answer(w http.ResponseWriter, r *http.Request, d delivery) (*api.Response, error) {
	h.shared.incidents.note(&d)
	q, err := h.app.durable(h.resolved.Keys[d.key])
	if err != nil {
		d.release()
		return nil, err
	}
	if q == nil {
		defer d.release()
		stream := d.stream(w, r)
		resp := d.response(h.shared.send(r.Context(), d))
		resp.Stream = stream
		return resp, nil
	}
	prefer := api.ParsePrefer(r.Header)
	wait := q.app.Load().queueSettings.wait
	if prefer.Async {
		wait = prefer.Wait
	}
	s := newQueuedSend(d, q)
	if err := s.begin(r.Context(), wait > 0); err != nil {
		d.release()
		if e, ok := errors.AsType[*queue.DuplicateError](err); ok {
			return h.repeated(r, q, e, prefer, &d)
		}
		return nil, queueError(err)
	}
	stream := s.stream(w, r)
	report, err := s.run(r.Context(), wait)
	resp := d.response(report)
	if err == nil {
		setQueued(resp, r, s.id.String(), prefer)
	} else if failed := h.errorResponse(queueError(err)); !d.program || resp.Error != "" {
		failed.Records, failed.Results = report.Records, report.Results
		resp = failed
	}
	resp.Stream = stream
	return resp, nil
}

// response returns the response to a request whose message was sent.
func (d *delivery) response(report *notifier.Report) *api.Response {
	if d.program {
		return api.NewProgramResponse(report)
	}
	return api.NewResponse(report)
}

// sendOrQueue sends a message to a key for a client that waits. It returns the
// report and, with a queue, the ID of the message. Deliveries that are not
// final in time are stored and made later. sendOrQueue calls d.release when no
// delivery is in progress any more, possibly after it returns.
func (a *engine) sendOrQueue(ctx context.Context, k *site.Key, d delivery) (*notifier.Report, string, error) {
	a.shared.incidents.note(&d)
	q, err := a.durable(k)
	if err != nil {
		d.release()
		return nil, "", err
	}
	if q == nil {
		defer d.release()
		return a.shared.send(ctx, d), "", nil
	}
	wait := q.app.Load().queueSettings.wait
	s := newQueuedSend(d, q)
	if err := s.begin(ctx, wait > 0); err != nil {
		d.release()
		return nil, "", queueError(err)
	}
	report, err := s.run(ctx, wait)
	if err != nil {
		return nil, "", queueError(err)
	}
	return report, s.id.String(), nil
}

// stream begins a stream of results if the client prefers one.
func (d *delivery) stream(w http.ResponseWriter, r *http.Request) *api.Stream {
	if d.single {
		return nil
	}
	stream := api.NewStream(w, r, d.to.Targets)
	if stream != nil {
		d.done = stream.Result
	}
	return stream
}

// send sends a message from any source and records the outcome in metrics, the
// history, the trace of ctx and events.
func (s *shared) send(ctx context.Context, d delivery) *notifier.Report {
	sent, trace := s.sendNow(ctx, d)
	report := reportOf(d.to, sent)
	trace.end(report.OK())
	s.conclude(d, sent.Results, report)
	return report
}

// reportOf returns the report on all of a message's deliveries (see [api.Selection.Report]),
// with the failures of devices that do not count.
func reportOf(to *api.Selection, sent *notifier.Report) *notifier.Report {
	out := *to.Report(sent)
	queued.IgnoreDevices(&out)
	return &out
}

// sendNow sends a message and waits for all results. The caller ends the trace and
// calls conclude.
func (s *shared) sendNow(ctx context.Context, d delivery) (*notifier.Report, *messageTrace) {
	sending, trace := s.start(ctx, d)
	return sending.Wait(nil), trace
}

// start begins to send a message. The caller waits for the deliveries, ends the
// trace and calls conclude.
func (s *shared) start(ctx context.Context, d delivery) (notifier.Sending, *messageTrace) {
	ctx, trace := startTrace(ctx, &d)
	var id fmt.Stringer
	if d.id != (uuid.UUID{}) {
		id = d.id
	}
	var observers []notifier.Observer
	if trace != nil {
		observers = append(observers, trace.observer())
	}
	// This is before d.done, after which the client may send the next message.
	if incident := d.incidentOf(); incident != "" {
		observers = append(observers, s.incidents.observer(incident, d.message, d.to.Targets))
	}
	if done := d.done; done != nil { // d.done would move all of d to the heap
		observers = append(observers, notifier.Observer{End: func(_ context.Context, i int, r notifier.Result) { done(i, r) }})
	}
	return s.sender.Start(ctx, d.message, d.to.Targets, notifier.Options{
		Timeout:   d.settings.Timeout,
		Transient: d.to.Transient,
		Logger:    d.logger,
		Repeated:  d.repeated,
		ID:        id,
		Observers: observers,
		Limits:    d.to.Limits,
		Memory:    d.memory,
		Header:    resolvedTraceHeader(d.settings),
	}), trace
}

// conclude records the outcome of a message. made are the deliveries that were
// made; report has all of the message's deliveries.
func (s *shared) conclude(d delivery, made []notifier.Result, report *notifier.Report) {
	outcome := outcomeOfMessage(report.Results)
	if !d.attempt { // which was counted before
		s.metrics.Sent(d.settings.ConfiguredKey(d.key), outcome, d.message.Attachments)
	}
	s.metrics.Made(made)
	if d.attempt && outcome != site.OutcomeDelivered {
		return // it is tried again, or settled records that it is not
	}
	s.history.Add(d.historyEntry(outcome), report.Results)
	s.emit(d, outcome, report.Results)
}

// history.Entry returns the entry of the message without its results.
func (d *delivery) historyEntry(outcome string) history.Entry {
	e := history.Entry{
		Time: d.message.Time, Source: d.source, Outcome: outcome, Site: d.site, Type: d.message.Type, Incident: strings.Clone(d.message.Incident.Name), IncidentID: d.incidentID,
	}
	if key := d.key; key != "" {
		e.Key = &key // &d.key would keep the message in memory
	}
	return e
}

// outcomeOfMessage returns the outcome of a message with these results.
func outcomeOfMessage(results []notifier.Result) string {
	outcome := site.OutcomeDelivered
	for _, r := range results {
		switch {
		case api.Failed(r):
			return site.OutcomeFailed
		case r.Status == api.StatusQueued:
			outcome = site.OutcomeQueued
		}
	}
	return outcome
}

package caddyhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// answer sends the message of a request and returns the response. With a queue,
// what is not final in time is stored and delivered later. answer calls d.release
// when no delivery of the request is under way any more, which can be after it
// returns.
//
// Without a queue, and with one to a fast destination, nothing is stored before
// the response.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, d delivery) (*api.Response, error) {
	q, err := h.app.durable(h.resolved.keys[d.key])
	if err != nil {
		d.release()
		return nil, err
	}
	if q == nil {
		defer d.release()
		stream := d.stream(w, r)
		resp := api.NewResponse(h.shared.send(r.Context(), d))
		resp.Stream = stream
		return resp, nil
	}
	prefer := api.ParsePrefer(r.Header)
	wait := q.app.Load().queueSettings.wait
	if prefer.Async {
		wait = prefer.Wait
	}
	s := newQueuedSend(d, q, h.shared.shared)
	if err := s.begin(r.Context(), wait > 0); err != nil {
		d.release()
		if e, ok := errors.AsType[*queue.DuplicateError](err); ok {
			return h.repeated(r, q, e, prefer)
		}
		return nil, queueError(err)
	}
	stream := s.stream(w, r)
	report, err := s.run(r.Context(), wait)
	resp := api.NewResponse(report)
	if err != nil {
		resp = h.errorResponse(queueError(err))
		resp.Records, resp.Results = report.Records, report.Results
	} else {
		setQueued(resp, r, s.id.String(), prefer)
	}
	resp.Stream = stream
	return resp, nil
}

// setQueued makes resp the response to a request whose message has an ID.
func setQueued(resp *api.Response, r *http.Request, id string, p api.Preference) {
	resp.SetQueued(id, func() string { return messageAddress(r, id) }, p)
}

// sendOrQueue sends a message to a key for a client that waits, and returns the
// report and the ID in the queue, if there is one. With a queue, what is not
// final in time is stored and delivered later. sendOrQueue calls d.release when no
// delivery is under way any more, which can be after it returns.
func (a *App) sendOrQueue(ctx context.Context, k *key, d delivery) (*notifier.Report, string, error) {
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
	s := newQueuedSend(d, q, a.shared.shared)
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
	stream := api.NewStream(w, r, d.to.Targets)
	if stream != nil {
		d.done = stream.Result
	}
	return stream
}

// repeated returns the response to a request whose idempotency key is known.
func (h *Handler) repeated(r *http.Request, q *openQueue, e *queue.DuplicateError, p api.Preference) (*api.Response, error) {
	if !e.SameRequest {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "the header %s was used for a different request; send another key with each message", api.IdempotencyHeader)
	}
	stored, err := q.Get(context.WithoutCancel(r.Context()), e.ID)
	if err != nil {
		return nil, queueError(err)
	}
	m := queuedMessage(stored)
	report := &notifier.Report{Results: storedResults(m), Records: m.Response().Records}
	resp := api.NewResponse(report)
	setQueued(resp, r, m.ID, p)
	return resp, nil
}

// queueError returns the error for the client if the queue returned err.
func queueError(err error) error {
	if _, ok := errors.AsType[*api.Error](err); ok {
		return err
	}
	return errQueueUnavailable(err)
}

// queuedSend sends one message, of which the queue takes over what is not final
// in time.
type queuedSend struct {
	delivery
	q      *openQueue
	shared *shared

	direct []int         // the targets that are sent to at once; the others are queued
	states []queuedState // of the targets; nil unless they are stored

	// decided is closed when the message is stored, or will not be. Only then
	// err and entry can be read: err is that of the queue if it was not stored,
	// and entry is nil if there was no need to.
	decided chan struct{}
	err     error
	entry   *queue.Entry

	mu       sync.Mutex
	deciding bool // a goroutine decides, or has done so
	answered bool // results come too late for the response
	targets  []sentTarget
}

// sentTarget is what a queuedSend knows of a target.
type sentTarget struct {
	direct   bool               // it is sent to at once
	progress *notifier.Progress // nil if nothing of the message can arrive alone
	result   *notifier.Result   // nil while under way
	late     bool               // it was under way when the request was answered
}

func newQueuedSend(d delivery, q *openQueue, shared *shared) *queuedSend {
	if d.message.Time.IsZero() {
		d.message.Time = time.Now()
	}
	if d.release == nil {
		d.release = func() {}
	}
	d.id = queue.NewID()
	return &queuedSend{
		delivery: d, q: q, shared: shared, targets: make([]sentTarget, len(d.to.Targets)),
		decided: make(chan struct{}),
	}
}

// begin stores the message before anything is sent if the client has an
// idempotency key, if a destination is slow, or if direct is false. direct means
// that the client waits for results.
//
// If there are chains, run sends to all targets itself, so that the next number
// of a chain is tried at once. After a crash, and when all numbers have failed,
// the queue keeps their order: see [queuedChains].
func (s *queuedSend) begin(ctx context.Context, direct bool) error {
	targets := s.to.Targets
	chained := notifier.Chained(targets)
	for i, t := range targets {
		if (direct || chained) && s.q.slow.begin(t.Destination, chained) {
			s.direct = append(s.direct, i)
			s.targets[i].direct = true
			if s.divisible(t) {
				s.targets[i].progress = new(notifier.Progress)
			}
		}
	}
	if direct && len(s.direct) == len(targets) && s.idempotency.key == "" {
		return nil
	}
	s.deciding = true
	s.makeEntry()
	if s.store(ctx); s.err != nil {
		for _, i := range s.direct {
			s.q.slow.end(targets[i].Destination, false)
		}
	}
	return s.err
}

// smallText is the length up to which a text is taken for one part, in bytes.
const smallText = 140

// divisible reports whether a part or a recipient of the message may have it
// before others, so that the progress is worth recording while it is sent.
func (s *queuedSend) divisible(t notifier.Target) bool {
	m := s.message
	return len(m.Attachments) > 0 || len(m.Title)+len(m.Body) > smallText || t.Recipients() > 1
}

// run sends to the direct targets, waits for the results, and returns what is
// known of all targets then. The error is that of the queue.
func (s *queuedSend) run(ctx context.Context, wait time.Duration) (*notifier.Report, error) {
	s.streamQueued()
	if len(s.direct) == 0 {
		defer s.release()
		report := s.reportSoFar(nil)
		s.shared.finish(s.delivery, nil, report)
		return report, nil
	}
	sending, trace := s.start(ctx)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	if sent := sending.Wait(timer.C); sent != nil {
		return s.finish(ctx, sent, trace), s.err
	}
	go func() { s.finish(ctx, sending.Wait(nil), trace) }()
	if s.giveUp() {
		s.store(ctx)
	}
	<-s.decided
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reportSoFar(nil), s.err
}

// giveUp ends the time in which results are part of the response. It reports
// whether the caller stores the message.
func (s *queuedSend) giveUp() (store bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.direct {
		if s.targets[i].result == nil {
			s.targets[i].late = true
			s.q.slow.late(s.to.Targets[i].Destination)
		}
	}
	s.streamLate()
	s.answered = true
	if s.deciding {
		return false
	}
	s.deciding = true
	s.makeEntry()
	return true
}

// store stores the message. Only the goroutine that has set deciding calls it.
func (s *queuedSend) store(ctx context.Context) {
	s.err = s.q.Accept(context.WithoutCancel(ctx), s.entry)
	close(s.decided)
}

// start begins to send to the direct targets.
func (s *queuedSend) start(ctx context.Context) (notifier.Sending, *messageTrace) {
	d := s.delivery
	d.done = s.end
	if len(s.direct) < len(s.targets) || slices.ContainsFunc(s.targets, func(t sentTarget) bool { return t.progress != nil }) {
		to := *s.to
		to.Targets = make([]notifier.Target, len(s.direct))
		for k, i := range s.direct {
			to.Targets[k] = s.to.Targets[i]
			to.Targets[k].Progress = s.targets[i].progress
		}
		d.to = &to
	}
	return s.shared.start(ctx, d)
}

// finish stores the message after the last delivery, if it is not final, or else
// its results. It returns the report on all targets.
func (s *queuedSend) finish(ctx context.Context, sent *notifier.Report, trace *messageTrace) *notifier.Report {
	defer s.release()
	if s.decide() {
		if s.entry == nil {
			close(s.decided)
		} else {
			s.store(ctx)
		}
	}
	<-s.decided
	var report *notifier.Report
	var made []notifier.Result
	if s.entry == nil && len(s.direct) == len(s.targets) {
		report, made = s.to.Report(sent), sent.Results
	} else {
		s.mu.Lock()
		report = s.reportSoFar(sent.Records)
		s.mu.Unlock()
		for _, i := range s.direct {
			made = append(made, s.shown(i))
		}
	}
	if s.entry == nil {
		s.q.Record(s.id, s.message.Time, finalJobs(report.Results))
	}
	trace.end(!slices.ContainsFunc(report.Results, api.Failed))
	s.shared.finish(s.delivery, made, report)
	return report
}

// decide reports whether the caller stores the message, now that all results are
// known. If all are final, there is no entry.
func (s *queuedSend) decide() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deciding {
		return false
	}
	s.deciding = true
	for _, t := range s.targets {
		if queueable(t.result) {
			s.makeEntry()
			break
		}
	}
	return true
}

// end takes the result of the k-th direct target. If the queue has the message,
// it gets the result.
func (s *queuedSend) end(k int, r notifier.Result) {
	i := s.direct[k]
	s.mu.Lock()
	s.targets[i].result = &r
	late, deciding := s.targets[i].late, s.deciding
	if !s.answered && s.delivery.done != nil {
		if queueable(&r) {
			r.Status = api.StatusQueued
		}
		s.delivery.done(i, r)
	}
	s.mu.Unlock()
	s.q.slow.end(s.to.Targets[i].Destination, late)
	if !deciding {
		return
	}
	<-s.decided
	if s.err != nil {
		return
	}
	j := s.entry.Jobs[s.to.Positions()[i]]
	if j.Status != queue.Sending {
		return
	}
	state := s.states[i]
	state.Told = true // it is part of the message's outcome
	o := outcomeOf(state, *s.targets[i].result)
	if o.Status == queue.Dead && !late { // the client is told
		o.Status = queue.Failed
	}
	s.q.Settle(&j, o)
}

// streamQueued sends the client the state of the targets that are queued from
// the beginning.
func (s *queuedSend) streamQueued() {
	for i, t := range s.to.Targets {
		if s.delivery.done != nil && !s.targets[i].direct {
			s.delivery.done(i, queuedNotYet(t))
		}
	}
}

// streamLate sends the client the state of the targets that are late.
func (s *queuedSend) streamLate() {
	for i, t := range s.to.Targets {
		if s.delivery.done != nil && s.targets[i].late {
			s.delivery.done(i, queuedNotYet(t))
		}
	}
}

// queueable reports whether the queue tries again after a result.
func queueable(r *notifier.Result) bool { return r != nil && r.Err != nil && r.Temporary }

// errNotStored is the error of a delivery under way that the queue could not
// take.
var errNotStored = errors.New("it is being sent, but the gateway cannot store it for another attempt")

// shown returns what the client sees of the i-th target if the message is stored
// or needs not be. The caller holds the lock, or no delivery is under way.
func (s *queuedSend) shown(i int) notifier.Result {
	stored := s.err == nil
	switch r := s.targets[i].result; {
	case r == nil:
		out := queuedNotYet(s.to.Targets[i])
		if !stored {
			out.Status, out.Err = notifier.Failed, errNotStored
		}
		return out
	case stored && queueable(r):
		out := *r
		out.Status = api.StatusQueued
		return out
	default:
		return *r
	}
}

// reportSoFar returns what the client sees of all targets. records are those of
// the deliveries, or nil if they are not known. The caller holds the lock, or no
// delivery is under way.
func (s *queuedSend) reportSoFar(records []notifier.Record) *notifier.Report {
	report := &notifier.Report{Results: make([]notifier.Result, len(s.to.Targets)), Records: records}
	for i := range s.to.Targets {
		r := s.shown(i)
		report.Results[i] = r
		switch {
		case r.Status == api.StatusQueued:
			report.Records = append(report.Records, api.QueuedRecord(r))
		case records == nil:
			report.Records = append(report.Records, api.ResultRecord(r))
		}
	}
	return s.to.Report(report)
}

// makeEntry makes what is stored of the message. The caller holds the lock, or no
// delivery is under way.
func (s *queuedSend) makeEntry() {
	m := s.record()
	m.Key, m.Request = s.idempotency.key, s.idempotency.request
	s.states = make([]queuedState, len(s.targets))
	results := s.reportSoFar([]notifier.Record{}).Results // without lines about the results
	s.entry = &queue.Entry{Message: m, Jobs: finalJobs(results), Untrusted: s.to.Limits != nil}
	for i, at := range s.to.Positions() {
		if r := s.targets[i].result; r == nil || queueable(r) {
			s.setJob(&s.entry.Jobs[at], i)
		}
	}
}

// setJob sets the job of the i-th target, which is not final.
func (s *queuedSend) setJob(j *queue.Job, i int) {
	t := s.to.Targets[i]
	s.states[i] = s.state(t)
	j.Destination = t.Hash()
	j.State = s.states[i].with(s.targets[i].progress)
	switch r := s.targets[i].result; {
	case r != nil:
		j.State = s.states[i].with(r.Progress)
		j.Status = queue.Queued
		j.Due = time.Now().Add(queue.RetryDelay(1, r.RetryAfter))
	case s.targets[i].direct:
		j.Status = queue.Sending
	default:
		j.Status = queue.Queued
	}
}

// finalJobs returns the jobs of a message whose results are all final: those of
// the targets and of URLs that cannot be used.
func finalJobs(results []notifier.Result) []queue.Job {
	jobs := make([]queue.Job, len(results))
	for i, r := range results {
		j := &jobs[i]
		j.Status, j.Result = queue.Delivered, resultOf(r)
		if r.Err != nil {
			j.Status = queue.Failed
		}
		if r.Attempts > 0 {
			j.Attempts = 1
		}
	}
	return jobs
}

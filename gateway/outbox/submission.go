package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// QueueError returns the error for the client after an error of the queue.
func QueueError(err error) error {
	if _, ok := errors.AsType[*api.Error](err); ok {
		return err
	}
	return ErrQueueUnavailable(err)
}

// Submission sends one message. The queue takes over the deliveries that are
// not final in time:
//
//	begin ─┬─ an idempotency key, a slow destination, an older message of the incident that
//	       │  is not final, or a client that does not wait:
//	       │    stored ── run ── each result settles its job
//	       └─ otherwise: run ── sending at once
//	            ├─ all results in time, all final ───── recorded, no entry
//	            ├─ all results in time, one may change ── stored, then answered
//	            ├─ all results in time, one refused ───── stored as given up, then answered
//	            └─ the time is over (giveUp) ────────── stored, then answered;
//	                 each result that comes later settles its job
//
// Whoever sets deciding, in begin, giveUp or decide, stores the message or finds
// that it need not be stored, and then calls decided.Done. Results that come in
// meanwhile wait for that.
type Submission struct {
	dispatch.Delivery
	q      *Outbox
	shared *dispatch.Dispatcher
	Plan   *Plan // what rules decide; nil for nothing

	direct  []int             // indexes of the targets that are sent to at once; the others are queued
	states  []queued.State    // of the targets; nil unless they are stored
	refused refused           // by targets, before the message was stored
	text    []byte            // see textSum
	begun   []notifier.Result // if begin has stored the message: the results before anything is sent

	// decided is done when it is known whether the message is stored. err and
	// entry can be read only after that. err is the error of the queue if it could
	// not store the message. entry is nil if the message did not need to be
	// stored.
	decided sync.WaitGroup
	err     error
	Entry   *queue.Entry
	kept    func() // called when the message is stored; nil if the key keeps none

	mu       sync.Mutex
	deciding bool // a goroutine decides, or has done so
	bypasses bool // the message is about an incident, and the store could not be asked about it
	unstored bool // it bypasses the queue because that is full (see sendUnstored)
	answered bool // further results are too late for the response
	targets  []sentTarget

	// one has the room of direct and targets for one target.
	one struct {
		direct  [1]int
		targets [1]sentTarget
	}
}

// sentTarget is the state of a target of a Submission.
type sentTarget struct {
	direct   bool               // it is sent to at once
	progress *notifier.Progress // nil if the message cannot arrive in part
	result   *notifier.Result   // nil while in progress, then a pointer to own
	own      notifier.Result
	late     bool // it was in progress when the request was answered
	missed   notifier.Missed
}

func NewSubmission(d dispatch.Delivery, q *Outbox) *Submission {
	if d.Release == nil {
		d.Release = func() {}
	}
	d.ID = queue.NewID()
	if at := q.Queue.At(d.Message.Time); at != d.Message.Time { // so that messages of several gateways are in order
		m := *d.Message
		m.Time, d.Message = at, &m
	}
	if d.Settings.Push != nil {
		d.Message.ID, d.Message.Expires = d.ID.String(), q.Queue.Now().Add(q.App.Load().QueueSettings.MaxAge)
	}
	s := &Submission{Delivery: d, q: q, shared: q.App.Load().Shared}
	s.decided.Add(1)
	if s.direct, s.targets = s.one.direct[:0], s.one.targets[:]; len(d.To.Targets) != 1 {
		s.targets = make([]sentTarget, len(d.To.Targets))
	}
	return s
}

// Begin stores the message before anything is sent if the client has an
// idempotency key, if a destination is slow, if an older message of the incident is
// not final, or if direct is false. direct reports whether the client waits for
// results.
//
// If there are chains, run sends to all targets itself, so that the next number
// of a chain is tried at once. The queue keeps the order of the numbers after a
// crash and when all have failed (see [queued.Chains]).
func (s *Submission) Begin(ctx context.Context, direct bool) error {
	s.Trace = dispatch.NewTraceOrigin(ctx)
	s.log("message accepted", zap.Int("destinations", len(s.targets)))
	targets := s.To.Targets
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
	direct = direct && len(s.direct) == len(targets) && s.Idempotency.Key == ""
	stored := !direct
	if incident := s.IncidentOf(); incident != "" && !s.takeTurn(ctx, incident) {
		stored = true
	}
	s.Plan = s.q.Policy.Plan(&s.Delivery, true)
	stored = stored || s.With != nil || s.Keeps() || s.Plan != nil // which decide in the transaction
	if !stored {
		return nil
	}
	if s.decideToStore() {
		err := s.q.acceptWithRoom(context.WithoutCancel(ctx), s.Entry)
		_, unavailable := errors.AsType[*queue.UnavailableError](err)
		if unavailable && direct && len(targets) > 0 || errors.Is(err, queue.ErrFull) && s.sendUnstored(ctx) {
			// An alert goes out although its order is not known. So does a message that
			// cannot be held for a rule.
			s.mu.Lock()
			defer s.mu.Unlock()
			s.deciding, s.bypasses, s.Entry, s.states = false, true, nil, nil
			return nil
		}
		s.err = err
		s.isDecided()
	}
	if s.decided.Wait(); s.err != nil {
		s.endDirect()
		return s.err
	}
	s.begun = s.ResultsSoFar()
	s.waitForTurns(chained)
	if s.Plan != nil {
		s.Plan.Stored(&s.Delivery)
	}
	return nil
}

// decideToStore reports whether the caller must store the message, unless that is
// decided already.
func (s *Submission) decideToStore() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deciding {
		return false
	}
	s.deciding = true
	s.MakeEntry(s.ResultsSoFar())
	return true
}

// endDirect takes back that the direct targets are sent to.
func (s *Submission) endDirect() {
	for _, i := range s.direct {
		s.q.slow.end(s.To.Targets[i].Destination, false)
	}
}

// waitForTurns leaves the targets to the queue that have to wait for an older
// message of the incident. It leaves all to the queue if there are chains, because
// a number must not be used before the ones that wait.
func (s *Submission) waitForTurns(chained bool) {
	if s.Message.Incident.ID == "" && s.Entry.Rules == nil {
		return
	}
	positions := s.To.Positions()
	held := func(i int) bool { return s.Entry.Jobs[positions[i]].Status != queue.Sending }
	all := chained && slices.ContainsFunc(s.direct, held)
	s.direct = slices.DeleteFunc(s.direct, func(i int) bool {
		j := s.Entry.Jobs[positions[i]]
		if !all && !held(i) {
			s.targets[i].missed = queued.Missed(&j)
			return false
		}
		s.targets[i].direct = false
		s.q.slow.end(s.To.Targets[i].Destination, false)
		if !held(i) {
			s.q.Queue.Settle(&j, queue.Outcome{Postponed: true})
		}
		return true
	})
}

// smallText is the maximum length of a text that is assumed to be sent in one
// part, in bytes.
const smallText = 140

// divisible reports whether the message may be sent to t in several parts or to
// several recipients, so that its progress must be recorded.
func (s *Submission) divisible(t notifier.Target) bool {
	m := s.Message
	return len(m.Attachments) > 0 || len(m.Title)+len(m.Body) > smallText || t.Recipients() > 1
}

// Run sends to the direct targets, waits for the results, and reports on all
// targets. The error is one of the queue.
func (s *Submission) Run(ctx context.Context, wait time.Duration) (*notifier.Report, error) {
	s.streamQueued()
	if len(s.direct) == 0 {
		defer s.Release()
		report := s.reportOn(s.begun, nil)
		if len(s.targets) == 0 {
			report.Records = append(report.Records, s.inboxRecord())
		}
		s.shared.Conclude(s.Delivery, nil, report)
		return report, nil
	}
	if s.unstored { // as without a queue
		sending, trace := s.start(ctx)
		return s.finish(ctx, sending.Wait(nil), trace), nil
	}
	if wait <= 0 {
		// begin has stored the message. The response does not depend on how fast the
		// destinations are.
		s.giveUp()
		report := s.reportOn(s.begun, nil)
		sending, trace := s.start(ctx)
		go func() { s.finish(ctx, sending.Wait(nil), trace) }()
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
	s.decided.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reportSoFar(nil), s.err
}

// giveUp marks the request as answered, so that later results are not part of
// the response. It reports whether the caller must store the message.
func (s *Submission) giveUp() (store bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.direct {
		if s.targets[i].result == nil {
			s.targets[i].late = true
			s.q.slow.late(s.To.Targets[i].Destination)
		}
	}
	s.streamLate()
	s.answered = true
	if s.deciding {
		return false
	}
	s.deciding = true
	s.MakeEntry(s.ResultsSoFar())
	return true
}

// store stores the message. Only the goroutine that has set deciding calls it.
func (s *Submission) store(ctx context.Context) {
	s.err = s.q.acceptWithRoom(context.WithoutCancel(ctx), s.Entry)
	if s.err != nil && s.refused.only {
		s.notKept(s.err)
		s.err = nil
	}
	s.isDecided()
	if s.err == nil {
		s.settleRefused()
	}
}

// isDecided notes that it is known whether the message is stored.
func (s *Submission) isDecided() {
	s.decided.Done()
	if incident := s.IncidentOf(); incident != "" {
		s.q.Undecided.remove(incident, s)
	}
	if s.err == nil && s.Entry != nil {
		s.log("message stored", zap.Int("deliveries", len(s.Entry.Jobs)))
	}
	if s.err == nil && s.Entry != nil && s.kept != nil {
		s.kept()
	}
}

// log writes a line about the message at the level DEBUG, with its ID. A message that
// an entry of the log causes has none, because the line would be another entry.
func (s *Submission) log(text string, fields ...zap.Field) {
	if s.Logger == nil {
		return
	}
	if c := s.Logger.Check(zap.DebugLevel, text); c != nil {
		c.Write(append(fields, zap.Stringer("id", s.ID), zap.String("source", s.Source))...)
	}
}

// start starts to send to the direct targets.
func (s *Submission) start(ctx context.Context) (notifier.Sending, *dispatch.MessageTrace) {
	d := s.Delivery
	d.Done = s.end
	if !s.unstored {
		d.Repeated = s.failed
	}
	if len(s.direct) < len(s.targets) || s.Message.Incident.ID != "" || !s.Rules.Empty() || slices.ContainsFunc(s.targets, func(t sentTarget) bool { return t.progress != nil }) {
		to := *s.To
		to.Targets = make([]notifier.Target, len(s.direct))
		for k, i := range s.direct {
			to.Targets[k] = s.To.Targets[i]
			to.Targets[k].Progress, to.Targets[k].Missed = s.targets[i].progress, s.targets[i].missed
		}
		d.To = &to
	}
	return s.shared.Start(ctx, d)
}

// finish is called after the last delivery. It stores the message if a result
// is not final, or else the results. It returns the report on all targets.
func (s *Submission) finish(ctx context.Context, sent *notifier.Report, trace *dispatch.MessageTrace) *notifier.Report {
	defer s.Release()
	if s.decide() {
		if s.Entry == nil {
			s.isDecided()
		} else {
			s.store(ctx)
		}
	}
	s.decided.Wait()
	var report *notifier.Report
	var made []notifier.Result
	if s.Entry == nil && len(s.direct) == len(s.targets) {
		report, made = dispatch.ReportOf(s.To, sent), sent.Results
	} else {
		s.mu.Lock()
		report = s.reportSoFar(sent.Records)
		s.mu.Unlock()
		for _, i := range s.direct {
			made = append(made, s.shown(i))
		}
	}
	if s.Entry == nil {
		// The jobs can be on the stack, because Record keeps a copy.
		jobs := appendFinalJobs(make([]queue.Job, 0, 2), make([]byte, 0, queued.RoomForResult), report.Results)
		summary := finalSummaryOf(&s.Delivery)
		s.q.Queue.Record(s.ID, s.Message.Time, summary.Encode(), jobs)
	}
	trace.End(!slices.ContainsFunc(report.Results, api.Failed))
	s.shared.Conclude(s.Delivery, made, report)
	return report
}

// decide reports whether the caller must store the message when all results are
// known. If all are final and nothing is kept, there is no entry.
func (s *Submission) decide() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deciding {
		return false
	}
	s.deciding = true
	for _, t := range s.targets {
		// What has failed for good is kept, and a later message of the incident tells it.
		if r := t.result; !s.unstored && (retryable(r) || r != nil && r.Err != nil && (s.Message.Incident.ID != "" || !r.Optional && keepsRefused(&s.Delivery))) {
			s.MakeEntry(s.ResultsSoFar())
			break
		}
	}
	return true
}

// end records the result of the k-th direct target. If the queue has stored the
// message, end settles the job.
func (s *Submission) end(k int, r notifier.Result) {
	i := s.direct[k]
	s.mu.Lock()
	s.targets[i].own = r
	s.targets[i].result = &s.targets[i].own
	late, deciding := s.targets[i].late, s.deciding
	if s.bypasses && s.Message.Incident.ID != "" {
		s.shared.Incidents.Told(s.IncidentOf(), s.Message, s.To.Targets[i], r)
	}
	if !s.answered && s.Delivery.Done != nil {
		if s.repeats(&r) {
			r.Status = api.StatusQueued
		}
		s.Delivery.Done(i, r)
	}
	s.mu.Unlock()
	s.q.slow.end(s.To.Targets[i].Destination, late)
	if deciding {
		s.decided.Wait()
	}
	if !deciding || s.err != nil {
		s.observe(i)
		return
	}
	j := s.Entry.Jobs[s.To.Positions()[i]]
	if j.Status != queue.Sending {
		s.observe(i)
		return
	}
	state := s.states[i]
	state.Reported = true // as part of the outcome of the message
	o := outcomeOf(s.Message, state, *s.targets[i].result, nil)
	if o.Status == queue.Dead && !late && !keepsRefused(&s.Delivery) { // the response reports the failure
		o.Status = queue.Failed
	}
	s.q.Queue.Settle(&j, o)
}

// failed counts a failure of the k-th direct target that the queue repeats, and
// returns the level of its log entry.
func (s *Submission) failed(k int, r *notifier.Result) zapcore.Level {
	i := s.direct[k]
	id := queue.Hash{}
	if s.To.Limits == nil {
		id = s.q.Queue.Hash(s.destination(i))
	}
	return s.q.Failures.Add(id, DestinationName{s.Key, r.Service, r.Destination}, s.ID, r.Err)
}

// streamQueued sends the client the state of the targets that are queued from
// the beginning.
func (s *Submission) streamQueued() {
	for i := range s.To.Targets {
		if s.Delivery.Done != nil && !s.targets[i].direct {
			s.Delivery.Done(i, s.shown(i))
		}
	}
}

// streamLate sends the client the state of the targets that are late.
func (s *Submission) streamLate() {
	for i, t := range s.To.Targets {
		if s.Delivery.Done != nil && s.targets[i].late {
			s.Delivery.Done(i, queuedNotYet(t))
		}
	}
}

// retryable reports whether the queue tries again after a result.
func retryable(r *notifier.Result) bool { return r != nil && r.Err != nil && r.Temporary }

// errNotStored is the error of a delivery in progress that the queue could not
// store.
var errNotStored = errors.New("it is being sent, but the gateway cannot store it for another attempt")

// shown returns the result of the i-th target as the client sees it. The caller
// holds the lock, or no delivery is in progress.
func (s *Submission) shown(i int) notifier.Result {
	stored := s.err == nil
	switch r := s.targets[i].result; {
	case r == nil:
		out := queuedNotYet(s.To.Targets[i])
		switch {
		case !stored:
			out.Status, out.Err = notifier.Failed, errNotStored
		case s.Entry != nil && s.Entry.Rules != nil:
			ruled(&out, &s.Entry.Jobs[s.To.Positions()[i]])
		}
		return out
	case stored && s.repeats(r):
		out := *r
		out.Status = api.StatusQueued
		return out
	default:
		return *r
	}
}

// reportSoFar returns the results of all targets as the client sees them.
// records are the records of the deliveries, or nil if they are not known. The
// caller holds the lock, or no delivery is in progress.
func (s *Submission) reportSoFar(records []notifier.Record) *notifier.Report {
	return s.reportOn(s.ResultsSoFar(), records)
}

// reportOn returns the report on these results of the targets.
func (s *Submission) reportOn(results []notifier.Result, records []notifier.Record) *notifier.Report {
	report := &notifier.Report{Results: results, Records: records}
	for _, r := range report.Results {
		switch {
		case r.Status == api.StatusQueued:
			report.Records = append(report.Records, api.QueuedRecord(r))
		case records == nil:
			report.Records = append(report.Records, api.ResultRecord(r))
		}
	}
	return dispatch.ReportOf(s.To, report)
}

// ResultsSoFar returns the results of the targets as the client sees them. The
// caller holds the lock, or no delivery is in progress.
func (s *Submission) ResultsSoFar() []notifier.Result {
	results := make([]notifier.Result, len(s.To.Targets))
	for i := range results {
		results[i] = s.shown(i)
	}
	return results
}

// destination returns what the queue knows the i-th target by.
func (s *Submission) destination(i int) string {
	return site.DestinationName(s.To.Targets[i], s.To.Limits)
}

// observe tells the queue how the delivery to the i-th target has ended, which it
// does not know because it has no job for it or the job waits.
func (s *Submission) observe(i int) {
	r := s.targets[i].result
	if r.Attempts == 0 {
		return
	}
	a := queue.Attempt{Destination: s.destination(i), Host: s.To.Targets[i].Host(), Client: s.To.Limits != nil, Status: queue.Delivered}
	if r.Err != nil {
		a.Status, a.Error, a.Began = queue.Failed, r.Err.Error(), s.q.Queue.Now().Add(-r.Elapsed)
		a.About = DestinationName{s.Key, r.Service, r.Destination}.Encode()
		if r.Temporary {
			a.Status = queue.Queued
		}
	}
	s.q.Queue.Observe(a)
}

// inboxRecord returns the record for a client whose message has no destination besides
// the inbox.
func (s *Submission) inboxRecord() notifier.Record {
	text := "Kept in the inbox of the key " + s.Key + " until " + time.Now().Add(s.Inbox).UTC().Format(time.RFC3339) + "."
	return notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: text}
}

package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/timetext"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// submission sends one message. The queue takes over the deliveries that are not final in
// time. The package comment has a drawing of its states.
//
// Whoever sets deciding, in begin, storeNow, giveUp or finish, stores the message or finds
// that it need not be stored, and then calls isDecided. Results that come in meanwhile wait
// for that.
type submission struct {
	d       dispatch.Delivery
	q       *Outbox
	shared  *dispatch.Dispatcher
	plan    *Plan             // what rules decide; nil for nothing
	direct  []int             // indexes of the targets that are sent to at once; the others are queued
	begun   []notifier.Result // if begin has stored the message: the results before anything is sent
	targets []sentTarget

	// decided is done when it is known whether the message is stored. err and draft can be
	// read only after that. err is the error of the queue if it could not store the message.
	// draft is nil if the message did not need to be stored.
	decided sync.WaitGroup
	err     error
	draft   *Draft

	mu       sync.Mutex
	deciding bool        // a goroutine decides, or has done so
	lease    queue.Lease // of what is stored and sent; zero before
	bypasses bool        // the message is about an incident, and the store could not be asked about it
	unstored bool        // it bypasses the queue because that is full (see sendUnstored)
	answered bool        // further results are too late for the response

	// one has the room of direct and targets for one target.
	one struct {
		direct  [1]int
		targets [1]sentTarget
	}
}

// sentTarget is the state of a target of a submission.
type sentTarget struct {
	direct   bool               // it is sent to at once
	progress *notifier.Progress // nil if the message cannot arrive in part
	result   *notifier.Result   // nil while in progress, then a pointer to own
	own      notifier.Result
	late     bool // it was in progress when the request was answered
	missed   notifier.Missed
}

// prepare sets what messages of the queue have: an ID, and a time by the clock of the queue.
func (q *Outbox) prepare(d *dispatch.Delivery) {
	if d.ID == (uuid.UUID{}) {
		if d.ID = d.NewID; d.ID == (uuid.UUID{}) {
			d.ID = queue.NewID()
		}
	}
	if at := q.Queue.At(d.Message.Time); at != d.Message.Time { // so that messages of several gateways are in order
		m := *d.Message
		m.Time, d.Message = at, &m
	}
	if d.ID != d.NewID {
		d.Message.ID = d.ID.String()
	}
	d.Message.Expires = q.Queue.Now().Add(q.Queue.MaxAge())
}

func newSubmission(d dispatch.Delivery, q *Outbox) *submission {
	s := &submission{d: d, q: q, shared: q.Dispatcher}
	q.prepare(&s.d)
	s.decided.Add(1)
	if s.direct, s.targets = s.one.direct[:0], s.one.targets[:]; len(d.To.Targets) != 1 {
		s.targets = make([]sentTarget, len(d.To.Targets))
	}
	return s
}

// begin stores the message before anything is sent if the client does not wait for results
// or has an idempotency key, if a destination is slow, if an older message of the incident
// is not final, or if something is decided in the transaction that stores it.
//
// If there are chains, run sends to all targets itself, so that the next number
// of a chain is tried at once. The queue keeps the order of the numbers after a
// crash and when all have failed (see [queued.Chains]).
func (s *submission) begin(ctx context.Context, waits bool) error {
	s.d.Trace = dispatch.NewTraceOrigin(ctx)
	s.log("message accepted", "destinations", len(s.targets))
	chained := notifier.Chained(s.d.To.Targets)
	if (waits || chained) && s.d.Question == nil { // the links of a question are made for each attempt
		s.chooseDirect(chained)
	}
	fast := waits && len(s.direct) == len(s.targets) && s.d.Idempotency.Key == ""
	s.plan = s.q.Policy.Plan(&s.d, true) // before takeTurn, after which a later message may store this one
	inTurn := s.takeTurn(ctx)
	if fast && inTurn && s.plan == nil && s.d.With == nil && !s.d.Keeps() {
		return nil
	}
	if s.decideToStore() {
		err := s.accept(ctx)
		_, unavailable := errors.AsType[*queue.UnavailableError](err)
		if unavailable && fast && len(s.targets) > 0 && s.sendAround() || errors.Is(err, queue.ErrFull) && s.sendUnstored(ctx) {
			// An alert goes out although its order is not known. So does a message that
			// cannot be held for a rule. Silences hold.
			s.mu.Lock()
			defer s.mu.Unlock()
			s.deciding, s.bypasses, s.draft = false, true, nil
			return nil
		}
		s.err = err
		s.isDecided()
	}
	if s.decided.Wait(); s.err != nil {
		s.endDirect()
		return s.err
	}
	s.begun = s.resultsSoFar()
	s.waitForTurns(chained)
	if s.plan != nil {
		s.plan.Stored(&s.d)
	}
	return nil
}

// chooseDirect chooses the targets that are sent to at once: the targets that are not slow or, with
// force, all.
func (s *submission) chooseDirect(force bool) {
	for i, t := range s.d.To.Targets {
		if s.q.slow.begin(t.Destination, force) {
			s.direct = append(s.direct, i)
			s.targets[i].direct = true
			if divisible(s.d.Message, t) {
				s.targets[i].progress = new(notifier.Progress)
			}
		}
	}
}

// endDirect stops counting the direct targets as being sent to.
func (s *submission) endDirect() {
	for _, i := range s.direct {
		s.q.slow.end(s.d.To.Targets[i].Destination, false)
	}
}

// decideToStore reports whether the caller must store the message, unless that is
// decided already.
func (s *submission) decideToStore() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decideLocked()
}

// decideLocked is decideToStore for a caller that holds the lock.
func (s *submission) decideLocked() bool {
	if s.deciding {
		return false
	}
	s.deciding = true
	s.makeDraft()
	return true
}

// makeDraft makes what is to be stored, with the results so far. The caller holds the lock.
func (s *submission) makeDraft() {
	s.draft = s.q.newDraft(&s.d, s.targets, s.resultsSoFar(), s.plan, s.bypasses)
}

// waitForTurns leaves to the queue the targets that have to wait for an older message of the
// incident. If there are chains it leaves all, because a number must not be used before the numbers
// that wait.
func (s *submission) waitForTurns(chained bool) {
	if s.d.Message.Incident.ID == "" && s.draft.Entry.Rules == nil {
		return
	}
	held := func(i int) bool { return s.draft.job(i).Status != queue.Sending }
	all := chained && slices.ContainsFunc(s.direct, held)
	s.direct = slices.DeleteFunc(s.direct, func(i int) bool {
		j := *s.draft.job(i)
		if !all && !held(i) {
			s.targets[i].missed = queued.Missed(&j)
			return false
		}
		s.targets[i].direct = false
		s.q.slow.end(s.d.To.Targets[i].Destination, false)
		if !held(i) {
			s.q.Queue.Settle(&j, queue.Outcome{Postponed: true})
		}
		return true
	})
}

// smallText is the maximum length of a text that is assumed to be sent in one
// part, in bytes.
const smallText = 140

// divisible reports whether a message may be sent to t in several parts or to
// several recipients, so that its progress must be recorded.
func divisible(m *notifier.Message, t notifier.Target) bool {
	return len(m.Attachments) > 0 || len(m.Title)+len(m.Body) > smallText || t.Recipients() > 1
}

// run sends to the direct targets, waits for the results, and reports on all
// targets. In the background, it waits until all deliveries have ended. The error is one of
// the queue.
func (s *submission) run(ctx context.Context, wait time.Duration, background bool) (*notifier.Report, error) {
	s.streamQueued()
	if len(s.direct) == 0 {
		defer s.d.Release()
		report := s.reportOn(s.begun, nil)
		if len(s.targets) == 0 {
			report.Records = append(report.Records, inboxRecord(&s.d))
		}
		s.shared.Conclude(s.d, nil, report)
		return report, nil
	}
	if s.unstored || background { // all of them are waited for
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
	return s.reportOn(s.resultsSoFar(), nil), s.err
}

// giveUp marks the request as answered, so that later results are not part of
// the response. It reports whether the caller must store the message.
func (s *submission) giveUp() (store bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.direct {
		if s.targets[i].result == nil {
			t := s.d.To.Targets[i]
			s.targets[i].late = true
			s.q.slow.late(t.Destination)
			if s.d.Done != nil {
				s.d.Done(i, queuedNotYet(t))
			}
		}
	}
	s.answered = true
	return s.decideLocked()
}

// store stores the message. Only the goroutine that has set deciding calls it.
func (s *submission) store(ctx context.Context) {
	s.err = s.accept(ctx)
	if s.err != nil && s.draft.refused.only {
		s.q.Log.Error("a delivery that was refused for good cannot be kept", zap.Stringer("id", s.d.ID), zap.String("key", s.d.Key),
			zap.Error(s.err))
		s.draft, s.err = nil, nil // the answer tells the failure, as without a queue
	}
	s.isDecided()
	if s.err == nil && s.draft != nil {
		s.draft.settleRefused(s.q)
	}
}

// accept stores the draft.
func (s *submission) accept(ctx context.Context) error {
	lease := s.q.Queue.Lease()
	err := s.q.Accept(context.WithoutCancel(ctx), s.draft.Entry)
	if err == nil {
		s.mu.Lock()
		s.lease = lease
		s.mu.Unlock()
	}
	return err
}

// held returns an error if another gateway may have taken over what is stored.
func (s *submission) held() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.Err()
}

// isDecided is called when it is known whether the message is stored.
func (s *submission) isDecided() {
	s.decided.Done()
	if incident := s.d.IncidentOf(); incident != "" {
		s.q.undecided.remove(incident, s)
	}
	if s.err != nil || s.draft == nil {
		return
	}
	s.log("message stored", "deliveries", len(s.draft.Entry.Jobs))
	if s.draft.kept != nil {
		s.draft.kept()
	}
}

// log writes a line about the message at the level DEBUG, with its ID and a number. A message that
// an entry of the log causes has no line, because the line would be another entry.
func (s *submission) log(text, what string, n int) {
	if s.d.Logger == nil {
		return
	}
	if c := s.d.Logger.Check(zap.DebugLevel, text); c != nil {
		c.Write(zap.Int(what, n), zap.Stringer("id", s.d.ID), zap.String("source", s.d.Source))
	}
}

// start starts to send to the direct targets.
func (s *submission) start(ctx context.Context) (notifier.Sending, *dispatch.MessageTrace) {
	d := s.d
	d.Done, d.Held = s.end, s.held
	if !s.unstored {
		d.Repeated = func(k int, r *notifier.Result) zapcore.Level {
			return s.q.countFailure(site.DestinationName(s.d.To.Targets[s.direct[k]], s.d.To.Limits), s.d.To.Limits != nil, s.d.Key, s.d.ID, r)
		}
	}
	if len(s.direct) < len(s.targets) || d.Message.Incident.ID != "" || !d.Rules.Empty() ||
		slices.ContainsFunc(s.targets, func(t sentTarget) bool { return t.progress != nil }) {
		to := *d.To
		to.Targets = make([]notifier.Target, len(s.direct))
		for k, i := range s.direct {
			to.Targets[k] = s.d.To.Targets[i]
			to.Targets[k].Progress, to.Targets[k].Missed = s.targets[i].progress, s.targets[i].missed
		}
		d.To = &to
	}
	return s.shared.Start(ctx, d)
}

// finish is called after the last delivery. It stores the message if a result
// is not final, or else the results. It returns the report on all targets.
func (s *submission) finish(ctx context.Context, sent *notifier.Report, trace *dispatch.MessageTrace) *notifier.Report {
	defer s.d.Release()
	if s.decide() {
		if s.draft == nil {
			s.isDecided()
		} else {
			s.store(ctx)
		}
	}
	s.decided.Wait()
	var report *notifier.Report
	var made []notifier.Result
	if s.draft == nil && len(s.direct) == len(s.targets) {
		report, made = dispatch.ReportOf(s.d.To, sent), sent.Results
	} else {
		s.mu.Lock()
		report = s.reportOn(s.resultsSoFar(), sent.Records)
		s.mu.Unlock()
		for _, i := range s.direct {
			made = append(made, s.shown(i))
		}
	}
	if s.draft == nil {
		summary := finalSummaryOf(&s.d)
		s.q.Queue.Record(s.d.ID, s.d.Message.Time, summary.Encode(), finalJobs(report.Results))
	}
	trace.End(!slices.ContainsFunc(report.Results, message.Failed))
	s.shared.Conclude(s.d, made, report)
	return report
}

// decide reports whether the caller must store the message when all results are
// known. If all are final and nothing is kept, there is no draft.
func (s *submission) decide() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deciding {
		return false
	}
	s.deciding = true
	for _, t := range s.targets {
		// What has failed for good is kept, and a later message of the incident tells it.
		if r := t.result; !s.unstored && (retryable(r) || r != nil && r.Err != nil &&
			(s.d.Message.Incident.ID != "" || !r.Optional && keepsRefused(&s.d))) {
			s.makeDraft()
			break
		}
	}
	return true
}

// end records the result of the k-th direct target. If the queue has stored the
// message, end settles the job.
func (s *submission) end(k int, r notifier.Result) {
	i := s.direct[k]
	s.mu.Lock()
	s.targets[i].own = r
	s.targets[i].result = &s.targets[i].own
	late, deciding := s.targets[i].late, s.deciding
	if s.bypasses && s.d.Message.Incident.ID != "" {
		s.shared.Incidents.Told(s.d.IncidentOf(), s.d.Message, s.d.To.Targets[i], r)
	}
	if !s.answered && s.d.Done != nil {
		if s.repeats(&r) {
			r.Status = message.StatusQueued
		}
		s.d.Done(i, r)
	}
	s.mu.Unlock()
	s.q.slow.end(s.d.To.Targets[i].Destination, late)
	if deciding {
		s.decided.Wait()
	}
	if !deciding || s.err != nil || s.draft.job(i).Status != queue.Sending {
		s.q.Observe(&s.d, s.d.To.Targets[i], s.targets[i].result)
		return
	}
	j := *s.draft.job(i)
	o := s.draft.outcome(i)
	if o.Status == queue.Dead && !late && !keepsRefused(&s.d) { // the response reports the failure
		o.Status = queue.Failed
	}
	s.q.Queue.Settle(&j, o)
}

// countFailure counts a failure that the queue repeats, and returns the level of its log entry. All
// failures of URLs of clients are counted as one.
func (q *Outbox) countFailure(destination string, client bool, key string, message uuid.UUID, r *notifier.Result) zapcore.Level {
	id := queue.Hash{}
	if !client {
		id = q.Queue.Hash(destination)
	}
	return q.Failures.Add(id, DestinationName{key, r.Service, r.Destination}, message, r.Err)
}

// Observe tells the queue how the delivery to a target of d has ended, which the queue does
// not know because it has no job for it or the job waits.
func (q *Outbox) Observe(d *dispatch.Delivery, t notifier.Target, r *notifier.Result) {
	if r.Attempts == 0 {
		return
	}
	a := queue.Attempt{Destination: site.DestinationName(t, d.To.Limits), Host: t.Host(), Client: d.To.Limits != nil, Status: queue.Delivered}
	if r.Err != nil {
		a.Status, a.Error, a.Began = queue.Failed, r.Err.Error(), q.Queue.Now().Add(-r.Elapsed)
		a.About = DestinationName{d.Key, r.Service, r.Destination}.Encode()
		if r.Temporary {
			a.Status = queue.Queued
		}
	}
	q.Queue.Destinations.Observe(a)
}

// logQueued writes a line at the level INFO about a message that was not delivered to all
// destinations at once, so that somebody who looks for it finds its ID. It writes nothing for
// a message without a logger.
func (s *submission) logQueued(report *notifier.Report) {
	n := 0
	for _, r := range report.Results {
		if r.Status == message.StatusQueued {
			n++
		}
	}
	if n > 0 && s.d.Logger != nil {
		s.d.Logger.Info("message not delivered at once", zap.Stringer("id", s.d.ID), zap.String("source", s.d.Source), zap.Int("queued", n),
			zap.Int("destinations", len(report.Results)))
	}
}

// A client sees what its message has come to: the results of deliveries that have ended,
// and the others as queued.

// streamQueued sends the client the state of the targets that are queued from
// the beginning.
func (s *submission) streamQueued() {
	for i := range s.targets {
		if s.d.Done != nil && !s.targets[i].direct {
			s.d.Done(i, s.shown(i))
		}
	}
}

// retryable reports whether the queue tries again after a result.
func retryable(r *notifier.Result) bool { return r != nil && r.Err != nil && r.Temporary }

// repeats reports whether the queue tries again after a result of this message.
func (s *submission) repeats(r *notifier.Result) bool { return retryable(r) && !s.unstored }

// errNotStored is the error of a delivery in progress that the queue could not
// store.
var errNotStored = errors.New("it is being sent, but the gateway cannot store it for another attempt")

// shown returns the result of the i-th target as the client sees it. The caller
// holds the lock, or no delivery is in progress.
func (s *submission) shown(i int) notifier.Result {
	stored := s.err == nil
	switch r := s.targets[i].result; {
	case r == nil:
		out := queuedNotYet(s.d.To.Targets[i])
		switch {
		case !stored:
			out.Status, out.Err = notifier.Failed, errNotStored
		case s.draft != nil && s.draft.Entry.Rules != nil:
			ruled(&out, s.draft.job(i))
		}
		return out
	case stored && s.repeats(r):
		out := *r
		out.Status = message.StatusQueued
		return out
	default:
		return *r
	}
}

// resultsSoFar returns the results of the targets as the client sees them. The
// caller holds the lock, or no delivery is in progress.
func (s *submission) resultsSoFar() []notifier.Result {
	results := make([]notifier.Result, len(s.targets))
	for i := range results {
		results[i] = s.shown(i)
	}
	return results
}

// reportOn returns the report on these results of the targets. records are the records of
// the deliveries, or nil if they are not known.
func (s *submission) reportOn(results []notifier.Result, records []notifier.Record) *notifier.Report {
	report := &notifier.Report{Results: results, Records: records}
	for _, r := range report.Results {
		switch {
		case r.Status == message.StatusQueued:
			report.Records = append(report.Records, message.QueuedRecord(r))
		case records == nil:
			report.Records = append(report.Records, message.ResultRecord(r))
		}
	}
	return dispatch.ReportOf(s.d.To, report)
}

// queuedNotYet returns the result of a delivery to t whose outcome is not known
// yet.
func queuedNotYet(t notifier.Target) notifier.Result {
	return notifier.Result{
		Service: t.Service(), Destination: t.String(), Name: t.Destination.Name(), Tags: t.Tags,
		Status: message.StatusQueued, Optional: t.Optional(),
	}
}

// ruled sets the result of a job that a rule has decided not to send now.
func ruled(r *notifier.Result, j *queue.Job) {
	if j.Rule == "" {
		return
	}
	switch j.Status {
	case queue.Held:
		r.Status, r.Rule, r.Until = message.StatusQueued, notifier.Rule(j.Rule), j.Due
		if r.Rule == notifier.RuleEscalating {
			r.Step = queued.Step(j)
		}
	case queue.Superseded:
		r.Status, r.Rule, r.Err = notifier.Skipped, notifier.Rule(j.Rule), nil
		if j.By.Message != (uuid.UUID{}) {
			r.By = j.By.Message.String()
		}
	}
}

// inboxRecord returns the record for a client whose message has no destination besides
// the inbox.
func inboxRecord(d *dispatch.Delivery) notifier.Record {
	text := "Kept in the inbox of the key " + d.Key + " until " + timetext.Format(time.Now().Add(d.Inbox)) + "."
	return notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: text}
}

// setIncident sets what the queue needs to keep the order of an incident.
func setIncident(d *dispatch.Delivery, j *queue.Job) {
	if j.Incident = d.IncidentOf(); j.Incident == "" {
		return
	}
	state := dispatch.StateOf(d.Message)
	j.NewState = state == notifier.Open || state == notifier.Resolved
	j.Note = queued.Note(state, d.Message.Time, false)
}

// undecidedSends are the messages of incidents that may be sent without being
// stored. Of an incident, they are in the order in which they came. The zero value
// is ready for use.
type undecidedSends struct {
	mu  sync.Mutex
	all map[string][]*submission
}

// add adds a message and returns those before it.
func (u *undecidedSends) add(incident string, s *submission) (before []*submission) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[string][]*submission{}
	}
	before = slices.Clone(u.all[incident])
	u.all[incident] = append(u.all[incident], s)
	return before
}

func (u *undecidedSends) remove(incident string, s *submission) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if rest := slices.DeleteFunc(u.all[incident], func(x *submission) bool { return x == s }); len(rest) > 0 {
		u.all[incident] = rest
	} else {
		delete(u.all, incident)
	}
}

// takeTurn reports whether the message can be sent without being stored: it has no incident,
// nothing of the incident is in the queue, or the store cannot tell. Messages of the
// incident that are being sent are stored, so that the queue knows the order. Where several
// gateways share the queue, takeTurn reports false for an incident.
func (s *submission) takeTurn(ctx context.Context) bool {
	incident := s.d.IncidentOf()
	if incident == "" {
		return true
	}
	if s.q.Store == nil {
		return false
	}
	for _, before := range s.q.undecided.add(incident, s) {
		before.storeNow(ctx)
	}
	destinations := make([]string, len(s.d.To.Targets))
	for i := range destinations {
		destinations[i] = site.DestinationName(s.d.To.Targets[i], s.d.To.Limits)
	}
	idle, err := s.q.Queue.Idle(ctx, incident, destinations...)
	if err != nil {
		s.mu.Lock()
		s.bypasses = true
		s.mu.Unlock()
	}
	return idle || err != nil
}

// storeNow stores the message, unless that is decided already, and waits until it is
// stored or known not to be.
func (s *submission) storeNow(ctx context.Context) {
	if s.decideToStore() {
		s.store(ctx)
	}
	s.decided.Wait()
}

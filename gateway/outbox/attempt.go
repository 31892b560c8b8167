package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Attempt makes one attempt for a job of the queue, in stages: each prepares the delivery,
// or returns the outcome if there is nothing to send now.
func (q *Outbox) Attempt(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
	a := attempt{q: q, conf: q.Current(), stored: m, job: j}
	defer a.release()
	for _, stage := range []func(context.Context) *queue.Outcome{
		a.decode, a.later, a.takeTurn, a.compose, a.findTarget, a.skipReplaced, a.ask,
		a.takeMemory,
	} {
		if o := stage(ctx); o != nil {
			return *o
		}
	}
	return a.send(ctx)
}

// attempt is an attempt for a job. Its stages set the fields in this order.
type attempt struct {
	q      *Outbox
	conf   *Configuration
	stored *queue.Message
	job    *queue.Job

	text         queued.Text
	state        queued.State
	laterDecides bool // a later number of the chain decides whether the job is given up
	message      *notifier.Message
	incident     *rules.Incident // whose link the message shows; nil for none
	target       QueueTarget
	memory       memory.Allocation
}

// How long a delivery that cannot be made is postponed.
const (
	postponeMemory = time.Second
	PostponeSaved  = 10 * time.Second // until saved keys can be read again
	PostponeChain  = 2 * time.Second  // while lower numbers of its chain are to be tried

	// copiesOfQueuedText is the number of copies of a text in memory during a
	// delivery: as stored, decoded, and as part of the request.
	copiesOfQueuedText = 4
)

// postponed returns the outcome of an attempt that cannot be made before d is over.
func postponed(d time.Duration) *queue.Outcome {
	return &queue.Outcome{Postponed: true, RetryAfter: d}
}

// decode reads what is stored with the job.
func (a *attempt) decode(context.Context) *queue.Outcome {
	if err := a.text.Decode(a.stored.Body); err != nil {
		return a.unreadable(err)
	}
	if err := a.state.Decode(a.job.State); err != nil {
		return a.unreadable(err)
	}
	a.state.Reported = false
	return nil
}

// later leaves a message that is planned to whoever keeps it.
func (a *attempt) later(ctx context.Context) *queue.Outcome {
	if a.text.Later.At.IsZero() {
		return nil
	}
	return a.q.Policy.Later(ctx, a.conf, a.stored, a.job)
}

// unreadable returns the outcome for a record that cannot be decoded, which
// another version of the program may have written.
func (a *attempt) unreadable(err error) *queue.Outcome {
	return a.dead(fmt.Sprintf("the message cannot be read from the queue: %v", err))
}

// dead returns the outcome for a job that is given up without an attempt.
func (a *attempt) dead(reason string) *queue.Outcome {
	return &queue.Outcome{Status: queue.Dead, State: a.job.State, Result: a.job.Result, Reason: reason, NotSent: true}
}

// takeTurn waits until the job can be attempted, if the message has chains.
func (a *attempt) takeTurn(ctx context.Context) *queue.Outcome {
	var s queued.Summary
	if !a.job.OwnAttempts || s.Decode(a.stored.Summary) != nil || s.Chains.All == nil { // jobs of chains have own attempts
		return nil
	}
	e, err := a.q.Queue.Get(ctx, a.stored.ID)
	if err != nil {
		return postponed(PostponeChain)
	}
	turn := queued.TurnOf(e, a.job, a.q.Queue.Now())
	if turn.Wait {
		return postponed(PostponeChain)
	}
	a.laterDecides = turn.LaterDecides
	return turn.Outcome
}

// compose makes the message, and asks the rules about it.
func (a *attempt) compose(ctx context.Context) (o *queue.Outcome) {
	var err error
	if a.message, err = a.text.Message(a.stored); err != nil {
		return a.unreadable(err)
	}
	a.incident, o = a.q.Policy.Before(ctx, a.job)
	return o
}

// findTarget finds the destination of the job in the present configuration.
func (a *attempt) findTarget(ctx context.Context) *queue.Outcome {
	t, err := a.queuedTarget(ctx)
	if message.IsUnavailable(err) {
		return postponed(PostponeSaved)
	}
	if err != nil {
		o := a.dead(err.Error())
		_, o.Unknown = errors.AsType[*goneError](err)
		return o
	}
	a.target = t
	return nil
}

// errCallbacksOff is returned for the callback of a question that was asked when they were on.
var errCallbacksOff = errors.New("the callbacks of questions are turned off here; the operator can write ask_callback on")

// queuedTarget returns the destination of the job in the present configuration.
func (a *attempt) queuedTarget(ctx context.Context) (QueueTarget, error) {
	if a.text.Source != site.SourceCallback {
		return a.conf.QueuedTarget(ctx, &a.text, &a.state)
	}
	then, err := PolicyThen(&a.text, nil)
	if err != nil {
		return QueueTarget{}, err
	}
	settings, now, _ := a.conf.siteRules(a.text.Site, then)
	if !settings.Callbacks {
		return QueueTarget{}, errCallbacksOff
	}
	d, err := a.q.Policy.Callback(ctx, a.text.Body, egress.Strictest(now, then))
	return QueueTarget{Target: notifier.Target{Destination: d}, Settings: settings, Limits: settings.Limits.Client, logger: a.conf.Log}, err
}

// ask adds the links of a question to the message.
func (a *attempt) ask(ctx context.Context) *queue.Outcome {
	if !a.text.Asks {
		return nil
	}
	return a.q.Policy.Ask(ctx, a.job, a.message, a.state.Hash, a.target.Settings.PublicURL)
}

// skipReplaced skips a message if its destination was told of a newer one while the store
// could not be asked.
func (a *attempt) skipReplaced(context.Context) *queue.Outcome {
	if a.job.Incident != "" && a.q.Dispatcher.Incidents.Replaced(a.job.Incident, a.message, a.target.Target) {
		return &queue.Outcome{Status: queue.Superseded, Result: a.job.Result, NotSent: true}
	}
	return nil
}

// takeMemory takes the memory that a large text needs.
func (a *attempt) takeMemory(context.Context) *queue.Outcome {
	a.memory = a.q.Dispatcher.Memory.Allocation(a.target.Settings.Limits.Memory, a.text.Untrusted)
	if n := int64(len(a.message.Title) + len(a.message.Body)); n > memory.SmallText && !a.memory.Take(copiesOfQueuedText*n) {
		return postponed(postponeMemory)
	}
	return nil
}

// release releases what the stages have taken.
func (a *attempt) release() {
	a.memory.Close()
	if a.target.Own {
		a.target.Target.Close()
	}
}

// send sends the message, and records what came of it.
func (a *attempt) send(ctx context.Context) queue.Outcome {
	if a.job.Attempts > 0 {
		a.q.Dispatcher.Metrics.Queue.Retries.Inc()
	}
	d := a.delivery()
	d.Held = func() error { return queue.LeaseErr(ctx) }
	sent, trace := a.q.Dispatcher.SendNow(ctx, d)
	r := sent.Results[0]
	all := r
	all.Attempts += queued.DecodeResult(a.job.Result).Attempts
	o := outcomeOf(a.message, a.state, all, a.job.Result)
	o.NotSent = o.Status == queue.Queued && r.Attempts == 0 // there was no room for it in time
	if o.Status == queue.Dead && a.laterDecides {
		o.Status = queue.Failed
	}
	if retryable(&r) {
		sent.Results[0].Status = message.StatusQueued
	}
	trace.End(r.OK())
	a.q.Dispatcher.Conclude(d, sent.Results, sent)
	return o
}

// delivery returns the delivery to the one target of the job.
func (a *attempt) delivery() dispatch.Delivery {
	m, j := a.message, a.job
	m.ID, m.Expires = a.stored.ID.String(), j.Expires
	if open := queued.OpenFor(j); open > 0 {
		m.Incident.OpenFor = open
	}
	if !a.text.Asks {
		m.Link = a.target.Settings.IncidentLink(a.incident)
	}
	d := dispatch.NewDelivery(a.target.Settings, a.text.Source, a.text.Site, m, a.selection())
	d.Key, d.Logger, d.Memory, d.ID = a.text.Key, a.target.logger, &a.memory, a.stored.ID
	if a.text.Source == site.SourceLog {
		d.Logger = nil // an entry of the log would become another message
	}
	d.Stored.Home, d.Stored.Key, _ = strings.Cut(j.Incident, "\x00")
	d.Stored.Key, _, _ = strings.Cut(d.Stored.Key, "\x00")
	if a.text.OpensAlert {
		d.OpenAlerts = a.q.OpenAlerts
	}
	d.Attempt = &dispatch.Attempt{Before: j.Attempts, Resumed: a.conf.resumeTrace(a.text.Trace)}
	if tries := queued.Tries(j.Result); len(tries) > 0 {
		d.Attempt.Last = tries[len(tries)-1].At
	}
	d.Repeated = func(_ int, r *notifier.Result) zapcore.Level {
		return a.q.countFailure(j.Destination, j.Client, a.text.Key, a.stored.ID, r)
	}
	return d
}

// selection returns the target of the job, with what it has not got yet and its limits.
func (a *attempt) selection() *message.Selection {
	t := a.target.Target
	t.Tags, t.Missed = a.state.Tags, queued.Missed(a.job)
	// Without progress, the sender uses its own, which it returns if it fails, and
	// which costs less if it does not.
	t.Progress = nil
	if len(a.state.Progress) > 0 {
		restored := new(notifier.Progress)
		if err := restored.UnmarshalJSON(a.state.Progress); err == nil {
			t.Progress = restored
		} // otherwise it is of another version; everything is sent again
	}
	to := &message.Selection{Targets: []notifier.Target{t}, Transient: a.text.Client}
	if a.target.Limits != nil {
		// The queue makes the attempts, and each delivery has its share of the limits
		// of one request.
		limits := *a.target.Limits
		limits.Retry = 0
		limits.Requests = max(limits.Requests/max(a.text.Targets, 1), 1)
		to.Limits = &limits
	}
	return to
}

// outcomeOf returns the outcome of an attempt for the queue. before is the stored
// result of the attempts before it.
func outcomeOf(m *notifier.Message, state queued.State, r notifier.Result, before []byte) queue.Outcome {
	o := queue.Outcome{Status: queue.Delivered, About: DestinationName{state.Key, r.Service, r.Destination}.Encode()}
	if r.Err != nil {
		o.Reason = r.Err.Error()
	}
	if r.Err != nil && r.Unclear && m.Incident.ID != "" {
		o.Note = queued.Note(dispatch.StateOf(m), m.Time, true)
	}
	switch {
	case r.Err == nil:
	case r.Temporary:
		r.Status = message.StatusQueued
		o.Status, o.State, o.RetryAfter = queue.Queued, state.With(r.Progress), r.RetryAfter
	case r.Optional:
		o.Status = queue.Failed
	default:
		o.Status, o.State = queue.Dead, state.With(r.Progress)
	}
	o.Result = queued.AppendTry(queued.AppendResult(make([]byte, 0, queued.RoomForResult), r), before, r)
	return o
}

// Settled reports a job that the queue has given up: in the log, metrics,
// history and events. The log also has a line about one that was not sent.
func (q *Outbox) Settled(j *queue.Job) {
	if j.Status == queue.Superseded {
		q.logSuperseded(j)
	}
	if j.Status != queue.Dead {
		return
	}
	d := NewDeadDelivery(j)
	level := zapcore.ErrorLevel
	if d.Result.Optional {
		level = zapcore.WarnLevel
	}
	q.dead.Write(q.Log, level, "delivery given up; it can be tried again",
		"more deliveries given up; caddy notify queue list --dead shows them", zap.String("id", j.Message.String()),
		zap.String("key", d.State.Key),
		zap.String("service", d.Result.Service), zap.String("destination", d.Result.Destination), zap.String("name", d.Result.Name),
		zap.Int("attempts", j.Attempts), zap.String("reason", d.Reason))
	q.Dispatcher.Metrics.Dead(d.Result.Service)
	q.tallyDead(j, &d)
	if d.Result.Optional {
		return
	}
	about := &notifier.Message{Time: time.Now(), Incident: notifier.Incident{Name: d.State.Incident}}
	told := dispatch.Delivery{Message: about, Origin: dispatch.Origin{Source: d.State.Source, Key: d.State.Key, Site: d.State.Site}}
	if !d.State.Reported {
		results := queued.Results(&message.QueuedMessage{Results: []message.QueuedResult{d.Result}})
		q.Dispatcher.History.Add(told.HistoryEntry(site.OutcomeFailed), results)
		q.Dispatcher.Emit(told, site.OutcomeFailed, results)
	}
	emitDead(q.Dispatcher, d)
}

// tallyDead counts a delivery as failed if the queue has given it up because it is too old. If its
// last attempt was the reason, that was counted before.
func (q *Outbox) tallyDead(j *queue.Job, d *DeadDelivery) {
	r := queued.DecodeResult(j.Result)
	if j.Reason == "" || r.Error != nil && j.Reason == *r.Error || d.State.Key == "" || d.State.Hash == "" {
		return
	}
	q.Dispatcher.Tally.Add(time.Now(), d.Key(), d.State.Hash, tally.Counts{Failed: 1})
}

// logSuperseded writes a line about a delivery that was not sent. One that was sent has a
// line of its attempt.
func (q *Outbox) logSuperseded(j *queue.Job) {
	if c := q.Log.Check(zapcore.DebugLevel, "delivery not sent, because of a newer message or a rule"); c != nil {
		r := queued.JobResult(j)
		c.Write(zap.Stringer("id", j.Message), zap.String("service", r.Service), zap.String("destination", r.Destination),
			zap.String("name", r.Name))
	}
}

// DeadDelivery is a delivery that the queue has given up, as people read about it.
type DeadDelivery struct {
	ID     string // of the message
	State  queued.State
	Result message.QueuedResult
	Reason string // without secrets
}

// NewDeadDelivery returns what the job of a delivery that was given up tells.
func NewDeadDelivery(j *queue.Job) DeadDelivery {
	d := DeadDelivery{ID: j.Message.String(), Result: queued.JobResult(j)}
	_ = d.State.Decode(j.State) // if the state is damaged, the key is unknown
	last := ""
	if d.Result.Error != nil {
		last = *d.Result.Error
	}
	d.Reason = cmp.Or(j.Reason, last)
	if last != "" && last != d.Reason {
		d.Reason += "; the last error was: " + last
	}
	d.Result.Error = &d.Reason
	return d
}

// Key returns the key that the message came to.
func (d DeadDelivery) Key() site.KeyID { return site.KeyID{Site: d.State.Site, Key: d.State.Key} }

// emitDead emits the event for a delivery that was given up. It emits none for
// a message about an event of the gateway, because such events could cause each
// other without end.
func emitDead(s *dispatch.Dispatcher, d DeadDelivery) {
	if d.State.Source == site.SourceOwnEvent {
		return
	}
	s.EmitEvent(event.Dead, func() map[string]any {
		return map[string]any{
			"id": d.ID, "key": d.State.Key, "source": d.State.Source, "incident": d.State.Incident, "service": d.Result.Service,
			"destination": d.Result.Destination, "attempts": d.Result.Attempts, "error": markup.TruncateBytes(d.Reason, dispatch.MaxEventError),
		}
	})
}

// Fallback returns the message to the fallback of a key about a delivery that
// was given up, or nil if the key has no fallback. It is not sent if there was one less
// than an hour ago (see [Outbox.Ended]).
func (q *Outbox) Fallback(j *queue.Job) *queue.Entry {
	d := NewDeadDelivery(j)
	if d.Result.Optional || d.State.Key == "" {
		return nil
	}
	settings, name, _ := q.Current().fallbackOf(&d.State)
	if name == "" {
		return nil
	}
	what := "A message for the key " + d.State.Key + " was not delivered to " + d.Result.Name
	if d.State.Planned() {
		what = "A planned message for the key " + d.State.Key + " was not sent"
	}
	text := []string{
		what + ", and is not tried again.",
		"Reason: " + markup.TruncateBytes(d.Reason, dispatch.MaxEventError),
		"ID: " + d.ID,
	}
	// The reason may quote what a server has answered.
	m := &notifier.Message{
		Title: "Message for " + d.State.Key + " not delivered", Body: strings.Join(text, "\n"), Type: notifier.Failure,
		Foreign: true,
	}
	return q.fallbackEntry(settings, name, d.State.Site, m)
}

// CheckFallback checks the fallback of k, which is one of keys. durable reports whether there
// is a queue, without which nothing is given up. The error is one for the operator, about the
// option fallback.
func CheckFallback(keys map[string]*site.Key, k *site.Key, durable bool) error {
	if k.Fallback != "" && (!durable || k.Unqueued) {
		return errors.New("it has no effect without a queue, because it gets messages about what the queue gives up; add queue to the global " +
			"option notify, or remove the fallback")
	}
	seen := map[string]bool{k.Name: true}
	for next := k.Fallback; next != ""; next = keys[next].Fallback {
		if keys[next] == nil {
			return fmt.Errorf("there is no key %s here; a fallback is a key of the same site or of the global option", next)
		}
		if seen[next] {
			return fmt.Errorf("it leads back to the key %s in a circle; remove one of the fallbacks", next)
		}
		if to := keys[next]; to.Defaults.Untagged && len(to.DefaultTargets) == 0 && len(to.Targets) > 0 {
			return fmt.Errorf("what the queue gives up would reach nobody, because all URLs of the key %s have tags and its default_tag is "+
				"untagged; remove default_tag, or name a tag in it", next)
		}
		seen[next] = true
	}
	return nil
}

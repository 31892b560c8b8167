package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// QueueTarget is the destination of a job, with the settings for its delivery.
type QueueTarget struct {
	Target   notifier.Target
	Settings *site.Site
	Limits   *notifier.Limits // nil for no limits
	fallback string           // of the key
	Key      *site.Key
	Rules    *rules.Rules // of the key
	logger   *zap.Logger
	Own      bool // the destination is for this delivery only, and is closed after it
}

// FindQueued returns the destination with a hash that a message to a site was
// accepted for, from the configuration or a saved key. If several handlers have a
// key of the same name, the hash selects the destination. findQueued returns an
// [*api.Error] with the status 503 if saved keys cannot be read at the moment.
func (a *Engine) FindQueued(ctx context.Context, siteID, name, hash string) (QueueTarget, error) {
	var unavailable error
	for _, s := range a.Candidates(siteID) {
		k := &site.Key{Targets: s.DefaultTargets, Log: a.Log}
		if name != "" {
			var err error
			if k, err = s.Key(ctx, name); err != nil {
				if !errors.Is(err, site.ErrNoKey) {
					unavailable = err
				}
				continue
			}
		}
		for _, t := range k.Targets {
			if t.Hash() == hash {
				return QueueTarget{Target: t, Settings: s, Limits: k.Limits, fallback: k.Fallback, logger: k.Log, Key: k, Rules: k.Rules}, nil
			}
		}
	}
	if unavailable != nil {
		return QueueTarget{}, unavailable
	}
	return QueueTarget{}, &goneError{name}
}

// Attempt makes one attempt for a job of the queue.
func (q *Outbox) Attempt(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
	app := q.App.Load()
	var text queued.Text
	var state queued.State
	if err := text.Decode(m.Body); err != nil {
		return unreadable(j, err)
	}
	if err := state.Decode(j.State); err != nil {
		return unreadable(j, err)
	}
	state.Reported = false
	turn := q.turn(ctx, m, j)
	if turn.Wait {
		return queue.Outcome{Postponed: true, RetryAfter: PostponeChain}
	}
	if turn.Outcome != nil {
		return *turn.Outcome
	}
	message, err := text.Message(m)
	if err != nil {
		return unreadable(j, err)
	}
	incident, outcome := q.Policy.Before(ctx, j)
	if outcome != nil {
		return *outcome
	}
	t, err := app.QueuedTarget(ctx, &text, &state)
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusServiceUnavailable {
		return queue.Outcome{Postponed: true, RetryAfter: postponeSaved}
	}
	if err != nil {
		_, gone := errors.AsType[*goneError](err)
		return queue.Outcome{Status: queue.Dead, State: j.State, Result: j.Result, Reason: err.Error(), NotSent: true, Unknown: gone}
	}
	if t.Own {
		defer t.Target.Close()
	}
	if j.Incident != "" && app.Shared.Incidents.Replaced(j.Incident, message, t.Target) {
		return queue.Outcome{Status: queue.Superseded, Result: j.Result, NotSent: true}
	}
	memory := app.Shared.Memory.Allocation(t.Settings.Limits.Memory, text.Untrusted)
	defer memory.Close()
	if n := int64(len(message.Title) + len(message.Body)); n > notifier.SmallText && !memory.Take(copiesOfQueuedText*n) {
		return queue.Outcome{Postponed: true, RetryAfter: postponeMemory}
	}
	if text.Source == site.SourceLog {
		t.logger = nil // an entry of the log would become another message
	}
	if j.Attempts > 0 {
		app.Shared.Metrics.Queue.Retries.Inc()
	}
	// Without progress, the sender uses its own, which it returns if it fails, and
	// which costs less if it does not.
	var progress *notifier.Progress
	if len(state.Progress) > 0 {
		restored := new(notifier.Progress)
		if err := restored.UnmarshalJSON(state.Progress); err == nil {
			progress = restored
		} // otherwise it is of another version; everything is sent again
	}
	to := &api.Selection{Targets: []notifier.Target{t.Target}, Transient: text.Client}
	to.Targets[0].Tags, to.Targets[0].Progress, to.Targets[0].Missed = state.Tags, progress, queued.Missed(j)
	if t.Limits != nil {
		// The queue makes the attempts, and each delivery has its share of the limits
		// of one request.
		limits := *t.Limits
		limits.Retry = 0
		limits.Requests = max(limits.Requests/max(text.Targets, 1), 1)
		to.Limits = &limits
	}
	message.ID, message.Expires = m.ID.String(), j.Expires
	message.AcknowledgeURL = t.Settings.AcknowledgeURL(incident)
	d := dispatch.NewDelivery(t.Settings, text.Source, text.Site, message, to)
	d.Key, d.Logger, d.Memory, d.ID, d.Attempt = text.Key, t.logger, &memory, m.ID, true
	d.Home, _, _ = strings.Cut(j.Incident, "\x00")
	d.Resumed, d.Tries = app.resumeTrace(text.Trace), j.Attempts
	d.Repeated = func(_ int, r *notifier.Result) zapcore.Level {
		id := queue.Hash{}
		if !j.Client {
			id = q.Queue.Hash(j.Destination)
		}
		return q.Failures.Add(id, DestinationName{text.Key, r.Service, r.Destination}, m.ID, r.Err)
	}
	sent, trace := app.Shared.SendNow(ctx, d)
	r := sent.Results[0]
	all := r
	all.Attempts += queued.DecodeResult(j.Result).Attempts
	o := outcomeOf(message, state, all, j.Result)
	if o.Status == queue.Dead && turn.LaterDecides {
		o.Status = queue.Failed
	}
	if retryable(&r) {
		sent.Results[0].Status = api.StatusQueued
	}
	trace.End(r.OK())
	app.Shared.Conclude(d, sent.Results, sent)
	return o
}

// How long a delivery is postponed that cannot be made.
const (
	postponeMemory = time.Second
	postponeSaved  = 10 * time.Second // until saved keys can be read again
	PostponeChain  = 2 * time.Second  // while lower numbers of its chain are to be tried

	// copiesOfQueuedText is the number of copies of a text in memory during a
	// delivery: as stored, decoded, and as part of the request.
	copiesOfQueuedText = 4
)

// turn returns whether the job can be attempted now, if the message has chains.
func (q *Outbox) turn(ctx context.Context, m *queue.Message, j *queue.Job) queued.Turn {
	var s queued.Summary
	if s.Decode(m.Summary) != nil || s.Chains.All == nil {
		return queued.Turn{}
	}
	e, err := q.Queue.Get(ctx, m.ID)
	if err != nil {
		return queued.Turn{Wait: true}
	}
	return queued.TurnOf(e, j, q.Queue.Now())
}

// unreadable returns the outcome for a record that cannot be decoded, which
// another version of the program may have written.
func unreadable(j *queue.Job, err error) queue.Outcome {
	return queue.Outcome{Status: queue.Dead, State: j.State, Result: j.Result, Reason: fmt.Sprintf("the message cannot be read from the queue: %v", err), NotSent: true}
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
		r.Status = api.StatusQueued
		o.Status, o.State, o.RetryAfter = queue.Queued, state.With(r.Progress), r.RetryAfter
	case r.Optional:
		o.Status = queue.Failed
	default:
		o.Status, o.State = queue.Dead, state.With(r.Progress)
	}
	o.Result = queued.AppendTry(queued.AppendResult(make([]byte, 0, queued.RoomForResult), r), before, r)
	return o
}

// goneError is returned for a delivery whose destination is not in the
// configuration.
type goneError struct{ key string }

func (e *goneError) Error() string {
	if e.key == "" {
		return "the destination is no longer in default_urls of the configuration; add it again, and retry the message"
	}
	return "the key " + e.key + " of the configuration no longer has this destination; add it again, and retry the message"
}

// QueuedTarget returns the destination of a job, under the rules of the site that
// the message came to: the stricter of those when it came in and those of now.
func (a *Engine) QueuedTarget(ctx context.Context, text *queued.Text, state *queued.State) (QueueTarget, error) {
	if text.Client {
		then, err := PolicyThen(text, nil)
		if err != nil {
			return QueueTarget{}, err
		}
		return a.clientTarget(text, state, then)
	}
	t, err := a.FindQueued(ctx, text.Site, text.Key, state.Hash)
	if err != nil {
		return QueueTarget{}, err
	}
	then, err := PolicyThen(text, t.Target.Destination)
	if err != nil {
		return QueueTarget{}, err
	}
	err = t.Restrict(a.PolicyOf(text.Site, then, t.Target.Destination))
	return t, err
}

// PolicyThen returns the egress policy that a message was accepted under for d, or nil if
// that is the operator's. d is nil for the URL of a client.
func PolicyThen(t *queued.Text, d *notifier.Destination) (*egress.Policy, error) {
	key := t.Policy
	if d != nil && site.IsDevice(d.String()) {
		key = t.DevicePolicy
	}
	then, err := egress.ParsePolicy(key)
	if then == nil && (t.Client || t.Untrusted) {
		then = new(egress.Policy)
	}
	return then, err
}

// PolicyOf returns the strictest of the policies for a delivery to d of a message that
// a site accepted under the policy then: that one, the site's present one, and that of
// d. It returns nil if d was and is the operator's.
func (a *Engine) PolicyOf(siteID string, then *egress.Policy, d *notifier.Destination) *egress.Policy {
	if then == nil && d.Policy() == nil {
		return nil
	}
	_, now, _ := a.siteRules(siteID, then)
	return egress.Strictest(d.Policy(), now, then)
}

// Restrict gives the destination a policy that is as strict as its own or stricter.
func (t *QueueTarget) Restrict(policy *egress.Policy) error {
	if policy.Key() == t.Target.Policy().Key() {
		return nil
	}
	d, err := t.Target.WithPolicy(policy)
	if err == nil {
		t.Target.Destination, t.Own = d, true
	}
	return err
}

// clientTarget returns the destination of a client's URL.
func (a *Engine) clientTarget(text *queued.Text, state *queued.State, then *egress.Policy) (QueueTarget, error) {
	settings, now, services := a.siteRules(text.Site, then)
	d, err := a.Shared.Sender.ParseOnce(state.URL, egress.Strictest(now, then))
	if err != nil {
		return QueueTarget{}, err
	}
	if err := services.Check(d); err != nil {
		d.Close()
		return QueueTarget{}, err
	}
	return QueueTarget{Target: notifier.Target{Destination: d}, Settings: settings, Limits: settings.Limits.Client, logger: a.Log, Own: true}, nil
}

// siteRules returns the settings, the egress policy and the restrictions of
// services that hold now for messages of clients to a site. then is the policy
// under which the message was accepted: if a site has several handlers, it came
// to one that had this policy. If none has it, or the site does not exist any
// more, the strictest rules of all of them hold.
func (a *Engine) siteRules(siteID string, then *egress.Policy) (*site.Site, *egress.Policy, site.ServiceRules) {
	handlers, gone := a.SitesWithID(siteID), false
	if handlers == nil {
		handlers, gone = a.Sites, true
	}
	if len(handlers) == 0 {
		handlers = []*site.Site{a.Global}
	}
	if i := slices.IndexFunc(handlers, func(s *site.Site) bool { return s.Limits.Egress.Key() == then.Key() }); i >= 0 && !gone {
		handlers = handlers[i : i+1]
	}
	var policies []*egress.Policy
	var services site.ServiceRules
	for _, s := range handlers {
		policies, services = append(policies, s.Limits.Egress), append(services, s.Services)
	}
	settings := handlers[0]
	if len(handlers) > 1 {
		settings = a.Global
	}
	return settings, egress.Strictest(policies...), services
}

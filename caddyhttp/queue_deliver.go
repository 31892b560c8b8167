package caddyhttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// queueTarget is the destination of a job, with the settings for its delivery.
type queueTarget struct {
	notifier.Target
	settings *resolved
	limits   *notifier.Limits // nil for no limits
	fallback string           // of the key
	logger   *zap.Logger
}

// findQueued returns the destination with a hash, from the configuration or a
// saved key. If several sites have a key of the same name, the hash selects the
// destination that the message was accepted for. findQueued returns an
// [*api.Error] with the status 503 if saved keys cannot be read at the moment.
func (a *App) findQueued(ctx context.Context, name, hash string) (queueTarget, error) {
	var unavailable error
	for _, site := range append([]*resolved{a.resolved}, a.sites...) {
		k := &key{targets: site.defaultTargets, log: a.log}
		if name != "" {
			var err error
			if k, err = site.key(ctx, name); err != nil {
				if !errors.Is(err, errNoKey) {
					unavailable = err
				}
				continue
			}
		}
		for _, t := range k.targets {
			if t.Hash() == hash {
				return queueTarget{t, site, k.limits, k.fallback, k.log}, nil
			}
		}
	}
	return queueTarget{}, cmp.Or(unavailable, errDestinationGone(name))
}

// deliver makes one attempt for a job of the queue.
func (q *openQueue) deliver(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
	app := q.app.Load()
	var text queuedText
	var state queuedState
	if err := text.decode(m.Body); err != nil {
		return unreadable(j, err)
	}
	if err := state.decode(j.State); err != nil {
		return unreadable(j, err)
	}
	state.Reported = false
	turn := q.turn(ctx, m, j)
	if turn.outcome != nil {
		return *turn.outcome
	}
	message, err := text.message(m)
	if err != nil {
		return unreadable(j, err)
	}
	if text.Untrusted {
		defer q.clients.Add(-1)
		if q.clients.Add(1) > maxQueuedClients {
			return queue.Outcome{Postponed: true, RetryAfter: postponeClients}
		}
	}
	t, err := app.queuedTarget(ctx, &text, &state)
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusServiceUnavailable {
		return queue.Outcome{Postponed: true, RetryAfter: postponeSaved}
	}
	if err != nil {
		return queue.Outcome{Status: queue.Dead, State: j.State, Result: j.Result, Reason: err.Error()}
	}
	if text.Client {
		defer t.Close()
	}
	memory := app.shared.memory.Allocation(t.settings.memory, text.Untrusted)
	defer memory.Close()
	if n := int64(len(message.Title) + len(message.Body)); n > notifier.SmallText && !memory.Take(copiesOfQueuedText*n) {
		return queue.Outcome{Postponed: true, RetryAfter: postponeMemory}
	}
	if text.Source == sourceLog {
		t.logger = nil // an entry of the log would become another message
	}
	if j.Attempts > 0 {
		app.shared.metrics.queue.retries.Inc()
	}
	message.Identity = t.settings.identity
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
	to.Targets[0].Tags, to.Targets[0].Progress = state.Tags, progress
	if t.limits != nil {
		// The queue makes the attempts, and each delivery has its share of the limits
		// of one request.
		limits := *t.limits
		limits.Retry = 0
		limits.Requests = max(limits.Requests/max(text.Targets, 1), 1)
		to.Limits = &limits
	}
	d := delivery{
		message: message, to: to, settings: t.settings, logger: t.logger, source: text.Source, key: text.Key,
		memory: &memory, id: m.ID, attempt: true,
	}
	sent, trace := app.shared.deliver(ctx, d)
	r := sent.Results[0]
	o := outcomeOf(state, r)
	if o.Status == queue.Dead && turn.laterDecides {
		o.Status = queue.Failed
	}
	if retryable(&r) {
		sent.Results[0].Status = api.StatusQueued
	}
	trace.end(r.OK())
	app.shared.finish(d, sent.Results, sent)
	return addAttempts(j, o, r)
}

// The share of messages with URLs of clients in the queue's deliveries, and how
// long a delivery is postponed if there is no room.
const (
	maxQueuedClients = queue.DefaultConcurrency / 2
	postponeClients  = 10 * time.Second
	postponeMemory   = time.Second
	postponeSaved    = 10 * time.Second // until saved keys can be read again

	// copiesOfQueuedText is the number of copies of a text in memory during a
	// delivery: as stored, decoded, and as part of the request.
	copiesOfQueuedText = 4
)

// unreadable returns the outcome for a record that cannot be decoded, which
// another version of the program may have written.
func unreadable(j *queue.Job, err error) queue.Outcome {
	return queue.Outcome{Status: queue.Dead, State: j.State, Result: j.Result, Reason: fmt.Sprintf("the message cannot be read from the queue: %v", err)}
}

// outcomeOf returns the outcome of an attempt for the queue.
func outcomeOf(state queuedState, r notifier.Result) queue.Outcome {
	switch {
	case r.Err == nil:
		return queue.Outcome{Status: queue.Delivered, Result: resultOf(r)}
	case r.Temporary:
		r.Status = api.StatusQueued
		return queue.Outcome{Status: queue.Queued, State: state.with(r.Progress), Result: resultOf(r), RetryAfter: r.RetryAfter}
	case r.Optional:
		return queue.Outcome{Status: queue.Failed, Result: resultOf(r)}
	}
	return queue.Outcome{Status: queue.Dead, State: state.with(r.Progress), Result: resultOf(r), Reason: r.Err.Error()}
}

// noAttempts is part of the stored result of a job without attempts.
var noAttempts = []byte(`"attempts":0,`)

// addAttempts returns o with a result that also counts the earlier attempts.
func addAttempts(j *queue.Job, o queue.Outcome, r notifier.Result) queue.Outcome {
	if bytes.Contains(j.Result, noAttempts) { // most jobs; decoding takes a while
		return o
	}
	var before, now api.Result
	if json.Unmarshal(j.Result, &before) == nil && json.Unmarshal(o.Result, &now) == nil {
		now.Attempts += before.Attempts
		o.Result = mustJSON(now)
	}
	return o
}

// errDestinationGone returns the error of a delivery whose destination is no
// longer in the configuration.
func errDestinationGone(key string) error {
	if key == "" {
		return fmt.Errorf("the destination is no longer in default_urls of the configuration; add it again, and retry the message")
	}
	return fmt.Errorf("the key %s of the configuration no longer has this destination; add it again, and retry the message", key)
}

// queuedTarget returns the destination of a job. The destination of a client's
// URL is closed after the delivery.
func (a *App) queuedTarget(ctx context.Context, text *queuedText, state *queuedState) (queueTarget, error) {
	if !text.Client {
		return a.findQueued(ctx, text.Key, state.Hash)
	}
	settings, services := a.clientSettings(text.Policy)
	d, err := a.shared.sender.ParseOnce(state.URL, settings.limits.Egress)
	if err != nil {
		return queueTarget{}, err
	}
	for _, s := range services {
		if err := s.check(d); err != nil {
			d.Close()
			return queueTarget{}, err
		}
	}
	return queueTarget{notifier.Target{Destination: d}, settings, settings.limits.Client, "", a.log}, nil
}

// clientSettings returns the settings and the restrictions of services for a
// message with URLs of a client. They are those of the site whose egress rules
// the message was accepted under. If no site has these rules any more, they are
// those of the only site; if there are several sites, only public addresses
// that no site denies can be reached.
func (a *App) clientSettings(policy string) (*resolved, []*Services) {
	sites := a.sites
	if len(sites) == 0 {
		sites = []*resolved{a.resolved}
	}
	i := slices.IndexFunc(sites, func(s *resolved) bool { return s.limits.Egress.Key() == policy })
	if len(sites) == 1 {
		i = 0
	}
	if i >= 0 {
		return sites[i], []*Services{sites[i].services}
	}
	strict := *a.resolved
	var policies []*egress.Policy
	var services []*Services
	for _, s := range sites {
		policies, services = append(policies, s.limits.Egress), append(services, s.services)
	}
	strict.limits.Egress = egress.Strictest(policies...)
	return &strict, services
}

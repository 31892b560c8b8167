package caddyhttp

import (
	"context"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
)

// queuePool holds the open queues of the process by name. A reload that does not
// change the name keeps the queue open.
var queuePool = caddy.NewUsagePool()

// gateway is what takes messages with a configuration: the engine and the rooms above it.
type gateway struct {
	outbox.Engine
	queue *openQueue // nil if it is not open
}

// open is like durable, for those who need more than the outbox.
func (g *gateway) open(k *site.Key) (*openQueue, error) {
	if q, err := g.Durable(k); q == nil || err != nil {
		return nil, err
	}
	return g.queue, nil
}

// openQueue is an open queue with all that keeps records in it. Configurations share it.
type openQueue struct {
	*outbox.Outbox
	*alerting.Engine
	*device.Registry
	*heartbeat.Monitor
	inboxes *inbox.Box
}

// openQueue opens the queue of the configuration, or uses the one that is open
// already, and lets this app make its deliveries. It runs when the app starts,
// not earlier, so that a configuration can be validated while another process
// uses the queue.
func (a *App) openQueue() error {
	s := a.QueueSettings
	if s == nil {
		return nil
	}
	v, isOpen, err := queuePool.LoadOrNew(s.Name, func() (caddy.Destructor, error) { return newQueue(&a.Engine) })
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	q := v.(*openQueue)
	if q.Secret != s.SecretHash() {
		_, _ = queuePool.Delete(s.Name) // the other configuration still uses it
		return outbox.ErrQueueSecretChanged
	}
	a.queue, a.Outbox = q, q.Outbox
	q.use(&a.Engine)
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	q.RefreshSilences(ctx) // the first message needs them
	q.RefreshDevices(ctx)
	if !isOpen {
		q.Start()
	}
	return nil
}

// refreshTimeout is how long the start waits for what messages need. If it takes longer,
// messages to keys with devices are refused until it is read.
const refreshTimeout = 5 * time.Second

// newQueue opens the queue of the configuration.
func newQueue(a *outbox.Engine) (*openQueue, error) {
	s := a.QueueSettings
	log := a.Log.Named("queue")
	base := &outbox.Outbox{LogName: s.LogName(), Secret: s.SecretHash(), Log: log, Failures: outbox.NewFailureLog(log)}
	q := &openQueue{Outbox: base, Engine: &alerting.Engine{Outbox: base}, Monitor: &heartbeat.Monitor{Outbox: base}}
	q.Registry = &device.Registry{Outbox: base, Alerts: q.Engine}
	q.Engine.Receipts = q.Registry.ReceiptFuncs()
	var store queue.Store
	var err error
	if s.Dsn != "" {
		store, err = postgres.Open(context.Background(), postgres.Options{DSN: s.Dsn, Secret: s.Secret, Logger: log})
	} else {
		q.Outbox.Store, err = bolt.Open(bolt.Options{Path: s.Path, Secret: s.Secret, Logger: log})
		store = q.Outbox.Store
	}
	if err != nil {
		return nil, err
	}
	q.Shared = q.Outbox.Store == nil
	if q.Outbox.Store != nil && s.Secret == "" {
		q.KeyFile = q.Outbox.Store.KeyFile()
	}
	q.App.Store(a)
	q.Queue = queue.New(store, q.options(s))
	q.inboxes = inbox.NewBox(base)
	q.Policy = outbox.Policy{Plan: q.Engine.Plan, Before: q.StepTurn, MakeRoom: q.Engine.MakeRoom, Keep: q.inboxes.KeepDraft}
	return q, nil
}

// options returns the options of the queue for the settings of an app.
func (q *openQueue) options(s *outbox.Settings) queue.Options {
	punctual := s.Punctual || q.App.Load().HasRules() || q.App.Load().ExpectsBeats() || s.Watchdog != nil
	return queue.Options{
		Deliver: q.Attempt, Settled: q.Settled, Dead: q.Fallback, Down: q.Down, Up: q.Up,
		Ended: q.ended, Due: q.due, Recheck: q.Recheck, Arm: q.Arm,
		Punctual: func() bool { return punctual || q.Silences.Any() }, Refresh: q.refresh,
		MaxAge: s.MaxAge, Keep: s.Keep, MaxSize: s.MaxSize, Logger: q.Log,
	}
}

// ended returns what changes when a job ends.
func (q *openQueue) ended(j *queue.Job) *queue.Ruled {
	return queue.JoinRuled(q.Engine.Ended(j), q.GaveUp(j))
}

// refresh reads what other gateways may have changed. The queue calls it each second.
func (q *openQueue) refresh(ctx context.Context) {
	q.RefreshSilences(ctx)
	q.inboxes.Refresh(ctx)
	q.RefreshDevices(ctx)
	q.WatchShares(ctx)
}

// use lets an app make the deliveries from now on.
func (q *openQueue) use(a *outbox.Engine) {
	q.App.Store(a)
	a.Shared.Metrics.Queue.Expect(a.ServiceNames())
	q.Configure(q.options(a.QueueSettings))
}

// leaveQueue gives the queue back to the app that was started before, if this
// app is stopped because another part of its configuration failed.
func (a *App) leaveQueue() {
	if before := a.shared.process.apps.newest(); a.queue != nil && before != nil && before.queue == a.queue {
		a.queue.use(&before.Engine)
	}
}

// releaseQueue ends the use of the queue by this app. The queue is closed when
// no app uses it.
func (a *App) releaseQueue() error {
	if a.queue == nil {
		return nil
	}
	_, err := queuePool.Delete(a.QueueSettings.Name)
	return err
}

// Destruct implements [caddy.Destructor]. It waits for the deliveries in
// progress.
func (q *openQueue) Destruct() error {
	ctx, cancel := context.WithTimeout(context.Background(), dispatch.StopTimeout)
	defer cancel()
	if s, err := q.Stats(ctx); err == nil && s.Queued+s.Sending > 0 {
		q.Log.Info("deliveries stay in the queue; they are made when it is opened again",
			zap.Int("deliveries", s.Queued+s.Sending), zap.String("queue", q.LogName))
	}
	defer q.Failures.Close()
	return q.Close(ctx)
}

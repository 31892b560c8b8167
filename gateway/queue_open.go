package gateway

import (
	"context"
	"time"

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

// Gateway is what takes messages with a configuration: the engine and the rooms above it.
type Gateway struct {
	outbox.Engine
	Rooms *Rooms // nil if it is not open
}

// Open is like durable, for those who need more than the outbox.
func (g *Gateway) Open(k *site.Key) (*Rooms, error) {
	if q, err := g.Durable(k); q == nil || err != nil {
		return nil, err
	}
	return g.Rooms, nil
}

// Rooms is an open queue with all that keeps records in it. Configurations share it.
type Rooms struct {
	*outbox.Outbox
	*alerting.Engine
	*device.Registry
	*heartbeat.Monitor
	Inboxes *inbox.Box
}

// RefreshTimeout is how long the start waits for what messages need. If it takes longer,
// messages to keys with devices are refused until it is read.
const RefreshTimeout = 5 * time.Second

// OpenQueue opens the queue of the configuration.
func OpenQueue(a *outbox.Engine) (*Rooms, error) {
	s := a.QueueSettings
	log := a.Log.Named("queue")
	base := &outbox.Outbox{LogName: s.LogName(), Secret: s.SecretHash(), Log: log, Failures: outbox.NewFailureLog(log)}
	q := &Rooms{Outbox: base, Engine: &alerting.Engine{Outbox: base}, Monitor: &heartbeat.Monitor{Outbox: base}}
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
	q.Queue = queue.New(store, q.Options(s))
	q.Inboxes = inbox.NewBox(base)
	q.Policy = outbox.Policy{Plan: q.Engine.Plan, Before: q.StepTurn, MakeRoom: q.Engine.MakeRoom, Keep: q.Inboxes.KeepDraft}
	return q, nil
}

// Options returns the options of the queue for the settings of an app.
func (q *Rooms) Options(s *outbox.Settings) queue.Options {
	punctual := s.Punctual || q.App.Load().HasRules() || q.App.Load().ExpectsBeats() || s.Watchdog != nil
	return queue.Options{
		Deliver: q.Attempt, Settled: q.Settled, Dead: q.Fallback, Down: q.Down, Up: q.Up,
		Ended: q.ended, Due: q.due, Recheck: q.Recheck, Arm: q.Arm,
		Punctual: func() bool { return punctual || q.Silences.Any() }, Refresh: q.refresh,
		MaxAge: s.MaxAge, Keep: s.Keep, MaxSize: s.MaxSize, Logger: q.Log,
	}
}

// ended returns what changes when a job ends.
func (q *Rooms) ended(j *queue.Job) *queue.Ruled {
	return queue.JoinRuled(q.Engine.Ended(j), q.GaveUp(j))
}

// refresh reads what other gateways may have changed. The queue calls it each second.
func (q *Rooms) refresh(ctx context.Context) {
	q.RefreshSilences(ctx)
	q.Inboxes.Refresh(ctx)
	q.RefreshDevices(ctx)
	q.WatchShares(ctx)
}

// Use lets an app make the deliveries from now on.
func (q *Rooms) Use(a *outbox.Engine) {
	q.App.Store(a)
	a.Shared.Metrics.Queue.Expect(a.ServiceNames())
	q.Configure(q.Options(a.QueueSettings))
}

// Destruct closes the queue. It waits for the deliveries in progress.
func (q *Rooms) Destruct() error {
	ctx, cancel := context.WithTimeout(context.Background(), dispatch.StopTimeout)
	defer cancel()
	if s, err := q.Stats(ctx); err == nil && s.Queued+s.Sending > 0 {
		q.Log.Info("deliveries stay in the queue; they are made when it is opened again",
			zap.Int("deliveries", s.Queued+s.Sending), zap.String("queue", q.LogName))
	}
	defer q.Failures.Close()
	return q.Close(ctx)
}

package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
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

// Options returns the options of the queue for the settings of a configuration.
func (q *Rooms) Options(s *outbox.Settings) queue.Options {
	punctual := s.Punctual || hasRules(&q.App.Load().Directory) || heartbeat.Expects(&q.App.Load().Directory) || s.Watchdog != nil
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

// hasRules reports whether a key of the configuration, or the saved keys of a site, have
// rules.
func hasRules(a *site.Directory) bool {
	return slices.ContainsFunc(a.All(), func(s *site.Site) bool {
		for _, k := range s.Keys {
			if k.Rules != nil {
				return true
			}
		}
		return !s.Saved.Rules.Empty()
	})
}

// serviceNames returns the names of the services that the configuration sends to.
func serviceNames(a *site.Directory) (names []string) {
	for _, s := range a.All() {
		for _, t := range s.DefaultTargets {
			names = append(names, t.Service())
		}
		for _, k := range s.Keys {
			for _, t := range k.Targets {
				names = append(names, t.Service())
			}
		}
	}
	return names
}

// Use lets a configuration make the deliveries from now on.
func (q *Rooms) Use(a *outbox.Engine) {
	q.App.Store(a)
	a.Shared.Metrics.Queue.Expect(serviceNames(&a.Directory))
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

// due does what is due in a record: the room does whose record it is. crowded means that
// there are too many records. A record of no room is removed.
func (q *Rooms) due(ctx context.Context, name queue.Hash, data []byte, crowded bool) error {
	if len(data) == 0 {
		return q.RemoveRecord(ctx, name)
	}
	for _, room := range []func(context.Context, queue.Hash, []byte, bool) (ours bool, err error){q.Outbox.Due, q.Inboxes.DueRecord, q.Engine.DueRecord, q.Registry.DueRecord, q.Monitor.DueRecord} {
		if ours, err := room(ctx, name, data, crowded); ours {
			return err
		}
	}
	return q.RemoveRecord(ctx, name)
}

// State returns what metrics tell of the queue.
func (q *Rooms) State(ctx context.Context) *metrics.QueueState {
	out := &metrics.QueueState{MaxSize: q.App.Load().QueueSettings.MaxSize, Destinations: q.Count(), Incidents: q.CountIncidents(ctx), Now: q.Now()}
	s, err := q.Stats(ctx)
	if err != nil {
		return out
	}
	out.Stats = &s
	if !heartbeat.Expects(&q.App.Load().Directory) {
		return out
	}
	beats, err := q.AllBeats(ctx)
	if err != nil {
		return out
	}
	out.Beats = map[string]int{heartbeat.StateOnTime: 0, heartbeat.StateInGrace: 0, string(rules.BeatLate): 0, string(rules.BeatFailed): 0}
	for _, b := range beats {
		out.Beats[b.State(out.Now)]++
	}
	return out
}

// forgetTimeout bounds how long a client waits that has deleted a saved key. What is left
// then belongs to nobody, and its time ends.
const forgetTimeout = 10 * time.Second

// ForgetKey removes what is kept for a saved key that was deleted: its devices and the
// texts of its inbox. Its silences, incidents and invitations end by themselves; no other
// key has them. who is the user who has deleted the key; "" if nobody is known.
func (q *Rooms) ForgetKey(ctx context.Context, space, id, name, who string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	k := &site.Key{Name: name, Saved: true, Space: space, ID: id}
	at := k.Place("")
	devices, err := q.RemoveAllDevices(ctx, at)
	for _, d := range devices {
		q.DeviceChanged(device.DeviceRemoved, name, d.Name, who)
	}
	if err := errors.Join(err, q.Inboxes.Clear(ctx, at.String())); err != nil {
		q.Log.Warn("what was kept for a saved key that was deleted cannot be removed now; no key of the same name gets it", zap.String("key", name), zap.Error(err))
	}
}

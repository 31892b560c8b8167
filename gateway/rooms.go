package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs"
	"github.com/caddy-notify/caddy-notify/gateway/tallystore"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
	"github.com/caddy-notify/caddy-notify/notifier/queue/sealed"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Rooms is an open queue with the packages that keep records in it. Configurations that replace one
// another share it.
type Rooms struct {
	Outbox  *outbox.Outbox      // the messages that wait
	Alerts  *alerting.Engine    // the incidents and silences of keys, and their rules over time
	Devices *device.Registry    // the devices that have subscribed to keys
	Beats   *heartbeat.Monitor  // the beats that keys expect
	Rulers  *ruler.Rulers       // the alerts that rulers post to keys
	Planned *planned.Messages   // the messages that are sent later
	Tallies *tallystore.Tallies // what became of deliveries in the last 24 hours
	Inboxes *inbox.Box          // the messages that keys keep for readers

	Questions *ask.Questions // what messages ask

	list    []outbox.Room                // all of them
	ofKinds map[*outbox.Kind]outbox.Room // by the kinds of their records
	foreign foreign
}

// All returns all rooms, in the order in which they are called. A new one has its place here.
func (q *Rooms) All() []outbox.Room {
	return []outbox.Room{q.Alerts, q.Outbox, q.Beats, q.Rulers, q.Planned, q.Inboxes, q.Devices, q.Questions, q.Tallies}
}

// refreshTimeout is how long the start waits until the records that messages need are read. If that
// takes longer, messages to keys with devices are refused until then.
const refreshTimeout = 5 * time.Second

// OpenQueue opens the queue of the configuration.
func OpenQueue(a *outbox.Configuration) (*Rooms, error) {
	s := a.QueueSettings
	ctx, log := context.Background(), a.Log.Named("queue")
	switch {
	case s.Open != nil:
		store, err := openGuest(ctx, s, log)
		if err != nil {
			return nil, err
		}
		return NewRooms(a, store, nil), nil
	case s.DSN != "":
		store, err := postgres.Open(ctx, postgres.Options{DSN: s.DSN, Secret: s.Secret, OldSecrets: s.OldSecrets, Logger: log})
		if err != nil {
			return nil, err
		}
		return NewRooms(a, store, nil), nil
	}
	store, err := bolt.Open(bolt.Options{Path: s.Path, Secret: s.Secret, OldSecrets: s.OldSecrets, Logger: log, NoSync: s.NoSync})
	if err != nil {
		return nil, err
	}
	return NewRooms(a, store, store), nil
}

// openGuest opens the store of a module of another repository, which gets only what is sealed.
func openGuest(ctx context.Context, s *outbox.Settings, log *zap.Logger) (queue.Store, error) {
	guest, err := s.Open(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", s.Module, err)
	}
	store, err := sealed.New(ctx, guest, log, s.Secret, s.OldSecrets...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store %s: %w", s.Module, err), guest.Close())
	}
	return store, nil
}

// SetSecrets makes an open queue use the secrets of a configuration.
func (q *Rooms) SetSecrets(s *outbox.Settings) error {
	if q.Outbox.Secret == s.SecretHash() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	if err := q.Outbox.Queue.SetSecrets(ctx, s.Secret, s.OldSecrets...); err != nil {
		return err
	}
	q.Outbox.Secret = s.SecretHash()
	return nil
}

// NewRooms returns the rooms of a queue with a store. local is the store itself if no other gateway
// uses it, and nil if others share it.
func NewRooms(a *outbox.Configuration, store queue.Store, local *bolt.Store) *Rooms {
	s := a.QueueSettings
	log := a.Log.Named("queue")
	base := &outbox.Outbox{
		Dispatcher: a.Shared, Store: local, Shared: local == nil,
		LogName: s.LogName(), Secret: s.SecretHash(), Log: log, Failures: outbox.NewFailureLog(log),
	}
	base.RememberGivenUp()
	q := &Rooms{Outbox: base, Alerts: alerting.New(base, device.ReceiptFuncs(base)), Beats: heartbeat.New(base)}
	q.Rulers = ruler.New(base, q.Beats, programs.RulerMessage)
	q.Planned = planned.New(base)
	q.Tallies = tallystore.New(base)
	q.Beats.Needed = q.Rulers.Any
	q.Devices = device.NewRegistry(base, q.Alerts.Incidents)
	q.Questions = ask.New(base, q.Alerts)
	if local != nil && s.Secret == "" {
		base.KeyFile = local.KeyFile()
	}
	q.Outbox.Queue = queue.New(store, queue.Options{Logger: log})
	base.OpenAlerts = base.NewOpenAlerts()
	q.Inboxes = inbox.NewBox(base)
	q.list, q.ofKinds = q.All(), map[*outbox.Kind]outbox.Room{}
	for _, room := range q.list {
		for _, kind := range room.Kinds() {
			q.ofKinds[kind] = room
		}
	}
	q.Outbox.Policy = outbox.Policy{
		Plan: q.Alerts.Plan, Before: q.Alerts.Before, Ask: q.Questions.Links, Callback: q.Questions.Callback,
		Later: q.Planned.Attempt, Hurry: q.Planned.Hurry, Cancelled: q.Planned.Cancelled,
		MakeRoom: q.Alerts.MakeRoom, Trim: q.Inboxes.Trim, Keep: q.Inboxes.KeepDraft,
	}
	q.Use(a)
	return q
}

// Options returns the options of the queue for a configuration.
func (q *Rooms) Options(conf *outbox.Configuration) queue.Options {
	s := conf.QueueSettings
	var punctual []func() bool
	for _, room := range q.list {
		if f := room.Punctual(conf); f != nil {
			punctual = append(punctual, f)
		}
	}
	return queue.Options{
		Deliver: q.Outbox.Attempt, Settled: q.Outbox.Settled, Dead: q.Outbox.Fallback, Down: q.Outbox.Down, Up: q.Outbox.Up,
		Ended: q.ended, Due: q.due, Turn: q.turn, Ahead: q.ahead, Recheck: q.recheck, Arm: q.arm, Refresh: q.refresh,
		Punctual: func() bool { return slices.ContainsFunc(punctual, func(may func() bool) bool { return may() }) },
		MaxAge:   s.MaxAge, Keep: s.Keep, MaxSize: s.MaxSize, Logger: q.Outbox.Log,
	}
}

// arm arms all rooms.
func (q *Rooms) arm(ctx context.Context) error {
	conf := q.Outbox.Current()
	var errs []error
	for _, room := range q.list {
		errs = append(errs, room.Arm(ctx, conf))
	}
	return errors.Join(errs...)
}

// ended returns the changes of records when a job ends.
func (q *Rooms) ended(j *queue.Job) (changes *queue.Ruled) {
	conf := q.Outbox.Current()
	for _, room := range q.list {
		changes = queue.JoinRuled(changes, room.Ended(conf, j))
	}
	return changes
}

// refresh refreshes all rooms. The queue calls it each second.
func (q *Rooms) refresh(ctx context.Context) {
	conf := q.Outbox.Current()
	for _, room := range q.list {
		room.Refresh(ctx, conf)
	}
	q.foreign.tell(q.Outbox.Log)
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

// Use makes a configuration the one that delivers from now on.
func (q *Rooms) Use(a *outbox.Configuration) {
	q.Outbox.Use(a)
	a.Shared.Metrics.Queue.Expect(serviceNames(&a.Directory))
	q.Outbox.Queue.Configure(q.Options(a))
}

// Begin is [Rooms.Use] for a configuration that starts: it also reads the records that the first
// messages need. opened means that the queue was opened for this configuration; Begin then starts
// it.
func (q *Rooms) Begin(a *outbox.Configuration, opened bool) {
	q.Use(a)
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	q.Alerts.Silences.Refresh(ctx, a)
	q.Devices.Refresh(ctx, a)
	if opened {
		q.Outbox.Queue.Start()
	}
}

// Destruct closes the queue. It waits for the deliveries in progress.
func (q *Rooms) Destruct() error {
	ctx, cancel := context.WithTimeout(context.Background(), dispatch.StopTimeout)
	defer cancel()
	if s, err := q.Outbox.Queue.Stats(ctx); err == nil && s.Queued+s.Sending > 0 {
		q.Outbox.Log.Info("deliveries stay in the queue; they are made when it is opened again",
			zap.Int("deliveries", s.Queued+s.Sending), zap.String("queue", q.Outbox.LogName))
	}
	q.Tallies.Flush(ctx)
	defer q.Outbox.Failures.Close()
	return q.Outbox.Queue.Close(ctx)
}

// due calls Due of the room of a record. A record without a room comes from another version of the
// program.
func (q *Rooms) due(ctx context.Context, name queue.Hash, record []byte, crowded bool) error {
	room := q.ofKinds[outbox.KindOf(record)]
	if room == nil {
		return queue.ErrUnknown
	}
	return room.Due(ctx, q.Outbox.Current(), name, record, crowded)
}

// ahead reports whether a record was written when the clock was ahead. The record is then due at
// once, and its room corrects its times: what was to take at most a minute is over in a minute.
func (q *Rooms) ahead(record []byte, now time.Time) bool {
	room := q.ofKinds[outbox.KindOf(record)]
	return room != nil && room.Ahead(record, now)
}

// turn returns the turn of a record that is due: its kind, and the turn within the kind.
func (q *Rooms) turn(name queue.Hash, record []byte) (turn string, known bool) {
	room := q.ofKinds[outbox.KindOf(record)]
	if room == nil {
		q.foreign.noteRecord(name, record)
		return "", false
	}
	return string(record[:1]) + room.Turn(name, record), true
}

// recheck checks the jobs that rules hold. A job that no room knows comes from another version of
// the program.
func (q *Rooms) recheck(ctx context.Context, held []queue.Job) {
	conf := q.Outbox.Current()
	for _, room := range q.list {
		held = room.Recheck(ctx, conf, held)
	}
	q.foreign.noteHeld(held)
}

// State returns the state of the queue for metrics.
func (q *Rooms) State(ctx context.Context) *metrics.QueueState {
	out := &metrics.QueueState{
		MaxSize: q.Outbox.Queue.MaxSize(), Destinations: q.Outbox.Queue.Destinations.Count(),
		Incidents: q.Alerts.Incidents.CountAll(ctx), Now: q.Outbox.Queue.Now(),
	}
	if old, known := q.Outbox.Queue.OldSecrets(); known && old.Set {
		out.OldSecrets = &old
	}
	s, err := q.Outbox.Queue.Stats(ctx)
	if err != nil {
		return out
	}
	out.Stats = &s
	if !heartbeat.Expects(&q.Outbox.Current().Directory) {
		return out
	}
	beats, err := q.Beats.AllBeats(ctx)
	if err != nil {
		return out
	}
	out.Beats = map[string]int{
		heartbeat.StateOnTime: 0, heartbeat.StateInGrace: 0, string(rules.BeatLate): 0, string(rules.BeatFailed): 0,
		string(rules.BeatTooLong): 0,
	}
	for _, b := range beats {
		out.Beats[b.State(out.Now)]++
	}
	return out
}

// forgetTimeout bounds how long a client that deletes a saved key waits. Records that are left then
// belong to no key, and expire.
const forgetTimeout = 10 * time.Second

// ForgetKey removes the records of a deleted saved key. who is the user who has deleted the key; ""
// if unknown.
func (q *Rooms) ForgetKey(ctx context.Context, at site.Place, name, who string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	conf := q.Outbox.Current()
	var errs []error
	for _, room := range q.list {
		errs = append(errs, room.Forget(ctx, conf, at, who))
	}
	if err := errors.Join(errs...); err != nil {
		q.Outbox.Log.Warn("what was kept for a saved key that was deleted cannot be removed now; no key of the same name gets it",
			zap.String("key", name), zap.Error(err))
	}
}

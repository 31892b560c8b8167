package caddyhttp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// queuePool holds the open queues of the process by name. A reload that does not
// change the name keeps the queue open.
var queuePool = caddy.NewUsagePool()

// gateway is what takes messages with a configuration: the engine and the rooms above it.
type gateway struct {
	engine
	queue *openQueue // nil if it is not open
}

// open is like durable, for those who need more than the outbox.
func (g *gateway) open(k *site.Key) (*openQueue, error) {
	if q, err := g.durable(k); q == nil || err != nil {
		return nil, err
	}
	return g.queue, nil
}

// openQueue is an open queue with all that keeps records in it. Configurations share it.
type openQueue struct {
	*outbox
	*alerts
	*registry
	*monitor
	inboxes *box
}

// outbox stores what cannot be sent now, and delivers it later.
type outbox struct {
	*queue.Queue
	logName string // without a password
	secret  [sha256.Size]byte
	store   *bolt.Store // nil with Postgres
	shared  bool        // other gateways can use the store
	keyFile string      // of the store, unless the configuration has a secret
	log     *zap.Logger
	app     atomic.Pointer[engine] // makes the deliveries; that of the app that was started last
	slow    slowDestinations

	undecided undecidedSends
	policy    policy
	unstored  site.LogLimiter // messages that were sent without the queue, because it was full

	failures *failureLog // of deliveries that are tried again
	dead     lineBudget  // of lines about deliveries that were given up
	check    storeCheck
}

// policy is what the rooms above have to do with a message that is stored.
type policy struct {
	// plan returns what rules decide about a message, or nil if they decide nothing. asked
	// means that a message came in from outside, which silences may keep.
	plan func(d *dispatch.Delivery, asked bool) *plan

	// before is called before an attempt. It returns the incident whose link the message
	// shows, or nil. An outcome that is not nil takes the place of the attempt.
	before func(context.Context, *queue.Job) (*rules.Incident, *queue.Outcome)

	// makeRoom removes what is dispensable from a queue that was full at a time, and reports
	// whether it has removed something.
	makeRoom func(ctx context.Context, full time.Time) bool

	// keep adds the message to the inbox of its key, when the entry is stored. stored is
	// called after that; it is nil if the key has none.
	keep func(*entryDraft) (stored func())
}

// plan is what rules decide about a message.
type plan struct {
	decide func(*entryDraft)        // adds what they decide to an entry
	stored func(*dispatch.Delivery) // is called when the entry is stored

	// tells reports whether a message has to be told at once that cannot be stored, because
	// the queue is full, and which of its targets a silence keeps it from.
	tells func(context.Context) (silent []bool, ok bool)
}

// entryDraft is a message before it is stored.
type entryDraft struct {
	*dispatch.Delivery
	entry    *queue.Entry
	states   []queued.State // of the targets
	bypasses bool           // the message is sent in any case
}

// alerts are the incidents, and the rules over time.
type alerts struct {
	*outbox
	receipts receipts
	groups   groupSizes
	shares   keyShares
	counts   incidentCounts
	silences silenceCache
}

// receipts are those of devices. A step counts as told only with the receipt.
type receipts struct {
	// name returns the name of the record of a message to the destination with a hash.
	name func(target, message string) queue.Hash

	// keep returns the record of a receipt as it is.
	keep func(old []byte) queue.Record

	// confirms reports whether a receipt confirms that the device has shown the message;
	// decided is false as long as it may do so later.
	confirms func(record []byte, now time.Time) (delivered, decided bool)
}

// registry are the devices.
type registry struct {
	*outbox
	alerts        *alerts
	devices       deviceCache
	vapid         pushKeyCache
	registrations device.Limiter
}

// monitor watches the beats that keys expect, and calls the watchdog.
type monitor struct {
	*outbox
	watchdogFails atomic.Bool // the last call has failed
	seen          atomic.Bool // this process has noted that it runs (see [monitor.see])
}

// box are the inboxes.
type box struct {
	*inbox.Store
	outbox *outbox
	full   site.LogLimiter // messages that were removed because the inboxes had no room
	slow   site.LogLimiter // readers
}

// errQueueSecretChanged is returned when a reload changes the secret of a queue
// that is open.
var errQueueSecretChanged = errors.New("queue: the secret of a queue cannot change while it is open; set the old secret again, or set another path")

// openQueue opens the queue of the configuration, or uses the one that is open
// already, and lets this app make its deliveries. It runs when the app starts,
// not earlier, so that a configuration can be validated while another process
// uses the queue.
func (a *App) openQueue() error {
	s := a.queueSettings
	if s == nil {
		return nil
	}
	v, isOpen, err := queuePool.LoadOrNew(s.name, func() (caddy.Destructor, error) { return newQueue(&a.engine) })
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	q := v.(*openQueue)
	if q.secret != s.secretHash() {
		_, _ = queuePool.Delete(s.name) // the other configuration still uses it
		return errQueueSecretChanged
	}
	a.queue, a.outbox = q, q.outbox
	q.use(&a.engine)
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	q.refreshSilences(ctx) // the first message needs them
	q.refreshDevices(ctx)
	if !isOpen {
		q.Start()
	}
	return nil
}

// refreshTimeout is how long the start waits for what messages need. If it takes longer,
// messages to keys with devices are refused until it is read.
const refreshTimeout = 5 * time.Second

// newQueue opens the queue of the configuration.
func newQueue(a *engine) (*openQueue, error) {
	s := a.queueSettings
	log := a.log.Named("queue")
	base := &outbox{logName: s.logName(), secret: s.secretHash(), log: log, failures: newFailureLog(log)}
	q := &openQueue{outbox: base, alerts: &alerts{outbox: base}, monitor: &monitor{outbox: base}}
	q.registry = &registry{outbox: base, alerts: q.alerts}
	q.alerts.receipts = q.registry.receipts()
	var store queue.Store
	var err error
	if s.dsn != "" {
		store, err = postgres.Open(context.Background(), postgres.Options{DSN: s.dsn, Secret: s.secret, Logger: log})
	} else {
		q.outbox.store, err = bolt.Open(bolt.Options{Path: s.path, Secret: s.secret, Logger: log})
		store = q.outbox.store
	}
	if err != nil {
		return nil, err
	}
	q.shared = q.outbox.store == nil
	if q.outbox.store != nil && s.secret == "" {
		q.keyFile = q.outbox.store.KeyFile()
	}
	q.app.Store(a)
	q.Queue = queue.New(store, q.options(s))
	q.inboxes = newInboxes(base)
	q.policy = policy{plan: q.alerts.plan, before: q.stepTurn, makeRoom: q.alerts.makeRoom, keep: q.inboxes.keep}
	return q, nil
}

// options returns the options of the queue for the settings of an app.
func (q *openQueue) options(s *queueSettings) queue.Options {
	punctual := s.punctual || q.app.Load().HasRules() || q.app.Load().ExpectsBeats() || s.watchdog != nil
	return queue.Options{
		Deliver: q.attempt, Settled: q.settled, Dead: q.fallback, Down: q.down, Up: q.up,
		Ended: q.ended, Due: q.due, Recheck: q.recheck, Arm: q.arm,
		Punctual: func() bool { return punctual || q.silences.any() }, Refresh: q.refresh,
		MaxAge: s.maxAge, Keep: s.keep, MaxSize: s.maxSize, Logger: q.log,
	}
}

// ended returns what changes when a job ends.
func (q *openQueue) ended(j *queue.Job) *queue.Ruled {
	return queue.JoinRuled(q.alerts.ended(j), q.gaveUp(j))
}

// refresh reads what other gateways may have changed. The queue calls it each second.
func (q *openQueue) refresh(ctx context.Context) {
	q.refreshSilences(ctx)
	q.inboxes.Refresh(ctx)
	q.refreshDevices(ctx)
	q.watchShares(ctx)
}

// use lets an app make the deliveries from now on.
func (q *openQueue) use(a *engine) {
	q.app.Store(a)
	a.shared.Metrics.Queue.Expect(a.ServiceNames())
	q.Configure(q.options(a.queueSettings))
}

// leaveQueue gives the queue back to the app that was started before, if this
// app is stopped because another part of its configuration failed.
func (a *App) leaveQueue() {
	if before := a.shared.process.apps.newest(); a.queue != nil && before != nil && before.queue == a.queue {
		a.queue.use(&before.engine)
	}
}

// releaseQueue ends the use of the queue by this app. The queue is closed when
// no app uses it.
func (a *App) releaseQueue() error {
	if a.queue == nil {
		return nil
	}
	_, err := queuePool.Delete(a.queueSettings.name)
	return err
}

// Destruct implements [caddy.Destructor]. It waits for the deliveries in
// progress.
func (q *openQueue) Destruct() error {
	ctx, cancel := context.WithTimeout(context.Background(), dispatch.StopTimeout)
	defer cancel()
	if s, err := q.Stats(ctx); err == nil && s.Queued+s.Sending > 0 {
		q.log.Info("deliveries stay in the queue; they are made when it is opened again",
			zap.Int("deliveries", s.Queued+s.Sending), zap.String("queue", q.logName))
	}
	defer q.failures.close()
	return q.Close(ctx)
}

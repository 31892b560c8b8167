package caddyhttp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/device"
	"github.com/caddy-notify/caddy-notify/caddyhttp/inbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
)

// queuePool holds the open queues of the process by name. A reload that does not
// change the name keeps the queue open.
var queuePool = caddy.NewUsagePool()

// openQueue is an open queue. Configurations share it.
type openQueue struct {
	*queue.Queue
	logName string // without a password
	secret  [sha256.Size]byte
	store   *bolt.Store // nil with Postgres
	shared  bool        // other gateways can use the store
	keyFile string      // of the store, unless the configuration has a secret
	log     *zap.Logger
	app     atomic.Pointer[App] // makes the deliveries; the app that was started last
	slow    slowDestinations

	undecided     undecidedSends
	watchdogFails atomic.Bool // the last call has failed
	seen          atomic.Bool // this process has noted that it runs (see [openQueue.see])

	groups   groupSizes
	shares   keyShares
	counts   incidentCounts
	silences silenceCache
	inboxes  *inbox.Store
	devices  deviceCache
	vapid    pushKeyCache

	registrations device.Limiter

	inboxFull   logLimiter // messages that were removed because the inboxes had no room
	slowReaders logLimiter // of inboxes
	unstored    logLimiter // messages that were sent without the queue, because it was full

	failures *failureLog // of deliveries that are tried again
	dead     lineBudget  // of lines about deliveries that were given up
	check    storeCheck
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
	v, isOpen, err := queuePool.LoadOrNew(s.name, func() (caddy.Destructor, error) { return a.newQueue() })
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	q := v.(*openQueue)
	if q.secret != s.secretHash() {
		_, _ = queuePool.Delete(s.name) // the other configuration still uses it
		return errQueueSecretChanged
	}
	a.queue = q
	q.use(a)
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
func (a *App) newQueue() (*openQueue, error) {
	s := a.queueSettings
	log := a.log.Named("queue")
	q := &openQueue{logName: s.logName(), secret: s.secretHash(), log: log, failures: newFailureLog(log)}
	var store queue.Store
	var err error
	if s.dsn != "" {
		store, err = postgres.Open(context.Background(), postgres.Options{DSN: s.dsn, Secret: s.secret, Logger: log})
	} else {
		q.store, err = bolt.Open(bolt.Options{Path: s.path, Secret: s.secret, Logger: log})
		store = q.store
	}
	if err != nil {
		return nil, err
	}
	q.shared = q.store == nil
	if q.store != nil && s.secret == "" {
		q.keyFile = q.store.KeyFile()
	}
	q.app.Store(a)
	q.Queue = queue.New(store, q.options(s))
	q.inboxes = q.newInboxes()
	return q, nil
}

// options returns the options of the queue for the settings of an app.
func (q *openQueue) options(s *queueSettings) queue.Options {
	punctual := s.punctual || q.app.Load().hasRules() || q.app.Load().expectsBeats() || s.watchdog != nil
	return queue.Options{
		Deliver: q.attempt, Settled: q.settled, Dead: q.fallback, Down: q.down, Up: q.up,
		Ended: q.ended, Due: q.due, Recheck: q.recheck, Arm: q.arm,
		Punctual: func() bool { return punctual || q.silences.any() }, Refresh: q.refresh,
		MaxAge: s.maxAge, Keep: s.keep, MaxSize: s.maxSize, Logger: q.log,
	}
}

// refresh reads what other gateways may have changed. The queue calls it each second.
func (q *openQueue) refresh(ctx context.Context) {
	q.refreshSilences(ctx)
	q.inboxes.Refresh(ctx)
	q.refreshDevices(ctx)
	q.watchShares(ctx)
}

// use lets an app make the deliveries from now on.
func (q *openQueue) use(a *App) {
	q.app.Store(a)
	a.shared.metrics.queue.expect(a)
	q.Configure(q.options(a.queueSettings))
}

// leaveQueue gives the queue back to the app that was started before, if this
// app is stopped because another part of its configuration failed.
func (a *App) leaveQueue() {
	if before := a.shared.apps.newest(); a.queue != nil && before != nil && before.queue == a.queue {
		a.queue.use(before)
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
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if s, err := q.Stats(ctx); err == nil && s.Queued+s.Sending > 0 {
		q.log.Info("deliveries stay in the queue; they are made when it is opened again",
			zap.Int("deliveries", s.Queued+s.Sending), zap.String("queue", q.logName))
	}
	defer q.failures.close()
	return q.Close(ctx)
}

// durable returns the queue for messages of a key, or nil if there is none. It
// waits until the app has started, because other apps may start earlier and
// send messages.
func (a *App) durable(k *key) (*openQueue, error) {
	if a.queueSettings == nil || k != nil && k.unqueued {
		return nil, nil
	}
	<-a.started
	if a.queue == nil {
		return nil, errQueueUnavailable(errors.New("the queue is not open"))
	}
	return a.queue, nil
}

// queueRetryAfter is the time that a client should wait after a 503 of the
// queue.
const queueRetryAfter = 10 * time.Second

// errQueueUnavailable returns the error for a client whose message or silence cannot be
// stored because of err.
func errQueueUnavailable(err error) *api.Error {
	e := api.Errorf(http.StatusServiceUnavailable, "the gateway cannot store messages at the moment; try again in %s", queueRetryAfter)
	e.RetryAfter = queueRetryAfter
	if errors.Is(err, queue.ErrFull) {
		e.Err = fmt.Errorf("the queue is full: the messages that wait to be delivered, and the alerts and silences that it knows, take as much as max_size allows; try again in %s", queueRetryAfter)
		return e
	}
	if errors.Is(err, queue.ErrDiskFull) {
		e.Err = fmt.Errorf("the gateway cannot store anything new, because its disk is full; try again in %s", queueRetryAfter)
	}
	e.Fault = err
	return e
}

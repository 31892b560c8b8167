// Package postgres keeps the queue in tables of PostgreSQL. Several gateways
// can share them. One gateway claims each job, under a lease that ends when the
// gateway no longer renews it.
//
// The tables are notify_queue_messages, notify_queue_jobs, notify_queue_files,
// notify_queue_destinations, notify_queue_counts, notify_queue_records,
// notify_queue_leases and notify_queue_version. The store creates and upgrades them in the first schema of the connection's search
// path, also when it finds them gone. Texts, destinations, states and results are
// sealed (package seal); IDs, times, sizes, counts and keyed hashes are not.
//
// Leases and the times when jobs and records are due use the clock of the server. Gateways
// read it in exchanges that they make anyway, and count on from there, so that their own
// clocks may be wrong.
//
// The SQL uses only features that PostgreSQL, CockroachDB and YugabyteDB all
// document. Transactions that fail with SQLSTATE 40001 are repeated. If notifications
// do not arrive, the store polls for jobs of other gateways every second, and
// else every ten seconds.
//
// Nothing lasts in a session from one transaction to the next, so that a pooler may give
// each transaction another one. Only prepared statements do, and notifications: the former
// are used where there is no pooler, and the store finds out if the latter arrive.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Options configure a store.
type Options struct {
	// DSN is the connection string: postgres://user:password@host/database, or
	// key=value pairs as libpq reads them. pool_max_conns is the maximum number of
	// connections in use; default 16. One more is used to listen. The other parameters
	// of pgxpool that begin with pool_ have its meanings and defaults.
	DSN string

	// Secret is the text that the encryption key is derived from, of 16 or more
	// characters. All gateways that share the tables have the same.
	Secret string

	// OldSecrets open what was sealed under them before there was Secret.
	OldSecrets []string

	// Logger gets a warning if the server is not reachable at the start.
	// Default: none.
	Logger *zap.Logger

	noListen   bool          // for tests
	oneCounter bool          // for tests: all transactions change the same row of counts
	knows      int           // for tests: the version of the tables that this program knows
	later      time.Duration // for tests: by how much the clock of its secrets is ahead
	conflict   func() error  // for tests; see pool

	// loseReply is for tests. It is called after an acceptance, a claim or a settlement is
	// committed, and its error is handled like one of the connection.
	loseReply func() error
}

// How often a store polls for changes by other gateways.
const (
	pollEvery     = time.Second      // jobs of other gateways, if the server does not notify
	listenedEvery = 10 * time.Second // the same if it does
	recoverEvery  = 5 * time.Second  // leases that have run out
	correctEvery  = 10 * time.Minute // jobs that were written when the clock was ahead
	countEvery    = 5 * time.Second  // bytes that wait
	openTime      = 5 * time.Second  // how long Open waits for the server
)

// Store is a [queue.Store] in tables of PostgreSQL.
type Store struct {
	*tables
	*writer
	*listener
	*waitingCounts
	messageStore
	recordStore
	parking parking

	cancel context.CancelFunc
	loops  sync.WaitGroup
	once   sync.Once

	claims    claims
	claiming  sync.Mutex    // Claim runs once at a time
	recovered time.Time     // when leases were last checked; for Claim
	exchanged time.Time     // when the last claim ended; for Claim
	exchange  time.Duration // how long it took; for Claim
	unclear   unclearClaims // for Claim
}

// tables are the tables of the queue, as one handle uses them.
type tables struct {
	pool   *pool
	sealer *record.Sealer
	knows  int // the version of the tables that this program knows
	log    *zap.Logger
	owner  uuid.UUID // names this handle
	stop   chan struct{}

	migrating sync.Mutex
	migrated  atomic.Bool
	missing   atomic.Bool                  // a table was found missing
	newer     atomic.Pointer[queue.Format] // of the tables, if this program is too old for them; else nil
	later     time.Duration                // as in Options
	foreign   atomic.Bool                  // another gateway uses a secret that this one does not have

	clock serverClock
	size  size
}

var (
	_ queue.Store    = (*Store)(nil)
	_ queue.Resealer = (*Store)(nil)
)

// Check returns an error if a connection string is invalid. The error does not
// contain the password. Check does not connect.
func Check(dsn string) error {
	_, err := readDSN(dsn)
	return err
}

// Open connects to the server and creates or updates the tables. If the server
// cannot be reached within 5 seconds, the store is unavailable until it can.
// Open returns an error if the connection string is wrong, if the server
// refuses user, password or database, or if the tables were created with
// another secret.
func Open(ctx context.Context, o Options) (*Store, error) {
	p, err := newPool(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("opening the queue in Postgres: %w", err)
	}
	p.conflict, p.oneCounter = o.conflict, o.oneCounter
	t := &tables{
		pool: p, log: cmp.Or(o.Logger, zap.NewNop()), owner: uuid.New(), knows: cmp.Or(o.knows, len(migrations)),
		stop: make(chan struct{}), later: o.later, clock: serverClock{start: time.Now()},
	}
	sealer, err := seal.New(o.Secret, o.OldSecrets...)
	if err != nil {
		return nil, fmt.Errorf("opening the queue in Postgres: %w", err)
	}
	t.sealer = &record.Sealer{Sealer: sealer, Log: t.log}
	due := &due{shard: rand.IntN(shards)}
	s := &Store{
		tables: t, messageStore: messageStore{t}, recordStore: recordStore{t}, claims: newClaims(),
		writer: &writer{
			tables: t, accepting: newBatch[*queue.Entry](t.stop), deciding: newBatch[*accepting](t.stop),
			settlings: newBatch[*settling](t.stop), outcomes: newBatch[*settling](t.stop), loseReply: o.loseReply,
		},
		listener:      &listener{tables: t, due: due, changed: make(chan struct{}, 1), dirty: make(chan struct{}, 1)},
		waitingCounts: &waitingCounts{tables: t, turn: make(chan struct{}, 1), requests: make(chan chan<- counted)},
		parking:       parking{tables: t, due: due, failures: newBatch[*failing](t.stop)},
	}
	short, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if err := s.prepare(short); err != nil {
		if !temporary(err) {
			p.close()
			return nil, fmt.Errorf("opening the queue in Postgres: %w", err)
		}
		s.log.Error("the queue's database is not reachable; messages are refused until it is", zap.Error(err))
	}
	for range batches {
		s.loops.Go(func() { s.accepting.run(s.accept) })
		s.loops.Go(func() { s.deciding.run(s.acceptDecided) })
		s.loops.Go(func() { s.parking.failures.run(s.parking.park) })
		s.loops.Go(func() { s.settlings.run(s.settle) })
		s.loops.Go(func() { s.outcomes.run(s.settle) })
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if !o.noListen {
		s.loops.Go(func() { s.listen(ctx) })
	}
	s.loops.Go(func() { s.notify(ctx) })
	s.loops.Go(func() { s.keepDue(ctx) })
	s.loops.Go(func() { s.watchVersion(ctx) })
	s.loops.Go(func() { s.countRequested(ctx) })
	return s, nil
}

// temporary reports whether a later attempt to connect can succeed without a
// change of the configuration.
func temporary(err error) bool {
	if known(err) {
		return false
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return true
	}
	switch {
	// authorization, rights or syntax, no such database
	case strings.HasPrefix(e.Code, "28"), strings.HasPrefix(e.Code, "42"), e.Code == "3D000":
		return false
	}
	return true
}

// prepare creates or updates the tables, unless it has succeeded before.
func (t *tables) prepare(ctx context.Context) error {
	if t.migrated.Load() {
		return nil
	}
	t.migrating.Lock()
	defer t.migrating.Unlock()
	if t.migrated.Load() {
		return nil
	}
	err := t.pool.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		if err := t.migrate(ctx, c); err != nil {
			return err
		}
		return t.readClock(ctx, c)
	})
	if err == nil {
		t.missing.Store(false)
		t.migrated.Store(true)
	}
	return err
}

// do calls f with a connection, as [pool.do] does.
func (t *tables) do(ctx context.Context, f func(ctx context.Context, c *conn, repeated bool) error) error {
	select {
	case <-t.stop:
		return queue.ErrClosed
	default:
	}
	for again := false; ; again = true {
		names := t.sealer.DestinationHash("")
		if err := t.prepare(ctx); err != nil {
			return err
		}
		if names != t.sealer.DestinationHash("") {
			return errJoined // the caller has made names with another key
		}
		err := t.pool.do(ctx, f)
		if again || !gone(err) {
			return err
		}
		t.log.Error("the tables of the queue are gone, with everything that waited; they are created again", zap.Error(err))
		t.size.forget()
		t.missing.Store(true)
		t.migrated.Store(false)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Changed implements [queue.Store].
func (l *listener) Changed() <-chan struct{} { return l.changed }

// Close implements [queue.Store].
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.stop)
		s.cancel()
		s.loops.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), openTime)
		defer cancel()
		if s.migrated.Load() {
			_ = s.giveUpClaims(ctx)
		}
		s.pool.close()
	})
	return nil
}

// Hash implements [queue.Store].
func (s *Store) Hash(text string) queue.Hash { return s.sealer.DestinationHash(text) }

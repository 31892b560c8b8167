// Package postgres keeps the queue in tables of PostgreSQL. Several gateways
// can share them. One gateway claims each job, under a lease that ends when the
// gateway no longer renews it.
//
// The tables are notify_queue_messages, notify_queue_jobs, notify_queue_files
// and notify_queue_version. The store creates and upgrades them in the first
// schema of the connection's search path. Texts, destinations, states and
// results are sealed (package seal); IDs, times, sizes, counts and keyed hashes
// are not.
//
// Leases use the clock of the server. The times when jobs are due or expire use
// the clocks of the gateways, which should agree to within about a second.
//
// The SQL uses only features that PostgreSQL, CockroachDB and YugabyteDB all
// document. Transactions that fail with SQLSTATE 40001 are repeated. If LISTEN
// is not supported, the store polls for jobs of other gateways every second.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Options configure a store.
type Options struct {
	// DSN is the connection string: postgres://user:password@host/database, or
	// key=value pairs as libpq reads them. pool_max_conns is the maximum number of
	// connections; default 16. One more is used to listen.
	DSN string

	// Secret is the text that the encryption key is derived from, of 16 or more
	// characters. All gateways that share the tables have the same.
	Secret string

	// Logger gets a warning if the server is not reachable at the start.
	// Default: none.
	Logger *zap.Logger

	noListen bool         // for tests
	conflict func() error // for tests; see pool

	// loseReply is for tests. It is called after a settlement is committed, and
	// its error is handled like one of the connection.
	loseReply func() error
}

// How often a store polls for changes by other gateways.
const (
	pollEvery    = time.Second     // jobs of other gateways
	recoverEvery = 5 * time.Second // leases that have run out
	countEvery   = 5 * time.Second // bytes that wait
	openTime     = 5 * time.Second // how long Open waits for the server
)

// Store is a [queue.Store] in tables of PostgreSQL.
type Store struct {
	pool   *pool
	sealer *seal.Sealer
	log    *zap.Logger
	owner  uuid.UUID // names this handle

	migrating sync.Mutex
	migrated  atomic.Bool

	accepting batch[*queue.Entry]
	settlings batch[*settling]
	loseReply func() error // of Options

	changed chan struct{}
	dirty   chan struct{} // signals that jobs for other gateways are stored
	stop    chan struct{}
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	once    sync.Once

	mu        sync.Mutex
	claimed   map[queue.JobID]*claim
	counts    map[seal.Hash]int // of claimed jobs, by destination
	messages  map[uuid.UUID]*loaded
	cursor    []byte    // the destination that had the last turn
	recovered time.Time // when leases were last checked
	waiting   int64     // size of the waiting messages: the last count, plus the changes of this handle
	counted   time.Time
}

// claim is a job that this handle has claimed.
type claim struct {
	destination seal.Hash
	settling    bool

	// tokens identify settlements that failed after the server may have
	// committed them.
	tokens []uuid.UUID
}

// loaded is a message that was read together with claimed jobs.
type loaded struct {
	head, body []byte // sealed
	jobs       int    // claimed jobs that it was read with
}

var _ queue.Store = (*Store)(nil)

// Check returns an error if a connection string is invalid. The error does not
// contain the password. Check does not connect.
func Check(dsn string) error {
	_, err := newPool(dsn)
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
	p.conflict = o.conflict
	s := &Store{
		pool: p, log: o.Logger, owner: uuid.New(), loseReply: o.loseReply,
		changed: make(chan struct{}, 1), dirty: make(chan struct{}, 1), stop: make(chan struct{}),
		claimed: map[queue.JobID]*claim{}, counts: map[seal.Hash]int{}, messages: map[uuid.UUID]*loaded{},
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.sealer, err = seal.New(o.Secret); err != nil {
		return nil, fmt.Errorf("opening the queue in Postgres: %w", err)
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
	s.accepting = batch[*queue.Entry]{make(chan item[*queue.Entry]), s.stop}
	s.settlings = batch[*settling]{make(chan item[*settling]), s.stop}
	for range batches {
		s.loops.Go(func() { s.accepting.run(s.accept) })
		s.loops.Go(func() {
			s.settlings.run(func(jobs []*settling) []error { return s.settle(context.Background(), jobs, nil) })
		})
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if !o.noListen {
		s.loops.Go(func() { s.listen(ctx) })
	}
	s.loops.Go(func() { s.notify(ctx) })
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
	case strings.HasPrefix(e.Code, "28"), strings.HasPrefix(e.Code, "42"), e.Code == "3D000": // authorization, rights or syntax, no such database
		return false
	}
	return true
}

// prepare creates or updates the tables, unless it has succeeded before.
func (s *Store) prepare(ctx context.Context) error {
	if s.migrated.Load() {
		return nil
	}
	s.migrating.Lock()
	defer s.migrating.Unlock()
	if s.migrated.Load() {
		return nil
	}
	err := s.pool.do(ctx, func(ctx context.Context, c *conn, _ bool) error { return s.migrate(ctx, c) })
	s.migrated.Store(err == nil)
	return err
}

// do calls f with a connection, as [pool.do] does.
func (s *Store) do(ctx context.Context, f func(ctx context.Context, c *conn, repeated bool) error) error {
	select {
	case <-s.stop:
		return queue.ErrClosed
	default:
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.pool.do(ctx, f)
}

// channel is the channel on which gateways notify each other of new jobs.
const channel = "notify_queue"

// listen waits for notifications of other gateways. It returns if the server
// does not support them.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := s.pool.connect(ctx)
		if err == nil {
			_, err = c.pg.Exec(ctx, "LISTEN "+channel).ReadAll()
			if _, refused := errors.AsType[*pgconn.PgError](err); refused {
				closeConn(c)
				return // the store still polls every second
			}
			for err == nil {
				if err = c.pg.WaitForNotification(ctx); err == nil {
					signal(s.changed)
				}
			}
			closeConn(c)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

// notify notifies other gateways of new jobs, at most ten times a second,
// because a notification locks the whole database during its commit.
func (s *Store) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
			_, err := c.query(ctx, "SELECT pg_notify($1, '')::TEXT", channel)
			return err
		})
		pause := pollEvery / 10
		if err != nil {
			pause = 10 * pollEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Changed implements [queue.Store].
func (s *Store) Changed() <-chan struct{} { return s.changed }

// Close implements [queue.Store].
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.stop)
		s.cancel()
		s.loops.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), openTime)
		defer cancel()
		if s.migrated.Load() {
			// If this fails, the leases run out.
			_ = s.pool.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
				_, err := c.query(ctx, "UPDATE notify_queue_jobs SET status = 1, owner = NULL, lease = NULL WHERE owner = $1 AND status = 2", s.owner)
				return err
			})
		}
		s.pool.close()
	})
	return nil
}

func (s *Store) hash(purpose, text string) seal.Hash { return s.sealer.Hash(purpose, text) }

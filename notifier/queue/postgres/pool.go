package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres/internal/hosts"
)

// The bounds of requests to the server.
const (
	defaultConns = 16
	replyTime    = 5 * time.Second        // for one exchange with the server
	restTime     = 5 * time.Second        // how long a server that does not answer is left alone
	growAgain    = 5 * time.Second        // after the server has refused a further connection
	lookAgain    = 100 * time.Millisecond // while a caller waits for a connection
	endTime      = time.Second            // for the end of a session, and for cancelling a statement
	maxRepeats   = 20                     // of a transaction that conflicts with another
)

// pool is the connections to the database. pgxpool keeps them. The pool decides which host
// is asked, and when none is.
type pool struct {
	config *pgxpool.Config
	conns  *pgxpool.Pool
	hosts  hosts.Hosts
	places chan struct{} // has a value for each caller that has a connection or makes one
	start  time.Time

	mu       sync.Mutex
	replied  map[string]time.Duration // when each address last answered, since start
	all      map[*pgconn.PgConn]*conn // connections that can be used, also the one that listens
	listener *conn                    // nil for none
	counter  int                      // of the next connection
	closed   bool
	stalled  bool      // the server has not answered
	until    time.Time // when one caller may try it again

	// conflict is for tests. If set, it is called before each transaction, and its
	// error is handled like one of the server.
	conflict func() error

	oneCounter bool // for tests; see Options

	// pooler reports that a prepared statement was not found in its session, so that
	// there is a pooler, although it does not look like one.
	pooler atomic.Bool
}

// newPool returns a pool for a connection string. The caller closes it.
func newPool(dsn string) (*pool, error) {
	config, err := readDSN(dsn)
	if err != nil {
		return nil, err
	}
	p := &pool{
		config: config, places: make(chan struct{}, config.MaxConns), start: time.Now(), counter: rand.IntN(counters),
		replied: map[string]time.Duration{}, all: map[*pgconn.PgConn]*conn{},
	}
	config.MaxConns *= 2 // connections that are being closed count, and closing takes time if the server hangs
	config.BeforeConnect, config.PrepareConn, config.BeforeClose = p.beforeConnect, p.isUsable, p.beforeClose
	// An exchange notices a lost connection, and is made again.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	p.conns, err = pgxpool.NewWithConfig(context.Background(), config)
	return p, err
}

// beforeConnect is the hook of pgxpool that sets the order of the hosts.
func (p *pool) beforeConnect(ctx context.Context, config *pgx.ConnConfig) error {
	began := time.Since(p.start)
	config.ConnectTimeout = p.config.ConnConfig.ConnectTimeout // pgxpool sets one if there is none
	a := p.hosts.Attempt(ctx, &config.Config, func(address string) { p.unreachable(address, began) })
	c := &conn{pool: p, statements: map[string]*pgconn.StatementDescription{}}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { c.noteNotice(n) }
	config.AfterConnect = func(ctx context.Context, pg *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
		defer cancel()
		c.pg, c.address = pg, a.Connected()
		return p.add(ctx, c)
	}
	return nil
}

// add adds a new connection.
func (p *pool) add(ctx context.Context, c *conn) error {
	if err := c.askSession(ctx); err != nil {
		return err
	}
	p.hosts.NoteAnswer(c.address)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.counter = p.counter % counters
	if !p.oneCounter {
		p.counter++
	}
	p.all[c.pg] = c
	if l := p.listener; l != nil && l.address != c.address {
		p.hangUp(l) // other gateways notify on the host that answers now
	}
	return nil
}

// isUsable is the hook of pgxpool that reports whether a caller may get an idle connection. After
// the pool has hung up, it may not.
func (p *pool) isUsable(_ context.Context, pc *pgx.Conn) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.all[pc.PgConn()]
	if c != nil {
		c.inUse = true
	}
	return c != nil, nil
}

// beforeClose is the hook of pgxpool before it closes a connection.
func (p *pool) beforeClose(pc *pgx.Conn) {
	p.mu.Lock()
	delete(p.all, pc.PgConn())
	p.mu.Unlock()
	if pc.IsClosed() {
		pc.PgConn().Conn().Close() // otherwise pgconn reads for 15 s what a lost server may still send
	}
}

// connect opens a connection outside the pool. The caller closes it with closeConn.
func (p *pool) connect(ctx context.Context) (*conn, error) {
	began := time.Since(p.start)
	config := p.config.ConnConfig.Copy()
	if err := p.beforeConnect(ctx, config); err != nil {
		return nil, err
	}
	pc, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		p.noteError(ctx, err, began)
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.all[pc.PgConn()]
	if c == nil {
		return nil, errStalled // the pool has hung up
	}
	c.inUse, c.outside = true, pc
	return c, nil
}

// noteError notes an error of an attempt to connect that began at a time.
func (p *pool) noteError(ctx context.Context, err error, began time.Duration) {
	name, unresolved := errors.AsType[*net.DNSError](err)
	if pgconn.Timeout(err) || unresolved && name.IsTimeout || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.stall(began)
	}
}

// listen opens a connection that waits for notifications. The caller closes it with
// closeConn.
func (p *pool) listen(ctx context.Context) (*conn, error) {
	c, err := p.connect(ctx)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.listener = c
	}
	return c, err
}

// closeConn closes a connection. The caller does not hold the lock.
func closeConn(c *conn) {
	p := c.pool
	p.mu.Lock()
	delete(p.all, c.pg)
	if p.listener == c {
		p.listener = nil
	}
	p.mu.Unlock()
	c.end()
}

// silent notes that a host has not answered an exchange in time, unless it has answered
// others meanwhile. Its connections are closed, and another host is tried next. If it is
// the only one, it is left alone for a while.
func (p *pool) silent(address string, began time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replied[address] > began {
		return
	}
	p.closeIdle(address)
	if !p.hosts.AreSeveral() {
		p.stalled, p.until = true, time.Now().Add(restTime)
		return
	}
	p.hosts.NoteFailure(address)
	for _, c := range p.all {
		if c.address == address && !c.patient.Load() {
			p.hangUp(c)
		}
	}
}

// unreachable notes that one of several hosts has not taken a connection in time, unless it
// has answered an exchange meanwhile. Exchanges with it that are under way have the rest of
// their time.
func (p *pool) unreachable(address string, began time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replied[address] > began {
		return
	}
	p.hosts.NoteFailure(address)
	p.leave(address)
}

// noteReadOnly notes that the server at an address cannot be written any more. The new
// primary may have another address, or a new connection to the same may reach it.
func (p *pool) noteReadOnly(address string) {
	p.hosts.NoteFailure(address)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(address)
}

// leave closes the idle connections to an address, and the one that listens there. The
// caller holds the lock.
func (p *pool) leave(address string) {
	p.closeIdle(address)
	if l := p.listener; l != nil && l.address == address {
		p.hangUp(l)
	}
}

// stall notes that no host has taken a connection, and that not all have said why. Unless
// one has answered an exchange meanwhile, all are left alone for a while.
func (p *pool) stall(began time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.replied {
		if at > began {
			return
		}
	}
	rest := restTime
	if p.hosts.AreSeveral() { // one of them may become the primary
		rest = hosts.TimeEach
	}
	p.stalled, p.until = true, time.Now().Add(rest)
	p.closeIdle("")
}

// hangUp ends a connection that somebody else may use, who gets an error. The caller holds
// the lock.
func (p *pool) hangUp(c *conn) {
	delete(p.all, c.pg)
	go c.pg.Conn().Close() // TLS may wait for the server
}

// closeIdle closes the idle connections to an address, or all if it is empty. The caller
// holds the lock.
func (p *pool) closeIdle(address string) {
	for _, c := range p.all {
		if !c.inUse && (address == "" || c.address == address) {
			p.hangUp(c)
		}
	}
}

// answered notes that a host has answered.
func (p *pool) answered(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replied[address] = time.Since(p.start)
	p.stalled = false
}

// get returns a connection. The caller returns it with put. If all are in use, or
// the server refuses another one, get waits.
func (p *pool) get(ctx context.Context) (*conn, error) {
	end := time.Now().Add(replyTime) // of waiting for a server that refuses the first connection
	for {
		if err := p.takePlace(ctx); err != nil {
			return nil, err
		}
		began := time.Since(p.start)
		member, err := p.conns.Acquire(ctx)
		if err == nil {
			p.mu.Lock()
			c := p.all[member.Conn().PgConn()]
			p.mu.Unlock()
			if c != nil {
				c.member = member
				return c, nil
			}
			member.Release() // the pool has hung up meanwhile
			<-p.places
			continue
		}
		if e := p.available(); errors.Is(e, queue.ErrClosed) {
			err = e
		}
		p.noteError(ctx, err, began)
		wait := p.waitAfter(err, end)
		if wait == 0 {
			<-p.places
			return nil, err
		}
		time.AfterFunc(wait, func() { <-p.places }) // fewer callers at once
	}
}

// waitAfter returns how long no further connection is made after an error, until end if
// there is none, or 0 if the caller gets the error.
func (p *pool) waitAfter(err error, end time.Time) time.Duration {
	if !tooMany(err) {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	open := len(p.all)
	if p.listener != nil {
		open--
	}
	switch {
	case open > 0:
		return growAgain
	case time.Now().Before(end):
		return lookAgain
	}
	return 0
}

// takePlace waits until the caller may have a connection. The places are as many as the
// pool has connections, less those that the server refuses. One caller at a time tries
// a server that has not answered.
func (p *pool) takePlace(ctx context.Context) error {
	for {
		if err := p.available(); err != nil {
			return err
		}
		select {
		case p.places <- struct{}{}:
			p.mu.Lock()
			defer p.mu.Unlock()
			switch now := time.Now(); {
			case !p.stalled:
				return nil
			case now.Before(p.until):
				<-p.places
				return errStalled
			default:
				p.until = now.Add(replyTime)
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookAgain):
		}
	}
}

// available returns an error if a caller cannot get a connection now.
func (p *pool) available() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return queue.ErrClosed
	case p.stalled && time.Now().Before(p.until):
		return errStalled
	}
	return nil
}

// resting reports whether the server is left alone, because it does not answer.
func (p *pool) resting() bool { return errors.Is(p.available(), errStalled) }

// put returns a connection.
func (p *pool) put(c *conn) {
	if !c.pg.IsClosed() && c.pg.TxStatus() != 'I' && c.rollback() != nil { // in the middle of a transaction
		c.end()
	}
	p.mu.Lock()
	c.inUse = false
	lost := c.pg.IsClosed() || p.all[c.pg] == nil // or hung up
	if lost {
		delete(p.all, c.pg)
		p.closeIdle(c.address) // the server has probably closed the others as well
	}
	p.mu.Unlock()
	if lost {
		c.end()
	}
	c.member.Release()
	<-p.places
}

// close closes the connections. It waits for those in use.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.conns.Close()
}

// do calls f with a connection. It calls f again if the transaction conflicts
// with another one, and once if the connection is lost or the server cannot be
// written any more. repeated reports whether an earlier call may have succeeded.
// do returns errors of the server and of the connection as a
// [*queue.UnavailableError].
func (p *pool) do(ctx context.Context, f func(ctx context.Context, c *conn, repeated bool) error) error {
	lost := false
	for n := 0; ; n++ {
		err := p.once(ctx, func(ctx context.Context, c *conn) error { return f(ctx, c, lost) })
		switch {
		case err == nil:
			return nil
		case conflicts(err) && n < maxRepeats:
			pause := time.Duration(rand.Int64N(int64(min(1+n, 10)) * int64(5*time.Millisecond)))
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
			}
		case (broken(err) || readOnly(err)) && !lost && ctx.Err() == nil:
			lost = true
			continue
		}
		return unavailable(err)
	}
}

func (p *pool) once(ctx context.Context, f func(ctx context.Context, c *conn) error) error {
	c, err := p.get(ctx)
	if err != nil {
		return err
	}
	defer p.put(c)
	if p.conflict != nil {
		if err := p.conflict(); err != nil {
			return err
		}
	}
	err = f(ctx, c)
	switch {
	case unprepared(err):
		p.pooler.Store(true)
	case readOnly(err):
		p.noteReadOnly(c.address)
		c.end()
		return fmt.Errorf("%s is a standby, or cannot be written; the connection string needs the addresses of all servers, and "+
			"target_session_attrs=read-write: %w", c.address, err)
	}
	return err
}

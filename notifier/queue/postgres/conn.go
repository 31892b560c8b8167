package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The bounds of requests to the server.
const (
	defaultConns = 16
	replyTime    = 5 * time.Second        // for one exchange with the server
	restTime     = 5 * time.Second        // how long a server that does not answer is left alone
	growAgain    = 5 * time.Second        // after the server has refused a further connection
	lookAgain    = 100 * time.Millisecond // while a caller waits for a connection
	maxRepeats   = 20                     // of a transaction that conflicts with another
)

// errStalled is returned while a server is left alone because it has not
// answered.
var errStalled = errors.New("the server does not answer")

// pool is a set of connections to the database.
type pool struct {
	config *pgconn.Config
	hosts  hosts
	max    int           // connections
	free   chan struct{} // receives a value when a caller that waits may get a connection
	start  time.Time

	mu       sync.Mutex
	replied  map[string]time.Duration // when each address last answered, since start
	all      map[*conn]bool           // connections that exist, also the one that listens
	listener *conn                    // nil for none

	idle    []*conn
	open    int // connections that exist or are being made
	counter int // of the next connection
	closed  bool
	grow    time.Time // when another connection may be made
	stalled bool      // the server has not answered
	until   time.Time // when one caller may try it again

	// conflict is for tests. If set, it is called before each transaction, and its
	// error is handled like one of the server.
	conflict func() error

	oneCounter bool // for tests; see Options
}

// conn is a connection with its prepared statements.
type conn struct {
	pg         *pgconn.PgConn
	pool       *pool
	address    string      // of the host
	patient    atomic.Bool // it waits for longer than other exchanges may take
	statements map[string]*pgconn.StatementDescription
	counter    int // the row of counts that its transactions change
}

// newPool returns a pool for a connection string in either of the forms of
// libpq. Its parameter pool_max_conns is the maximum number of connections.
func newPool(dsn string) (*pool, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("reading the connection string: %w", err)
	}
	n := defaultConns
	if text, ok := config.RuntimeParams["pool_max_conns"]; ok {
		delete(config.RuntimeParams, "pool_max_conns")
		if n, err = strconv.Atoi(text); err != nil || n < 2 {
			return nil, errors.New("reading the connection string: pool_max_conns must be a number from 2 up")
		}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "caddy-notify"
	}
	return &pool{
		config: config, max: n, free: make(chan struct{}, 1), start: time.Now(), counter: rand.IntN(counters),
		replied: map[string]time.Duration{}, all: map[*conn]bool{},
	}, nil
}

// connect opens a connection outside the pool. The caller closes it with closeConn.
func (p *pool) connect(ctx context.Context) (*conn, error) {
	began := time.Since(p.start)
	a := p.hosts.attempt(ctx, p.config)
	pg, err := a.connect(ctx)
	for _, address := range a.hung {
		p.unreachable(address, began)
	}
	if err != nil {
		name, unresolved := errors.AsType[*net.DNSError](err)
		if pgconn.Timeout(err) || unresolved && name.IsTimeout || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.stall(began)
		}
		return nil, err
	}
	p.hosts.noteAnswer(a.address)
	c := &conn{pg: pg, pool: p, address: a.address, statements: map[string]*pgconn.StatementDescription{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[c] = true
	if l := p.listener; l != nil && l.address != c.address {
		p.hangUp(l) // other gateways notify on the host that answers now
	}
	return c, nil
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
	if !p.hosts.areSeveral() {
		p.stalled, p.until = true, time.Now().Add(restTime)
		return
	}
	p.hosts.noteFailure(address)
	for c := range p.all {
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
	p.hosts.noteFailure(address)
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
	if p.hosts.areSeveral() { // one of them may become the primary
		rest = hostTime
	}
	p.stalled, p.until = true, time.Now().Add(rest)
	p.closeIdle("")
}

// hangUp ends a connection that somebody else may use, who gets an error. The caller holds
// the lock.
func (p *pool) hangUp(c *conn) {
	delete(p.all, c)
	go c.pg.Conn().Close() // TLS may wait for the server
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
		c, dial, err := p.take()
		if c != nil || err != nil {
			return c, err
		}
		if dial {
			c, err := p.connect(ctx)
			if err == nil {
				p.mu.Lock()
				c.counter = p.counter % counters
				if !p.oneCounter {
					p.counter++
				}
				p.mu.Unlock()
				return c, nil
			}
			p.mu.Lock()
			p.open--
			wait := tooMany(err) && (p.open > 0 || time.Now().Before(end))
			if wait && p.open > 0 {
				p.grow = time.Now().Add(growAgain)
			}
			p.mu.Unlock()
			signal(p.free)
			if !wait {
				return nil, err
			}
		}
		select {
		case <-p.free:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lookAgain):
		}
	}
}

// take returns an idle connection, or reports whether the caller may make one.
func (p *pool) take() (c *conn, dial bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch n := len(p.idle); {
	case p.closed:
		return nil, false, queue.ErrClosed
	case p.stalled && now.Before(p.until):
		return nil, false, errStalled
	case n > 0:
		c = p.idle[n-1]
		p.idle = p.idle[:n-1]
		if n > 1 {
			signal(p.free)
		}
	case p.open < p.max && (p.open == 0 || !now.Before(p.grow)):
		p.open++
		dial = true
	default:
		return nil, false, nil
	}
	if p.stalled {
		p.until = now.Add(replyTime) // this caller tries whether it answers again
	}
	return c, dial, nil
}

// resting reports whether the server is left alone, because it does not answer.
func (p *pool) resting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled && time.Now().Before(p.until)
}

// tooMany reports whether the server has refused a connection because there are
// too many.
func tooMany(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "53300" // too_many_connections
}

func (p *pool) put(c *conn) {
	if !c.pg.IsClosed() && c.pg.TxStatus() != 'I' { // in the middle of a transaction
		if c.rollback() != nil {
			closeConn(c)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.pg.IsClosed() || !p.all[c]: // lost, or hung up
		p.open--
		c.end()
		delete(p.all, c)
		p.closeIdle(c.address) // the server has probably closed the others as well
	case p.closed:
		p.open--
		delete(p.all, c)
		c.end()
	default:
		p.idle = append(p.idle, c)
	}
	signal(p.free)
}

// closeIdle closes the idle connections to an address, or all if it is empty. The caller
// holds the lock.
func (p *pool) closeIdle(address string) {
	var ended []*conn
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
		ends := address == "" || c.address == address
		if ends {
			delete(p.all, c)
			ended = append(ended, c)
		}
		return ends
	})
	p.open -= len(ended)
	if len(ended) > 0 {
		go func() { // the server may not answer
			for _, c := range ended {
				c.end()
			}
		}()
	}
}

// closeConn closes a connection. The caller does not hold the lock.
func closeConn(c *conn) {
	p := c.pool
	p.mu.Lock()
	delete(p.all, c)
	if p.listener == c {
		p.listener = nil
	}
	p.mu.Unlock()
	c.end()
}

// end ends the session.
func (c *conn) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.pg.Close(ctx)
}

// close closes the idle connections. Those in use are closed when put returns
// them.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		delete(p.all, c)
		c.end()
	}
	p.open -= len(p.idle)
	p.idle = nil
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
	if readOnly(err) {
		p.hosts.noteFailure(c.address) // another one may be the primary
		closeConn(c)
	}
	return err
}

// readOnly reports whether the server cannot be written any more, for example
// because it has become a standby. Another connection may reach the new primary.
func readOnly(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "25006" // read_only_sql_transaction
}

// conflicts reports whether the server asks for a transaction to be repeated.
func conflicts(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01") // serialization_failure, deadlock_detected
}

// broken reports whether err means that the connection is lost. It is false for
// other answers of the server.
func broken(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(e.Code, "57P") // the server is shut down
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return !connecting && !known(err) && !errors.Is(err, errStalled)
}

// known reports whether err has a meaning for callers of the store.
func known(err error) bool {
	for _, e := range []error{queue.ErrFull, queue.ErrNotFound, queue.ErrNotClaimed, queue.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	_, damaged := errors.AsType[*queue.DamagedError](err)
	_, duplicate := errors.AsType[*queue.DuplicateError](err)
	_, refused := errors.AsType[*refusedError](err)
	return damaged || duplicate || refused
}

// refusedError is an error of the store itself or of its caller, not of the server.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

func refusef(format string, args ...any) error { return &refusedError{fmt.Errorf(format, args...)} }

func unavailable(err error) error {
	if known(err) {
		return err
	}
	if _, ok := errors.AsType[*queue.UnavailableError](err); ok {
		return err
	}
	return &queue.UnavailableError{Err: err}
}

// call is a statement with its arguments.
type call struct {
	sql  string
	args []any // nil, int, int64, string, []byte, uuid.UUID or an array
}

// exec sends statements in one request and returns their results.
func (c *conn) exec(ctx context.Context, calls ...call) ([]*pgconn.Result, error) {
	return c.execFor(ctx, replyTime, calls...)
}

// execFor is exec with a limit of time.
func (c *conn) execFor(ctx context.Context, limit time.Duration, calls ...call) (results []*pgconn.Result, err error) {
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Since(c.pool.start)
	defer func() {
		_, answered := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil || answered:
			c.pool.answered(c.address)
		case ctx.Err() != nil && parent.Err() == nil:
			c.pool.silent(c.address, began)
		}
	}()
	c.patient.Store(limit > replyTime)
	batch := &pgconn.Batch{}
	for _, call := range calls {
		st := c.statements[call.sql]
		if st == nil {
			var err error
			if st, err = c.pg.Prepare(ctx, "notify_"+strconv.Itoa(len(c.statements)), call.sql, nil); err != nil {
				return nil, err
			}
			c.statements[call.sql] = st
		}
		values, formats := make([][]byte, len(call.args)), make([]int16, len(call.args))
		for i, arg := range call.args {
			values[i], formats[i] = encode(arg)
		}
		batch.ExecStatement(st, values, formats, []int16{1})
	}
	return c.pg.ExecBatch(ctx, batch).ReadAll()
}

// query is exec for one statement.
func (c *conn) query(ctx context.Context, sql string, args ...any) ([][][]byte, error) {
	results, err := c.exec(ctx, call{sql, args})
	if err != nil {
		return nil, err
	}
	return results[0].Rows, nil
}

// The statements that begin and end a transaction.
var (
	begin  = call{sql: "BEGIN"}
	commit = call{sql: "COMMIT"}
)

// transaction calls f between BEGIN and COMMIT. If it returns an error, the
// pool rolls back.
func (c *conn) transaction(ctx context.Context, f func() error) error {
	if _, err := c.exec(ctx, begin); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	_, err := c.exec(ctx, commit)
	return err
}

func (c *conn) rollback() error {
	ctx, cancel := context.WithTimeout(context.Background(), replyTime)
	defer cancel()
	_, err := c.pg.Exec(ctx, "ROLLBACK").ReadAll()
	return err
}

// encode returns an argument as the protocol transmits it. format is 0 for text
// and 1 for binary.
func encode(arg any) (value []byte, format int16) {
	switch v := arg.(type) {
	case nil:
		return nil, 0
	case int:
		return strconv.AppendInt(nil, int64(v), 10), 0
	case int64:
		return strconv.AppendInt(nil, v, 10), 0
	case string:
		return []byte(v), 0
	case []byte:
		if v == nil {
			v = []byte{}
		}
		return v, 1
	case uuid.UUID:
		return v[:], 1
	case array:
		return v.encode(), 1
	}
	panic(fmt.Sprintf("no encoding for %T", arg))
}

// array is an argument that is encoded as an SQL array.
type array struct {
	oid   uint32 // of the elements' type
	items [][]byte
}

// The types of elements.
const (
	oidBytea  = 17
	oidBigint = 20
	oidUUID   = 2950
)

func (a *array) bigint(n int64) {
	a.oid, a.items = oidBigint, append(a.items, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

func (a *array) uuid(id uuid.UUID) { a.oid, a.items = oidUUID, append(a.items, id[:]) }

// bytes appends b, or NULL if it is nil.
func (a *array) bytes(b []byte) { a.oid, a.items = oidBytea, append(a.items, b) }

// null appends NULL.
func (a *array) null() { a.items = append(a.items, nil) }

func (a *array) encode() []byte {
	n := 20
	for _, item := range a.items {
		n += 4 + len(item)
	}
	order := binary.BigEndian
	b := make([]byte, 0, n)
	b = order.AppendUint32(b, 1) // dimensions
	b = order.AppendUint32(b, 1) // NULL is possible
	b = order.AppendUint32(b, a.oid)
	b = order.AppendUint32(b, uint32(len(a.items)))
	b = order.AppendUint32(b, 1) // the first index
	for _, item := range a.items {
		if item == nil {
			b = order.AppendUint32(b, 1<<32-1)
			continue
		}
		b = append(order.AppendUint32(b, uint32(len(item))), item...)
	}
	return b
}

// number decodes an integer of a row. NULL is 0.
func number(b []byte) int64 {
	switch len(b) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// id decodes a UUID of a row.
func id(b []byte) (u uuid.UUID) {
	copy(u[:], b)
	return u
}

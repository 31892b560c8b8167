package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// conn is a connection with its prepared statements.
type conn struct {
	pg         *pgconn.PgConn
	pool       *pool
	member     *pgxpool.Conn // of the pool, while somebody uses it; nil for the one that listens
	outside    *pgx.Conn     // if it is outside the pool, and else nil
	address    string        // of the host
	pooler     bool          // its statements may reach several sessions of the server
	inUse      bool          // by a caller of the pool; guarded by its lock
	patient    atomic.Bool   // it waits for longer than other exchanges may take
	alone      atomic.Bool   // a commit was not confirmed by the synchronous standby
	statements map[string]*pgconn.StatementDescription
	counter    int // the row of counts that its transactions change
}

// askSession finds out whether the connection has its own session on the server. A pooler makes up
// the process number that it tells its clients.
func (c *conn) askSession(ctx context.Context) error {
	results, err := c.pg.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused {
		return err
	}
	c.pooler = err != nil || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != strconv.FormatUint(uint64(c.pg.PID()), 10)
	return nil
}

// end ends the session.
func (c *conn) end() {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_ = c.pg.Close(ctx)
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
	results, err = c.pipeline(ctx, calls)
	if alone := c.alone.Swap(false); alone && err == nil {
		return nil, errAlone
	}
	return results, err
}

// pipeline sends the calls and reads their results. A statement is prepared once for each session,
// in the exchange that uses it first: that saves a quarter of a claim's time. It is not if the next
// exchange may reach another session.
func (c *conn) pipeline(ctx context.Context, calls []call) (results []*pgconn.Result, err error) {
	p := c.pg.StartPipeline(ctx)
	defer func() { err = cmp.Or(err, p.Close()) }()
	binary := []int16{1}
	prepares := map[int]string{} // names of statements, by the call that prepares each
	pooler := c.pooler || c.pool.pooler.Load()
	for i, q := range calls {
		values, formats := make([][]byte, len(q.args)), make([]int16, len(q.args))
		for i, arg := range q.args {
			values[i], formats[i] = encode(arg)
		}
		st := c.statements[q.sql]
		switch {
		case pooler:
			p.SendQueryParams(q.sql, values, nil, formats, binary)
			continue
		case st == nil:
			// A name means the same statement in every session.
			sum := sha256.Sum256([]byte(q.sql))
			st = &pgconn.StatementDescription{Name: "notify_" + hex.EncodeToString(sum[:16])}
			if !slices.ContainsFunc(calls[:i], func(o call) bool { return o.sql == q.sql }) {
				p.SendPrepare(st.Name, q.sql, nil)
				prepares[i] = st.Name
			}
			p.SendQueryPrepared(st.Name, values, formats, binary)
		default:
			p.SendQueryStatement(st, values, formats, binary)
		}
	}
	if err := p.Sync(); err != nil {
		return nil, err
	}
	for i, q := range calls {
		if name, ok := prepares[i]; ok {
			answer, err := p.GetResults()
			if err != nil {
				return results, err
			}
			st := answer.(*pgconn.StatementDescription)
			st.Name = name
			c.statements[q.sql] = st
		}
		answer, err := p.GetResults()
		if err != nil {
			return results, err
		}
		result := answer.(*pgconn.ResultReader).Read()
		if results = append(results, result); result.Err != nil {
			return results, result.Err
		}
	}
	return results, nil
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

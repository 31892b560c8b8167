package wire

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// IdleTimeout is the time after which a connection without a message is closed.
const IdleTimeout = time.Minute

// A connection that was idle for pingAfter is pinged before it is used, and has
// pingTimeout to answer: waiting for a server that has vanished would use up
// the time of the message.
const (
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
)

// Pinger is a connection that can check whether the server is still there.
type Pinger interface {
	io.Closer
	Ping(ctx context.Context) error
}

// Persistent is a connection that stays open between messages. It is opened
// when the first message needs it, serves one message at a time and is closed
// when it has been idle for a while. The zero value is ready for use. A
// Persistent must not be copied.
type Persistent[C Pinger] struct {
	state atomic.Pointer[persistent[C]] // nil until the first message
}

type persistent[C Pinger] struct {
	busy chan struct{} // holds a value while a message uses the connection

	mu        sync.Mutex
	conn      C
	idle      bool // conn is open and no message uses it
	idleSince time.Time
	uses      int // counts the messages, so that expire knows its own
	timer     *time.Timer
	closed    bool
}

func (p *Persistent[C]) get() *persistent[C] {
	if p.state.Load() == nil {
		p.state.CompareAndSwap(nil, &persistent[C]{busy: make(chan struct{}, 1)})
	}
	return p.state.Load()
}

// Do calls use with the open connection, or with a new one that open returns.
// If use fails with [ErrBroken] on a connection that was open before, Do calls
// it once more with a new one. Afterwards the connection stays open for at most
// idle without a message.
func (p *Persistent[C]) Do(
	ctx context.Context, idle time.Duration,
	open func(context.Context) (C, error), use func(context.Context, C) error,
) error {
	return p.get().do(ctx, idle, open, use)
}

// Close closes the connection. If a message uses it, it is closed when that is
// done. Messages that come later open connections that are closed at once.
func (p *Persistent[C]) Close() error { return p.get().close() }

func (p *persistent[C]) do(
	ctx context.Context, idle time.Duration,
	open func(context.Context) (C, error), use func(context.Context, C) error,
) error {
	select {
	case p.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.busy }()
	for {
		conn, reused := p.takeAlive(ctx)
		if !reused {
			var err error
			if conn, err = open(ctx); err != nil {
				return errs.ContextError(ctx, err)
			}
		}
		err := use(ctx, conn)
		if !errors.Is(err, ErrBroken) {
			p.put(conn, idle)
			return err
		}
		_ = conn.Close()
		if !reused || ctx.Err() != nil {
			return errs.ContextError(ctx, err)
		}
	}
}

// takeAlive takes the idle connection if there is one and it answers a ping.
func (p *persistent[C]) takeAlive(ctx context.Context) (conn C, ok bool) {
	conn, ok = p.take()
	if !ok || time.Since(p.idleSince) < pingAfter {
		return conn, ok
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if conn.Ping(ctx) == nil {
		return conn, true
	}
	_ = conn.Close()
	return conn, false
}

// take takes the idle connection.
func (p *persistent[C]) take() (conn C, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.idle {
		return conn, false
	}
	p.timer.Stop()
	p.idle = false
	return p.conn, true
}

// put makes conn the idle connection, or closes it if p is closed.
func (p *persistent[C]) put(conn C, idle time.Duration) {
	p.mu.Lock()
	if !p.closed {
		p.uses++
		uses := p.uses
		p.conn, p.idle, p.idleSince = conn, true, time.Now()
		p.timer = time.AfterFunc(idle, func() { p.expire(uses) })
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	_ = conn.Close()
}

// expire closes the connection if no message has used it since.
func (p *persistent[C]) expire(uses int) {
	p.mu.Lock()
	conn, expired := p.conn, p.idle && p.uses == uses
	p.idle = p.idle && !expired
	p.mu.Unlock()
	if expired {
		_ = conn.Close()
	}
}

func (p *persistent[C]) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if conn, ok := p.take(); ok {
		return conn.Close()
	}
	return nil
}

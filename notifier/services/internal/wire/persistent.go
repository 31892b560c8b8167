package wire

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
)

const (
	// IdleTimeout is how long a connection is kept for the next message.
	IdleTimeout = time.Minute

	// A connection that has waited for pingAfter is asked whether it is
	// alive, and has pingTimeout to answer: a peer that vanished says nothing,
	// and waiting for it would use up the message's time.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
)

// Pinger is a connection that can find out whether the other side is there.
type Pinger interface {
	io.Closer
	Ping(ctx context.Context) error
}

// Persistent is a connection that outlives a message, for protocols that live on
// one. It serves one message at a time and is closed when no message has come
// for a while. The zero value is without a connection. It must not be copied.
type Persistent[C Pinger] struct {
	once sync.Once
	busy chan struct{} // holds a value while a message has the connection

	mu      sync.Mutex
	conn    C
	waiting bool // conn is there and waits for a message
	since   time.Time
	uses    int // counts how often a connection was kept
	timer   *time.Timer
	closed  bool
}

// Do runs use on the connection that was kept, or on a new one from open.
// Where one that was kept turns out to be broken, use runs a second time on a
// new one. Afterwards the connection is kept for idle.
func (k *Persistent[C]) Do(ctx context.Context, idle time.Duration, open func(context.Context) (C, error), use func(context.Context, C) error) error {
	k.once.Do(func() { k.busy = make(chan struct{}, 1) })
	select {
	case k.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-k.busy }()
	for {
		conn, old := k.takeAlive(ctx)
		if !old {
			var err error
			if conn, err = open(ctx); err != nil {
				return errs.ContextError(ctx, err)
			}
		}
		err := use(ctx, conn)
		if !errors.Is(err, ErrBroken) {
			k.put(conn, idle)
			return err
		}
		_ = conn.Close()
		if !old || ctx.Err() != nil {
			return errs.ContextError(ctx, err)
		}
	}
}

// takeAlive takes the connection that waits, unless it is dead.
func (k *Persistent[C]) takeAlive(ctx context.Context) (conn C, ok bool) {
	conn, ok = k.take()
	if !ok || time.Since(k.since) < pingAfter {
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

func (k *Persistent[C]) take() (conn C, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.waiting {
		return conn, false
	}
	k.timer.Stop()
	k.waiting = false
	return k.conn, true
}

func (k *Persistent[C]) put(conn C, idle time.Duration) {
	k.mu.Lock()
	if !k.closed {
		k.uses++
		turn := k.uses
		k.conn, k.waiting, k.since = conn, true, time.Now()
		k.timer = time.AfterFunc(idle, func() { k.expire(turn) })
		k.mu.Unlock()
		return
	}
	k.mu.Unlock()
	_ = conn.Close()
}

// expire closes the connection if it has waited since that turn.
func (k *Persistent[C]) expire(turn int) {
	k.mu.Lock()
	conn, idle := k.conn, k.waiting && k.uses == turn
	k.waiting = k.waiting && !idle
	k.mu.Unlock()
	if idle {
		_ = conn.Close()
	}
}

// Close closes the connection, at once or, where a message has it, when that
// is done; from then on none is kept.
func (k *Persistent[C]) Close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	if conn, ok := k.take(); ok {
		return conn.Close()
	}
	return nil
}

package services

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// idleTime is how long a connection is kept for the next message.
	idleTime = time.Minute

	// A connection that has waited for staleAfter is asked whether it is
	// alive, and has pingTime to answer: a peer that vanished says nothing,
	// and waiting for it would use up the message's time.
	staleAfter = 5 * time.Second
	pingTime   = 5 * time.Second
)

// pinger is a connection that can find out whether the other side is there.
type pinger interface {
	io.Closer
	ping(ctx context.Context) error
}

// kept is a connection that outlives a message, for protocols that live on
// one. It serves one message at a time and is closed when no message has come
// for a while. The zero value is without a connection. It must not be copied.
type kept[C pinger] struct {
	once sync.Once
	busy chan struct{} // holds a value while a message has the connection

	mu     sync.Mutex
	conn   C
	have   bool // conn is there and waits for a message
	since  time.Time
	turn   int // counts how often a connection was kept
	timer  *time.Timer
	closed bool
}

// with runs use on the connection that was kept, or on a new one from open.
// Where one that was kept turns out to be broken, use runs a second time on a
// new one. Afterwards the connection is kept for idle.
func (k *kept[C]) with(ctx context.Context, idle time.Duration, open func(context.Context) (C, error), use func(context.Context, C) error) error {
	k.once.Do(func() { k.busy = make(chan struct{}, 1) })
	select {
	case k.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-k.busy }()
	for {
		conn, old := k.living(ctx)
		if !old {
			var err error
			if conn, err = open(ctx); err != nil {
				return because(ctx, err)
			}
		}
		err := use(ctx, conn)
		if !errors.Is(err, errBroken) {
			k.put(conn, idle)
			return err
		}
		_ = conn.Close()
		if !old || ctx.Err() != nil {
			return because(ctx, err)
		}
	}
}

// living takes the connection that waits, unless it is dead.
func (k *kept[C]) living(ctx context.Context) (conn C, ok bool) {
	conn, ok = k.take()
	if !ok || time.Since(k.since) < staleAfter {
		return conn, ok
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if conn.ping(ctx) == nil {
		return conn, true
	}
	_ = conn.Close()
	return conn, false
}

func (k *kept[C]) take() (conn C, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.have {
		return conn, false
	}
	k.timer.Stop()
	k.have = false
	return k.conn, true
}

func (k *kept[C]) put(conn C, idle time.Duration) {
	k.mu.Lock()
	if !k.closed {
		k.turn++
		turn := k.turn
		k.conn, k.have, k.since = conn, true, time.Now()
		k.timer = time.AfterFunc(idle, func() { k.expire(turn) })
		k.mu.Unlock()
		return
	}
	k.mu.Unlock()
	_ = conn.Close()
}

// expire closes the connection if it has waited since that turn.
func (k *kept[C]) expire(turn int) {
	k.mu.Lock()
	conn, idle := k.conn, k.have && k.turn == turn
	k.have = k.have && !idle
	k.mu.Unlock()
	if idle {
		_ = conn.Close()
	}
}

// Close closes the connection, at once or, where a message has it, when that
// is done; from then on none is kept.
func (k *kept[C]) Close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	if conn, ok := k.take(); ok {
		return conn.Close()
	}
	return nil
}

package notifier

import (
	"context"
	"sync/atomic"
	"time"
)

// Cached is a value that a service keeps from one message to the next, such as
// an access token or a session. The zero value is empty. It must not be
// copied.
type Cached[T any] struct {
	state atomic.Pointer[cached[T]] // nil until the first use
}

type cached[T any] struct {
	lock  chan struct{} // holds a value while a goroutine uses the others
	value T
	until time.Time
	have  bool
}

// Get returns the value. If there is none or it has expired, Get calls fetch,
// which returns a value and how long it is valid; 0 means until [Cached.Drop].
// If several goroutines call Get, one fetches and the others wait.
func (c *Cached[T]) Get(ctx context.Context, fetch func(context.Context) (T, time.Duration, error)) (T, error) {
	return c.get().get(ctx, fetch)
}

// Drop forgets the value. A service calls it when the destination refuses the
// value.
func (c *Cached[T]) Drop(ctx context.Context) { c.get().drop(ctx, nil) }

// GetSaved is [Cached.Get] for a value that outlives the process, as JSON in the
// state with that name: see [Client.SaveState]. A service uses it for a session
// that is expensive to open or that the destination gives out seldom.
func (c *Cached[T]) GetSaved(ctx context.Context, client *Client, name string, fetch func(context.Context) (T, time.Duration, error)) (T, error) {
	return c.get().get(ctx, func(ctx context.Context) (T, time.Duration, error) {
		var saved savedValue[T]
		if client.LoadState(ctx, name, &saved) {
			if saved.Until.IsZero() {
				return saved.Value, 0, nil
			}
			if life := time.Until(saved.Until); life > 0 {
				return saved.Value, life, nil
			}
		}
		value, life, err := fetch(ctx)
		if err != nil {
			return value, life, err
		}
		saved = savedValue[T]{Value: value}
		if life > 0 {
			saved.Until = time.Now().Add(life)
		}
		client.SaveState(ctx, name, saved)
		return value, life, nil
	})
}

// DropSaved is [Cached.Drop] for a value of [Cached.GetSaved].
func (c *Cached[T]) DropSaved(ctx context.Context, client *Client, name string) {
	c.get().drop(ctx, func() { client.DropState(ctx, name) })
}

// savedValue is the state of a Cached.
type savedValue[T any] struct {
	Value T         `json:"value"`
	Until time.Time `json:"until,omitzero"`
}

func (c *Cached[T]) get() *cached[T] {
	if c.state.Load() == nil {
		c.state.CompareAndSwap(nil, &cached[T]{lock: make(chan struct{}, 1)})
	}
	return c.state.Load()
}

func (c *cached[T]) get(ctx context.Context, fetch func(context.Context) (T, time.Duration, error)) (T, error) {
	var none T
	select {
	case c.lock <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { <-c.lock }()
	if c.have && (c.until.IsZero() || time.Now().Before(c.until)) {
		return c.value, nil
	}
	value, life, err := fetch(ctx)
	if err != nil {
		return none, err
	}
	c.value, c.have, c.until = value, true, time.Time{}
	if life > 0 {
		// Renew it a little early, so that it does not expire on its way.
		c.until = time.Now().Add(life - min(life/10, 30*time.Second))
	}
	return value, nil
}

// drop forgets the value and calls also, unless it is nil.
func (c *cached[T]) drop(ctx context.Context, also func()) {
	select {
	case c.lock <- struct{}{}:
		c.have = false
		if also != nil {
			also()
		}
		<-c.lock
	case <-ctx.Done():
	}
}

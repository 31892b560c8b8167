package notifier

import (
	"context"
	"sync/atomic"
	"time"
)

// Cached is a value that a service keeps from one message to the next, such as
// an access token or a session. The zero value is empty. It must not be
// copied.
type Cached[T any] struct{ untyped cached }

// cached holds a value of any type, so that a program has its methods once.
type cached struct {
	state atomic.Pointer[cachedState] // nil until the first use
}

type cachedState struct {
	lock  chan struct{} // holds a value while a goroutine uses the others
	value any
	until time.Time
	have  bool
}

// Get returns the value. If there is none or it has expired, Get calls fetch,
// which returns a value and how long it is valid; 0 means until [Cached.Drop].
// If several goroutines call Get, one fetches and the others wait.
func (c *Cached[T]) Get(ctx context.Context, fetch func(context.Context) (T, time.Duration, error)) (T, error) {
	value, err := c.untyped.get(ctx, func(ctx context.Context) (any, time.Duration, error) { return fetch(ctx) })
	v, _ := value.(T)
	return v, err
}

// Drop forgets the value. A service calls it when the destination refuses the
// value.
func (c *Cached[T]) Drop(ctx context.Context) { c.untyped.drop(ctx, nil) }

// DropSaved is [Cached.Drop] for a value that [Saved] saved under a name.
func (c *Cached[T]) DropSaved(ctx context.Context, client *Client, name string) {
	c.untyped.drop(ctx, func() { client.DropState(ctx, name) })
}

// Saved returns a fetch function for [Cached.Get] whose value outlives the
// process, as JSON in the state with that name: see [Client.SaveState]. It calls
// fetch only if there is no saved value or it has expired. A service uses it for a
// session that is expensive to open or that the destination gives out seldom.
func Saved[T any](
	client *Client, name string, fetch func(context.Context) (T, time.Duration, error),
) func(context.Context) (T, time.Duration, error) {
	return func(ctx context.Context) (T, time.Duration, error) {
		var saved T
		if life, ok := loadValue(ctx, client, name, &saved); ok {
			return saved, life, nil
		}
		value, life, err := fetch(ctx)
		if err == nil {
			saveValue(ctx, client, name, value, life)
		}
		return value, life, err
	}
}

// savedValue is the state of a Cached.
type savedValue struct {
	Value any       `json:"value"`
	Until time.Time `json:"until,omitzero"`
}

// loadValue reads a saved value into value, which is a pointer, and returns how
// long it is valid, or false if there is none.
func loadValue(ctx context.Context, client *Client, name string, value any) (life time.Duration, ok bool) {
	saved := savedValue{Value: value}
	if !client.LoadState(ctx, name, &saved) {
		return 0, false
	}
	if saved.Until.IsZero() {
		return 0, true
	}
	life = time.Until(saved.Until)
	return life, life > 0
}

// saveValue saves a value, which is valid for life, or for ever if life is 0.
func saveValue(ctx context.Context, client *Client, name string, value any, life time.Duration) {
	saved := savedValue{Value: value}
	if life > 0 {
		saved.Until = time.Now().Add(life)
	}
	client.SaveState(ctx, name, saved)
}

func (c *cached) load() *cachedState {
	if c.state.Load() == nil {
		c.state.CompareAndSwap(nil, &cachedState{lock: make(chan struct{}, 1)})
	}
	return c.state.Load()
}

func (c *cached) get(ctx context.Context, fetch func(context.Context) (any, time.Duration, error)) (any, error) {
	s := c.load()
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.lock }()
	if s.have && (s.until.IsZero() || time.Now().Before(s.until)) {
		return s.value, nil
	}
	value, life, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	s.value, s.have, s.until = value, true, time.Time{}
	if life > 0 {
		// Renew it a little early, so that it does not expire on its way.
		s.until = time.Now().Add(life - min(life/10, 30*time.Second))
	}
	return value, nil
}

// drop forgets the value and calls also, unless it is nil.
func (c *cached) drop(ctx context.Context, also func()) {
	s := c.load()
	select {
	case s.lock <- struct{}{}:
		s.have = false
		if also != nil {
			also()
		}
		<-s.lock
	case <-ctx.Done():
	}
}

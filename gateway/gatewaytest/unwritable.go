package gatewaytest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// Unwritable is a store that accepts no messages and no changes of records while Down is set, like
// one on a disk that fails.
type Unwritable struct {
	queue.Store
	Down atomic.Bool
}

// Accept stores messages, or returns an error while u is down.
func (u *Unwritable) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if u.Down.Load() {
		return &queue.UnavailableError{Err: errors.New("the disk fails")}
	}
	return u.Store.Accept(ctx, maxSize, entries...)
}

// Update changes records, or returns an error while u is down.
func (u *Unwritable) Update(ctx context.Context, change *queue.Update) error {
	if u.Down.Load() {
		return &queue.UnavailableError{Err: errors.New("the disk fails")}
	}
	return u.Store.Update(ctx, change)
}

// MakeUnwritable lets the gateway have a store that can be unwritable.
func (o *Options) MakeUnwritable() *Unwritable {
	u := new(Unwritable)
	o.Wrap = func(s queue.Store) queue.Store {
		u.Store = s
		return u
	}
	return u
}

// NewStore opens a store for [Options.Shared]. It is closed at the end of the test.
func NewStore(t testing.TB, secret string) *bolt.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Options{Path: t.TempDir(), Secret: secret, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// keptStore is a store that several gateways share, so that none closes it.
type keptStore struct{ queue.Store }

// Close does nothing.
func (keptStore) Close() error { return nil }

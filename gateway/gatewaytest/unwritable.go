package gatewaytest

import (
	"context"
	"errors"
	"sync/atomic"

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

// MakeUnwritable replaces the gateway's store by one that can be unwritable. Nothing may be queued
// yet.
func (g *Gateway) MakeUnwritable() *Unwritable {
	g.t.Helper()
	u := new(Unwritable)
	g.WrapStore(func(s queue.Store) queue.Store {
		u.Store = s
		return u
	})
	return u
}

// WrapStore replaces the gateway's store by the store that wrap returns.
func (g *Gateway) WrapStore(wrap func(queue.Store) queue.Store) {
	g.t.Helper()
	q, settings := g.Rooms(), g.Gateway.Conf.QueueSettings
	err := q.Outbox.Queue.Close(g.t.Context())
	if err == nil {
		q.Outbox.Store, err = bolt.Open(bolt.Options{Path: settings.Path})
	}
	if err != nil {
		g.t.Fatal(err)
	}
	q.Outbox.Queue = queue.New(wrap(q.Outbox.Store), q.Options(&g.Gateway.Conf))
	q.Outbox.Queue.Start()
}

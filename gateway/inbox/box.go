package inbox

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Box keeps the inboxes of keys in the store of an outbox: a [Store] with what the outbox
// knows of keys and of its size.
type Box struct {
	outbox.NoArm
	outbox.NoPunctual
	outbox.NoAhead
	outbox.NoTurn
	outbox.NoEnded
	outbox.NoRecheck

	*Store
	full loglimit.Limiter // messages that were removed because the inboxes had no room
	Slow loglimit.Limiter // readers
}

// NewBox returns the inboxes of the keys in the queue.
func NewBox(q *outbox.Outbox) *Box {
	b := &Box{}
	b.Store = &Store{
		Queue: q.Queue, Shared: q.Shared,
		Removed: func(place string, n int) {
			b.full.Add(n, func(n int) {
				q.Log.Warn("the inboxes of keys are full, so the oldest messages were removed before their time; shorten inbox, or raise queue "+
					"max_size, of which they may take a quarter, and one of them an eighth",
					zap.Int("messages", n), zap.String("key", keyOfPlace(place)))
			})
		},
	}
	return b
}

// Kinds returns the kinds of inboxes and of their messages.
func (b *Box) Kinds() []*outbox.Kind { return []*outbox.Kind{KindMessage, KindInbox} }

// Refresh tells readers what has come in, and removes the oldest messages where there are too many.
func (b *Box) Refresh(ctx context.Context, conf *outbox.Configuration) {
	b.Store.Refresh(ctx, func() bool { return slices.ContainsFunc(conf.All(), (*site.Site).HasInboxes) })
}

// Due removes messages whose time is over, and the record of an inbox without messages.
func (b *Box) Due(ctx context.Context, _ *outbox.Configuration, name queue.Hash, record []byte, _ bool) error {
	return b.due(ctx, name, record)
}

// Forget removes the messages of a key that was deleted.
func (b *Box) Forget(ctx context.Context, _ *outbox.Configuration, of site.Place, _ string) error {
	return b.Clear(ctx, of.String())
}

// KeepDraft adds a message that is about to be stored to the inbox of its key, in the same
// transaction. The caller calls stored after that; it is nil if the key has no inbox.
func (b *Box) KeepDraft(d *outbox.Draft) (stored func()) {
	if !d.Keeps() {
		return nil
	}
	m := newMessage(d.Message, d.ID.String(), d.Format, time.Now().Add(d.Inbox))
	if d.Published != nil {
		m.Published = *d.Published
	}
	keep, stored := b.Keep(d.Place(), m)
	d.Entry.Rules = queue.JoinRuled(d.Entry.Rules, keep)
	return stored
}

// keyOfPlace returns the name of the key with a place (see [dispatch.Delivery.Place]).
func keyOfPlace(place string) string {
	_, key, _ := strings.Cut(place, "\x00")
	return key
}

// ErrNotReader is the answer to everyone who may not read an inbox, whether the key has
// one or exists at all.
var ErrNotReader = message.Errorf(message.Unidentified,
	"this needs a reader of the key; send it as Authorization: Bearer, as the password of Basic authentication or in ?token=")

// Streams are those of the inboxes of a site.
type Streams struct {
	once   sync.Once
	Ending chan struct{} // closed when they have to end
}

// Stop ends the streams, for which a server that stops would wait. s may be nil.
func (s *Streams) Stop() {
	if s != nil {
		s.once.Do(func() { close(s.Ending) })
	}
}

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

// Box keeps the inboxes of keys in an outbox. It is a [Store] that knows the keys and the maximum
// size of the outbox.
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

// NewBox returns the box of an outbox.
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

// Refresh tells readers about new messages, and removes the oldest messages of inboxes with too
// many.
func (b *Box) Refresh(ctx context.Context, conf *outbox.Configuration) {
	b.Store.Refresh(ctx, func() bool { return slices.ContainsFunc(conf.All(), (*site.Site).HasInboxes) })
}

// Due removes expired messages, and the records of empty inboxes.
func (b *Box) Due(ctx context.Context, _ *outbox.Configuration, name queue.Hash, record []byte, _ bool) error {
	return b.due(ctx, name, record)
}

// Forget removes the messages of a key that was deleted.
func (b *Box) Forget(ctx context.Context, _ *outbox.Configuration, of site.Place, _ string) error {
	return b.Clear(ctx, of.String())
}

// KeepDraft adds a message to the inbox of its key, in the transaction that stores the message. The
// caller calls stored after the transaction; stored is nil if the key has no inbox.
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

// ErrNotReader is returned to everyone who may not read an inbox. It does not reveal whether the
// key or its inbox exists.
var ErrNotReader = message.Errorf(message.Unidentified,
	"this needs a reader of the key; send it as Authorization: Bearer, as the password of Basic authentication or in ?token=")

// Streams are the open streams of a site's inboxes.
type Streams struct {
	once   sync.Once
	Ending chan struct{} // closed when they have to end
}

// Stop ends the streams, so that a stopping server does not wait for them. s may be nil.
func (s *Streams) Stop() {
	if s != nil {
		s.once.Do(func() { close(s.Ending) })
	}
}

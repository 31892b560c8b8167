package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// newGateway starts a gateway with keys and a queue in a folder, which is a temporary one for "".
func newGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{Global: site.Options{Keys: keys}, Queue: &outbox.Settings{Path: dir}})
}

// parseTags parses a tag expression.
func parseTags(t *testing.T, text string) notifier.TagExpr {
	t.Helper()
	e, err := notifier.ParseTags(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// alertForm returns a form with a message about an incident.
func alertForm(typ, text, incident string) string {
	return fmt.Sprintf("type=%s&body=%s&incident=%s", typ, text, incident)
}

// queueID parses the ID of a message.
func queueID(t *testing.T, text string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// unwritable is a store that cannot be written for a while.
type unwritable struct {
	queue.Store
	down atomic.Bool
}

func (u *unwritable) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if u.down.Load() {
		return &queue.UnavailableError{Err: errors.New("the disk fails")}
	}
	return u.Store.Accept(ctx, maxSize, entries...)
}

// newUnwritable puts such a store into the place of that of a gateway, whose queue is in
// the folder dir.
func newUnwritable(t *testing.T, g *gatewaytest.Gateway, dir string) *unwritable {
	t.Helper()
	q := g.Rooms()
	if err := q.Outbox.Queue.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if q.Outbox.Store, err = bolt.Open(bolt.Options{Path: dir}); err != nil {
		t.Fatal(err)
	}
	u := &unwritable{Store: q.Outbox.Store}
	q.Outbox.Queue = queue.New(u, q.Options(g.Gateway.Engine.QueueSettings))
	q.Outbox.Queue.Start()
	return u
}

package gateway

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// due does what is due in a record: the room does whose record it is. crowded means that
// there are too many records. A record of no room is removed.
func (q *Rooms) due(ctx context.Context, name queue.Hash, data []byte, crowded bool) error {
	if len(data) == 0 {
		return q.RemoveRecord(ctx, name)
	}
	for _, room := range []func(context.Context, queue.Hash, []byte, bool) (ours bool, err error){q.Outbox.Due, q.Inboxes.DueRecord, q.Engine.DueRecord, q.Registry.DueRecord, q.Monitor.DueRecord} {
		if ours, err := room(ctx, name, data, crowded); ours {
			return err
		}
	}
	return q.RemoveRecord(ctx, name)
}

package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A message that is cancelled while an attempt is made has a record, so that no later attempt
// is made, whatever becomes of this one and whichever gateway makes it.

// cancelEvery is how often a message is looked at that was cancelled during an attempt. It is
// less than the time until the next attempt.
const cancelEvery = time.Second

// cancelLater notes that a message was cancelled, if it still waits.
func (q *Outbox) cancelLater(ctx context.Context, id uuid.UUID) error {
	e, err := q.Queue.Get(ctx, id)
	if err != nil || !e.Waits() {
		return IgnoreNotFound(err)
	}
	return q.cancelling.Adding(func() error { return q.Queue.Records.Apply(ctx, q.cancelledChange(id)) })
}

// cancelledChange returns the change that lets a message be looked at soon.
func (q *Outbox) cancelledChange(id uuid.UUID) *queue.Ruled {
	name := q.Queue.Hash("cancelled message\x00" + id.String())
	return &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		tx.Put(name, queue.Record{Data: EncodeRecord(KindCancelled, id[:]), Due: q.Queue.Now().Add(cancelEvery), Group: q.cancelledGroup()})
		return nil
	}}
}

// cancelledGroup is the group of all records.
func (q *Outbox) cancelledGroup() queue.Hash { return q.Queue.Hash("cancelled messages") }

// dueCancelled cancels what waits of a message, until nothing of it is being sent.
func (q *Outbox) dueCancelled(ctx context.Context, name queue.Hash, data []byte) error {
	id, err := uuid.FromBytes(data[1:])
	if err != nil {
		return q.RemoveRecord(ctx, name)
	}
	q.cancelling.Note()
	if _, err := q.Queue.Cancel(ctx, id); IgnoreNotFound(err) != nil {
		return err
	}
	e, err := q.Queue.Get(ctx, id)
	switch {
	case IgnoreNotFound(err) != nil:
		return err
	case err == nil && e.Waits():
		return q.Queue.Records.Apply(ctx, q.cancelledChange(id))
	}
	return q.RemoveRecord(ctx, name)
}

// Arm looks for what is due when the queue is opened.
func (q *Outbox) Arm(ctx context.Context, _ *Configuration) error {
	return q.cancelling.Begin(ctx, q.Queue, q.cancelledGroup())
}

// Punctual returns what reports whether a message may have been cancelled during an attempt.
func (q *Outbox) Punctual(*Configuration) func() bool { return q.cancelling.May }

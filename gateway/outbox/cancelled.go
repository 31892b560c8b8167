package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A message that is cancelled while an attempt is made has a record, so that no later attempt
// is made, whatever becomes of this one and whichever gateway makes it.

// cancelEvery is how often the queue looks at a message that was cancelled during an attempt. It is
// less than the time until the next attempt.
const cancelEvery = time.Second

// cancellations are the messages that were cancelled during an attempt. The zero value is ready
// for use.
type cancellations struct{ Presence }

// add notes that a message was cancelled, if it still waits.
func (c *cancellations) add(ctx context.Context, q *Outbox, id uuid.UUID) error {
	e, err := q.Queue.Get(ctx, id)
	if err != nil || !e.Waits() {
		return IgnoreNotFound(err)
	}
	return c.Adding(func() error { return q.Queue.Records.Apply(ctx, c.change(q, id)) })
}

// change returns the change of records that makes the queue look at a message soon.
func (c *cancellations) change(q *Outbox, id uuid.UUID) *queue.Ruled {
	name := q.Queue.Hash("cancelled message\x00" + id.String())
	return &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		tx.Put(name, queue.Record{Data: EncodeRecord(KindCancelled, id[:]), Due: q.Queue.Now().Add(cancelEvery), Group: c.group(q.Queue)})
		return nil
	}}
}

// group returns the group of all records.
func (c *cancellations) group(q *queue.Queue) queue.Hash { return q.Hash("cancelled messages") }

// due cancels what waits of a message. It is due again until nothing of the message is being sent.
func (c *cancellations) due(ctx context.Context, q *Outbox, name queue.Hash, data []byte) error {
	id, err := uuid.FromBytes(data[1:min(len(data), 1+len(uuid.UUID{}))]) // a later version can add to it
	if err != nil {
		return q.RemoveRecord(ctx, name)
	}
	c.Note()
	if _, err := q.Queue.Cancel(ctx, id); IgnoreNotFound(err) != nil {
		return err
	}
	e, err := q.Queue.Get(ctx, id)
	switch {
	case IgnoreNotFound(err) != nil:
		return err
	case err == nil && e.Waits():
		return q.Queue.Records.Apply(ctx, c.change(q, id))
	}
	return q.RemoveRecord(ctx, name)
}

// Arm looks for what is due when the queue is opened.
func (q *Outbox) Arm(ctx context.Context, _ *Configuration) error {
	return q.cancelling.Begin(ctx, q.Queue, q.cancelling.group(q.Queue))
}

// Punctual returns a function that reports whether a message may have been cancelled during an
// attempt.
func (q *Outbox) Punctual(*Configuration) func() bool { return q.cancelling.May }

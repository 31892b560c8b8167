package outbox

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The records of the rooms above begin with a kind.

// EncodeRecord returns the content of a record of a kind.
func EncodeRecord(kind byte, data []byte) []byte { return append([]byte{kind}, data...) }

// RemoveRecord removes a record.
func (q *Outbox) RemoveRecord(ctx context.Context, name queue.Hash) error {
	return q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		return &queue.RuledChange{Records: make([]queue.Record, 1)}, nil
	}})
}

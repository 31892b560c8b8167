package caddyhttp

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The records of the rooms above begin with a kind.

// encodeRecord returns the content of a record of a kind.
func encodeRecord(kind byte, data []byte) []byte { return append([]byte{kind}, data...) }

// removeRecord removes a record.
func (q *outbox) removeRecord(ctx context.Context, name queue.Hash) error {
	return q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		return &queue.RuledChange{Records: make([]queue.Record, 1)}, nil
	}})
}

package outbox

import (
	"context"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// EncodeRecord returns the content of a record of a kind.
func EncodeRecord(kind *Kind, data []byte) []byte { return append(kind.Begin(), data...) }

// RemoveRecord removes a record.
func (q *Outbox) RemoveRecord(ctx context.Context, name queue.Hash) error {
	return q.Queue.Records.Apply(ctx, Removal(name))
}

// Removal returns the change that removes a record.
func Removal(name queue.Hash) *queue.Ruled {
	return &queue.Ruled{Names: []queue.Hash{name}, DecideOld: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		return &queue.RuledChange{Records: make([]queue.Record, 1)}, nil
	}}
}

// DecodeKind returns what decode reads in a record of a kind: nil for none, for one of
// another kind and for a damaged one.
func DecodeKind[T any](kind *Kind, record []byte, decode func([]byte) (*T, error)) *T {
	if KindOf(record) != kind {
		return nil
	}
	x, err := decode(record[1:])
	if err != nil {
		return nil
	}
	return x
}

// FarAway is when records are due that nothing is due about.
func FarAway(now time.Time) time.Time { return now.AddDate(100, 0, 0) }

// PageSize is the number of records that are read at once.
const PageSize = 500

// HoldRule returns how results name why a message is held.
func HoldRule(h rules.Hold) notifier.Rule {
	switch h {
	case rules.ByDigest:
		return notifier.RuleDigested
	case rules.BySilence:
		return notifier.RuleSilenced
	}
	return notifier.RuleHeld
}

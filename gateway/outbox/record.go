package outbox

import (
	"context"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
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
	return &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		tx.Delete(name)
		return nil
	}}
}

// Typed are the records of a kind that have a T each.
type Typed[T any] struct {
	Kind   *Kind
	Fields func(*T, *wire.Codec) // of a record
}

// Decode returns what a record has: nil for none, for one of another kind and for a damaged one.
func (t Typed[T]) Decode(record []byte) *T {
	if KindOf(record) != t.Kind {
		return nil
	}
	x := new(T)
	if wire.Decode(record[1:], x, t.Fields) != nil {
		return nil
	}
	return x
}

// DecodeOrNew returns what a record has, or an empty T instead of nil.
func (t Typed[T]) DecodeOrNew(record []byte) *T {
	if x := t.Decode(record); x != nil {
		return x
	}
	return new(T)
}

// Get returns what a record has in a transaction, as Decode does.
func (t Typed[T]) Get(tx *queue.Tx, name queue.Hash) *T { return t.Decode(tx.Get(name)) }

// GetOrNew returns what a record has in a transaction, as DecodeOrNew does.
func (t Typed[T]) GetOrNew(tx *queue.Tx, name queue.Hash) *T { return t.DecodeOrNew(tx.Get(name)) }

// Read returns what a record has outside of a transaction, as Decode does.
func (t Typed[T]) Read(ctx context.Context, q *Outbox, name queue.Hash) (*T, error) {
	b, err := q.Queue.Records.Get(ctx, name)
	return t.Decode(b), err
}

// Put puts x into a record, which is due at a time. group is the zero value for none.
func (t Typed[T]) Put(tx *queue.Tx, name queue.Hash, x *T, due time.Time, group queue.Hash) {
	tx.Put(name, t.Record(x, due, group))
}

// Record returns the record that Put puts.
func (t Typed[T]) Record(x *T, due time.Time, group queue.Hash) queue.Record {
	return queue.Record{Data: wire.Append(t.Kind.Begin(), x, t.Fields), Due: due, Group: group}
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

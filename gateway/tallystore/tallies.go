package tallystore

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Kind is the kind of the record with a gateway's counts of a half hour.
var Kind = outbox.OwnKind('t', "tallies")

// Tallies are the counts of the gateways that share a queue.
type Tallies struct {
	outbox.NoArm
	outbox.NoPunctual
	outbox.NoAhead
	outbox.NoTurn
	outbox.NoEnded
	outbox.NoRecheck
	outbox.NoForget

	outbox *outbox.Outbox

	mu      sync.Mutex
	flushed time.Time // the last time
	read    time.Time // the last time; zero for never
	others  tally.Others
}

// New returns the tallies of an outbox. The queue of the outbox may be set later.
func New(o *outbox.Outbox) *Tallies { return &Tallies{outbox: o} }

// records are the records of tallies.
var records = outbox.Typed[tally.Record]{Kind: Kind, Fields: (*tally.Record).Fields}

const (
	flushEvery = 30 * time.Second
	readEvery  = 10 * time.Second // how old the counts of other gateways may be
)

// counter counts the deliveries of this process.
func (t *Tallies) counter() *tally.Counter { return &t.outbox.Dispatcher.Tally }

func (t *Tallies) group() queue.Hash { return t.outbox.Queue.Hash("tallies") }

// Kinds returns the kind of tallies.
func (t *Tallies) Kinds() []*outbox.Kind { return []*outbox.Kind{Kind} }

// Refresh stores the changed counts every 30 seconds. The queue calls it each second.
func (t *Tallies) Refresh(ctx context.Context, conf *outbox.Configuration) {
	t.mu.Lock()
	now := time.Now()
	due := now.Sub(t.flushed) >= flushEvery || now.Before(t.flushed)
	if due {
		t.flushed = now
	}
	t.mu.Unlock()
	if due {
		t.Flush(ctx)
	}
}

// Flush stores the changed counts. Counts that cannot be stored now are stored later.
func (t *Tallies) Flush(ctx context.Context) {
	c := t.counter()
	for _, r := range c.Changed() {
		name := t.outbox.Queue.Hash("tally\x00" + string(r.Process[:]) + "\x00" + r.Slot.End().UTC().Format(time.RFC3339))
		err := t.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			records.Put(tx, name, &r, r.Slot.End().Add((tally.Kept-1)*tally.Length), t.group())
			return nil
		}})
		if err != nil {
			t.outbox.Log.Debug("the counts of the last half hour cannot be stored now", zap.Error(err))
			return
		}
		c.Saved(&r)
	}
}

// Due removes a record that is older than 24 hours.
func (t *Tallies) Due(ctx context.Context, _ *outbox.Configuration, name queue.Hash, _ []byte, _ bool) error {
	return t.outbox.RemoveRecord(ctx, name)
}

// Sum returns a function that returns the counts of all gateways for an ID in the last 24 hours, in
// half hours. If the records cannot be read, it uses the counts of this process and the last counts
// that were read.
func (t *Tallies) Sum(ctx context.Context, now time.Time) func(id tally.ID) [tally.Kept]tally.Counts {
	c, others := t.counter(), t.readOthers(ctx, now)
	return func(id tally.ID) (parts [tally.Kept]tally.Counts) {
		c.Sum(now, id, &parts)
		others.Sum(now, id, &parts)
		return parts
	}
}

// readOthers returns the counts of other processes. The result is never modified.
func (t *Tallies) readOthers(ctx context.Context, now time.Time) tally.Others {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.read.IsZero() && now.Sub(t.read) < readEvery && !now.Before(t.read) {
		return t.others
	}
	others, own := tally.Others{}, t.counter().Process()
	err := outbox.EachOfGroup(ctx, t.outbox.Queue, t.group(), func(x queue.NamedRecord) bool {
		if r := records.Decode(x.Data); r != nil && r.Process != own {
			others.Add(r)
		}
		return true
	})
	if err == nil {
		t.others = others
	}
	t.read = now
	return t.others
}

package outbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Presence knows whether there may be records of a group, so that nobody looks for them each
// second if there are none. Records that other gateways have added are known some seconds
// later; whoever lists records, or looks for one, asks the store. The zero value stands for
// none.
type Presence struct {
	may    atomic.Bool
	looked atomic.Int64 // nanoseconds of the time of the last look

	mu    sync.Mutex
	noted int // how often a record was noted
}

// How often a [Presence] looks for records.
const (
	lookEvery = time.Minute      // whether there are still some
	lookFirst = 10 * time.Second // whether another gateway has added some
)

// May reports whether there may be records.
func (p *Presence) May() bool { return p.may.Load() }

// Adding calls add, which adds a record, and notes the record when that is done: a look that
// has begun before, and has not found the record, does not count then.
func (p *Presence) Adding(add func() error) error {
	defer p.Note() // it may be stored even after an error
	return add()
}

// Note notes that there is a record.
func (p *Presence) Note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noted++
	p.may.Store(true)
}

// Look looks for records of the group: whether there are still some or, in a store that others
// share, whether there are some. The error is not kept: a later look finds out.
func (p *Presence) Look(ctx context.Context, q *Outbox, group func() queue.Hash) {
	every := lookEvery
	if !p.May() {
		if !q.Shared {
			return
		}
		every = lookFirst
	}
	at := q.Queue.Now().UnixNano()
	if since := at - p.looked.Load(); since >= 0 && since < int64(every) {
		return
	}
	p.looked.Store(at)
	p.mu.Lock()
	noted := p.noted
	p.mu.Unlock()
	any, err := HasGroup(ctx, q.Queue, group())
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && noted == p.noted {
		p.may.Store(any)
	}
}

// Begin looks for records of the group when the queue is opened.
func (p *Presence) Begin(ctx context.Context, q *queue.Queue, group queue.Hash) error {
	any, err := HasGroup(ctx, q, group)
	if any {
		p.Note()
	}
	return err
}

// HasGroup reports whether the queue has a record of a group.
func HasGroup(ctx context.Context, q *queue.Queue, group queue.Hash) (bool, error) {
	some, err := q.Records.Group(ctx, group, queue.Hash{}, 1)
	return len(some) > 0, err
}

// EachOfGroup calls f with each record of a group until it returns false.
func EachOfGroup(ctx context.Context, q *queue.Queue, group queue.Hash, f func(queue.NamedRecord) bool) error {
	var after queue.Hash
	for {
		page, err := q.Records.Group(ctx, group, after, PageSize)
		if err != nil {
			return err
		}
		for _, x := range page {
			if !f(x) {
				return nil
			}
		}
		if len(page) < PageSize {
			return nil
		}
		after = page[len(page)-1].Name
	}
}

package outbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Presence knows whether there may be records of a group, so that nobody looks for them each
// second if there are none. The zero value stands for none.
type Presence struct {
	may    atomic.Bool
	looked atomic.Int64 // nanoseconds of the time of the last look

	mu    sync.Mutex
	noted int // how often a record was noted
}

// lookEvery is how often a [Presence] looks for records.
const lookEvery = time.Minute

// May reports whether there may be records.
func (p *Presence) May() bool { return p.may.Load() }

// Note notes that there is a record, or will be one.
func (p *Presence) Note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noted++
	p.may.Store(true)
}

// Look looks for records of the group, once a minute. The error is not kept: a later look
// finds out.
func (p *Presence) Look(ctx context.Context, q *queue.Queue, group queue.Hash) {
	at := q.Now().UnixNano()
	if !p.May() || at-p.looked.Load() < int64(lookEvery) {
		return
	}
	p.looked.Store(at)
	p.mu.Lock()
	noted := p.noted
	p.mu.Unlock()
	any, err := HasGroup(ctx, q, group)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && !any && noted == p.noted {
		p.may.Store(false)
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
	some, err := q.CallersGroup(ctx, group, queue.Hash{}, 1)
	return len(some) > 0, err
}

// EachOfGroup calls f with each record of a group until it returns false.
func EachOfGroup(ctx context.Context, q *queue.Queue, group queue.Hash, f func(queue.NamedRecord) bool) error {
	var after queue.Hash
	for {
		page, err := q.CallersGroup(ctx, group, after, PageSize)
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

package postgres

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// waitingCounts is what waits for destinations, as some gateway last counted it. To keep counts
// with each change would cost every message more than it costs to count now and then, when somebody
// looks at the destinations.
type waitingCounts struct {
	*tables
	turn chan struct{} // has room for the one that uses the other fields
	all  map[queue.Hash]queue.Waiting
	end  time.Time // when to look for newer ones

	requests chan chan<- counted // to count
}

// counted is the result of a count. n is nil if another gateway counts.
type counted struct {
	n   *count
	err error
}

// restOfCounts is the time between two counts of what waits, in multiples of the time that
// a count takes. To count 800,000 jobs takes some seconds.
const restOfCounts = 20

// countPatience is how long a caller waits for a count if there are old ones.
const countPatience = 2 * time.Second

// countAgain is how long this handle uses old counts while somebody counts.
const countAgain = time.Second

// Waiting implements [queue.Store]. One gateway counts what waits for all of them, and
// spends a small part of the time on that, however often it is called.
func (w *waitingCounts) Waiting(ctx context.Context, destinations ...queue.Hash) (some []queue.Waiting, err error) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if w.all == nil || time.Now().After(w.end) {
		if err := w.refreshWaiting(ctx); err != nil {
			return nil, err
		}
	}
	if len(destinations) == 0 {
		return slices.Collect(maps.Values(w.all)), nil
	}
	for _, d := range destinations {
		if one, ok := w.all[d]; ok {
			some = append(some, one)
		}
	}
	return some, nil
}

// refreshWaiting takes the counts of the gateway that has counted last, or counts if they
// are old. The caller has the turn.
func (w *waitingCounts) refreshWaiting(ctx context.Context) error {
	for {
		kept, age, err := w.keptWaiting(ctx)
		if err != nil {
			return err
		}
		if rest := kept.rest() - age; kept != nil && age >= 0 && rest > 0 {
			w.all, w.end = kept.all, time.Now().Add(rest)
			return nil
		}
		r := w.requestCount(ctx, kept != nil)
		switch {
		case r.err != nil:
			return r.err
		case r.n != nil:
			w.all, w.end = r.n.all, time.Now().Add(r.n.rest())
			return nil
		case kept != nil:
			w.all, w.end = kept.all, time.Now().Add(countAgain)
			return nil
		}
		select { // another gateway counts for the first time
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.stop:
			return queue.ErrClosed
		case <-time.After(lookAgain):
		}
	}
}

// requestCount lets countRequested count, and returns the result. If the caller has old
// counts, it does not wait for long, and the others get what is counted.
func (w *waitingCounts) requestCount(ctx context.Context, hasOld bool) counted {
	var late <-chan time.Time
	if hasOld {
		late = time.After(countPatience)
	}
	result := make(chan counted, 1)
	requests := w.requests
	for {
		select {
		case requests <- result:
			requests = nil
		case r := <-result:
			return r
		case <-late:
			return counted{}
		case <-ctx.Done():
			return counted{err: context.Cause(ctx)}
		case <-w.stop:
			return counted{err: queue.ErrClosed}
		}
	}
}

// countRequested counts what waits whenever a caller has requested that.
func (w *waitingCounts) countRequested(ctx context.Context) {
	for {
		select {
		case result := <-w.requests:
			n, err := w.countWaiting(ctx)
			result <- counted{n, err}
		case <-ctx.Done():
			return
		}
	}
}

// keptWaiting returns the last count that a gateway has stored, or nil if there is none, and how
// long ago that gateway began to count.
func (w *waitingCounts) keptWaiting(ctx context.Context) (kept *count, age time.Duration, err error) {
	err = w.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, `SELECT data, `+serverTime+` - done FROM notify_queue_leases WHERE name = $1`, workWaiting)
		if kept = nil; len(rows) > 0 {
			kept, age = decodeCount(rows[0][0]), time.Duration(number(rows[0][1]))*time.Microsecond
		}
		return err
	})
	return kept, age, err
}

// countWaiting counts what waits, unless another gateway is doing so. Then it returns nil.
func (w *waitingCounts) countWaiting(ctx context.Context) (*count, error) {
	n := count{all: map[queue.Hash]queue.Waiting{}}
	var place walk
	start := time.Now()
	began, err := w.doWork(ctx, work{name: workWaiting, step: func(ctx context.Context) (last bool, err error) {
		var rows [][][]byte
		at := place
		err = w.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
			place, rows = at, nil
			var ids array
			if ids, last, err = place.next(ctx, c); err == nil && len(ids.items) > 0 {
				rows, err = c.query(ctx, waitingJobs, ids, queue.MaxJobs)
			}
			return err
		})
		for _, row := range rows {
			n.add(queue.Waiting{
				Destination: seal.Hash(row[0]), Client: number(row[1]) != 0, Jobs: int(number(row[2])),
				Since: time.UnixMicro(number(row[3])),
			})
		}
		return last, err
	}, result: func() []byte {
		n.took = time.Since(start)
		return n.encode()
	}})
	if err != nil || began.IsZero() {
		return nil, err
	}
	return &n, nil
}

const waitingJobs = `SELECT j.destination, max(j.client), count(*), min(j.created) FROM unnest($1::UUID[]) AS k (id), LATERAL (
		SELECT q.destination, q.client, q.created FROM notify_queue_jobs q WHERE q.message = k.id AND q.status = 1 LIMIT $2) j
	GROUP BY j.destination`

// count is what waits for all destinations.
type count struct {
	took time.Duration // to count it
	all  map[queue.Hash]queue.Waiting
}

// rest returns how long nobody counts again. n may be nil.
func (n *count) rest() time.Duration {
	if n == nil {
		return 0
	}
	return restOfCounts * n.took
}

// add adds what waits for a destination.
func (n *count) add(w queue.Waiting) {
	if old, ok := n.all[w.Destination]; ok {
		w.Jobs += old.Jobs
		w.Client = w.Client || old.Client
		if old.Since.Before(w.Since) {
			w.Since = old.Since
		}
	}
	n.all[w.Destination] = w
}

// countRow is the size of a destination in an encoded count.
const countRow = len(seal.Hash{}) + 1 + 8 + 8

// encode encodes a count for [decodeCount]: the time it took, and for each destination its
// hash, whether a client named it, the number of jobs, and the time of the oldest.
func (n *count) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 8+countRow*len(n.all)), uint64(n.took))
	for d, w := range n.all {
		b = append(append(b, d[:]...), byte(bit(w.Client)))
		b = binary.BigEndian.AppendUint64(b, uint64(w.Jobs))
		b = binary.BigEndian.AppendUint64(b, uint64(w.Since.UnixMicro()))
	}
	return b
}

// decodeCount decodes a count. It returns nil if b is none.
func decodeCount(b []byte) *count {
	if len(b) < 8 || (len(b)-8)%countRow != 0 {
		return nil
	}
	order := binary.BigEndian
	n := &count{took: time.Duration(order.Uint64(b)), all: map[queue.Hash]queue.Waiting{}}
	for rest := range slices.Chunk(b[8:], countRow) {
		w := queue.Waiting{Destination: queue.Hash(rest)}
		rest = rest[len(w.Destination):]
		w.Client, w.Jobs, w.Since = rest[0] != 0, int(order.Uint64(rest[1:])), time.UnixMicro(int64(order.Uint64(rest[9:])))
		n.all[w.Destination] = w
	}
	return n
}

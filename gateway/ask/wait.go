package ask

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// waiters are the clients that wait for an outcome. The zero value is ready for use.
type waiters struct {
	mu  sync.Mutex
	all map[uuid.UUID]*waiting
	n   int
}

// waiting is a question that clients wait for.
type waiting struct {
	decided chan struct{} // closed when it is decided
	n       int           // the clients
}

// maxWaiters is the maximum number of clients that wait at a gateway. Others are answered at
// once, and ask again.
const maxWaiters = 2000

// join counts a client in. ok is false if there are too many.
func (w *waiters) join(id uuid.UUID) (decided <-chan struct{}, leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n == maxWaiters {
		return nil, nil, false
	}
	x := w.all[id]
	if x == nil {
		x = &waiting{decided: make(chan struct{})}
		if w.all == nil {
			w.all = map[uuid.UUID]*waiting{}
		}
		w.all[id] = x
	}
	x.n++
	w.n++
	return x.decided, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.n--
		if x.n--; x.n == 0 && w.all[id] == x {
			delete(w.all, id)
		}
	}, true
}

// wake tells those who wait that a question is decided.
func (w *waiters) wake(id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.all[id]; x != nil {
		close(x.decided)
		delete(w.all, id)
	}
}

// ids returns the questions that somebody waits for.
func (w *waiters) ids() (out []uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.all {
		out = append(out, id)
	}
	return out
}

// Wait returns the question of a message that came to a site as soon as it is not open, or as
// it is after d, or when ctx is done or ending is closed. It returns [ErrNone] if there is none.
func (q *Questions) Wait(ctx context.Context, siteID string, id uuid.UUID, d time.Duration, ending <-chan struct{}) (*Question, error) {
	decided, leave, ok := q.waiters.join(id) // before it is read
	if ok {
		defer leave()
	}
	x, err := q.Get(ctx, id)
	if err == nil && x.Site != siteID {
		err = ErrNone
	}
	if err != nil || !x.IsOpen() || d <= 0 || !ok {
		return x, err
	}
	timer := time.NewTimer(min(d, max(x.Until.Sub(q.outbox.Queue.Now()), 0)))
	defer timer.Stop()
	select {
	case <-decided:
	case <-timer.C:
	case <-ending:
	case <-ctx.Done():
		return x, nil
	}
	return q.Get(ctx, id)
}

// Refresh looks for what other gateways have decided. The queue calls it each second.
func (q *Questions) Refresh(ctx context.Context) {
	if !q.looked.Load() {
		sizes, err := q.outbox.Queue.CallersGroupSizes(ctx)
		if err != nil {
			return
		}
		q.looked.Store(true)
		if len(sizes) > 0 { // some of the records may be questions
			q.any.Store(true)
		}
	}
	if !q.outbox.Shared {
		return
	}
	for _, id := range q.waiters.ids() {
		if !q.waitsFor(ctx, id) {
			q.waiters.wake(id)
		}
	}
}

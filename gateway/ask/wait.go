package ask

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// waiters are the clients that wait for an outcome. The zero value is ready for use.
type waiters struct {
	mu  sync.Mutex
	all map[uuid.UUID]*waiting
}

// waiting is a question that clients wait for.
type waiting struct {
	decided chan struct{} // closed when it is decided
	n       int           // the clients
}

// minWait is the minimum time that a client waits for an open question. A question may stay open
// for a moment after its time; without minWait, a client that asks again at once would ask all the
// time.
const minWait = time.Second

// join adds a client.
func (w *waiters) join(id uuid.UUID) (decided <-chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.all[id]
	if x == nil {
		x = &waiting{decided: make(chan struct{})}
		if w.all == nil {
			w.all = map[uuid.UUID]*waiting{}
		}
		w.all[id] = x
	}
	x.n++
	return x.decided, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if x.n--; x.n == 0 && w.all[id] == x {
			delete(w.all, id)
		}
	}
}

// wake tells the waiting clients that a question is decided.
func (w *waiters) wake(id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.all[id]; x != nil {
		close(x.decided)
		delete(w.all, id)
	}
}

// ids returns the questions that clients wait for.
func (w *waiters) ids() (out []uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.all {
		out = append(out, id)
	}
	return out
}

// Wait returns a question of a site as soon as it is decided, or undecided after d, when ctx is
// done or when ending is closed. The error is [ErrNone] if there is none. If d is not 0, the caller
// has entered [site.Waiting].
func (q *Questions) Wait(ctx context.Context, siteID string, id uuid.UUID, d time.Duration, ending <-chan struct{}) (*Question, error) {
	decided, leave := q.waiters.join(id) // before it is read
	defer leave()
	x, err := q.Get(ctx, id)
	if err == nil && x.Site != siteID {
		err = ErrNone
	}
	if err != nil || !x.IsOpen() || d <= 0 {
		return x, err
	}
	timer := time.NewTimer(min(d, max(x.Until.Sub(q.outbox.Queue.Now()), minWait)))
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

// lookEvery is how often a gateway that knows of no question looks whether others have asked.
const lookEvery = 10 * time.Second

// Refresh looks for questions and decisions of other gateways. The queue calls it each second.
func (q *Questions) Refresh(ctx context.Context, _ *outbox.Configuration) {
	now := q.outbox.Queue.Now().UnixNano()
	since := now - q.looked.Load()
	if !q.any.Load() && (q.looked.Load() == 0 || q.outbox.Shared && (since < 0 || since >= int64(lookEvery))) {
		sizes, err := q.outbox.Queue.Records.GroupSizes(ctx)
		if err != nil {
			return
		}
		q.looked.Store(now)
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

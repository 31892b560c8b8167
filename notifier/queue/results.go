package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// The bounds of results that are not stored yet.
const (
	recordEvery = time.Second
	maxResults  = 8192 // messages; beyond that the oldest are dropped
	flushAt     = 1024 // messages that are stored without waiting for recordEvery
)

// results holds final results until they are stored.
type results struct {
	full chan struct{}

	mu      sync.Mutex
	entries []*Entry
	byID    map[uuid.UUID]*Entry
	dropped int
}

// Record stores a message whose jobs are all final, so that it can be read by
// its ID. It is written within a second; a crash before that loses it. If the
// store stays unavailable, the oldest are dropped.
func (q *Queue) Record(e *Entry) {
	q.complete(e, q.options.Load(), time.Now())
	e.Message.Body, e.Message.Files = nil, nil
	r := &q.results
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) >= maxResults {
		delete(r.byID, r.entries[0].Message.ID)
		r.entries = slices.Delete(r.entries, 0, 1)
		r.dropped++
	}
	if r.byID == nil {
		r.byID = map[uuid.UUID]*Entry{}
	}
	r.entries = append(r.entries, e)
	r.byID[e.Message.ID] = e
	if len(r.entries) >= flushAt {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
}

// get returns a message that is not stored yet, or nil.
func (r *results) get(id uuid.UUID) *Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

// record stores results.
func (q *Queue) record() {
	ticker := time.NewTicker(recordEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-q.results.full:
		case <-q.stop:
			return // Close stores the rest
		}
		q.flush()
	}
}

// flush stores the pending results.
func (q *Queue) flush() {
	r := &q.results
	for {
		r.mu.Lock()
		part := slices.Clone(r.entries[:min(len(r.entries), flushAt)])
		dropped := r.dropped
		r.mu.Unlock()
		if len(part) == 0 {
			return
		}
		o := q.options.Load()
		err := q.store.Accept(context.WithoutCancel(q.ctx), o.MaxSize, part...)
		q.check(err)
		if _, unavailable := errors.AsType[*UnavailableError](err); unavailable || errors.Is(err, ErrClosed) {
			return // they are stored later
		}
		r.mu.Lock()
		for _, e := range part {
			delete(r.byID, e.Message.ID)
		}
		r.entries = slices.DeleteFunc(r.entries, func(e *Entry) bool { return r.byID[e.Message.ID] == nil })
		r.dropped -= dropped
		r.mu.Unlock()
		if dropped > 0 {
			o.Logger.Warn("results of messages were not recorded, since the queue's store failed", zap.Int("messages", dropped))
		}
	}
}

package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

// The bounds of a check of the queue's store, which is a write.
const (
	checkEvery   = 5 * time.Second // the result of a check is used again until then
	checkTimeout = 3 * time.Second
)

// storeCheck is the last check of a store. The zero value is ready for use.
type storeCheck struct {
	mu      sync.Mutex
	at      time.Time // of the last result
	err     error
	running chan struct{} // closed when the check under way ends; nil if none is
}

// ErrStoreHangs is returned when the store does not answer a check in time.
var ErrStoreHangs = errors.New("the store does not answer")

// Writable returns an error if messages cannot be stored. The result may be some
// seconds old.
func (q *Outbox) Writable(ctx context.Context) error {
	c := &q.writes
	c.mu.Lock()
	if c.running == nil && time.Since(c.at) < checkEvery {
		defer c.mu.Unlock()
		return c.err
	}
	if c.running == nil {
		c.running = make(chan struct{})
		go c.run(context.WithoutCancel(ctx), q) // its result is for others, too
	}
	running := c.running
	c.mu.Unlock()
	timer := time.NewTimer(checkTimeout)
	defer timer.Stop()
	select {
	case <-running:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return ErrStoreHangs
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// run makes a check. It ends at the latest when the queue is closed.
func (c *storeCheck) run(ctx context.Context, q *Outbox) {
	err := q.Queue.Check(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.err == nil {
		q.Log.Error("the queue cannot store messages, and /notify/status answers 503", zap.Error(err))
	}
	c.at, c.err = time.Now(), err
	close(c.running)
	c.running = nil
}

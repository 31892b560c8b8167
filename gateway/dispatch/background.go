package dispatch

import (
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/loglimit"
)

// Limits of the background queue.
const (
	MaxBackground = 32  // messages being sent
	MaxQueued     = 256 // messages waiting
)

// Background sends messages about events and logs in the background, so that the code that emits or
// logs does not wait for a destination. The zero value is ready for use.
type Background struct {
	Dropped loglimit.Limiter // messages for which the queue had no room

	mu      sync.Mutex
	queue   []func()
	workers int           // goroutines; each ends when the queue is empty
	idle    chan struct{} // closed when all is sent; nil if no caller waits
}

// Add calls send in the background. It reports false if the queue is full.
func (b *Background) Add(send func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.workers < MaxBackground {
		b.workers++
		go b.work(send)
		return true
	}
	if len(b.queue) == MaxQueued {
		return false
	}
	b.queue = append(b.queue, send)
	return true
}

func (b *Background) work(send func()) {
	for send != nil {
		send()
		send = b.next()
	}
}

// next returns the next function in the queue, or nil if there is none and the worker must end.
func (b *Background) next() func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		send := b.queue[0]
		b.queue[0] = nil
		b.queue = b.queue[1:]
		return send
	}
	b.workers--
	if b.workers == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
	return nil
}

// Wait waits until all messages are sent or the timeout is over, and returns how many are not sent.
func (b *Background) Wait(timeout time.Duration) int {
	b.mu.Lock()
	if b.workers > 0 && b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	if idle != nil {
		t := time.NewTimer(timeout)
		defer t.Stop()
		select {
		case <-idle:
		case <-t.C:
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.workers + len(b.queue)
}

// StopTimeout bounds how long a stopping Caddy waits for messages in the background.
const StopTimeout = 5 * time.Second

// Package workers runs functions in goroutines that are used again.
package workers

import (
	"slices"
	"sync"
	"time"
)

// Workers are goroutines that call a function, each with one value at a time. A goroutine whose call
// has ended waits one to two seconds for another value: the stack of a new goroutine grows while it
// makes its first HTTP request, which costs more than all else about the goroutine.
type Workers[T any] struct {
	call func(T)

	mu     sync.Mutex
	idle   []chan T    // of the goroutines that wait; the last is used first, so that few wait
	unused int         // how many at the beginning of idle have waited since the last sweep
	sweep  *time.Timer // calls sweepIdle; nil if none waits
	closed bool
}

// idleTime is the time between two sweeps.
const idleTime = time.Second

// New returns workers that call call.
func New[T any](call func(T)) *Workers[T] { return &Workers[T]{call: call} }

// Start calls the function with v in a goroutine, and returns at once. The number of goroutines is
// not limited.
func (w *Workers[T]) Start(v T) {
	if next := w.take(); next != nil {
		next <- v
		return
	}
	go w.work(v)
}

// Close ends the goroutines that wait. Calls under way are finished. Start can still be used; its
// goroutines then end with their calls.
func (w *Workers[T]) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.end(len(w.idle))
	if w.sweep != nil {
		w.sweep.Stop()
	}
}

func (w *Workers[T]) work(v T) {
	next := make(chan T, 1) // Start does not wait
	for ok := true; ok; v, ok = <-next {
		w.call(v)
		w.wait(next)
	}
}

// take returns the channel of a goroutine that has waited, or nil if none does.
func (w *Workers[T]) take() chan T {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.idle) - 1
	if last < 0 {
		return nil
	}
	next := w.idle[last]
	w.idle, w.unused = w.idle[:last], min(w.unused, last)
	return next
}

// wait makes a goroutine wait, or ends it after Close.
func (w *Workers[T]) wait(next chan T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(next)
		return
	}
	w.idle = append(w.idle, next)
	if w.sweep == nil {
		w.sweep = time.AfterFunc(idleTime, w.sweepIdle)
	}
}

// sweepIdle ends the goroutines that have waited since the last sweep.
func (w *Workers[T]) sweepIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(w.unused)
	if w.unused = len(w.idle); w.unused > 0 {
		w.sweep.Reset(idleTime)
	} else {
		w.sweep = nil
	}
}

// end ends the n goroutines that have waited longest. The caller holds the lock.
func (w *Workers[T]) end(n int) {
	for _, next := range w.idle[:n] {
		close(next)
	}
	w.idle, w.unused = slices.Delete(w.idle, 0, n), 0
}

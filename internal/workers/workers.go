// Package workers runs functions in goroutines that are used again.
package workers

import (
	"sync"
	"time"
)

// Workers are goroutines that call a function, each with one value at a time. A goroutine whose call
// has ended waits a second for another value: the stack of a new goroutine grows while it makes its
// first HTTP request, which costs more than all else about the goroutine.
type Workers[T any] struct {
	call  func(T)
	next  chan T // has a receiver for each goroutine that waits
	ended chan struct{}
	end   func() // closes ended
}

// idleTime is the time that a goroutine waits for another value.
const idleTime = time.Second

// New returns workers that call call.
func New[T any](call func(T)) *Workers[T] {
	ended := make(chan struct{})
	return &Workers[T]{call: call, next: make(chan T), ended: ended, end: sync.OnceFunc(func() { close(ended) })}
}

// Start calls the function with v in a goroutine, and returns at once. The number of goroutines is
// not limited.
func (w *Workers[T]) Start(v T) {
	select {
	case w.next <- v:
	default:
		go w.work(v)
	}
}

// Close ends the goroutines that wait. Calls under way are finished. Start can still be used; its
// goroutines then end with their calls.
func (w *Workers[T]) Close() { w.end() }

func (w *Workers[T]) work(v T) {
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	for {
		w.call(v)
		idle.Reset(idleTime)
		select {
		case v = <-w.next:
		case <-idle.C:
			return
		case <-w.ended:
			return
		}
	}
}

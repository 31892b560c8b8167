package caddyhttp

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// forEachBatch is how many calls a goroutine of forEach makes before it asks for
// more. A call for a URL takes a few microseconds.
const forEachBatch = 32

// forEach calls f with the numbers from 0 to n-1 until a call returns an error.
// Several calls run at once, on as many CPUs as Go may use. forEach returns when
// all of them have returned, with the lowest number for which f returned an error
// and that error, or with n and nil. The calls with lower numbers are complete
// then; calls with higher numbers may have been made or not. A panic of f becomes
// a panic of forEach.
func forEach(n int, f func(i int) error) (failed int, err error) {
	w := forEachWork{f: f, end: n, failed: n}
	var helpers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+forEachBatch-1)/forEachBatch) - 1 {
		helpers.Go(w.run)
	}
	w.run()
	helpers.Wait()
	if w.panicked != "" {
		panic(w.panicked)
	}
	return w.failed, w.err
}

// forEachWork is what the goroutines of a forEach share.
type forEachWork struct {
	f func(i int) error

	mu       sync.Mutex
	next     int // the first number that no goroutine has taken
	end      int // numbers from here on are not taken
	failed   int // the lowest number with an error
	err      error
	panicked string // the value and the stack of a panic
}

// run takes numbers and calls f with them until none is left.
func (w *forEachWork) run() {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			w.stop(func() { w.panicked = text })
		}
	}()
	for begin, end := w.take(); begin < end; begin, end = w.take() {
		for i := begin; i < end; i++ {
			if err := w.f(i); err != nil {
				w.stop(func() {
					if i < w.failed {
						w.failed, w.err = i, err
					}
				})
				break
			}
		}
	}
}

// take returns the next numbers: those from begin up to, but not including, end.
func (w *forEachWork) take() (begin, end int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin = w.next
	w.next = min(begin+forEachBatch, w.end)
	return begin, w.next
}

// stop makes take return no more numbers, and records why.
func (w *forEachWork) stop(record func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = w.next
	record()
}

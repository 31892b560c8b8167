// Package parallel makes calls on all CPUs, with the error of making one after the other.
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// batch is how many calls a goroutine makes. A call for a URL takes a few microseconds.
const batch = 32

// Each calls f with the numbers from 0 to n-1, on all CPUs, until a call returns an
// error. It returns the lowest number for which f returned an error, and that error, or n and
// nil; all calls with lower numbers are made. A panic of f is one of Each, so that the
// server which loads a configuration recovers it.
func Each(n int, f func(i int) error) (failed int, err error) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	errs := make([]error, n)
	var stop atomic.Bool
	var panicked atomic.Pointer[string]
	for begin := 0; begin < n && !stop.Load(); begin += batch {
		group.Go(func() error {
			defer func() {
				if p := recover(); p != nil {
					text := fmt.Sprintf("%v\n\n%s", p, debug.Stack())
					panicked.Store(&text)
					stop.Store(true)
				}
			}()
			for i := begin; i < min(begin+batch, n); i++ {
				if errs[i] = f(i); errs[i] != nil {
					stop.Store(true)
					break
				}
			}
			return nil
		})
	}
	_ = group.Wait() // the first in time; errs has the first in order
	if text := panicked.Load(); text != nil {
		panic(*text)
	}
	for i, err := range errs {
		if err != nil {
			return i, err
		}
	}
	return n, nil
}

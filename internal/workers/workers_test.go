package workers

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkers checks that a goroutine is used again until it has waited for two seconds, that calls at
// once have goroutines of their own, and that none is left at the end.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, finish := make(chan int), make(chan struct{})
		w := New(func(v int) {
			started <- v
			<-finish
		})
		waiting := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.idle)
		}
		start := func(v int) {
			t.Helper()
			w.Start(v)
			if got := <-started; got != v {
				t.Fatalf("called with %d instead of %d", got, v)
			}
		}
		start(1)
		start(2)
		start(3) // does not wait for the others
		for range 3 {
			finish <- struct{}{}
		}
		synctest.Wait()
		if n := waiting(); n != 3 {
			t.Errorf("%d goroutines wait for another value instead of 3", n)
		}
		time.Sleep(idleTime + idleTime/2)
		start(4)
		finish <- struct{}{}
		synctest.Wait()
		if n := waiting(); n != 3 {
			t.Errorf("%d goroutines wait after one of them was used again, instead of 3", n)
		}
		time.Sleep(idleTime)
		if n := waiting(); n != 1 {
			t.Errorf("%d goroutines wait after one of three was used again, instead of 1", n)
		}
		time.Sleep(idleTime)
		if n := waiting(); n != 0 {
			t.Errorf("%d goroutines wait after more than two seconds", n)
		}
		start(5)
		start(6)
		finish <- struct{}{}
		synctest.Wait()
		w.Close()
		synctest.Wait()
		if n := waiting(); n != 0 {
			t.Errorf("%d goroutines wait after Close", n)
		}
		start(7)
		finish <- struct{}{}
		finish <- struct{}{}
		// synctest.Test fails if a goroutine is left.
	})
}

// TestCloseAtSweep checks that a sweep that begins while Close runs ends nothing twice.
func TestCloseAtSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(func(int) {})
		w.Start(1)
		time.Sleep(idleTime + idleTime/2) // the first sweep was, and the goroutine still waits
		w.Close()
		w.sweepIdle() // its timer fired before Close stopped it
	})
}

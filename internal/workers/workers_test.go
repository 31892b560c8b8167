package workers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPool checks that each task runs at once, even if no goroutine is idle, and
// that idle goroutines end.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(func(f func()) { f() })
		var running atomic.Int32
		for _, many := range []int{1, 3, 2} {
			goOn := make(chan struct{})
			for range many {
				p.Do(func() {
					running.Add(1)
					<-goOn
					running.Add(-1)
				})
			}
			synctest.Wait()
			if n := running.Load(); int(n) != many {
				t.Errorf("%d of %d run", n, many)
			}
			close(goOn)
			synctest.Wait()
			time.Sleep(IdleTime / 2)
		}
		time.Sleep(IdleTime) // a goroutine that has not ended by now is a deadlock
	})
}

// TestClose checks that a closed pool has no idle goroutine, and still runs
// tasks.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(func(f func()) { f() })
		ran := 0
		goOn := make(chan struct{})
		p.Do(func() { ran++ })
		p.Do(func() { <-goOn })
		synctest.Wait()
		p.Close()
		close(goOn)
		p.Do(func() { ran++ })
		synctest.Wait() // time does not pass: an idle goroutine would be a deadlock
		if ran != 2 {
			t.Errorf("%d of 2 tasks have run", ran)
		}
	})
}

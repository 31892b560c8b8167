package notifier

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkers checks that each delivery runs at once, even if no worker is
// idle, and that idle workers end.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(func(f func()) { f() })
		var running atomic.Int32
		for _, many := range []int{1, 3, 2} {
			goOn := make(chan struct{})
			for range many {
				w.do(func() {
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
			time.Sleep(workerIdle / 2)
		}
		time.Sleep(workerIdle) // a worker that has not ended by now is a deadlock
	})
}

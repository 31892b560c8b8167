package notifier

import "time"

// workers are goroutines that run one delivery after another. A new goroutine
// has a small stack, and growing it to what an HTTP request needs costs more
// than all else that this package does for a delivery.
type workers struct{ idle chan func() }

// workerIdle is how long a worker waits for the next delivery before it ends.
const workerIdle = time.Second

func newWorkers() workers { return workers{make(chan func())} }

// do runs f on a worker at once: on an idle one, or on a new one.
func (w workers) do(f func()) {
	select {
	case w.idle <- f:
	default:
		go w.work(f)
	}
}

func (w workers) work(f func()) {
	timer := time.NewTimer(workerIdle)
	defer timer.Stop()
	for {
		f()
		f = nil //nolint:wastedassign // so that the message can be freed
		timer.Reset(workerIdle)
		select {
		case f = <-w.idle:
		case <-timer.C:
			return
		}
	}
}

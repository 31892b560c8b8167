package notifier

import "time"

// workers are goroutines that run one delivery after another. The stack of a
// new goroutine is small, and to let it grow to what a request over HTTP takes
// costs more than all else that the core does for a delivery.
type workers struct{ idle chan func() }

// workerIdle is how long a worker waits for the next delivery before it ends.
const workerIdle = time.Second

func newWorkers() workers { return workers{make(chan func())} }

// do runs f on a goroutine, now.
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
		f = nil // and with it the message
		timer.Reset(workerIdle)
		select {
		case f = <-w.idle:
		case <-timer.C:
			return
		}
	}
}

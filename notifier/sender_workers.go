package notifier

import "time"

// workers are goroutines that run one delivery after another. A new goroutine
// has a small stack, and growing it to what an HTTP request needs costs more
// than all else that this package does for a delivery.
type workers[T any] struct {
	idle chan T
	run  func(T)
}

// workerIdle is the time that a worker waits for the next delivery before it
// ends.
const workerIdle = time.Second

func newWorkers[T any](run func(T)) workers[T] { return workers[T]{make(chan T), run} }

// do runs work at once: on an idle worker, or on a new one.
func (w workers[T]) do(work T) {
	select {
	case w.idle <- work:
	default:
		go w.start(work)
	}
}

func (w workers[T]) start(work T) {
	timer := time.NewTimer(workerIdle)
	defer timer.Stop()
	for {
		w.run(work)
		var none T
		work = none //nolint:wastedassign // so that the message can be freed
		timer.Reset(workerIdle)
		select {
		case work = <-w.idle:
		case <-timer.C:
			return
		}
	}
}

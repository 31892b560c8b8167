// Package workers runs short tasks on goroutines that are used again.
package workers

import "time"

// Pool has goroutines that run one task after another. A new goroutine has a
// small stack, and growing it to what an HTTP request needs costs more than all
// else that the gateway does for a delivery. A Pool is safe for concurrent use.
type Pool[T any] struct {
	idle   chan T
	run    func(T)
	closed chan struct{}
}

// IdleTime is the time that a goroutine waits for the next task before it ends.
const IdleTime = time.Second

// New returns a pool whose tasks are calls of run.
func New[T any](run func(T)) Pool[T] { return Pool[T]{make(chan T), run, make(chan struct{})} }

// Close ends the goroutines when they have no task. Tasks still run after it,
// each on a goroutine of its own.
func (p Pool[T]) Close() { close(p.closed) }

// Do calls run with task at once: on an idle goroutine, or on a new one.
func (p Pool[T]) Do(task T) {
	select {
	case p.idle <- task:
	default:
		go p.start(task)
	}
}

func (p Pool[T]) start(task T) {
	timer := time.NewTimer(IdleTime)
	defer timer.Stop()
	for {
		p.run(task)
		var none T
		task = none //nolint:wastedassign // so that the task can be freed
		timer.Reset(IdleTime)
		select {
		case task = <-p.idle:
		case <-timer.C:
			return
		case <-p.closed:
			return
		}
	}
}

package queue

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errLeaseOver is returned when another process may have claimed what this one sends.
var errLeaseOver = errors.New("the gateway was paused, or could not reach its queue, for longer than it may keep a delivery")

// leases knows until when this process has the jobs that it has claimed. Times are
// by clock.runs.
type leases struct {
	mu      sync.Mutex
	renewed time.Duration // when the last renewal began that has succeeded
	lost    time.Duration // what was claimed before that was renewed too late
}

// renew notes a renewal that has succeeded. It comes too late for jobs whose lease was over
// when it ended.
func (l *leases) renew(began, ended time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended-l.renewed > lease {
		l.lost = ended - lease
	}
	l.renewed = began
}

// hold reports whether jobs that were claimed at a time are still claimed.
func (l *leases) hold(claimed, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return claimed >= l.lost && now-max(claimed, l.renewed) < lease
}

// Lease is the right to send jobs that were claimed at some moment. It is over when it was
// not renewed in time. The zero value is never over.
type Lease struct {
	q       *scheduler
	claimed time.Duration
}

// Lease returns the lease of jobs that are accepted as Sending after the call.
func (q *scheduler) Lease() Lease { return Lease{q, q.clock.runs()} }

// Err returns an error if the lease is over. Whoever sends a job asks before each attempt.
func (l Lease) Err() error {
	if l.q == nil || l.q.leases.hold(l.claimed, l.q.clock.runs()) {
		return nil
	}
	return errLeaseOver
}

// leaseKey is the key of the lease in the context of [Options.Deliver].
type leaseKey struct{}

// LeaseErr returns the error of the lease of the job that ctx is for. ctx is the context
// of [Options.Deliver], or derived from it; for any other context there is no error.
func LeaseErr(ctx context.Context) error {
	if l, ok := ctx.Value(leaseKey{}).(Lease); ok {
		return l.Err()
	}
	return nil
}

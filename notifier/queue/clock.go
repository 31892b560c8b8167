package queue

import (
	"sync"
	"sync/atomic"
	"time"
)

// WrittenAhead reports whether the time at comes from a clock that was ahead and has been set back
// since.
func WrittenAhead(at, now time.Time) bool { return at.Sub(now) > ClockTolerance }

// clock tells the time of the machine.
type clock struct {
	now  func() time.Time     // the time of day, which can be set
	runs func() time.Duration // since some moment; it is never set
}

func newClock() clock {
	start := time.Now()
	return clock{now: time.Now, runs: func() time.Duration { return time.Since(start) }}
}

// The bounds of a disturbance, after which jobs get one more attempt.
const (
	maxJump  = 2 * time.Second // of the time of day, against the time that passes
	maxPause = 3 * tickEvery   // between two looks, for example because the process was stopped
)

// disturbance remembers the last start of the queue, jump of the clock or pause of the
// process. Then the machine may have been without a network, or the age of a job may be
// wrong.
type disturbance struct {
	at atomic.Int64 // in microseconds since 1970

	mu   sync.Mutex
	last time.Time     // the time of day at the last look
	ran  time.Duration // how long the queue had run then
}

// begin notes that the queue starts.
func (d *disturbance) begin(now time.Time, runs time.Duration) {
	d.at.Store(now.UnixMicro())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last, d.ran = now.Round(0), runs
}

// look reports whether the clock has jumped, or the process was paused, since the last look.
// Regular looks are tickEvery apart. Other looks do not reset the comparison, so that regular looks
// notice a clock that is changed in small steps.
func (d *disturbance) look(now time.Time, runs time.Duration, regular bool) bool {
	now = now.Round(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	passed := runs - d.ran
	jump := now.Sub(d.last) - passed
	disturbed := jump > maxJump || jump < -maxJump || passed > maxPause
	if disturbed {
		d.at.Store(now.UnixMicro())
	}
	if disturbed || regular {
		d.last, d.ran = now, runs
	}
	return disturbed
}

// lookAtClock looks for a disturbance. It is also called before a job is declared dead because of
// its time, because the clock may have jumped since the last regular look.
func (q *scheduler) lookAtClock(regular bool) {
	if q.disturbed.look(q.Now(), q.clock.runs(), regular) {
		q.recheck.Store(true)
		q.changed.Store(true)
		q.signal() // other jobs may be due now
	}
}

// spares reports whether an attempt for j was the first since a disturbance, so that the job
// gets one more attempt.
func (q *scheduler) spares(j *Job, now time.Time) bool {
	q.lookAtClock(false)
	return j.Updated.After(now) || j.Updated.UnixMicro() <= q.disturbed.at.Load()
}

// keepDisturbed makes the next attempt of a job the first since a disturbance if there was one
// during the attempt that has just ended.
func (q *scheduler) keepDisturbed(a attempt, now time.Time) {
	q.lookAtClock(false)
	if at := q.disturbed.at.Load(); a.began.UnixMicro() <= at {
		q.disturbed.at.CompareAndSwap(at, now.UnixMicro())
	}
}

package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Intervals of periodic work.
const (
	lease       = time.Minute
	renewEvery  = lease / 3
	expireEvery = 5 * time.Second
	forgetEvery = time.Minute
	idleTime    = time.Minute // until the next claim if no job is queued
	pause       = time.Second // after the store has failed
)

// claimAtOnce is the maximum number of jobs in one claim.
const claimAtOnce = 64

// schedule claims jobs that are due, while there is room for them.
func (q *Queue) schedule() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(q.dispatch())
		select {
		case <-q.stop:
			return
		case <-q.wake:
		case <-q.store.Changed():
		case <-timer.C:
		}
	}
}

// dispatch begins deliveries, and returns how long to wait for more.
func (q *Queue) dispatch() time.Duration {
	for {
		q.mu.Lock()
		room := q.options.Load().Concurrency - q.running
		q.mu.Unlock()
		if room <= 0 {
			return idleTime // the end of a delivery wakes the scheduler
		}
		now := time.Now()
		jobs, next, err := q.store.Claim(q.ctx, Claim{Now: now, Max: min(room, claimAtOnce), PerDestination: PerDestination, Lease: lease})
		for i := range jobs {
			if q.begin(&q.running, 1) {
				q.deliveries.Do(&jobs[i])
			}
		}
		q.check(err)
		switch {
		case err != nil:
			return pause
		case next.IsZero():
			return idleTime
		case next.After(now):
			return min(next.Sub(now), idleTime)
		case len(jobs) == 0:
			return pause // other processes are claiming the due jobs
		}
	}
}

// deliver makes an attempt for a claimed job.
func (q *Queue) deliver(j *Job) {
	defer q.signal()
	defer q.end(&q.running, 1)
	m, release, err := q.store.Load(q.ctx, j.Message)
	if _, damaged := errors.AsType[*DamagedError](err); damaged || errors.Is(err, ErrNotFound) {
		q.settle(j, Outcome{Status: Dead, State: j.State, Result: j.Result, Reason: "the message is damaged in the queue's store"}, false, true)
		return
	}
	if err != nil {
		q.check(err)
		q.settle(j, Outcome{Status: Queued, State: j.State, Result: j.Result}, false, true)
		return
	}
	o := q.attempt(m, j)
	release()
	q.settle(j, o, true, true)
}

// attempt calls Deliver.
func (q *Queue) attempt(m *Message, j *Job) (out Outcome) {
	o := q.options.Load()
	defer func() {
		if v := recover(); v != nil {
			o.Logger.Error("panic in a delivery of the queue", zap.String("id", j.Message.String()), zap.Any("panic", v), zap.Stack("stack"))
			out = Outcome{Status: Queued, State: j.State, Result: j.Result}
		}
	}()
	return o.Deliver(q.ctx, m, j)
}

// settle stores the outcome of a job. It tries until it succeeds or the queue
// is closed. counts reports whether the outcome counts as an attempt, and
// deferrable whether the store may wait for other changes.
func (q *Queue) settle(j *Job, out Outcome, counts, deferrable bool) {
	o := q.options.Load()
	now := time.Now()
	r := *j
	r.Updated = now
	if !out.Postponed {
		r.Status, r.State, r.Result = out.Status, out.State, out.Result
		if counts {
			r.Attempts++
		}
	}
	switch {
	case out.Postponed:
		r.Status = Queued
		r.Due = now.Add(out.RetryAfter)
	case r.Status == Delivered, r.Status == Failed:
	case r.Status == Dead:
		r.Reason = out.Reason
	default:
		r.Status = Queued
		r.Due = now.Add(RetryDelay(r.Attempts, out.RetryAfter))
	}
	s := &Settlement{Job: &r, Deferrable: deferrable && !q.closing()}
	if r.Status == Dead && o.Dead != nil {
		if s.Next = o.Dead(&r); s.Next != nil {
			q.complete(s.Next, o, now)
		}
	}
	for {
		err := q.store.Settle(q.ctx, s)
		q.check(err)
		switch {
		case err == nil:
			if o.Settled != nil && !out.Postponed {
				o.Settled(&r)
			}
			return
		case errors.Is(err, ErrNotClaimed):
			o.Logger.Warn("a delivery took longer than its claim, and is made again", zap.String("id", j.Message.String()))
			return
		case errors.Is(err, ErrClosed) || q.ctx.Err() != nil:
			return
		}
		select {
		case <-time.After(pause):
		case <-q.ctx.Done():
			return
		}
	}
}

// closing reports whether Close has been called.
func (q *Queue) closing() bool {
	select {
	case <-q.stop:
		return true
	default:
		return false
	}
}

// retryDelays are the delays after each attempt; the last one is repeated.
var retryDelays = [...]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// RetryDelay returns the time to wait after the given number of attempts. It is
// at least minDelay. A caller of [Queue.Accept] uses it to set Due of a job
// that has failed once.
func RetryDelay(attempts int, minDelay time.Duration) time.Duration {
	d := retryDelays[min(max(attempts, 1), len(retryDelays))-1]
	d += time.Duration((rand.Float64()*0.4 - 0.2) * float64(d))
	return max(d, minDelay)
}

// maintain ends expired jobs and forgets old messages.
func (q *Queue) maintain() {
	q.every(expireEvery, func(n int) {
		err := q.expire()
		if err == nil && n%int(forgetEvery/expireEvery) == 0 {
			o := q.options.Load()
			_, err = q.store.Forget(q.ctx, time.Now().Add(-o.Keep), o.MaxSize)
		}
		q.check(err)
	})
}

// every calls f about every d until the queue is closed.
func (q *Queue) every(d time.Duration, f func(n int)) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-q.stop:
			return
		case <-ticker.C:
			f(n)
		}
	}
}

// expire marks expired jobs as dead.
func (q *Queue) expire() error {
	for {
		jobs, err := q.store.Expire(q.ctx, time.Now(), lease, claimAtOnce)
		var wg sync.WaitGroup
		for i := range jobs {
			if !q.begin(&q.running, 1) {
				break
			}
			j := &jobs[i]
			wg.Go(func() {
				defer q.end(&q.running, 1)
				reason := "it was not delivered before " + j.Expires.UTC().Format(time.RFC3339)
				q.settle(j, Outcome{Status: Dead, State: j.State, Result: j.Result, Reason: reason}, false, true)
			})
		}
		wg.Wait()
		if err != nil || len(jobs) == 0 {
			return err
		}
	}
}

// renew extends the leases of claimed jobs.
func (q *Queue) renew() {
	ctx := context.WithoutCancel(q.ctx)
	q.every(renewEvery, func(int) { q.check(q.store.Renew(ctx, lease)) })
}

package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/timetext"
	"github.com/caddy-notify/caddy-notify/internal/workers"
)

// Intervals of periodic work.
const (
	lease        = time.Minute
	renewEvery   = lease / 3
	tickEvery    = 5 * time.Second // until the clock is checked and states of destinations are exchanged
	forgetEvery  = time.Minute
	recheckEvery = 10 * time.Minute // until held jobs are checked, because a record may have been damaged
	idleTime     = time.Minute      // until the next claim if no job is queued
	pause        = time.Second      // after the store has failed
)

// finishedShare is the part of MaxSize, one in so many, that finished messages
// may take.
const finishedShare = 4

// MaxRetryAfter is the longest pause that a destination can ask for.
const MaxRetryAfter = time.Hour

// How long, and how often, a job waits for a destination that the caller does not
// know.
const (
	unknownTime  = 10 * time.Minute
	unknownEvery = time.Minute
)

// wakeAtOnce is the number of jobs that a success makes due.
const wakeAtOnce = 8

// saveAtOnce is the maximum number of states of destinations that are stored in
// one transaction.
const saveAtOnce = 256

// claimAtOnce is the maximum number of jobs in one claim.
const claimAtOnce = 128

// scheduler makes the deliveries.
type scheduler struct {
	*core
	*order
	destinations *Destinations
	health       *health // of destinations

	slots     *Slots
	prefetch  *Prefetch
	leases    leases
	disturbed disturbance
	workers   *workers.Workers[claimedJob] // call deliver

	mu      sync.Mutex
	stopped bool
	running int           // deliveries
	held    int           // deliveries by callers
	idle    chan struct{} // closed when both are 0, if Close waits
}

// begin counts n deliveries as running or held, unless the queue is being
// closed.
func (q *scheduler) begin(count *int, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return false
	}
	*count += n
	return true
}

func (q *scheduler) end(count *int, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*count -= n
	if q.running+q.held == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// schedule claims jobs that are due, while there is room for them.
func (q *scheduler) schedule() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	loaded := false
	for {
		// Without the states of destinations, known ones have no slots of their own.
		if !loaded {
			err := q.destinations.mergeHealth(0)
			q.check(err)
			loaded = err == nil
		}
		if loaded {
			timer.Reset(q.dispatch())
		} else {
			timer.Reset(pause)
		}
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
func (q *scheduler) dispatch() time.Duration {
	for {
		if err := q.destinations.wakeDestinations(); err != nil {
			return pause
		}
		longest := q.beginPrefetched()
		now, runs := q.Now(), q.clock.runs()
		jobs, next, err := q.store.Claim(q.ctx, Claim{Now: now, Max: claimAtOnce, Slots: q.slots, Lease: lease, Prefetch: q.prefetch})
		begin := q.prefetch.add(jobs, q.store.Hash, runs, q.clock.runs()-runs)
		q.slots.claimed(begin)
		for _, j := range begin {
			q.start(j)
		}
		q.check(err)
		switch {
		case err != nil:
			return pause
		case next.IsZero():
			return longest
		case next.After(now):
			return min(next.Sub(now), longest)
		case len(jobs) == 0:
			return pause // other processes are claiming the due jobs
		}
	}
}

// beginPrefetched begins the deliveries that have waited for a slot, and gives back those that have
// waited too long. It returns how long others may wait.
func (q *scheduler) beginPrefetched() time.Duration {
	for _, d := range q.prefetch.destinations() {
		q.beginNext(d)
	}
	overdue, more := q.prefetch.overdue(q.clock.runs())
	q.putBack(overdue)
	if more {
		return prefetchTime
	}
	return idleTime
}

// putBack queues jobs again that were claimed and not tried.
func (q *scheduler) putBack(jobs []claimedJob) {
	for _, c := range jobs {
		if q.begin(&q.running, 1) {
			go func() {
				defer q.end(&q.running, 1)
				defer q.settled(c)
				q.settle(attempt{job: c.Job, out: Outcome{Postponed: true}, untried: true, deferrable: true})
			}()
		}
	}
}

// beginNext begins the deliveries to a destination that have waited for a slot, while there is one.
func (q *scheduler) beginNext(destination Hash) {
	for {
		c, ok := q.prefetch.next(destination)
		if !ok {
			return
		}
		q.start(c)
	}
}

// start begins the delivery of a job that has a slot, unless the queue is being closed.
func (q *scheduler) start(c claimedJob) {
	if q.begin(&q.running, 1) {
		q.workers.Start(c)
	}
}

// release gives back the slot of a job to the next one of its destination.
func (q *scheduler) release(c claimedJob) {
	q.slots.Release(c.JobID)
	q.beginNext(c.destination)
}

// settled is called when the outcome of a claimed job is stored.
func (q *scheduler) settled(c claimedJob) {
	if q.prefetch.settled(c.destination) {
		q.health.wakeUp(c.destination)
		q.signal()
	}
}

// deliver makes an attempt for a job.
func (q *scheduler) deliver(c claimedJob) {
	defer q.signal()
	defer q.end(&q.running, 1)
	defer q.settled(c)
	defer q.release(c)
	j, claimed, began, runs := c.Job, c.at, q.Now(), q.clock.runs()
	if f, ok := q.failedSince(j, began); ok {
		q.release(c)
		q.settle(attempt{
			job: j, began: f.began, shared: f, out: Outcome{Status: Queued, State: j.State, Result: j.Result, Reason: f.reason},
			deferrable: true,
		})
		return
	}
	m, release, err := q.store.Load(q.ctx, j.Message)
	if _, damaged := errors.AsType[*DamagedError](err); damaged || errors.Is(err, ErrNotFound) {
		q.settle(attempt{job: j, out: Outcome{
			Status: Dead, State: j.State, Result: j.Result,
			Reason: "the message is damaged in the queue's store",
		}, deferrable: true})
		return
	}
	if err != nil {
		q.check(err)
		q.settle(attempt{job: j, out: Outcome{Postponed: true, RetryAfter: RetryDelay(j.Attempts)}, deferrable: true})
		return
	}
	if j.Missed, err = q.missed(q.ctx, j); err != nil {
		release()
		q.check(err)
		q.settle(attempt{job: j, out: Outcome{Postponed: true, RetryAfter: RetryDelay(j.Attempts)}, deferrable: true})
		return
	}
	if q.isLate(j, claimed) {
		release()
		q.settle(attempt{job: j, out: Outcome{Postponed: true}})
		return
	}
	a := attempt{job: j, began: began, made: true, out: q.attempt(m, j, Lease{q, claimed}), deferrable: true}
	release()
	failed := a.out.Status.Waits() || a.out.Postponed || a.out.Unknown
	q.putBack(q.prefetch.attempted(c.destination, q.clock.runs()-runs, failed))
	q.release(c) // the next need not wait for the store
	q.settle(a)
}

// isOld reports whether the lease of a job claimed at claimed may be over, because the process was
// paused or the store was slow. Then another gateway may have told a newer state of the incident.
func (q *scheduler) isOld(claimed time.Duration) bool { return q.clock.runs()-claimed > lease/2 }

// isLate reports whether an attempt for a job claimed at claimed would be too late.
func (q *scheduler) isLate(j *Job, claimed time.Duration) bool {
	return Lease{q, claimed}.Err() != nil || j.Incident != "" && q.isOld(claimed)
}

// failedSince returns the last attempt of j's destination, if the destination is
// down and the attempt began after j was due. Such an attempt counts for j as
// well. A destination that hangs has one attempt at a time; if each of thousands
// of jobs had its own, they would be dead hours after their time.
func (q *scheduler) failedSince(j *Job, now time.Time) (f *failure, ok bool) {
	if j.OwnAttempts {
		return nil, false
	}
	f = q.health.failure(q.store.Hash(j.Destination))
	since := time.UnixMicro(max(micro(j.Due), q.disturbed.at.Load()))
	return f, f != nil && f.began.After(since) && !f.began.After(now) // unless the clock was set back
}

// attempt calls Deliver.
func (q *scheduler) attempt(m *Message, j *Job, l Lease) (out Outcome) {
	o := q.options.Load()
	defer func() {
		if v := recover(); v != nil {
			o.Logger.Error("panic in a delivery of the queue", zap.String("id", j.Message.String()), zap.Any("panic", v), zap.Stack("stack"))
			out = Outcome{Status: Queued, State: j.State, Result: j.Result}
		}
	}()
	return o.Deliver(context.WithValue(q.ctx, leaseKey{}, l), m, j)
}

// attempt is an attempt whose outcome is to be stored.
type attempt struct {
	job        *Job
	began      time.Time
	out        Outcome
	made       bool     // something was sent, or could have been
	shared     *failure // another job to the same destination had the attempt; else nil
	deferrable bool     // the store may wait for other changes
	untried    bool     // the job goes back as it was claimed
}

// settle stores the outcome of a job and its consequences. It tries until it succeeds or the queue
// is closed.
func (q *scheduler) settle(a attempt) {
	o := q.options.Load()
	now := q.Now()
	r := *a.job
	r.Updated = now
	s := &Settlement{Job: &r, Deferrable: a.deferrable && !q.closing()}
	q.waitForDestination(&a, &r, now)
	if a.out.Postponed {
		r.Status, r.Due, r.NotBefore = Queued, now.Add(a.out.RetryAfter), time.Time{}
		if a.untried {
			r.Due = a.job.Due // it keeps its place
		}
	} else {
		s.Health = q.apply(a, &r, now)
	}
	q.share(a, s, now)
	q.follow(s, o, now)
	if q.storeSettlement(s, o) && o.Settled != nil && !a.out.Postponed {
		o.Settled(&r)
	}
}

// waitForDestination postpones a job whose destination the caller does not know, for unknownTime at
// most. After a disturbance, that time begins once more.
func (q *scheduler) waitForDestination(a *attempt, r *Job, now time.Time) {
	if a.out.Note != nil {
		r.Note = a.out.Note
	}
	if !a.out.Unknown {
		return
	}
	if r.UnknownSince.IsZero() {
		r.UnknownSince = now
	}
	if now.Sub(r.UnknownSince) >= unknownTime && q.spares(a.job, now) {
		r.UnknownSince = now
	}
	if now.Sub(r.UnknownSince) < unknownTime {
		a.out.Postponed, a.out.RetryAfter = true, unknownEvery
	}
}

// apply changes a job by the outcome of an attempt. It returns the state of the destination
// to store, if there is one.
func (q *scheduler) apply(a attempt, r *Job, now time.Time) (states []Health) {
	r.Status, r.State, r.Result = a.out.Status, a.out.State, a.out.Result
	if a.made && !a.out.Unknown && !a.out.NotSent {
		r.Attempts++
		r.UnknownSince = time.Time{}
		if h := q.observed(r, a, now); h != nil {
			states = append(states, *h)
		}
	}
	switch r.Status {
	case Delivered, Failed:
	case Superseded:
		r.Rule = a.out.Rule
	case Dead:
		r.Reason = a.out.Reason
	default:
		q.tryAgain(r, a, now)
	}
	return states
}

// share makes a failure count for all jobs that wait for the destination. The failure of another
// job's attempt counts, too, unless it changes more than the time of this job.
func (q *scheduler) share(a attempt, s *Settlement, now time.Time) {
	if r := s.Job; a.shared != nil {
		if r.Status == Queued && r.Spared == a.job.Spared && !q.followed(r) {
			s.Shared = &SharedFailure{Began: a.began, Until: now.Add(sharedDelay(now.Sub(a.shared.since)))}
		}
		return
	}
	if !a.made || a.out.Status != Queued || a.out.Postponed || a.out.Unknown || a.out.NotSent {
		return
	}
	if f := q.health.failure(q.store.Hash(s.Job.Destination)); f != nil {
		delay := max(sharedDelay(now.Sub(f.since)), min(a.out.RetryAfter, MaxRetryAfter))
		s.Failure = &SharedFailure{Began: a.began, Until: now.Add(delay)}
	}
}

// follow adds the changes in the transaction of the job: the message of [Options.Dead], and the
// changes for the order of its incident and for rules.
func (q *scheduler) follow(s *Settlement, o *Options, now time.Time) {
	if s.Job.Status == Dead && o.Dead != nil {
		if s.Next = o.Dead(s.Job); s.Next != nil {
			s.Next.complete(o, now)
		}
	}
	if s.Shared != nil {
		return
	}
	var ruled *Ruled
	if o.Ended != nil && !s.Job.Status.Waits() {
		ruled = o.Ended(s.Job)
	}
	q.orderOutcome(s, ruled, now)
}

// storeSettlement stores a settlement until it succeeds, and reports whether it has.
func (q *scheduler) storeSettlement(s *Settlement, o *Options) bool {
	for {
		err := q.store.Settle(q.ctx, s)
		q.check(err)
		switch {
		case err == nil:
			q.health.saved(s.Health...)
			if s.Job.Status == Queued {
				q.health.waits(q.store.Hash(s.Job.Destination))
			}
			return true
		case errors.Is(err, ErrNotClaimed):
			o.Logger.Warn("a delivery took longer than its claim, and is made again", zap.String("id", s.Job.Message.String()))
			return false
		case errors.Is(err, ErrClosed) || q.ctx.Err() != nil:
			return false
		}
		select {
		case <-time.After(pause):
		case <-q.ctx.Done():
			return false
		}
	}
}

// closing reports whether Close has been called.
func (q *core) closing() bool {
	select {
	case <-q.stop:
		return true
	default:
		return false
	}
}

// retryDelays are the delays after each attempt; the last one is repeated.
var retryDelays = [...]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// RetryDelay returns the time to wait after the given number of attempts.
func RetryDelay(attempts int) time.Duration {
	return vary(retryDelays[min(max(attempts, 1), len(retryDelays))-1])
}

// sharedDelay returns the time to wait after an attempt of another job to a
// destination that has been down for d: as long again.
func sharedDelay(d time.Duration) time.Duration {
	return vary(min(max(d, retryDelays[0]), retryDelays[len(retryDelays)-1]))
}

// vary returns d, up to a fifth longer or shorter.
func vary(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()*0.4-0.2)*float64(d))
}

// tryAgain sets the time of the next attempt of a job whose attempt has failed,
// or makes the job dead if that was its last one.
func (q *scheduler) tryAgain(r *Job, a attempt, now time.Time) {
	// The clock may have been ahead when the message came in.
	if latest := now.Add(q.options.Load().MaxAge); r.Expires.After(latest) {
		r.Expires = latest
	}
	delay := RetryDelay(r.Attempts)
	if a.shared != nil {
		delay = sharedDelay(now.Sub(a.shared.since))
	}
	switch left := r.Expires.Sub(now); {
	case left > 0:
		delay = min(delay, left) // the last attempt is made when the job expires
	case a.began.Before(r.Expires):
		q.keepDisturbed(a, now)
		delay = min(delay, RetryDelay(1))
	case !r.Spared && q.spares(a.job, now):
		r.Spared = true
		delay = min(delay, RetryDelay(2))
	default:
		r.Status, r.Reason = Dead, "it was not delivered before "+timetext.Format(r.Expires)
		if a.shared != nil {
			r.Reason += ", and its destination has failed since then: " + a.out.Reason
		}
		return
	}
	r.tryAgain(now, delay, a.out.RetryAfter)
}

// observed records what an attempt tells about its destination. It returns the
// state to store, if there is one.
func (q *scheduler) observed(r *Job, a attempt, now time.Time) *Health {
	return q.destinations.observe(Attempt{
		Destination: r.Destination, Host: r.Host, Client: r.Client, Status: a.out.Status, Error: a.out.Reason, About: a.out.About, Began: a.began,
	}, now)
}

// maintain does the periodic work.
func (q *Queue) maintain() {
	ran := q.clock.runs()
	q.every(tickEvery, func(n int) {
		q.lookAtClock(true)
		now, runs := q.Now().Round(0), q.clock.runs()
		age := runs - ran + 2*tickEvery
		ran = runs
		q.destinations.saveHealth()
		q.check(q.destinations.mergeHealth(age))
		if n%int(recheckEvery/tickEvery) == 0 {
			q.recheck.Store(true)
		}
		if n%int(forgetEvery/tickEvery) == 0 {
			q.due.tidyOrder(now)
			o := q.options.Load()
			_, err := q.store.Forget(q.ctx, now.Add(-o.Keep), o.MaxSize/finishedShare)
			q.check(err)
			q.health.forget(now)
		}
	})
}

// every calls f about every d until the queue is closed.
func (q *core) every(d time.Duration, f func(n int)) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-q.stop:
			return
		case <-ticker.C:
			f(n)
		}
	}
}

// renew extends the leases of claimed jobs.
func (q *scheduler) renew() {
	ctx := context.WithoutCancel(q.ctx)
	q.every(renewEvery, func(int) {
		began := q.clock.runs()
		err := q.store.Renew(ctx, lease)
		if err == nil {
			q.leases.renew(began, q.clock.runs())
		}
		q.check(err)
	})
}

// errLeaseOver is returned when another process may have claimed the job that this one sends.
var errLeaseOver = errors.New("the gateway was paused, or could not reach its queue, for longer than it may keep a delivery")

// leases knows how long this process holds the jobs that it has claimed. Times are by clock.runs.
type leases struct {
	mu      sync.Mutex
	renewed time.Duration // when the last successful renewal began
	lost    time.Duration // jobs claimed before this time were renewed too late
}

// renew notes a successful renewal. It is too late for jobs whose lease ended before it did.
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

// Lease is the right to send jobs claimed at some moment. It is over if it is not renewed in time.
// The zero value is never over.
type Lease struct {
	q       *scheduler
	claimed time.Duration
}

// Lease returns the lease of jobs that are accepted as Sending after the call.
func (q *scheduler) Lease() Lease { return Lease{q, q.clock.runs()} }

// Err returns an error if the lease is over. It is called before each attempt of a job.
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

package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/workers"
)

// Options configure a queue.
type Options struct {
	// Deliver makes one attempt. Several goroutines call it at once. It should
	// return within about a minute; ctx ends when Close stops waiting for
	// deliveries. m and its files must not be used after it returns. A panic
	// counts as a failure that can be tried again.
	Deliver func(ctx context.Context, m *Message, j *Job) Outcome

	// Dead, if set, returns a message to accept in the transaction that makes a
	// job dead, or nil for none. Its Rules decide about records only. They run after
	// the change of Ended, which can leave the message out. Dead can be called
	// more than once for a job, until that transaction succeeds.
	Dead func(j *Job) *Entry

	// Settled, if set, is called when the outcome of an attempt is stored.
	Settled func(j *Job)

	// Down and Up, if set, are called when an operator's destination goes down and when it is back.
	// Up gets the state before that, with the number of jobs that wait now.
	Down, Up func(h Health)

	// Ended, if set, returns a change by rules to make in the transaction that ends a
	// job, or nil. Its Decide reads the final status.
	Ended func(j *Job) *Ruled

	// Due, if set, is called for each due record of the caller until the record is no longer due.
	// After an error it is called again later; see [ErrUnknown]. crowded means that there are too
	// many records, and that this one is among the first to be due. Several goroutines call Due.
	Due func(ctx context.Context, name Hash, data []byte, crowded bool) error

	// Turn, if set, returns the turn of a record that is due. Due is called for the records of a
	// turn one after the other, in the order in which they are due, and a turn with very many
	// records does not delay others. known reports whether this version of the program knows the
	// record. An unknown record stays unchanged. Without Turn, all records have one turn.
	Turn func(name Hash, data []byte) (turn string, known bool)

	// Ahead, if set, reports whether a record was written when the clock was ahead. Such a record
	// is due at once, as such a job is, because its time is wrong. All records are checked after
	// the start and after a change of the clock.
	Ahead func(data []byte, now time.Time) bool

	// Punctual, if set, reports whether Due must be called within about a second after a record is
	// due. Otherwise it is called within half a minute.
	Punctual func() bool

	// Refresh, if set, is called at the start and then about each second. It reads the records that
	// the caller caches and other processes may have changed.
	Refresh func(ctx context.Context)

	// Recheck is called with all jobs that rules hold after the start, after a new configuration,
	// and after a jump of the clock.
	Recheck func(ctx context.Context, held []Job)

	// Arm is called before Recheck, at the same times. After an error it is called again.
	Arm func(ctx context.Context) error

	MaxAge  time.Duration // age at which a job that is not delivered becomes dead; default 24 h
	Keep    time.Duration // how long results and dead jobs can be read; default 7 days
	MaxSize int64         // maximum size of waiting messages, in bytes; finished ones may take a quarter; default 1 GiB
	Logger  *zap.Logger   // default: none
}

// Defaults of [Options].
const (
	DefaultMaxAge  = 24 * time.Hour
	DefaultKeep    = 7 * 24 * time.Hour
	DefaultMaxSize = 1 << 30
)

// SharedSlots is the maximum number of deliveries at once that do not use a destination's own slot
// (see [Slots]).
const SharedSlots = 256

// Outcome is the result of one attempt.
type Outcome struct {
	// Status is Delivered, Failed or Dead, which are final, or Queued for another attempt. It is
	// Superseded if the caller has sent a newer message instead, or if Rule names the rule that has
	// suppressed it.
	Status Status
	Rule   string
	// State and Result are the new ones of the job.
	State, Result []byte
	// Reason is why the attempt failed, without secrets. A job that is dead keeps
	// it.
	Reason string
	// About is as in [Attempt].
	About string
	// RetryAfter is the minimum time until the next attempt; 0 for no minimum.
	// More than [MaxRetryAfter] counts as that.
	RetryAfter time.Duration
	// Postponed means that there was no attempt: the job stays as it is and is
	// due after RetryAfter. The other fields are ignored.
	Postponed bool
	// Note, if not nil, is the new note of the job.
	Note []byte
	// NotSent means that nothing was sent, so that the outcome tells nothing about
	// the destination and does not count as an attempt.
	NotSent bool
	// Unknown means that nothing was sent, because the caller does not know
	// the destination. It may know it after a reload, or another gateway may. So
	// the job is postponed for ten minutes before it gets the outcome, which is
	// Dead.
	Unknown bool
}

// Queue schedules the jobs of a store.
type Queue struct {
	Destinations *Destinations // their states
	Records      *Records      // of the caller

	*core
	*scheduler
	results *results
	due     *dueWork
}

// core is what all parts of a queue share.
type core struct {
	store   Store
	options atomic.Pointer[Options]
	clock   clock

	ctx    context.Context // ends when Close stops waiting for deliveries
	cancel context.CancelFunc
	wake   chan struct{} // a job may be due, or there is room for one
	stop   chan struct{} // closed by Close: nothing new begins
	loops  sync.WaitGroup

	recheck   atomic.Bool                // held jobs have to be checked
	changed   atomic.Bool                // the clock may have changed, so that records written when it was ahead may be due
	old       atomic.Pointer[OldSecrets] // as the store has last said
	logged    atomic.Int64               // when a failure of the store was last logged, in seconds since 1970
	loggedDue atomic.Int64               // when another failure of Due was last logged
}

// New returns a queue with a store. It makes no deliveries before [Queue.Start].
// [Queue.Close] closes both.
func New(store Store, o Options) *Queue {
	c := &core{store: store, wake: make(chan struct{}, 1), stop: make(chan struct{}), clock: newClock()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	d := &Destinations{core: c, health: newHealth()}
	order, slots := &order{c}, newSlots(SharedSlots, d.health)
	q := &Queue{
		core: c, Destinations: d, Records: &Records{order}, due: newDueWork(order),
		results:   &results{core: c, some: make(chan struct{}, 1), full: make(chan struct{}, 1)},
		scheduler: &scheduler{core: c, order: order, destinations: d, health: d.health, slots: slots, prefetch: NewPrefetch(slots)},
	}
	q.workers = workers.New(q.deliver)
	q.Configure(o)
	return q
}

// Start begins the deliveries. The functions of [Options] are not called before,
// so they may use the queue.
func (q *Queue) Start() {
	q.disturbed.begin(q.Now(), q.clock.runs())
	q.loops.Go(q.schedule)
	q.loops.Go(q.maintain)
	q.loops.Go(q.renew)
	q.loops.Go(q.results.record)
	q.loops.Go(q.due.workDue)
	q.loops.Go(q.due.refresh)
	q.loops.Go(q.Destinations.tell)
	q.loops.Go(q.reseal)
}

// MaxAge, Keep and MaxSize return the fields of the present [Options].
func (c *core) MaxAge() time.Duration { return c.options.Load().MaxAge }
func (c *core) Keep() time.Duration   { return c.options.Load().Keep }
func (c *core) MaxSize() int64        { return c.options.Load().MaxSize }

// Configure replaces the options. Deliveries in progress keep the old ones.
func (q *Queue) Configure(o Options) {
	if o.MaxAge <= 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	if o.MaxSize <= 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	q.options.Store(&o)
	q.recheck.Store(true)
	q.signal()
}

// Now returns the time that decides which records and jobs are due: the time of a shared store's
// clock, so that gateways agree although their clocks differ, or else the time of the machine.
func (q *core) Now() time.Time {
	if now := q.store.Now(); !now.IsZero() {
		return now
	}
	return q.clock.now()
}

// At converts a time by the clock of the machine to the clock of [Queue.Now].
func (q *core) At(t time.Time) time.Time {
	if now := q.store.Now(); !now.IsZero() {
		return now.Add(t.Sub(q.clock.now()))
	}
	return t
}

// signal wakes the scheduler.
func (q *core) signal() { signal(q.wake) }

// Accept stores a message with its jobs. When it returns nil, the message
// survives a crash. It sets the IDs of the jobs, and sets Created of the
// message and Due and Expires of the jobs if they are zero.
//
// The caller sends the jobs that are Sending, and must call [Queue.Settle] for each of them. Jobs
// of an incident may be Held or Queued instead when Accept returns: the queue sends them when it is
// their turn.
//
// It returns [ErrFull], an [*UnavailableError], a [*DuplicateError] if a
// message with the same Key is stored already, or [ErrClosed].
func (q *Queue) Accept(ctx context.Context, e *Entry) error {
	if err := e.checkSize(); err != nil {
		return err
	}
	o := q.options.Load()
	now, runs := q.Now(), q.clock.runs()
	e.complete(o, now)
	q.orderEntry(e, now)
	maxSize := o.MaxSize
	if e.Untrusted {
		maxSize /= 2
	}
	if e.Unlimited {
		maxSize = math.MaxInt64
	}
	held := 0
	for i := range e.Jobs {
		if e.Jobs[i].Status == Sending {
			held++
		}
	}
	if !q.begin(&q.held, held) {
		return ErrClosed
	}
	if err := q.store.Accept(ctx, maxSize, e); err != nil {
		q.end(&q.held, held)
		return err
	}
	sending := 0
	for i := range e.Jobs {
		switch j := &e.Jobs[i]; {
		case j.Status == Sending:
			sending++
			q.slots.hold(q.store.Hash(j.Destination), 1)
		case j.Status == Queued && j.Due.After(now):
			q.health.waits(q.store.Hash(j.Destination))
		}
	}
	if q.isOld(runs) {
		for i := range e.Jobs {
			if j := &e.Jobs[i]; j.Status == Sending && j.Incident != "" {
				q.Settle(j, Outcome{Postponed: true})
				j.Status = Queued
			}
		}
	}
	if held > sending { // the others have to wait for their turn
		q.end(&q.held, held-sending)
	}
	q.signal()
	return nil
}

// Settle ends a job that was accepted as Sending, with the outcome of the
// caller's attempt. If the store is unavailable, it tries again until it
// succeeds or the queue is closed.
func (q *Queue) Settle(j *Job, o Outcome) {
	q.slots.hold(q.store.Hash(j.Destination), -1)
	q.settle(attempt{job: j, began: j.Updated, out: o, made: true})
	q.end(&q.held, 1)
	q.signal()
}

// Get returns a message and its jobs, without the text. It returns
// [ErrNotFound] if the message is unknown.
func (q *Queue) Get(ctx context.Context, id uuid.UUID) (*Entry, error) {
	if IsBatch(id) {
		return nil, ErrNotFound
	}
	if e := q.results.get(id); e != nil {
		return e, nil
	}
	e, err := q.store.Get(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return q.results.recorded(ctx, id)
	}
	return e, err
}

// List returns at most n jobs that have one of the given statuses, Queued,
// Sending or Dead, in the order of their IDs. It begins after the job after, or
// with the first job if after is zero.
func (q *Queue) List(ctx context.Context, after JobID, n int, statuses ...Status) ([]Job, error) {
	return q.store.List(ctx, after, n, statuses...)
}

// Cancel cancels each job of a message that waits, and returns how many there were.
// It leaves jobs that are being sent or dead unchanged. It returns
// [ErrNotFound] if the message is unknown.
func (q *Queue) Cancel(ctx context.Context, id uuid.UUID) (int, error) {
	return q.cancelMessage(ctx, id, Queued, Held)
}

// Drop cancels each job of a message that waits or is dead, and returns how many there
// were. It leaves jobs that are being sent unchanged. It returns [ErrNotFound]
// if the message is unknown.
func (q *Queue) Drop(ctx context.Context, id uuid.UUID) (int, error) {
	return q.cancelMessage(ctx, id, Queued, Held, Dead)
}

// cancelMessage cancels the jobs of a message that have one of the statuses.
func (q *Queue) cancelMessage(ctx context.Context, id uuid.UUID, statuses ...Status) (int, error) {
	defer q.signal()
	e, err := q.store.Get(ctx, id)
	if err != nil {
		return 0, q.known(ctx, id, err)
	}
	return q.cancelJobs(ctx, e.Jobs, statuses)
}

// cancelJobs cancels the jobs that have one of the statuses, and returns how many
// there were.
func (q *order) cancelJobs(ctx context.Context, jobs []Job, statuses []Status) (int, error) {
	before, err := q.changeJobs(ctx, jobs, func(status Status) (Status, func(*Job)) {
		if !slices.Contains(statuses, status) {
			return 0, nil
		}
		return Cancelled, func(j *Job) { j.Status = Cancelled }
	})
	return len(before), err
}

// Retried counts the jobs of a message that were made due.
type Retried struct {
	Dead   int // were dead and are queued again
	Queued int // were queued and are due now
}

// Retry makes the jobs of a message due now. These are waiting jobs, even if the destination has
// asked for a pause or a rule holds them, and dead jobs, as if the message were new. Jobs held by a
// rule in keep stay held. If a newer message has replaced a job, Retry makes the newer job due. It
// returns the numbers of jobs. The error is [ErrNotFound] if the message is unknown.
func (q *Queue) Retry(ctx context.Context, id uuid.UUID, keep ...string) (n Retried, err error) {
	defer q.signal()
	e, err := q.store.Get(ctx, id)
	if err != nil {
		return n, q.known(ctx, id, err)
	}
	var jobs []Job
	for i := range e.Jobs {
		j, err := q.Replacement(ctx, &e.Jobs[i])
		if err != nil {
			return n, err
		}
		switch {
		case !j.heldByRule():
			jobs = append(jobs, *j)
		case !slices.Contains(keep, j.Rule):
			released, err := q.Records.releaseHeld(ctx, j)
			if err != nil {
				return n, err
			}
			n.Queued += released
		}
	}
	changed, err := q.hurryJobs(ctx, jobs, Queued, Dead)
	for _, before := range changed {
		if before == Dead {
			n.Dead++
		} else {
			n.Queued++
		}
	}
	return n, err
}

// hurryJobs makes the jobs with one of the statuses, Queued or Dead, due, and returns their earlier
// statuses.
func (q *order) hurryJobs(ctx context.Context, jobs []Job, statuses ...Status) (before []Status, err error) {
	now := q.Now()
	expires := now.Add(q.options.Load().MaxAge)
	hurry := func(j *Job) { j.Hurry(now, expires) }
	return q.changeJobs(ctx, jobs, func(status Status) (Status, func(*Job)) {
		switch {
		case !slices.Contains(statuses, status):
			return 0, nil
		case status == Dead:
			return Held, hurry // in an incident, until it is its turn, which may be at once
		}
		return status, hurry
	})
}

// maxFollowed is the maximum length of a chain of replaced jobs that Replacement follows.
const maxFollowed = 1000

// Replacement returns j or, if another job has replaced it, the newest one that tells it.
func (q *Queue) Replacement(ctx context.Context, j *Job) (*Job, error) {
	for n := 0; (j.Status == Superseded || j.Status == Failed && j.By != (JobID{})) && n < maxFollowed; n++ {
		e, err := q.store.Get(ctx, j.By.Message)
		if errors.Is(err, ErrNotFound) || err == nil && j.By.Index >= len(e.Jobs) {
			return j, nil // it was delivered, and is forgotten
		}
		if err != nil {
			return nil, err
		}
		j = &e.Jobs[j.By.Index]
	}
	return j, nil
}

// RetryDestinations makes all jobs that wait for destinations due now, even if one has asked for a
// pause, and returns the number of jobs. Dead jobs stay dead; see [Queue.RetryDead].
func (q *Queue) RetryDestinations(ctx context.Context, destinations ...Hash) (n int, err error) {
	defer q.signal()
	for some := range slices.Chunk(destinations, retryAtOnce) {
		waiting, err := q.store.Waiting(ctx, some...)
		if err != nil {
			return n, err
		}
		// The numbers may be old, so that some can wait although they are 0.
		if _, err = q.store.Wake(ctx, Wake{Now: q.Now(), Destinations: some, Force: true}); err != nil {
			return n, err
		}
		for _, w := range waiting {
			n += w.Jobs
		}
	}
	return n, nil
}

// retryAtOnce is how many destinations RetryDestinations wakes in one transaction.
const retryAtOnce = 50

// RetryDead makes the dead jobs for which may returns true due, as if their messages were new, and
// returns their number.
func (q *Queue) RetryDead(ctx context.Context, may func(*Job) bool) (n int, err error) {
	defer q.signal()
	for after := (JobID{}); ; {
		jobs, err := q.store.List(ctx, after, dropAtOnce, Dead)
		if err != nil || len(jobs) == 0 {
			return n, err
		}
		after = jobs[len(jobs)-1].JobID
		end := len(jobs) < dropAtOnce
		revived, err := q.hurryJobs(ctx, slices.DeleteFunc(jobs, func(j Job) bool { return !may(&j) }), Dead)
		if n += len(revived); err != nil || end {
			return n, err
		}
	}
}

// DropDestination cancels the waiting jobs of a destination for which may returns true, and with
// dead the dead ones, too, but no jobs that are being sent. It returns how many it has cancelled,
// and reports whether there may be more: it looks at no more than maxDropScan jobs.
func (q *Queue) DropDestination(ctx context.Context, destination Hash, dead bool, may func(*Job) bool) (n int, more bool, err error) {
	defer q.signal()
	statuses := []Status{Queued, Held}
	if dead {
		statuses = append(statuses, Dead)
	}
	after := JobID{}
	for range maxDropScan / dropAtOnce {
		jobs, err := q.store.List(ctx, after, dropAtOnce, statuses...)
		if err != nil {
			return n, true, err
		}
		end := len(jobs) < dropAtOnce
		if !end {
			after = jobs[len(jobs)-1].JobID
		}
		jobs = slices.DeleteFunc(jobs, func(j Job) bool { return q.store.Hash(j.Destination) != destination || !may(&j) })
		dropped, err := q.cancelJobs(ctx, jobs, statuses)
		if n += dropped; err != nil || end {
			return n, false, err
		}
	}
	return n, true, nil
}

// The bounds of DropDestination and RetryDead.
const (
	dropAtOnce  = 250 // jobs that are read, and changed in one transaction
	maxDropScan = 25_000
)

// statusChange returns the new status for a job with a status, and how to change the job, or 0 to
// leave it unchanged.
type statusChange = func(Status) (to Status, apply func(*Job))

// changeJobs changes jobs that nobody has claimed, and returns the earlier statuses of the changed
// ones. The jobs of an incident keep their order.
func (q *order) changeJobs(ctx context.Context, jobs []Job, f statusChange) (before []Status, err error) {
	now := q.Now()
	var free []JobID // of no incident, or held by rules: they have no order
	for i := range jobs {
		if j := &jobs[i]; j.Incident == "" || j.heldByRule() {
			free = append(free, j.JobID)
		}
	}
	if len(free) > 0 {
		if before, err = q.changeFree(ctx, free, now, f); err != nil {
			return nil, err
		}
	}
	for len(jobs) > 0 {
		n := 1
		for n < len(jobs) && jobs[n].Message == jobs[0].Message {
			n++
		}
		ordered, err := q.orderJobs(ctx, jobs[:n], now, f)
		if before = append(before, ordered...); err != nil {
			return before, err
		}
		jobs = jobs[n:]
	}
	return before, nil
}

// changeFree changes jobs that have no order, in one transaction.
func (q *order) changeFree(ctx context.Context, ids []JobID, now time.Time, f statusChange) (before []Status, err error) {
	err = q.store.Update(ctx, &Update{Jobs: len(ids), Decide: func(tx *Tx) error {
		statuses, err := tx.Status(ids...)
		before = nil
		for i, s := range statuses {
			if to, apply := f(s); to != 0 {
				before = append(before, s)
				tx.Change(ids[i], func(j *Job) {
					j.Updated = now
					apply(j)
				})
			}
		}
		return err
	}})
	return before, err
}

// Check returns an error if the store cannot take messages because it cannot be
// written. It is a write, so callers make it rarely. That the queue is full is
// not an error.
func (q *Queue) Check(ctx context.Context) error {
	return q.store.Accept(ctx, q.options.Load().MaxSize)
}

// Hash returns the hash of a [Job.Destination].
func (q *core) Hash(destination string) Hash { return q.store.Hash(destination) }

// known returns nil if err is [ErrNotFound] and the results of the message are
// recorded. Otherwise it returns err.
func (q *Queue) known(ctx context.Context, id uuid.UUID, err error) error {
	if errors.Is(err, ErrNotFound) {
		_, err = q.Get(ctx, id)
	}
	return err
}

// Stats returns the numbers of jobs that wait or are dead.
func (q *Queue) Stats(ctx context.Context) (Stats, error) { return q.store.Stats(ctx) }

// Close stops starting deliveries, waits for those in progress until ctx ends,
// and closes the store. If deliveries are unfinished, it returns an error with
// their number; they are tried again when the store is next opened.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	if q.stopped {
		q.mu.Unlock()
		return ErrClosed
	}
	q.stopped = true
	var idle chan struct{}
	if q.running+q.held > 0 {
		idle = make(chan struct{})
		q.idle = idle
	}
	q.mu.Unlock()
	close(q.stop)
	var err error
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			q.mu.Lock()
			err = fmt.Errorf("%d deliveries were not finished; they are tried again at the next start", q.running+q.held)
			q.mu.Unlock()
		}
	}
	q.cancel()
	q.loops.Wait()
	q.workers.Close()
	q.results.flush()
	q.health.storeSuccesses()
	q.Destinations.saveHealth()
	return errors.Join(err, q.store.Close())
}

// check logs a failure of the store, at most once a minute.
func (q *core) check(err error) {
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrChanged) || errors.Is(err, context.Canceled) {
		return
	}
	now, last := q.Now().Unix(), q.logged.Load()
	if now-last >= 60 && q.logged.CompareAndSwap(last, now) {
		q.options.Load().Logger.Error("the queue's store fails; what waits is delivered when it works again", zap.Error(err))
	}
}

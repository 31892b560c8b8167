package queue

import (
	"context"
	"errors"
	"fmt"
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
	// job dead, or nil for none. It can be called more than once for a job, until
	// that transaction succeeds.
	Dead func(j *Job) *Entry

	// Settled, if set, is called when the outcome of an attempt is stored, and
	// when a job expires.
	Settled func(j *Job)

	MaxAge      time.Duration // age at which a job that is not delivered becomes dead; default 24 h
	Keep        time.Duration // how long results and dead jobs can be read; default 7 days
	MaxSize     int64         // maximum size of waiting messages, in bytes, and also of finished ones; default 1 GiB
	Concurrency int           // deliveries at once; default 256
	Logger      *zap.Logger   // default: none
}

// Defaults of [Options].
const (
	DefaultMaxAge      = 24 * time.Hour
	DefaultKeep        = 7 * 24 * time.Hour
	DefaultMaxSize     = 1 << 30
	DefaultConcurrency = 256
)

// PerDestination is the maximum number of deliveries to one destination that
// run at once.
const PerDestination = 4

// Outcome is the result of one attempt.
type Outcome struct {
	// Status is Delivered, Failed or Dead, which are final, or Queued for another
	// attempt.
	Status Status
	// State and Result replace those of the job.
	State, Result []byte
	// Reason is why the job is dead, without secrets.
	Reason string
	// RetryAfter is the minimum time until the next attempt; 0 for no minimum.
	RetryAfter time.Duration
	// Postponed means that there was no attempt: the job stays as it is and is
	// due after RetryAfter. The other fields are ignored.
	Postponed bool
}

// Queue schedules the jobs of a store.
type Queue struct {
	store   Store
	options atomic.Pointer[Options]

	ctx        context.Context // ends when Close stops waiting for deliveries
	cancel     context.CancelFunc
	wake       chan struct{}      // a job may be due, or there is room for one
	deliveries workers.Pool[*Job] // make the attempts
	stop       chan struct{}      // closed by Close: nothing new begins
	loops      sync.WaitGroup

	logged atomic.Int64 // when a failure of the store was last logged, in seconds since 1970

	mu      sync.Mutex
	stopped bool
	running int           // deliveries
	held    int           // deliveries by callers
	idle    chan struct{} // closed when both are 0, if Close waits

	results results
}

// New returns a queue with a store. It makes no deliveries before [Queue.Start].
// [Queue.Close] closes both.
func New(store Store, o Options) *Queue {
	q := &Queue{store: store, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	q.deliveries = workers.New(q.deliver)
	q.results.full = make(chan struct{}, 1)
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.Configure(o)
	return q
}

// Start begins the deliveries. The functions of [Options] are not called before,
// so they may use the queue.
func (q *Queue) Start() {
	q.loops.Go(q.schedule)
	q.loops.Go(q.maintain)
	q.loops.Go(q.renew)
	q.loops.Go(q.record)
}

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
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	q.options.Store(&o)
	q.signal()
}

// signal wakes the scheduler.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Accept stores a message with its jobs. When it returns nil, the message
// survives a crash. It sets the IDs of the jobs, and sets Created of the
// message and Due and Expires of the jobs if they are zero.
//
// The caller sends the jobs that are Sending, and must call [Queue.Settle] for
// each of them.
//
// It returns [ErrFull], an [*UnavailableError], a [*DuplicateError] if a
// message with the same Key is stored already, or [ErrClosed].
func (q *Queue) Accept(ctx context.Context, e *Entry) error {
	o := q.options.Load()
	now := time.Now()
	q.complete(e, o, now)
	maxSize := o.MaxSize
	if e.Untrusted {
		maxSize /= 2
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
	q.signal()
	return nil
}

// complete sets the fields that a caller may leave zero.
func (q *Queue) complete(e *Entry, o *Options, now time.Time) {
	if e.Message.Created.IsZero() {
		e.Message.Created = now
	}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		j.JobID = JobID{e.Message.ID, i}
		j.Updated = now
		if j.Due.IsZero() {
			j.Due = now
		}
		if j.Expires.IsZero() {
			j.Expires = e.Message.Created.Add(o.MaxAge)
		}
	}
}

// begin counts n deliveries as running or held, unless the queue is being
// closed.
func (q *Queue) begin(count *int, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return false
	}
	*count += n
	return true
}

func (q *Queue) end(count *int, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*count -= n
	if q.running+q.held == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// Settle ends a job that was accepted as Sending, with the outcome of the
// caller's attempt. If the store is unavailable, it tries again until it
// succeeds or the queue is closed.
func (q *Queue) Settle(j *Job, o Outcome) {
	q.settle(j, o, true, false)
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
		return q.recorded(ctx, id)
	}
	return e, err
}

// List returns at most n jobs that are Queued, Sending or Dead, in the order of
// their IDs. It begins after the job after, or with the first job if after is
// zero.
func (q *Queue) List(ctx context.Context, status Status, after JobID, n int) ([]Job, error) {
	return q.store.List(ctx, status, after, n)
}

// Cancel cancels each queued job of a message, and returns how many there were.
// It leaves jobs that are being sent or dead unchanged. It returns
// [ErrNotFound] if the message is unknown.
func (q *Queue) Cancel(ctx context.Context, id uuid.UUID) (int, error) {
	n, err := q.store.Cancel(ctx, id, time.Now(), Queued)
	return n, q.known(ctx, id, err)
}

// Drop cancels each queued or dead job of a message, and returns how many there
// were. It leaves jobs that are being sent unchanged. It returns [ErrNotFound]
// if the message is unknown.
func (q *Queue) Drop(ctx context.Context, id uuid.UUID) (int, error) {
	n, err := q.store.Cancel(ctx, id, time.Now(), Queued, Dead)
	return n, q.known(ctx, id, err)
}

// Retry queues each dead job of a message as if the message were new, and
// returns how many there were. It returns [ErrNotFound] if the message is
// unknown.
func (q *Queue) Retry(ctx context.Context, id uuid.UUID) (int, error) {
	now := time.Now()
	n, err := q.store.Retry(ctx, id, now, now.Add(q.options.Load().MaxAge))
	q.signal()
	return n, q.known(ctx, id, err)
}

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
	q.deliveries.Close()
	q.flush()
	return errors.Join(err, q.store.Close())
}

// check logs a failure of the store, at most once a minute.
func (q *Queue) check(err error) {
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return
	}
	now, last := time.Now().Unix(), q.logged.Load()
	if now-last >= 60 && q.logged.CompareAndSwap(last, now) {
		q.options.Load().Logger.Error("the queue's store fails; what waits is delivered when it works again", zap.Error(err))
	}
}

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Store keeps messages and jobs. Package
// [github.com/caddy-notify/caddy-notify/notifier/queue/queuetest] tests
// implementations.
//
// A store is safe for concurrent use. Everything that a method has stored when
// it returns survives a crash and a power cut. Every record is encrypted,
// authenticated, and bound to its place in the store.
//
// Several processes may share a store. Each has a handle. A job claimed by one
// handle is not given to another until it is settled, the handle is closed, its
// process ends, or its lease runs out.
//
// Every method may return an [*UnavailableError]. The store recovers by itself,
// so that a later call can succeed.
type Store interface {
	// Accept stores entries in one transaction. Jobs are Queued, Sending or final;
	// those that are Sending count as claimed by this handle. Accept returns
	// [ErrFull] if the waiting messages would take more than maxSize bytes;
	// entries without a waiting job are not limited. It returns a
	// [*DuplicateError] if a message with the same Key is stored already, and
	// another error if one with the same ID is. The entries must not change
	// afterwards.
	Accept(ctx context.Context, maxSize int64, entries ...*Entry) error

	// Claim returns jobs that are due, and marks them as Sending. Destinations
	// take turns; Claim does not wait for any of them. next is the earliest known
	// time when another call can return more jobs; it does not consider jobs whose
	// destination has reached its limit. next is the zero time if no other job is
	// queued. Claim can return jobs together with an error.
	Claim(ctx context.Context, c Claim) (jobs []Job, next time.Time, err error)

	// Expire claims at most n jobs that are Queued and have expired by now.
	Expire(ctx context.Context, now time.Time, lease time.Duration, n int) ([]Job, error)

	// Renew extends the lease of all jobs that this handle has claimed.
	Renew(ctx context.Context, lease time.Duration) error

	// Settle records the outcome of a job that this handle has claimed. If the
	// handle does not hold the claim, it stores nothing and returns
	// [ErrNotClaimed].
	Settle(ctx context.Context, s *Settlement) error

	// Load returns a message with Body and Files, for a delivery. The caller calls
	// release when it no longer reads the files. Load returns [ErrNotFound], or a
	// [*DamagedError] if the body cannot be read.
	Load(ctx context.Context, id uuid.UUID) (m *Message, release func(), err error)

	// Get returns a message without Body and Files, and all of its jobs, or
	// [ErrNotFound].
	Get(ctx context.Context, id uuid.UUID) (*Entry, error)

	// Batches returns the Summary of each batch (see [IsBatch]) whose ID is at
	// least from and less than to.
	Batches(ctx context.Context, from, to uuid.UUID) ([][]byte, error)

	// List returns at most n jobs with a status, in the order of their IDs. It
	// begins after the job after, or with the first job if after is zero. status
	// is Queued, Sending or Dead.
	List(ctx context.Context, status Status, after JobID, n int) ([]Job, error)

	// Cancel sets the status of each job of the message that has one of the given
	// statuses, Queued or Dead, to Cancelled. It returns how many there were, or
	// [ErrNotFound] if the message is unknown.
	Cancel(ctx context.Context, id uuid.UUID, now time.Time, statuses ...Status) (int, error)

	// Retry queues each Dead job of the message again, due now and with no
	// attempts counted. It returns how many there were, or [ErrNotFound] if the
	// message is unknown.
	Retry(ctx context.Context, id uuid.UUID, now, expires time.Time) (int, error)

	// Forget removes messages without a waiting job: first those that finished
	// before the given time, then the oldest until the rest takes at most maxSize
	// bytes. It returns the number of messages removed.
	Forget(ctx context.Context, before time.Time, maxSize int64) (int, error)

	// Stats returns counts, which may be some seconds old in a shared store.
	Stats(ctx context.Context) (Stats, error)

	// Changed returns a channel that receives a value when Claim can return more
	// jobs than before, because another process has added jobs or because Settle
	// has begun.
	Changed() <-chan struct{}

	// Close gives up all claims and closes the handle.
	Close() error
}

// Claim selects the jobs to claim.
type Claim struct {
	Now            time.Time
	Max            int           // maximum number of jobs
	PerDestination int           // maximum per destination, including jobs that this handle has claimed earlier; a job that Settle is storing need not count
	Lease          time.Duration // how long the claim lasts unless it is renewed
}

// Settlement is the outcome of a claimed job.
type Settlement struct {
	// Job is the new record: Status is Queued or final, and Updated is now.
	Job *Job
	// Next, if not nil, is a message to accept in the same transaction. The size
	// limit does not apply to it.
	Next *Entry
	// Deferrable means that the store may wait some milliseconds for other changes,
	// to commit them together.
	Deferrable bool
}

// Stats counts what a store holds.
type Stats struct {
	Queued, Sending, Dead int
	Oldest                time.Time // when the oldest message that waits came in; zero if none waits
	Bytes                 int64     // size of the messages that wait
}

// Errors of stores.
var (
	// ErrFull is returned when the messages that wait take too much space.
	ErrFull = errors.New("the queue is full")
	// ErrNotFound is returned when the message is unknown.
	ErrNotFound = errors.New("the queue has no such message")
	// ErrNotClaimed is returned when a job is settled that the handle has not
	// claimed, or whose lease has run out.
	ErrNotClaimed = errors.New("the delivery is not claimed any more")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the queue is closed")
)

// UnavailableError is returned when a store cannot be read or written, for
// example because the disk is full or the connection is lost.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string {
	return "the queue's store is unavailable: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// DuplicateError is returned when a message with the same idempotency key is
// stored already.
type DuplicateError struct {
	ID          uuid.UUID // of the first message
	SameRequest bool      // reports whether Request is the same
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("the idempotency key belongs to the message %s already", e.ID)
}

// DamagedError is returned when a record does not authenticate.
type DamagedError struct {
	What string // for example "the text of message 0190…"
}

func (e *DamagedError) Error() string { return e.What + " is damaged in the queue's store" }

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
// it returns survives a crash and a power cut. The stores of this module encrypt
// and authenticate every record, and bind it to its place in the store. A store
// of another module need not: what it gets is sealed, see the package comment.
//
// Several processes may share a store. Each has a handle. A job claimed by one
// handle is not given to another until it is settled, the handle is closed, its
// process ends, or its lease runs out.
//
// Every method may return an [*UnavailableError]. The store recovers by itself,
// so that a later call can succeed.
type Store interface {
	// Accept stores entries in one transaction. Jobs are Queued, Sending or final; Sending jobs
	// count as claimed by this handle. Accept returns [ErrFull] if the waiting messages and the
	// records would take more than maxSize bytes; entries without a waiting job are not limited.
	// While the disk has room only for what ends jobs, it returns [ErrDiskFull]. Jobs can also be
	// Held. If an entry has an Update, its Decide is called before the statuses of the entry's jobs
	// are read. Accept returns a [*DuplicateError] if a message with the same Key is stored
	// already, and another error if one with the same ID is. What an Update changes, those of the
	// entries after it find. The entries must not change afterwards. Without entries, it returns an
	// error if it could not store any now.
	Accept(ctx context.Context, maxSize int64, entries ...*Entry) error

	// Now returns the time by the clock that all handles of the store share, or the zero
	// time if there is none: then one process uses the store, or the clock could not be
	// read yet. It asks nobody, so it can be some milliseconds wrong. The clock of the
	// machine has no influence on it.
	Now() time.Time

	// Hash returns the keyed hash of a destination or host. All handles of a store
	// return the same.
	Hash(text string) Hash

	// Claim returns jobs that are due, and marks them as Sending. It takes a slot for each of them
	// with [Claim.Take], and leaves out those for which there is none. The caller gives back slots
	// that were taken for jobs that are not returned. Jobs of one destination come in the order in
	// which they are due. Jobs of known destinations ([Slots.HasOwn]) come
	// first, and destinations take turns across claims. No destination waits for one without a
	// slot: the store puts aside destinations without room, and does not look at them in each
	// claim. It does not look at a job that waits after a [SharedFailure] either, until the
	// destination has its turn. A destination may have a free slot again when one of its jobs is
	// settled or when Wake names it; for other limits, [Slots.Free] tells.
	//
	// next is the earliest known time when another call can return more jobs; it
	// does not consider jobs without a slot. next is the zero time if no other job
	// is queued. Claim can return jobs together with an error.
	//
	// A job whose Updated is more than [ClockTolerance] after c.Now was written before the clock
	// was set back. It is due now, because its Due is wrong; a shared store may notice that some
	// seconds later.
	Claim(ctx context.Context, c Claim) (jobs []Job, next time.Time, err error)

	// Wake makes jobs due that wait for destinations. It returns the destinations with more jobs
	// that it would make due if Max were larger. The change may be lost in a crash.
	Wake(ctx context.Context, w Wake) ([]Hash, error)

	// Health returns the stored states of destinations. If age is not 0, it may leave out states
	// that this handle has stored, and states that were stored longer than age ago.
	Health(ctx context.Context, age time.Duration) ([]Health, error)

	// SaveHealth stores states of destinations. A state that is neither known nor
	// down is removed.
	SaveHealth(ctx context.Context, states ...Health) error

	// Waiting returns what waits for the given destinations, or for all if none is given. It leaves
	// out destinations without waiting jobs. In a shared store, the numbers may be some seconds
	// old.
	Waiting(ctx context.Context, destinations ...Hash) ([]Waiting, error)

	// Renew extends the lease of all jobs that this handle has claimed.
	Renew(ctx context.Context, lease time.Duration) error

	// Settle records the outcome of a job that this handle has claimed. If the
	// handle does not hold the claim, it stores nothing and returns
	// [ErrNotClaimed]. If the settlement has an Update, its Decide is called before
	// the other fields are read.
	Settle(ctx context.Context, s *Settlement) error

	// Update changes records, and jobs that nobody has claimed, in one transaction. It
	// returns [ErrFull] or [ErrDiskFull] only if u.MaxSize is not 0.
	Update(ctx context.Context, u *Update) error

	// Record returns the record with a name, or nil if there is none. It returns a
	// [*DamagedError] if it cannot be read.
	Record(ctx context.Context, name Hash) ([]byte, error)

	// Group returns at most n records of a group, in the order of their names, after the one with
	// the name after. It leaves out damaged records. If it returns fewer than n, no more follow.
	Group(ctx context.Context, group, after Hash, n int) ([]NamedRecord, error)

	// GroupSizes returns how many records each group has. Groups without records are
	// left out. It does not read the records.
	GroupSizes(ctx context.Context) (map[Hash]int, error)

	// DueRecords returns at most n records that are due, ordered by due time and name, after a
	// place. Together they have about [MaxDueSize] bytes at most; more reports whether others
	// follow. A damaged record has no Data.
	DueRecords(ctx context.Context, now time.Time, after DuePlace, n int) (due []DueRecord, more bool, err error)

	// SurplusRecords returns the names of at most n of the records beyond keep, those due first.
	SurplusRecords(ctx context.Context, keep, n int) ([]Hash, error)

	// Load returns a message with Body and Files, for a delivery. The caller calls
	// release when it no longer reads the files. Load returns [ErrNotFound] also when
	// no job of the message waits or is dead, or a [*DamagedError] if the body cannot
	// be read.
	Load(ctx context.Context, id uuid.UUID) (m *Message, release func(), err error)

	// Get returns a message without Body and Files, and all of its jobs, or
	// [ErrNotFound].
	Get(ctx context.Context, id uuid.UUID) (*Entry, error)

	// Batches returns the Summary of each batch (see [IsBatch]) whose ID is at
	// least from and less than to.
	Batches(ctx context.Context, from, to uuid.UUID) ([][]byte, error)

	// List returns at most n jobs that have one of the given statuses, Queued,
	// Sending, Held or Dead, in the order of their IDs. It begins after the job after, or
	// with the first job if after is zero.
	List(ctx context.Context, after JobID, n int, statuses ...Status) ([]Job, error)

	// Messages returns at most n messages without Body and Files, and their jobs, in the reverse
	// order of their IDs. It begins before the message before, or with the last one if before is
	// zero. It includes batches (see [IsBatch]) and leaves out damaged messages. next is the
	// position before which the next messages come; it is zero if there are no more.
	Messages(ctx context.Context, before uuid.UUID, n int) (entries []*Entry, next uuid.UUID, err error)

	// Forget removes messages without a waiting job: first those that finished before the given
	// time, then the oldest until the rest takes at most maxSize bytes, as [KeptSize] counts. A
	// message has finished when the last of its jobs was updated or, without jobs, when it was
	// created. Messages with a dead job or a Key are removed for their size only when no others are
	// left, and a warning in the log has their number in the field "messages". Forget returns the
	// number of messages removed. In a shared store, it does nothing while another handle does so.
	Forget(ctx context.Context, before time.Time, maxSize int64) (int, error)

	// Stats returns counts, which may be some seconds old in a shared store.
	Stats(ctx context.Context) (Stats, error)

	// Changed returns a channel that receives a value when Claim can return more jobs than before:
	// another process has added jobs, Settle has begun, or an update has released jobs that it had
	// locked.
	Changed() <-chan struct{}

	// Close gives up all claims and closes the handle.
	Close() error
}

// Resealer is implemented by stores that seal what they keep.
type Resealer interface {
	// SetSecrets makes the store seal under a secret, and open what was sealed under that or under
	// older ones. The error tells which secret is missing; then nothing changes.
	SetSecrets(ctx context.Context, secret string, older ...string) error

	// Reseal seals records again that were sealed under an older secret, and returns what still
	// needs one. In a shared store, it says that this process seals under its present secret. It is
	// called about each minute.
	Reseal(ctx context.Context) (OldSecrets, error)
}

// OldSecrets is what a store still needs of the secrets before the present one.
type OldSecrets struct {
	Set     bool // the configuration has older secrets
	Records int  // how many records, messages or attachments need one; 0 if the store does not count them
	Used    bool // a process seals under one, or did so some minutes ago, or the store is still looking for what needs one
}

// Needed reports whether something needs an older secret.
func (o OldSecrets) Needed() bool { return o.Records > 0 || o.Used }

// Claim selects the jobs to claim.
type Claim struct {
	Now   time.Time
	Max   int           // maximum number of jobs
	Slots *Slots        // decides which jobs have room; nil for all
	Lease time.Duration // how long the claim lasts unless it is renewed

	// Prefetch decides which jobs are claimed before they have a slot; nil for none.
	Prefetch *Prefetch
}

// ClockTolerance is the maximum difference between the clocks of gateways. A larger difference is
// taken for a clock that was set back.
const ClockTolerance = 5 * time.Second

// Wake selects jobs to make due.
type Wake struct {
	Now          time.Time
	Destinations []Hash

	// Max is the maximum number of jobs of each destination, including jobs that are due already; 0
	// for all. Jobs that are due first come first.
	Max int

	// Force makes jobs due whose NotBefore is later, too. Otherwise they are due at
	// NotBefore.
	Force bool
}

// Waiting is what waits for one destination.
type Waiting struct {
	Destination Hash
	Client      bool      // as [Job.Client]
	Jobs        int       // that are Queued
	Since       time.Time // when the oldest of their messages came in
}

// Settlement is the outcome of a claimed job.
type Settlement struct {
	// Job is the new record: Status is Queued or final, and Updated is now.
	Job *Job
	// Health has the states of destinations to store in the same transaction.
	Health []Health
	// Next, if not nil, is a message to accept in the same transaction. The size
	// limit does not apply to it.
	Next *Entry
	// Deferrable means that the store may wait some milliseconds for other changes,
	// to commit them together.
	Deferrable bool
	// Shared, if not nil, means that another job to the same destination had the
	// attempt that failed. Job is Queued, and only Due, NotBefore and Updated have
	// changed, which the store may lose in a crash. It does the same with other
	// jobs, so that they need not be claimed.
	Shared *SharedFailure
	// Failure, if not nil, is the failed attempt of Job. It counts for other jobs, too (see
	// [SharedFailure]).
	Failure *SharedFailure
	// Update changes records in the same transaction. Its Decide may change Job and
	// Next.
	Update *Update
}

// SharedFailure is a failed attempt to a destination that is down. It counts for all jobs without
// OwnAttempts that were due before it began and have not expired. A store may leave some of many
// such jobs unchanged.
type SharedFailure struct {
	Began time.Time
	Until time.Time // when the destination has its next turn; each of these jobs is due then, or when it expires
}

// Update is a change of records in a transaction. A record is an encrypted text that a store keeps
// under a name, beside the messages. Transactions that name the same record run one after the
// other, even if they are of different handles. A store decides an update with [Update.Run].
type Update struct {
	// Names are the names of the records that Decide uses, each once.
	Names []Hash

	// MaxSize is not 0 if the update adds data, as a message does. Then [Store.Update] refuses it
	// if the records grow and they and the waiting messages would take more than MaxSize bytes, or
	// if the disk is so full that [Store.Accept] refuses messages. Other updates end something, so
	// they are never refused.
	MaxSize int64

	// Decide reads the records and changes them. It may be called several times, and only
	// the last call counts. It does not call the store, which may hold a lock meanwhile. Callers
	// find its error with errors.Is.
	Decide func(tx *Tx) error

	// Size is the approximate size of large records that Decide writes or removes, in bytes.
	Size int

	// Jobs is the maximum number of jobs that Decide changes, in addition to one for each record.
	Jobs int
}

// OwnedRecord is a record of [Tx.PutOwned].
type OwnedRecord struct {
	Name Hash
	Record
}

// Record is the content of a record. Without Data, there is no record.
type Record struct {
	Data  []byte
	Due   time.Time // when [Store.DueRecords] returns it
	Group Hash      // listed by [Store.Group]; the zero value for none
}

// NamedRecord is the content of a record with its name.
type NamedRecord struct {
	Name Hash
	Data []byte
}

// DuePlace is the position of a record in the order in which records are due. The zero value is
// before all records.
type DuePlace struct {
	Due  time.Time
	Name Hash
}

// DueRecord is a record that is due.
type DueRecord struct {
	DuePlace
	Data []byte
}

// MaxDueSize is the size of records that [Store.DueRecords] returns at once, in bytes. One
// record can be larger.
const MaxDueSize = 4 << 20

// JobChange is a change of [Tx.Change].
type JobChange struct {
	ID    JobID
	Apply func(j *Job)
}

// Stats counts what a store holds. Queued includes jobs that are Held.
type Stats struct {
	Queued, Sending, Dead int
	Oldest                time.Time // when the oldest message that waits came in; zero if none waits
	Bytes                 int64     // size of the messages that wait, as [Entry.Size] counts, and of the records
	Records               int64     // size of the records alone: of their data, and about 128 bytes for each
}

// Errors of stores.
var (
	// ErrFull is returned when the messages that wait and the records take too much space.
	ErrFull = errors.New("the queue is full")
	// ErrDiskFull is returned, in an [*UnavailableError], when the disk has room only for ending
	// jobs.
	ErrDiskFull = errors.New("the disk is full: what is left is needed to deliver the messages that wait; make room on it")
	// ErrNotFound is returned when the message is unknown.
	ErrNotFound = errors.New("the queue has no such message")
	// ErrNotClaimed is returned when a job is settled that the handle has not claimed, or after its
	// lease ran out.
	ErrNotClaimed = errors.New("the delivery is not claimed any more")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the queue is closed")
	// ErrChanged is returned by a Decide whose records have changed since they were read. It is no
	// failure: due records are then looked at again.
	ErrChanged = errors.New("it has changed meanwhile")
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

package queue

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
)

// Message holds what all deliveries of one request have in common. Its content
// is opaque to the queue.
type Message struct {
	// ID names the message. [NewID] makes one.
	ID uuid.UUID

	// Created is the time when the message came in.
	Created time.Time

	// Body holds what a delivery needs: the text and how to send it. It is removed
	// when no job waits or is dead.
	Body []byte

	// Summary is kept until the results are forgotten. It must not hold the
	// text. Stores encrypt it.
	Summary []byte

	// Files are stored once for all jobs and removed together with Body.
	Files []File

	// Key is the client's idempotency key, with a prefix that makes it unique
	// among clients; empty for none. Stores keep only its hash.
	Key string

	// EarlierKey is the Key that an earlier version of the program gives the message; empty for
	// none. A message stored with that key is the same. EarlierKey is not stored.
	EarlierKey string

	// Request is a hash of the request that Key belongs to.
	Request []byte

	// StoredSize is the size of the entry in bytes, as [Entry.Size] has counted it when it was
	// stored. [Store.Get] and [Store.Messages] set it.
	StoredSize int64
}

// Keys returns Key and EarlierKey if they are not empty. No stored message may have one of them.
func (m *Message) Keys() (keys []string) {
	for _, key := range []string{m.Key, m.EarlierKey} {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// NewID returns a new ID for a message. IDs sort by time, so that a store
// writes new messages to adjacent pages (UUID version 7, RFC 9562).
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// File is an attachment.
type File struct {
	Size int64 // in bytes
	io.ReaderAt
}

// Status is the state of a delivery.
type Status uint8

// The statuses of a job. A job waits while it is [Queued], [Sending] or [Held].
const (
	Queued     Status = iota + 1 // is sent when it is due
	Sending                      // is being sent
	Delivered                    // has arrived, or there was nothing to send
	Failed                       // has failed for good, and the client knows
	Dead                         // has failed for good, and can be retried
	Cancelled                    // was cancelled or dropped
	Lost                         // cannot be sent, because its record was damaged
	Held                         // is not sent before another job has ended, or while a rule holds it
	Superseded                   // was replaced by a newer message, which tells it
)

// String returns the status in lower case.
func (s Status) String() string {
	switch s {
	case Queued:
		return "queued"
	case Sending:
		return "sending"
	case Delivered:
		return "delivered"
	case Failed:
		return "failed"
	case Dead:
		return "dead"
	case Cancelled:
		return "cancelled"
	case Lost:
		return "lost"
	case Held:
		return "held"
	case Superseded:
		return "superseded"
	}
	return "unknown"
}

// Waits reports whether a job with this status is not final.
func (s Status) Waits() bool { return s == Queued || s == Sending || s == Held }

// JobID names a job.
type JobID struct {
	Message uuid.UUID
	Index   int // of the destination in the message
}

// Compare compares two IDs: the older message first, and of one message the
// first destination.
func (id JobID) Compare(other JobID) int {
	return cmp.Or(bytes.Compare(id.Message[:], other.Message[:]), cmp.Compare(id.Index, other.Index))
}

// The bounds of a message.
const (
	MaxJobs = 1 << 16
	maxBody = 32 << 20 // bytes
)

// Job is one delivery: a message and one destination.
type Job struct {
	JobID

	Status Status

	// Destination identifies the place that the job goes to. Jobs with the same
	// Destination share its limit of deliveries, its turn and its health. Stores
	// encrypt it. It is not empty, and all its jobs have the same Host and Client.
	Destination string

	// Host is the server that the destination is at, for example
	// "push.example.org:443". Jobs with the same Host share its limit of
	// deliveries.
	Host string

	// Client reports whether a client decides the destination, not the operator.
	Client bool

	// OwnAttempts means that the job fails only by its own attempts. Without it, a failed attempt
	// of a destination that is down also counts for its other jobs that were due before the attempt
	// began.
	OwnAttempts bool

	// Text is the size of the message's Body. [Queue.Accept] sets it.
	Text int

	// State holds what the next attempt needs, for example which parts have
	// arrived. It is opaque, and is removed when the job neither waits nor is dead.
	State []byte

	// Result describes the last attempt to clients. It is opaque.
	Result []byte

	// Reason is why the job is dead or lost, without secrets.
	Reason string

	// Attempts is the number of attempts of this job so far.
	Attempts int

	// Due is the time of the next attempt.
	Due time.Time

	// NotBefore is the time before which the destination does not want another
	// attempt; zero for none. Due is not earlier.
	NotBefore time.Time

	// Expires is the time of the last attempt.
	Expires time.Time

	// Spared means that the attempt after Expires came after a restart, a jump of
	// the clock or a pause, so that the job gets one more.
	Spared bool

	// UnknownSince is the time since when the caller does not know the
	// destination; zero if it does.
	UnknownSince time.Time

	// Updated is the time when the record was written.
	Updated time.Time

	// Incident names what the message is about; empty for none. Of the jobs with the
	// same Incident and Destination, at most one is sent at a time, in the order in
	// which they were accepted. Stores encrypt it.
	Incident string

	// NewState reports whether the message tells a new state of the incident, which
	// replaces those before it that wait or are dead. Otherwise it adds something.
	NewState bool

	// Note describes the message to a later one that tells it if it is not
	// delivered. It is opaque and short.
	Note []byte

	// Missed is what the job tells in addition to its message. It is set by [Queue.Accept] for jobs
	// that the caller sends, and before Deliver is called. It is not stored.
	Missed Missed

	// By is the job that has replaced this one, if it is Superseded. If the job is Failed, By is
	// the job that is kept in its place and tells the same, if there is one.
	By JobID

	// Rule names the rule of the caller that holds the job until Due or, if the job is Superseded,
	// that has suppressed it. It is empty for a job that waits for its turn, or that a newer state
	// of its incident has replaced.
	Rule string

	// Ruled holds what the rules need to know about the job when it ends. It is opaque.
	Ruled []byte
}

// TryAgain sets Status, Due and NotBefore of a job whose attempt has failed in a
// way that may get better. Attempts counts that attempt. retryAfter is the
// minimum time that the destination asks for, or 0.
func (j *Job) TryAgain(now time.Time, retryAfter time.Duration) {
	j.tryAgain(now, RetryDelay(j.Attempts), retryAfter)
}

// Hurry makes a Queued job due. It makes a Dead job Queued again, as if it were new, until expires.
func (j *Job) Hurry(now, expires time.Time) {
	if j.Status == Dead {
		j.Status, j.Attempts, j.Expires, j.Reason = Queued, 0, expires, ""
	}
	j.Due, j.NotBefore, j.Spared, j.UnknownSince = now, time.Time{}, false, time.Time{}
}

func (j *Job) tryAgain(now time.Time, delay, retryAfter time.Duration) {
	j.Status, j.Due, j.NotBefore = Queued, now.Add(delay), time.Time{}
	if retryAfter <= 0 {
		return
	}
	j.NotBefore = now.Add(min(retryAfter, MaxRetryAfter))
	if j.Due.Before(j.NotBefore) {
		j.Due = j.NotBefore
	}
}

// Entry is a message with its jobs. Jobs[i] has the index i.
type Entry struct {
	Message *Message
	Jobs    []Job

	// Untrusted means that [Queue.Accept] refuses the message when the queue is
	// half full, so that messages of untrusted clients leave room for others. It
	// is not stored.
	Untrusted bool

	// Update changes records together with the entry. [Queue.Accept] sets it.
	Update *Update

	// Rules, if not nil, decide about the jobs.
	Rules *Ruled

	// Unlimited is set for an entry that replaces waiting jobs or tells of a missing beat.
	// [Queue.Accept] takes it even when the queue is full, and when the disk is full as long as
	// half of the reserve is left.
	Unlimited bool
}

// The approximate overhead of records.
const (
	messageOverhead = 512
	jobOverhead     = 256
)

// Size returns the approximate size of the entry in a store, in bytes.
func (e *Entry) Size() int64 {
	m := e.Message
	n := int64(messageOverhead + len(m.Body) + len(m.Summary))
	for _, f := range m.Files {
		n += f.Size
	}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		n += int64(jobOverhead + len(j.Destination) + len(j.State) + len(j.Result) + len(j.Ruled) + len(j.Incident))
	}
	return n
}

// KeptSize returns the size that a message counts in [Store.Forget] when none of its jobs waits. size is
// its [Entry.Size], jobs the number of its jobs, and dead how many of them are dead. If none is, text and
// files are removed and do not count. A message without jobs has neither.
func KeptSize(size int64, jobs, dead int) int64 {
	if dead > 0 || jobs == 0 {
		return size
	}
	return min(size, int64(messageOverhead+2*jobOverhead*jobs))
}

// Waits reports whether a job of the entry waits.
func (e *Entry) Waits() bool {
	for i := range e.Jobs {
		if e.Jobs[i].Status.Waits() {
			return true
		}
	}
	return false
}

// checkSize returns an error if the entry is too large for every store.
func (e *Entry) checkSize() error {
	if n := len(e.Jobs); n > MaxJobs {
		return fmt.Errorf("the message has %d deliveries; at most %d can be queued", n, MaxJobs)
	}
	if n := len(e.Message.Body); n > maxBody {
		return fmt.Errorf("the message has %d bytes; at most %d can be queued", n, maxBody)
	}
	return nil
}

// complete sets the fields that a caller may leave zero.
func (e *Entry) complete(o *Options, now time.Time) {
	if e.Message.Created.IsZero() {
		e.Message.Created = now
	}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		j.JobID = JobID{e.Message.ID, i}
		j.Updated, j.Text = now, len(e.Message.Body)
		if j.Due.IsZero() {
			j.Due = now
		}
		if j.Expires.IsZero() {
			j.Expires = e.Message.Created.Add(o.MaxAge)
		}
	}
}

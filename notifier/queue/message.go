package queue

import (
	"bytes"
	"cmp"
	"io"
	"sort"
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
	// text.
	Summary []byte

	// Files are stored once for all jobs and removed together with Body.
	Files []File

	// Key is the client's idempotency key, with a prefix that makes it unique
	// among clients; empty for none. Stores keep only its hash.
	Key string

	// Request is a hash of the request that Key belongs to.
	Request []byte
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

// The statuses of a job. A job waits while it is [Queued] or [Sending].
const (
	Queued    Status = iota + 1 // is sent when it is due
	Sending                     // is being sent
	Delivered                   // has arrived, or there was nothing to send
	Failed                      // has failed for good, and the client knows
	Dead                        // has failed for good, and can be retried
	Cancelled                   // was cancelled or dropped
	Lost                        // cannot be sent, because its record was damaged
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
	}
	return "unknown"
}

// Waits reports whether a job with this status is not final.
func (s Status) Waits() bool { return s == Queued || s == Sending }

// JobID names a job.
type JobID struct {
	Message uuid.UUID
	Index   int // of the destination among those of the message
}

// Compare compares two IDs: the older message first, and of one message the
// first destination.
func (id JobID) Compare(other JobID) int {
	return cmp.Or(bytes.Compare(id.Message[:], other.Message[:]), cmp.Compare(id.Index, other.Index))
}

// SortJobs sorts jobs by their IDs. It uses package sort because an instance of
// [slices.SortFunc] for a large struct adds 30 KB to a program.
func SortJobs(jobs []Job) {
	sort.Slice(jobs, func(i, j int) bool { return jobs[i].Compare(jobs[j].JobID) < 0 })
}

// MaxJobs is the maximum number of jobs of a message.
const MaxJobs = 1 << 16

// Job is one delivery: a message and one destination.
type Job struct {
	JobID

	Status Status

	// Destination identifies the place that the job goes to. Jobs with the same
	// Destination share its limit of deliveries and its turn. Stores encrypt it.
	Destination string

	// State holds what the next attempt needs, for example which parts have
	// arrived. It is opaque, and is removed when the job is delivered, cancelled
	// or lost.
	State []byte

	// Result describes the last attempt to clients. It is opaque.
	Result []byte

	// Reason is why the job is dead or lost, without secrets.
	Reason string

	// Attempts is the number of attempts so far.
	Attempts int

	// Due is the time of the next attempt.
	Due time.Time

	// Expires is the time when a job that is not final becomes dead.
	Expires time.Time

	// Updated is the time when the record was written.
	Updated time.Time
}

// Entry is a message with its jobs. Jobs[i] has the index i.
type Entry struct {
	Message *Message
	Jobs    []Job

	// Untrusted means that [Queue.Accept] refuses the message when the queue is
	// half full, so that messages of untrusted clients leave room for others. It
	// is not stored.
	Untrusted bool
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
		n += int64(jobOverhead + len(j.Destination) + len(j.State) + len(j.Result))
	}
	return n
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

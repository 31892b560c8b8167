// Package record encodes messages and jobs for the stores of the queue, which
// seal the records.
package record

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The fields of a message.
const (
	messageCreated wire.Field = iota + 1
	messageSize
	messageJobs
	messageSummary
	messageRequest
	messageKey
	messageFile // size of a file; one for each
	messageDone // a job; one for each
)

// The fields of a job.
const (
	jobStatus wire.Field = iota + 1
	jobSize              // of the entry
	jobAttempts
	jobDue
	jobExpires
	jobUpdated
	jobDestination
	jobState
	jobResult
	jobReason
	jobHost
	jobClient
	jobText
	jobNotBefore
	jobSpared
	jobUnknownSince
	jobIndex // in a message
	jobOwnAttempts
	jobIncident
	jobNewState
	jobNote
	jobBy      // the message
	jobByIndex // the job of it
	jobRule
	jobRuled
)

// The fields of the state of a destination.
const (
	healthHost wire.Field = iota + 1
	healthClient
	healthKnown
	healthFailures
	healthDownSince
	healthLastSuccess
	healthLastError
	healthChanged
	healthAbout
)

// Message is the stored form of a queue.Message without its body.
type Message struct {
	Created time.Time
	Size    int64 // of the whole entry, as queue.Entry.Size counts
	Jobs    int   // how many the message has
	Summary []byte
	Request []byte
	Key     seal.Hash // of the idempotency key; zero for none
	Files   []int64   // sizes
	Done    []queue.Job
}

// JobKeySize is the length of [JobKey].
const JobKeySize = 18

// JobKey returns the ID of a job as bytes that sort as IDs do.
func JobKey(id queue.JobID) []byte { return AppendJobKey(make([]byte, 0, JobKeySize), id) }

// AppendJobKey appends [JobKey] to b.
func AppendJobKey(b []byte, id queue.JobID) []byte {
	return binary.BigEndian.AppendUint16(append(b, id.Message[:]...), uint16(id.Index))
}

// ParseJobKey is the inverse of [JobKey]. b must have JobKeySize bytes.
func ParseJobKey(b []byte) queue.JobID {
	return queue.JobID{Message: uuid.UUID(b[:16]), Index: int(binary.BigEndian.Uint16(b[16:]))}
}

// FileKey returns the ID of the i-th file of a message.
func FileKey(id uuid.UUID, i int) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, 20), id[:]...), uint32(i))
}

// NewMessage returns the record of an entry. It includes the jobs that do not
// wait. key is the hash of the idempotency key.
func NewMessage(e *queue.Entry, key seal.Hash) *Message {
	m := e.Message
	r := &Message{Created: m.Created, Size: e.Size(), Jobs: len(e.Jobs), Summary: m.Summary, Request: m.Request, Key: key}
	for _, f := range m.Files {
		r.Files = append(r.Files, f.Size)
	}
	for _, j := range e.Jobs {
		if !j.Status.Waits() && j.Status != queue.Dead {
			r.Done = append(r.Done, j)
		}
	}
	return r
}

// UpdateOverhead is the approximate overhead of a record of an update.
const UpdateOverhead = 128

// UpdateSize returns the counted size of a sealed record of an update; 0 if there is none.
func UpdateSize(sealed []byte) int64 {
	if len(sealed) == 0 {
		return 0
	}
	return int64(UpdateOverhead + len(sealed))
}

// Encode returns the record as bytes.
func (m *Message) Encode() []byte {
	return m.Append(make([]byte, 0, 64+len(m.Summary)+len(m.Request)+128*len(m.Done)))
}

// Append appends the record to b.
func (m *Message) Append(b []byte) []byte { return wire.Append(b, m, (*Message).fields) }

// DecodeMessage is the inverse of [Message.Encode]. id is the ID of the
// message.
func DecodeMessage(id uuid.UUID, b []byte) (*Message, error) {
	m := new(Message)
	err := wire.Decode(b, m, (*Message).fields)
	for i := range m.Done {
		m.Done[i].Message = id
	}
	return m, err
}

func (m *Message) fields(c *wire.Codec) {
	wire.Time(c, messageCreated, &m.Created)
	wire.Number(c, messageSize, &m.Size)
	wire.Number(c, messageJobs, &m.Jobs)
	wire.Part(c, messageSummary, &m.Summary)
	wire.Part(c, messageRequest, &m.Request)
	wire.Array(c, messageKey, m.Key[:])
	wire.Numbers(c, messageFile, &m.Files)
	wire.Records(c, messageDone, &m.Done, doneFields)
}

// doneFields are the fields of a job that is part of its message.
func doneFields(j *queue.Job, c *wire.Codec) {
	wire.Number(c, jobIndex, &j.Index)
	jobFields(j, c)
}

// jobFields are the fields of a job, without the ones that a final job does not need.
func jobFields(j *queue.Job, c *wire.Codec) {
	wire.Number(c, jobStatus, &j.Status)
	wire.Number(c, jobAttempts, &j.Attempts)
	wire.Time(c, jobDue, &j.Due)
	wire.Time(c, jobExpires, &j.Expires)
	wire.Time(c, jobUpdated, &j.Updated)
	if c.If(j.Status.Waits() || j.Status == queue.Dead) {
		wire.Text(c, jobDestination, &j.Destination)
		wire.Part(c, jobState, &j.State)
		wire.Text(c, jobIncident, &j.Incident)
		wire.True(c, jobNewState, &j.NewState)
		wire.Part(c, jobNote, &j.Note)
		wire.Part(c, jobRuled, &j.Ruled)
	}
	wire.Text(c, jobRule, &j.Rule)
	if c.If(j.Status == queue.Superseded || j.Status == queue.Failed) {
		wire.Array(c, jobBy, j.By.Message[:])
		wire.Number(c, jobByIndex, &j.By.Index)
	}
	wire.Part(c, jobResult, &j.Result)
	wire.Text(c, jobReason, &j.Reason)
	wire.Text(c, jobHost, &j.Host)
	wire.True(c, jobClient, &j.Client)
	wire.Number(c, jobText, &j.Text)
	wire.Time(c, jobNotBefore, &j.NotBefore)
	wire.True(c, jobSpared, &j.Spared)
	wire.True(c, jobOwnAttempts, &j.OwnAttempts)
	wire.Time(c, jobUnknownSince, &j.UnknownSince)
}

// EncodeJob returns a job as bytes.
func EncodeJob(j *queue.Job) []byte {
	return AppendJob(make([]byte, 0, 96+len(j.Destination)+len(j.Host)+len(j.State)+len(j.Result)+len(j.Reason)), j, 0)
}

// AppendJob appends a job to b. size is the size of its entry, if the store reads it when it
// is opened.
func AppendJob(b []byte, j *queue.Job, size int64) []byte {
	return wire.Append(wire.AppendNumber(b, jobSize, size), j, jobFields)
}

// sizedJob is a job with the size of its entry.
type sizedJob struct {
	queue.Job
	size int64
}

func (j *sizedJob) fields(c *wire.Codec) {
	wire.Number(c, jobSize, &j.size)
	jobFields(&j.Job, c)
}

// DecodeJob is the inverse of [AppendJob].
func DecodeJob(id queue.JobID, b []byte) (j *queue.Job, size int64, err error) {
	d := &sizedJob{Job: queue.Job{JobID: id}}
	err = wire.Decode(b, d, (*sizedJob).fields)
	return &d.Job, d.size, err
}

// AppendHealth appends the state of a destination to b.
func AppendHealth(b []byte, h *queue.Health) []byte { return wire.Append(b, h, healthFields) }

// DecodeHealth is the inverse of [AppendHealth].
func DecodeHealth(id queue.Hash, b []byte) (*queue.Health, error) {
	h := &queue.Health{Destination: id}
	err := wire.Decode(b, h, healthFields)
	return h, err
}

func healthFields(h *queue.Health, c *wire.Codec) {
	wire.Text(c, healthHost, &h.Host)
	wire.True(c, healthClient, &h.Client)
	wire.True(c, healthKnown, &h.Known)
	wire.Number(c, healthFailures, &h.Failures)
	wire.Time(c, healthDownSince, &h.DownSince)
	wire.Time(c, healthLastSuccess, &h.LastSuccess)
	wire.Text(c, healthLastError, &h.LastError)
	wire.Time(c, healthChanged, &h.Changed)
	wire.Text(c, healthAbout, &h.About)
}

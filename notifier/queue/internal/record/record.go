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
	Key     *seal.Hash // of the idempotency key; nil for none
	Files   []int64    // sizes
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
// wait.
func NewMessage(e *queue.Entry, key *seal.Hash) *Message {
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

// KeptSize returns the counted size of a message when none of its jobs waits.
// If no job is dead either, text and files are removed and do not count. A
// message without jobs has neither.
func KeptSize(size int64, jobs, dead int) int64 {
	if dead > 0 || jobs == 0 {
		return size
	}
	return min(size, int64(512+512*jobs))
}

// UpdateOverhead is the approximate overhead of a record of an update.
const UpdateOverhead = 128

// UpdateSize returns the counted size of a record of an update, sealed as it is stored. It is
// 0 if there is none.
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
func (m *Message) Append(b []byte) []byte {
	b = wire.AppendTime(b, messageCreated, m.Created)
	b = wire.AppendNumber(b, messageSize, m.Size)
	b = wire.AppendNumber(b, messageJobs, m.Jobs)
	b = wire.AppendText(b, messageSummary, m.Summary)
	b = wire.AppendText(b, messageRequest, m.Request)
	if m.Key != nil {
		b = wire.AppendText(b, messageKey, m.Key[:])
	}
	for _, size := range m.Files {
		b = wire.AppendNumberItem(b, messageFile, size)
	}
	for i := range m.Done {
		j := &m.Done[i]
		b = wire.AppendItem(b, messageDone, AppendJob(wire.AppendNumber(nil, jobIndex, j.Index), j, 0))
	}
	return b
}

// DecodeMessage is the inverse of [Message.Encode]. id is the ID of the
// message.
func DecodeMessage(id uuid.UUID, b []byte) (*Message, error) {
	m := &Message{}
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case messageCreated:
			m.Created = r.Time()
		case messageSize:
			m.Size = r.Int64()
		case messageJobs:
			m.Jobs = r.Int()
		case messageSummary:
			m.Summary = r.Bytes()
		case messageRequest:
			m.Request = r.Bytes()
		case messageKey:
			if key := r.Bytes(); len(key) == seal.HashSize {
				m.Key = (*seal.Hash)(key)
			}
		case messageFile:
			m.Files = append(m.Files, r.Int64())
		case messageDone:
			j, _, err := DecodeJob(queue.JobID{Message: id}, r.Bytes())
			if err != nil {
				return nil, err
			}
			m.Done = append(m.Done, *j)
		}
	}
	return m, r.Err()
}

// EncodeJob returns a job as bytes. size is the size of its entry; a store
// reads it when it is opened. Destination and State of a final job are left
// out.
func EncodeJob(j *queue.Job, size int64) []byte {
	return AppendJob(make([]byte, 0, 96+len(j.Destination)+len(j.Host)+len(j.State)+len(j.Result)+len(j.Reason)), j, size)
}

// AppendJob appends [EncodeJob] to b.
func AppendJob(b []byte, j *queue.Job, size int64) []byte {
	b = wire.AppendNumber(b, jobStatus, j.Status)
	b = wire.AppendNumber(b, jobSize, size)
	b = wire.AppendNumber(b, jobAttempts, j.Attempts)
	b = wire.AppendTime(b, jobDue, j.Due)
	b = wire.AppendTime(b, jobExpires, j.Expires)
	b = wire.AppendTime(b, jobUpdated, j.Updated)
	if j.Status.Waits() || j.Status == queue.Dead {
		b = wire.AppendText(b, jobDestination, j.Destination)
		b = wire.AppendText(b, jobState, j.State)
		b = wire.AppendText(b, jobIncident, j.Incident)
		b = wire.AppendTrue(b, jobNewState, j.NewState)
		b = wire.AppendText(b, jobNote, j.Note)
		b = wire.AppendText(b, jobRuled, j.Ruled)
	}
	b = wire.AppendText(b, jobRule, j.Rule)
	if j.Status == queue.Superseded || j.Status == queue.Failed && j.By != (queue.JobID{}) {
		b = wire.AppendText(b, jobBy, j.By.Message[:])
		b = wire.AppendNumber(b, jobByIndex, j.By.Index)
	}
	b = wire.AppendText(b, jobResult, j.Result)
	b = wire.AppendText(b, jobReason, j.Reason)
	b = wire.AppendText(b, jobHost, j.Host)
	b = wire.AppendTrue(b, jobClient, j.Client)
	b = wire.AppendNumber(b, jobText, j.Text)
	b = wire.AppendTime(b, jobNotBefore, j.NotBefore)
	b = wire.AppendTrue(b, jobSpared, j.Spared)
	b = wire.AppendTrue(b, jobOwnAttempts, j.OwnAttempts)
	return wire.AppendTime(b, jobUnknownSince, j.UnknownSince)
}

// DecodeJob is the inverse of [EncodeJob].
func DecodeJob(id queue.JobID, b []byte) (j *queue.Job, size int64, err error) {
	j = &queue.Job{JobID: id}
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case jobStatus:
			j.Status = queue.Status(r.Int())
		case jobSize:
			size = r.Int64()
		case jobAttempts:
			j.Attempts = r.Int()
		case jobDue:
			j.Due = r.Time()
		case jobExpires:
			j.Expires = r.Time()
		case jobUpdated:
			j.Updated = r.Time()
		case jobDestination:
			j.Destination = r.Text()
		case jobState:
			j.State = r.Bytes()
		case jobResult:
			j.Result = r.Bytes()
		case jobReason:
			j.Reason = r.Text()
		case jobHost:
			j.Host = r.Text()
		case jobClient:
			j.Client = r.Bool()
		case jobText:
			j.Text = r.Int()
		case jobNotBefore:
			j.NotBefore = r.Time()
		case jobSpared:
			j.Spared = r.Bool()
		case jobUnknownSince:
			j.UnknownSince = r.Time()
		case jobIndex:
			j.Index = r.Int()
		case jobOwnAttempts:
			j.OwnAttempts = r.Bool()
		case jobIncident:
			j.Incident = r.Text()
		case jobNewState:
			j.NewState = r.Bool()
		case jobNote:
			j.Note = r.Bytes()
		case jobBy:
			copy(j.By.Message[:], r.Bytes())
		case jobByIndex:
			j.By.Index = r.Int()
		case jobRule:
			j.Rule = r.Text()
		case jobRuled:
			j.Ruled = r.Bytes()
		}
	}
	return j, size, r.Err()
}

// AppendHealth appends the state of a destination to b.
func AppendHealth(b []byte, h *queue.Health) []byte {
	b = wire.AppendText(b, healthHost, h.Host)
	b = wire.AppendTrue(b, healthClient, h.Client)
	b = wire.AppendTrue(b, healthKnown, h.Known)
	b = wire.AppendNumber(b, healthFailures, h.Failures)
	b = wire.AppendTime(b, healthDownSince, h.DownSince)
	b = wire.AppendTime(b, healthLastSuccess, h.LastSuccess)
	b = wire.AppendText(b, healthLastError, h.LastError)
	b = wire.AppendTime(b, healthChanged, h.Changed)
	return wire.AppendText(b, healthAbout, h.About)
}

// DecodeHealth is the inverse of [AppendHealth].
func DecodeHealth(id queue.Hash, b []byte) (*queue.Health, error) {
	h := &queue.Health{Destination: id}
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case healthHost:
			h.Host = r.Text()
		case healthClient:
			h.Client = r.Bool()
		case healthKnown:
			h.Known = r.Bool()
		case healthFailures:
			h.Failures = r.Int()
		case healthDownSince:
			h.DownSince = r.Time()
		case healthLastSuccess:
			h.LastSuccess = r.Time()
		case healthLastError:
			h.LastError = r.Text()
		case healthChanged:
			h.Changed = r.Time()
		case healthAbout:
			h.About = r.Text()
		}
	}
	return h, r.Err()
}

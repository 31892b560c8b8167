// Package record encodes messages and jobs for the stores of the queue, which
// seal the records.
package record

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// version is the first byte of every record.
const version = 1

// ErrFormat is returned for a record that a later version has written.
var ErrFormat = errors.New("a stored record has an unknown format")

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

// Encode returns the record as bytes.
func (m *Message) Encode() []byte {
	return m.Append(make([]byte, 0, 64+len(m.Summary)+len(m.Request)+128*len(m.Done)))
}

// Append appends the record to b.
func (m *Message) Append(b []byte) []byte {
	b = append(b, version)
	b = appendTime(b, m.Created)
	b = binary.AppendVarint(b, m.Size)
	b = binary.AppendUvarint(b, uint64(m.Jobs))
	b = appendBytes(b, m.Summary)
	b = appendBytes(b, m.Request)
	if m.Key != nil {
		b = appendBytes(b, m.Key[:])
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Files)))
	for _, n := range m.Files {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Done)))
	for i := range m.Done {
		b = binary.AppendUvarint(b, uint64(m.Done[i].Index))
		b = appendBytes(b, EncodeJob(&m.Done[i], 0))
	}
	return b
}

// DecodeMessage is the inverse of [Message.Encode]. id is the ID of the
// message.
func DecodeMessage(id uuid.UUID, b []byte) (*Message, error) {
	d := decoder{b: b}
	d.version()
	m := &Message{Created: d.time(), Size: d.varint(), Jobs: int(d.uvarint()), Summary: d.bytes(), Request: d.bytes()}
	if key := d.bytes(); len(key) == seal.HashSize {
		m.Key = (*seal.Hash)(key)
	}
	for range d.count() {
		m.Files = append(m.Files, d.varint())
	}
	for range d.count() {
		index := int(d.uvarint())
		j, _, err := DecodeJob(queue.JobID{Message: id, Index: index}, d.bytes())
		if err != nil {
			return nil, err
		}
		m.Done = append(m.Done, *j)
	}
	return m, d.err
}

// EncodeJob returns a job as bytes. size is the size of its entry; a store
// reads it when it is opened. Destination and State of a final job are left
// out.
func EncodeJob(j *queue.Job, size int64) []byte {
	return AppendJob(make([]byte, 0, 64+len(j.Destination)+len(j.State)+len(j.Result)+len(j.Reason)), j, size)
}

// AppendJob appends [EncodeJob] to b.
func AppendJob(b []byte, j *queue.Job, size int64) []byte {
	state, destination := j.State, j.Destination
	if !j.Status.Waits() && j.Status != queue.Dead {
		state, destination = nil, ""
	}
	b = append(b, version, byte(j.Status))
	b = binary.AppendVarint(b, size)
	b = binary.AppendUvarint(b, uint64(j.Attempts))
	b = appendTime(b, j.Due)
	b = appendTime(b, j.Expires)
	b = appendTime(b, j.Updated)
	b = appendBytes(b, destination)
	b = appendBytes(b, state)
	b = appendBytes(b, j.Result)
	return appendBytes(b, j.Reason)
}

// DecodeJob is the inverse of [EncodeJob].
func DecodeJob(id queue.JobID, b []byte) (*queue.Job, int64, error) {
	d := decoder{b: b}
	d.version()
	j := &queue.Job{JobID: id, Status: queue.Status(d.byte())}
	size := d.varint()
	j.Attempts = int(d.uvarint())
	j.Due, j.Expires, j.Updated = d.time(), d.time(), d.time()
	j.Destination, j.State, j.Result, j.Reason = string(d.bytes()), d.bytes(), d.bytes(), string(d.bytes())
	return j, size, d.err
}

func appendBytes[T []byte | string](b []byte, data T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// appendTime appends t in microseconds since 1970; the zero time is 0.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, 0)
	}
	return binary.AppendVarint(b, t.UnixMicro())
}

// decoder reads values until the first error.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	d.b, d.err = nil, ErrFormat
}

func (d *decoder) version() {
	if d.byte() != version {
		d.fail()
	}
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	b := d.b[0]
	d.b = d.b[1:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

// skip skips a number that takes n bytes. It fails if n is not positive.
func (d *decoder) skip(n int) {
	if n <= 0 {
		d.fail()
		return
	}
	d.b = d.b[n:]
}

// count reads a number of items. It fails if the rest cannot hold so many items
// of one byte each.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// bytes reads a length and as many bytes. It returns nil for no bytes.
func (d *decoder) bytes() []byte {
	n := d.count()
	if n == 0 {
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) time() time.Time {
	v := d.varint()
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMicro(v)
}

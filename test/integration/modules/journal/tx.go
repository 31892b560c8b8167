package journal

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

const noLimit = math.MaxInt64

// tx is a transaction. It holds the lock of the store, so that nothing else changes. Entries of one
// call see what those before them have changed.
type tx struct {
	change
	s        *Store
	records  map[queue.Hash]queue.Record
	jobs     map[queue.JobID]int // in change.Jobs
	messages map[uuid.UUID]*message
	keys     map[string]*message
	size     int64 // by how much what is stored grows
}

func (s *Store) begin() *tx {
	return &tx{
		s: s, records: map[queue.Hash]queue.Record{}, jobs: map[queue.JobID]int{},
		messages: map[uuid.UUID]*message{}, keys: map[string]*message{},
	}
}

// transaction stores what f changes, or nothing if it fails.
func (s *Store) transaction(f func(*tx) error) error {
	return s.locked(func() error {
		t := s.begin()
		if err := f(t); err != nil || t.empty() {
			return err
		}
		return s.commit(&t.change)
	})
}

func (c *change) empty() bool {
	return len(c.Messages)+len(c.Jobs)+len(c.Forgotten)+len(c.Records)+len(c.Health) == 0
}

// record returns a record as it is in the transaction.
func (t *tx) record(name queue.Hash) queue.Record {
	if r, ok := t.records[name]; ok {
		return r
	}
	return t.s.records[name]
}

// job returns a job as it is in the transaction, or nil.
func (t *tx) job(id queue.JobID) *queue.Job {
	if i, ok := t.jobs[id]; ok {
		return &t.Jobs[i]
	}
	if m := t.messages[id.Message]; m != nil && id.Index < len(m.Jobs) {
		return &m.Jobs[id.Index]
	}
	return t.s.job(id)
}

// setJob changes a job.
func (t *tx) setJob(j queue.Job) {
	tidy(&j)
	switch i, ok := t.jobs[j.JobID]; {
	case ok:
		t.Jobs[i] = j
	case t.messages[j.Message] != nil:
		t.messages[j.Message].Jobs[j.Index] = j
	default:
		t.jobs[j.JobID] = len(t.Jobs)
		t.Jobs = append(t.Jobs, j)
	}
}

// tidy removes what is not stored of a job.
func tidy(j *queue.Job) {
	j.Missed = queue.Missed{}
	if !j.Status.Waits() && j.Status != queue.Dead {
		j.State = nil
	}
}

func (t *tx) setRecord(name queue.Hash, r queue.Record) {
	t.size += sizeOf(r) - sizeOf(t.record(name))
	t.records[name] = r
	t.Records = append(t.Records, queue.OwnedRecord{Name: name, Record: r})
}

// decide makes the changes of an update, which can be nil.
func (t *tx) decide(u *queue.Update) error {
	if u == nil {
		return nil
	}
	old := make([][]byte, len(u.Names))
	for i, name := range u.Names {
		old[i] = t.record(name).Data
	}
	decided, err := u.Run(old, func(ids []queue.JobID) ([]queue.Status, error) {
		statuses := make([]queue.Status, len(ids))
		for i, id := range ids {
			if j := t.job(id); j != nil {
				statuses[i] = j.Status
			}
		}
		return statuses, nil
	})
	if err != nil {
		return err
	}
	before := t.size
	for i, name := range u.Names {
		if r, ok := decided.Changed(i); ok {
			t.setRecord(name, r)
		}
	}
	for _, r := range decided.Owned() {
		t.setRecord(r.Name, r.Record)
	}
	if u.MaxSize > 0 && t.size > before && t.s.waiting+t.s.bytes+t.size > u.MaxSize {
		return queue.ErrFull
	}
	for _, c := range decided.Jobs() {
		j := t.job(c.ID)
		if j == nil || j.Status != queue.Queued && j.Status != queue.Held && j.Status != queue.Dead {
			return fmt.Errorf("delivery %d of message %s cannot be changed", c.ID.Index+1, c.ID.Message)
		}
		changed := *j
		c.Apply(&changed)
		t.setJob(changed)
	}
	return nil
}

// accept adds an entry.
func (t *tx) accept(e *queue.Entry, maxSize int64) error {
	id := e.Message.ID
	if t.s.messages[id] != nil || t.messages[id] != nil {
		return fmt.Errorf("message %s is stored already", id)
	}
	for _, key := range e.Message.Keys() {
		m := t.keys[key]
		if first, ok := t.s.keys[key]; ok {
			m = t.s.messages[first]
		}
		if m != nil {
			return &queue.DuplicateError{ID: m.Message.ID, SameRequest: bytes.Equal(m.Message.Request, e.Message.Request)}
		}
	}
	if err := t.decide(e.Update); err != nil {
		return err
	}
	m := &message{Message: *e.Message, Jobs: slices.Clone(e.Jobs)}
	m.Message.StoredSize, m.Message.EarlierKey, m.Message.Files = e.Size(), "", nil
	for i := range m.Jobs {
		tidy(&m.Jobs[i])
	}
	if e.Waits() {
		if t.size += e.Size(); t.s.waiting+t.s.bytes+t.size > maxSize {
			return queue.ErrFull
		}
	}
	var err error
	if m.Files, err = readFiles(e.Message.Files); err != nil {
		return err
	}
	t.Messages, t.messages[id] = append(t.Messages, m), m
	if m.Message.Key != "" {
		t.keys[m.Message.Key] = m
	}
	return nil
}

// finished returns when the last job of a message has ended, and the size that the message counts since
// then. lasting reports whether others are forgotten before it.
func (m *message) finished() (at time.Time, size int64, lasting bool) {
	at, lasting = m.Message.Created, m.Message.Key != ""
	dead := 0
	for i := range m.Jobs {
		if j := &m.Jobs[i]; j.Updated.After(at) {
			at = j.Updated
		}
		if m.Jobs[i].Status == queue.Dead {
			dead++
		}
	}
	return at, queue.KeptSize(m.Message.StoredSize, len(m.Jobs), dead), lasting || dead > 0
}

// forget forgets the messages that have ended before a time, and then others until the rest takes at
// most maxSize bytes. It returns the number of others that have a dead job or a key.
func (t *tx) forget(before time.Time, maxSize int64) (early int) {
	type row struct {
		id      uuid.UUID
		at      time.Time
		size    int64
		lasting bool
	}
	var rows []row
	var size int64
	for id, m := range t.s.messages {
		if waits, _ := m.waits(); waits {
			continue
		}
		r := row{id: id}
		if r.at, r.size, r.lasting = m.finished(); r.at.Before(before) {
			t.Forgotten = append(t.Forgotten, id)
			continue
		}
		rows = append(rows, r)
		size += r.size
	}
	slices.SortFunc(rows, func(a, b row) int {
		if a.lasting != b.lasting {
			if b.lasting {
				return -1
			}
			return 1
		}
		return a.at.Compare(b.at)
	})
	for _, r := range rows {
		if size <= maxSize {
			break
		}
		size -= r.size
		t.Forgotten = append(t.Forgotten, r.id)
		if r.lasting {
			early++
		}
	}
	return early
}

package bolt

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The bounds of the recent messages.
const (
	maxRecent = 8 << 20 // bytes, as queue.Entry.Size counts
	recentAge = 5 * time.Second
)

// recent holds stored messages whose delivery is about to begin, so that it
// does not have to read and decrypt them. Messages with files are left out. If
// there is no room, messages older than recentAge make room; they belong to
// destinations that are slow.
type recent struct {
	mu       sync.Mutex
	messages map[uuid.UUID]*recentMessage
	order    []*recentMessage // by time, with some that have been removed
	size     int64
}

type recentMessage struct {
	id      uuid.UUID
	message *queue.Message // nil if it has been removed
	jobs    []queue.Job    // of the entry; they must not change
	there   []uint64       // a bit for each job, set unless the job is to be read from the database
	one     [1]uint64      // the room of there for 64 jobs
	left    int            // bits of there
	size    int64
	added   time.Time
}

// has reports whether the i-th job is as it was accepted.
func (m *recentMessage) has(i int) bool { return m.there[i/64]>>(i%64)&1 != 0 }

// add adds an entry that has been stored, if one of its jobs is due.
func (r *recent) add(e *queue.Entry, now time.Time) {
	if len(e.Message.Files) > 0 {
		return
	}
	m := &recentMessage{id: e.Message.ID, message: e.Message, jobs: e.Jobs, size: e.Size(), added: now}
	if m.there = m.one[:]; len(m.jobs) > 64 {
		m.there = make([]uint64, (len(m.jobs)+63)/64)
	}
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Status == queue.Queued && !j.Due.After(now) {
			m.there[i/64] |= 1 << (i % 64)
			m.left++
		}
	}
	if m.left == 0 || m.size > maxRecent {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.size+m.size > maxRecent {
		first := r.order[0]
		if first.message != nil && now.Sub(first.added) < recentAge {
			return
		}
		r.removeFirst()
	}
	if len(r.order) > 64+2*len(r.messages) {
		r.order = slices.DeleteFunc(r.order, func(m *recentMessage) bool { return m.message == nil })
	}
	if r.messages == nil {
		r.messages = map[uuid.UUID]*recentMessage{}
	}
	r.messages[m.id] = m
	r.order = append(r.order, m)
	r.size += m.size
}

// forget removes the messages that were added before a time.
func (r *recent) forget(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 && r.order[0].added.Before(before) {
		r.removeFirst()
	}
}

// removeFirst removes the oldest message. The caller holds the lock.
func (r *recent) removeFirst() {
	r.remove(r.order[0])
	r.order[0] = nil
	r.order = r.order[1:]
}

// remove removes a message, unless it has been removed before. The caller holds the lock.
func (r *recent) remove(m *recentMessage) {
	if m.message == nil {
		return
	}
	delete(r.messages, m.id)
	r.size -= m.size
	m.message, m.jobs = nil, nil
}

// job returns a job as it was accepted, which must not change, or nil.
func (r *recent) job(id queue.JobID) *queue.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.messages[id.Message]
	if m == nil || !m.has(id.Index) {
		return nil
	}
	return &m.jobs[id.Index]
}

// message returns a copy of a message, or nil.
func (r *recent) message(id uuid.UUID) *queue.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.messages[id]
	if m == nil {
		return nil
	}
	out := *m.message
	out.Key = ""
	return &out
}

// changed removes a job whose record changes.
func (r *recent) changed(id queue.JobID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.messages[id.Message]
	if m == nil || !m.has(id.Index) {
		return
	}
	m.there[id.Index/64] &^= 1 << (id.Index % 64)
	if m.left--; m.left == 0 {
		r.remove(m)
	}
}

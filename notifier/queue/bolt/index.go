package bolt

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// index finds the next job. It holds about 200 bytes for each job that waits or
// is dead, and no content.
type index struct {
	mu           sync.Mutex
	messages     map[uuid.UUID]*message
	destinations map[seal.Hash]*destination

	timed timedHeap      // destinations with a queued job, by the due time of their first
	ready []*destination // destinations with a due job, in order of their turns

	queued, sending, dead int
	waiting               int64 // bytes of the messages that wait
}

// message is a message with a job that waits or is dead.
type message struct {
	id      uuid.UUID
	created int64 // in microseconds since 1970, like all times of the index
	size    int64
	files   int
	waiting int // jobs
	dead    int
	jobs    []*job
	one     [1]*job // the room of jobs for one
}

type job struct {
	message     *message
	destination *destination
	due         int64
	expires     int64
	place       int32 // in the heap of its destination; -1 if it is not queued
	index       uint16
	status      queue.Status
	settling    bool // its outcome is being written
	cancelling  bool // it is Sending or Dead while its cancellation is written
}

func (j *job) id() queue.JobID { return queue.JobID{Message: j.message.id, Index: int(j.index)} }

// destination holds the queued jobs of one destination.
type destination struct {
	hash    seal.Hash
	queued  jobHeap
	claimed int // jobs that are Sending, without those whose outcome is being written
	turn    turn
	place   int // in index.timed
}

// turn is the list of the index that a destination is in.
type turn uint8

const (
	noTurn    turn = iota // it has no queued job, or has reached its limit
	timedTurn             // in index.timed
	readyTurn             // in index.ready
)

func newIndex() *index {
	return &index{messages: map[uuid.UUID]*message{}, destinations: map[seal.Hash]*destination{}}
}

// replace replaces the content of x with that of an index read from the
// database. Claimed jobs stay claimed.
func (x *index) replace(other *index) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.messages {
		for _, j := range m.jobs {
			if j.status != queue.Sending || j.cancelling {
				continue
			}
			if now := other.find(j.id()); now != nil && now.status == queue.Queued {
				other.set(now, queue.Sending)
			}
		}
	}
	x.messages, x.destinations, x.timed, x.ready = other.messages, other.destinations, other.timed, other.ready
	x.queued, x.sending, x.dead, x.waiting = other.queued, other.sending, other.dead, other.waiting
}

// add adds a job that waits or is dead to a message of the index.
func (x *index) add(m *message, i int, hash seal.Hash, status queue.Status, due, expires int64) {
	d := x.destinations[hash]
	if d == nil {
		d = &destination{hash: hash}
	}
	j := &job{message: m, destination: d, due: due, expires: expires, place: -1, index: uint16(i)}
	if len(m.jobs) == 0 {
		x.messages[m.id] = m
		m.jobs = m.one[:0]
	}
	m.jobs = append(m.jobs, j)
	x.set(j, status)
}

// set changes the status of a job. A final job leaves the index.
func (x *index) set(j *job, status queue.Status) {
	m, d := j.message, j.destination
	x.count(m, j.status, -1)
	switch j.status {
	case queue.Queued:
		heap.Remove(&d.queued, int(j.place))
	case queue.Sending:
		if !j.settling {
			d.claimed--
		}
	}
	x.reschedule(d)
	j.status, j.settling, j.cancelling = status, false, false
	x.count(m, status, 1)
	if status.Waits() {
		d = x.attach(j)
	}
	switch status {
	case queue.Queued:
		heap.Push(&d.queued, j)
	case queue.Sending:
		d.claimed++
	case queue.Dead:
	default:
		m.jobs = slices.DeleteFunc(m.jobs, func(o *job) bool { return o == j })
		if len(m.jobs) == 0 {
			delete(x.messages, m.id)
		}
	}
	x.reschedule(d)
}

// attach returns the destination of a job that waits. The destination may have
// left the index while the job was dead or its outcome was being written.
func (x *index) attach(j *job) *destination {
	d := j.destination
	if other := x.destinations[d.hash]; other != nil {
		d = other
	}
	x.destinations[d.hash], j.destination = d, d
	return d
}

// beginSettling marks a claimed job as being settled. Its delivery has ended, so
// its destination has room for another one. It reports whether there is one.
func (x *index) beginSettling(j *job) bool {
	d := j.destination
	j.settling = true
	d.claimed--
	x.reschedule(d)
	return len(d.queued) > 0
}

// stopSettling is the inverse of beginSettling.
func (x *index) stopSettling(j *job) {
	j.settling = false
	x.attach(j).claimed++
}

func (x *index) count(m *message, status queue.Status, n int) {
	before := m.waiting
	switch status {
	case queue.Queued:
		x.queued += n
	case queue.Sending:
		x.sending += n
	case queue.Dead:
		x.dead += n
		m.dead += n
	}
	if status.Waits() {
		m.waiting += n
	}
	switch {
	case before == 0 && m.waiting > 0:
		x.waiting += m.size
	case before > 0 && m.waiting == 0:
		x.waiting -= m.size
	}
}

// reschedule moves a destination to the place of its first queued job. A
// destination that is ready keeps its turn.
func (x *index) reschedule(d *destination) {
	switch {
	case d.turn == readyTurn:
	case len(d.queued) > 0 && d.turn == timedTurn:
		heap.Fix(&x.timed, d.place)
	case len(d.queued) > 0:
		d.turn = timedTurn
		heap.Push(&x.timed, d)
	case d.turn == timedTurn:
		heap.Remove(&x.timed, d.place)
		d.turn = noTurn
	}
	if len(d.queued) == 0 && d.claimed == 0 && d.turn == noTurn && x.destinations[d.hash] == d {
		delete(x.destinations, d.hash)
	}
}

// claim marks jobs that are due as Sending. Destinations take turns. next is
// the time when more jobs are due, or 0 if none is queued.
func (x *index) claim(now int64, n, limit int) (claimed []*job, next int64) {
	for len(x.timed) > 0 && x.timed[0].queued[0].due <= now {
		d := heap.Pop(&x.timed).(*destination)
		d.turn = readyTurn
		x.ready = append(x.ready, d)
	}
	for len(x.ready) > 0 && len(claimed) < n {
		d := x.ready[0]
		x.ready[0] = nil
		x.ready = x.ready[1:]
		if d.claimed >= limit {
			d.turn = noTurn // until one of the claimed jobs is settled
			continue
		}
		if len(d.queued) > 0 && d.queued[0].due <= now {
			j := d.queued[0]
			x.set(j, queue.Sending)
			claimed = append(claimed, j)
		}
		if len(d.queued) > 0 && d.queued[0].due <= now {
			x.ready = append(x.ready, d)
			continue
		}
		d.turn = noTurn
		x.reschedule(d)
	}
	switch {
	case len(x.ready) > 0:
		next = now
	case len(x.timed) > 0:
		next = x.timed[0].queued[0].due
	}
	return claimed, next
}

// find returns a job that waits or is dead, or nil.
func (x *index) find(id queue.JobID) *job {
	if m := x.messages[id.Message]; m != nil {
		for _, j := range m.jobs {
			if int(j.index) == id.Index {
				return j
			}
		}
	}
	return nil
}

// list returns at most n jobs for which keep returns true, in the order of
// their IDs. It begins after the job after.
func (x *index) list(after queue.JobID, n int, keep func(*job) bool) []*job {
	var all []*job
	for _, m := range x.messages {
		for _, j := range m.jobs {
			if keep(j) && j.id().Compare(after) > 0 {
				all = append(all, j)
			}
		}
	}
	slices.SortFunc(all, func(a, b *job) int { return a.id().Compare(b.id()) })
	return all[:min(n, len(all))]
}

func (x *index) stats() queue.Stats {
	s := queue.Stats{Queued: x.queued, Sending: x.sending, Dead: x.dead, Bytes: x.waiting}
	var oldest int64
	for _, m := range x.messages {
		if m.waiting > 0 && (oldest == 0 || m.created < oldest) {
			oldest = m.created
		}
	}
	if oldest != 0 {
		s.Oldest = time.UnixMicro(oldest)
	}
	return s
}

// jobHeap is a heap of jobs by due time.
type jobHeap []*job

func (h jobHeap) Len() int { return len(h) }
func (h jobHeap) Less(a, b int) bool {
	if h[a].due != h[b].due {
		return h[a].due < h[b].due
	}
	return h[a].id().Compare(h[b].id()) < 0
}

func (h jobHeap) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].place, h[b].place = int32(a), int32(b)
}

func (h *jobHeap) Push(v any) {
	j := v.(*job)
	j.place = int32(len(*h))
	*h = append(*h, j)
}

func (h *jobHeap) Pop() any {
	old := *h
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	j.place = -1
	return j
}

// timedHeap is a heap of destinations by the due time of their first job.
type timedHeap []*destination

func (h timedHeap) Len() int           { return len(h) }
func (h timedHeap) Less(a, b int) bool { return h[a].queued[0].due < h[b].queued[0].due }
func (h timedHeap) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].place, h[b].place = a, b
}

func (h *timedHeap) Push(v any) {
	d := v.(*destination)
	d.place = len(*h)
	*h = append(*h, d)
}

func (h *timedHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}

package bolt

import (
	"container/heap"
	"container/list"
	"math"
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

	timed  timedHeap                 // destinations with a queued job, by the due time of their first
	ready  [2][]*destination         // destinations with a due job, by turn: with their own slots, and the others
	parked map[queue.Full]*list.List // destinations with a due job that wait for a limit other than their own

	latest int64 // no queued job has a later time updated

	queued, sending, dead int   // queued includes those that are held
	waiting               int64 // bytes of the messages that wait
	oldest                messageHeap

	records *records
}

// message is a message with a job that waits or is dead.
type message struct {
	id      uuid.UUID
	created int64 // in microseconds since 1970, like all times of the index
	size    int64
	files   int
	text    uint32 // size of the body
	waiting int32  // jobs
	dead    int32
	place   int32  // in index.oldest
	unkeyed bool   // it is known to have no idempotency key
	own     bool   // its jobs need attempts of their own
	jobs    []*job // in the order of their indexes

	// Most messages have one job. This is its room, so that there is less for the
	// garbage collector to visit.
	one   [1]*job
	first job
}

type job struct {
	message     *message
	destination *destination
	due         int64
	updated     int64
	slack       uint32 // how many seconds earlier than due it may be due
	expires     uint32 // in seconds since 1970, rounded up
	place       int32  // in a heap of its destination; -1 if it is not queued
	index       uint16
	status      queue.Status
	writing     writing
}

// writing is what is being written about a job.
type writing uint8

const (
	nothing    writing = iota
	settling           // its outcome
	cancelling         // its cancellation, while it is Sending or Dead
)

func (j *job) id() queue.JobID { return queue.JobID{Message: j.message.id, Index: int(j.index)} }

// settleable reports whether j, which may be nil, is claimed and nobody settles or
// cancels it.
func (j *job) settleable() bool {
	return j != nil && j.status == queue.Sending && j.writing == nothing
}

// jobTimes are the times of a job in the index.
type jobTimes struct {
	due, updated   int64
	slack, expires uint32
}

func timesOf(j *queue.Job) jobTimes {
	t := jobTimes{due: j.Due.UnixMicro(), updated: j.Updated.UnixMicro(), slack: math.MaxUint32}
	t.expires = uint32(min(max(j.Expires.Unix()+1, 0), math.MaxUint32))
	if !j.NotBefore.IsZero() {
		t.slack = uint32(min(max(j.Due.Sub(j.NotBefore)/time.Second, 0), math.MaxUint32))
	}
	return t
}

func (j *job) setTimes(t jobTimes) {
	j.due, j.updated, j.slack, j.expires = t.due, t.updated, t.slack, t.expires
}

// destination holds the queued jobs of one destination.
type destination struct {
	hash, host seal.Hash
	client     bool
	turn       turn
	place      int // in index.timed
	parked     *list.Element
	limit      queue.Full // the list of index.parked that has it
	queued     jobHeap    // jobs that can be due earlier
	firm       jobHeap    // jobs that cannot
}

// jobs returns the heap that a queued job belongs into.
func (d *destination) jobs(j *job) *jobHeap {
	if j.slack == 0 {
		return &d.firm
	}
	return &d.queued
}

func (d *destination) len() int { return len(d.queued) + len(d.firm) }

// first returns the job that is due first. There must be one.
func (d *destination) first() *job {
	if len(d.queued) == 0 || len(d.firm) > 0 && d.firm.before(d.firm[0], d.queued[0]) {
		return d.firm[0]
	}
	return d.queued[0]
}

// turn is the list of the index that a destination is in.
type turn uint8

const (
	noTurn     turn = iota // it has no queued job, or has reached its limit
	timedTurn              // in index.timed
	readyTurn              // in index.ready
	parkedTurn             // in index.parked
)

func newIndex() *index {
	return &index{
		messages: map[uuid.UUID]*message{}, destinations: map[seal.Hash]*destination{}, parked: map[queue.Full]*list.List{},
		records: newRecords(),
	}
}

// replace replaces the content of x with the content of an index read from the
// database. Claimed jobs stay claimed.
func (x *index) replace(other *index) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.messages {
		for _, j := range m.jobs {
			if j.status != queue.Sending || j.writing == cancelling {
				continue
			}
			if now := other.find(j.id()); now != nil && now.status == queue.Queued {
				other.set(now, queue.Sending)
			}
		}
	}
	x.messages, x.destinations, x.timed, x.ready, x.parked = other.messages, other.destinations, other.timed, other.ready, other.parked
	x.latest, x.records = other.latest, other.records
	x.queued, x.sending, x.dead, x.waiting, x.oldest = other.queued, other.sending, other.dead, other.waiting, other.oldest
}

// place is where a job goes: its destination and host.
type place struct {
	destination, host seal.Hash
	client            bool
}

// add adds a job that waits or is dead to a message of the index.
func (x *index) add(m *message, i int, to place, status queue.Status, t jobTimes) {
	d := x.destinations[to.destination]
	if d == nil {
		d = &destination{hash: to.destination, host: to.host, client: to.client}
	}
	j := &m.first
	if len(m.jobs) == 0 {
		x.messages[m.id] = m
		m.jobs = m.one[:0]
	} else {
		j = new(job)
	}
	*j = job{message: m, destination: d, place: -1, index: uint16(i)}
	j.setTimes(t)
	m.jobs = append(m.jobs, j)
	x.set(j, status)
}

// set changes the status of a job. A final job leaves the index.
func (x *index) set(j *job, status queue.Status) {
	m, d := j.message, j.destination
	x.count(m, j.status, -1)
	if j.status == queue.Queued {
		x.dequeue(j)
	}
	x.reschedule(d)
	j.status, j.writing = status, nothing
	x.count(m, status, 1)
	switch status {
	case queue.Queued:
		d = x.attach(j)
		x.enqueue(j)
	case queue.Sending, queue.Held, queue.Dead:
	default:
		m.jobs = slices.DeleteFunc(m.jobs, func(o *job) bool { return o == j })
		if len(m.jobs) == 0 {
			delete(x.messages, m.id)
		}
	}
	x.reschedule(d)
}

// enqueue adds a queued job to its destination.
func (x *index) enqueue(j *job) {
	heap.Push(j.destination.jobs(j), j)
	x.latest = max(x.latest, j.updated)
}

// dequeue removes a queued job from its destination.
func (x *index) dequeue(j *job) { heap.Remove(j.destination.jobs(j), int(j.place)) }

// postpone makes jobs of a destination wait until a time, or until they expire: at
// most n that were due when an attempt began, and that have not expired. It
// returns them.
func (x *index) postpone(d *destination, began, now, until int64, n int) (jobs []*job) {
	for len(jobs) < n && d.len() > 0 {
		j := d.first()
		expires := int64(j.expires) * 1e6
		if j.due > began || j.message.own || expires <= now {
			break
		}
		x.dequeue(j)
		j.setTimes(jobTimes{due: min(until, expires), updated: now, slack: math.MaxUint32, expires: j.expires})
		x.enqueue(j)
		jobs = append(jobs, j)
	}
	x.reschedule(d)
	return jobs
}

// attach returns the destination of a job that is queued. The destination may
// have left the index while none of its jobs was.
func (x *index) attach(j *job) *destination {
	d := j.destination
	if other := x.destinations[d.hash]; other != nil {
		d = other
	}
	x.destinations[d.hash], j.destination = d, d
	return d
}

// beginSettling marks a claimed job as being settled. Its delivery has ended, so that its
// destination may have room for another job. It reports whether another job is queued.
func (x *index) beginSettling(j *job) bool {
	j.writing = settling
	d := x.destinations[j.destination.hash]
	if d == nil {
		return false
	}
	x.offer(d)
	return d.len() > 0
}

// offer lets a destination that may have more room than before have a turn.
func (x *index) offer(d *destination) {
	if d.turn == parkedTurn {
		x.leave(d)
	}
	x.reschedule(d)
}

// park puts a destination aside until a limit allows another delivery.
func (x *index) park(d *destination, full queue.Full) {
	all := x.parked[full]
	if all == nil {
		all = list.New()
		x.parked[full] = all
	}
	d.turn, d.limit, d.parked = parkedTurn, full, all.PushBack(d)
}

// leave makes a parked destination ready.
func (x *index) leave(d *destination) {
	all := x.parked[d.limit]
	all.Remove(d.parked)
	if all.Len() == 0 {
		delete(x.parked, d.limit)
	}
	d.parked = nil
	x.makeReady(d, false)
}

// makeReady lets a destination have a turn, after the others with their own slots or after all.
func (x *index) makeReady(d *destination, own bool) {
	d.turn = readyTurn
	list := &x.ready[1]
	if own {
		list = &x.ready[0]
	}
	*list = append(*list, d)
}

// nextReady removes and returns the destination whose turn it is, or nil.
func (x *index) nextReady() *destination {
	for i := range x.ready {
		if len(x.ready[i]) > 0 {
			d := x.ready[i][0]
			x.ready[i][0] = nil
			x.ready[i] = x.ready[i][1:]
			d.turn = noTurn
			return d
		}
	}
	return nil
}

func (x *index) count(m *message, status queue.Status, n int) {
	before := m.waiting
	switch status {
	case queue.Queued, queue.Held:
		x.queued += n
	case queue.Sending:
		x.sending += n
	case queue.Dead:
		x.dead += n
		m.dead += int32(n)
	}
	if status.Waits() {
		m.waiting += int32(n)
	}
	switch {
	case before == 0 && m.waiting > 0:
		x.waiting += m.size
		heap.Push(&x.oldest, m)
	case before > 0 && m.waiting == 0:
		x.waiting -= m.size
		heap.Remove(&x.oldest, int(m.place))
	}
}

// reschedule moves a destination to the place of its first queued job. A
// destination that is ready or parked keeps its turn.
func (x *index) reschedule(d *destination) {
	switch {
	case d.turn == readyTurn || d.turn == parkedTurn:
	case d.len() > 0 && d.turn == timedTurn:
		heap.Fix(&x.timed, d.place)
	case d.len() > 0:
		d.turn = timedTurn
		heap.Push(&x.timed, d)
	case d.turn == timedTurn:
		heap.Remove(&x.timed, d.place)
		d.turn = noTurn
	}
	if d.len() == 0 && d.turn == noTurn && x.destinations[d.hash] == d {
		delete(x.destinations, d.hash)
	}
}

// claim marks jobs that are due and have a slot as Sending. Those that have slots
// of their own are first, and destinations take turns. next is the time when more jobs are due, or 0 if none is queued.
func (x *index) claim(c queue.Claim) (claimed []*job, next int64) {
	now, slots := c.Now.UnixMicro(), c.Slots
	x.correct(now)
	for len(x.timed) > 0 && x.timed[0].first().due <= now {
		d := heap.Pop(&x.timed).(*destination)
		x.makeReady(d, slots.HasOwn(d.candidate(d.first())))
	}
	x.unpark(slots)
	for len(claimed) < c.Max {
		d := x.nextReady()
		if d == nil {
			if x.unpark(slots); x.idle() { // the ready ones may not have used all slots
				break
			}
			continue
		}
		if d.len() == 0 || d.first().due > now {
			x.reschedule(d)
			continue
		}
		j := d.first()
		full, ok := c.Take(d.candidate(j))
		switch {
		case ok:
			claimed = append(claimed, j)
			d.turn = readyTurn // so that set does not move it
			x.set(j, queue.Sending)
			if d.len() > 0 && d.first().due <= now {
				x.makeReady(d, false) // others have their first turn before it
			} else {
				d.turn = noTurn
				x.reschedule(d)
			}
		case full.Limit == queue.DestinationLimit: // until one of its jobs is settled, or it is woken
		default:
			x.park(d, full)
		}
	}
	if x.idle() {
		x.unpark(slots)
	}
	switch {
	case !x.idle():
		next = now
	case len(x.timed) > 0:
		next = x.timed[0].first().due
	}
	return claimed, next
}

// idle reports whether no destination is ready.
func (x *index) idle() bool { return len(x.ready[0])+len(x.ready[1]) == 0 }

func (d *destination) candidate(j *job) queue.Candidate {
	return queue.Candidate{Job: j.id(), Destination: d.hash, Host: d.host, Client: d.client, Text: int64(j.message.text)}
}

// unpark makes as many parked destinations ready again as their limits have room for. So the work
// for each free slot does not depend on how many destinations wait.
func (x *index) unpark(slots *queue.Slots) {
	for full, all := range x.parked {
		free := slots.Free(full)
		for free > 0 && all.Len() > 0 {
			d := all.Front().Value.(*destination)
			need := 1
			if full.Limit == queue.TextLimit && d.len() > 0 {
				need = min(int(d.first().message.text), queue.MaxTexts)
			}
			if need > free {
				break
			}
			free -= need
			x.leave(d)
		}
	}
}

// correct makes jobs due that were written when the clock was ahead of now.
func (x *index) correct(now int64) {
	limit := now + queue.ClockTolerance.Microseconds()
	if x.latest <= limit {
		return
	}
	x.latest = 0
	for _, d := range x.destinations {
		for _, h := range []*jobHeap{&d.queued, &d.firm} {
			for _, j := range *h {
				if j.updated > limit {
					j.setTimes(jobTimes{due: now, updated: now, slack: j.slack, expires: j.expires})
				}
				x.latest = max(x.latest, j.updated)
			}
			heap.Init(h)
		}
		x.reschedule(d)
	}
}

// wake makes at most n jobs of a destination due, counting due ones, or all if n is 0. Without
// force, it leaves jobs that must not be sent yet. It reports whether there are more jobs that are
// not due.
func (x *index) wake(hash seal.Hash, now int64, n int, force bool) (more bool) {
	d := x.destinations[hash]
	if d == nil {
		return false
	}
	var later []*job
	if n == 0 {
		n = d.len()
	}
	for range n {
		if len(d.queued) == 0 {
			break
		}
		later = append(later, heap.Pop(&d.queued).(*job))
	}
	more = len(d.queued) > 0
	if force {
		later = append(later, d.firm...)
		d.firm = nil
	}
	for _, j := range later {
		if j.due > now {
			earliest := now
			if !force {
				earliest = max(now, j.due-int64(j.slack)*1e6)
			}
			j.slack -= uint32(min((j.due-earliest)/1e6, int64(j.slack)))
			j.due = earliest
			if earliest == now {
				j.slack = math.MaxUint32
			}
		}
		heap.Push(d.jobs(j), j)
	}
	x.offer(d)
	return more
}

// waitingFor returns what waits for destinations, or for all if none is given.
func (x *index) waitingFor(hashes []seal.Hash) (all []queue.Waiting) {
	add := func(d *destination) {
		if d == nil || d.len() == 0 {
			return
		}
		since := int64(math.MaxInt64)
		for _, jobs := range []jobHeap{d.queued, d.firm} {
			for _, j := range jobs {
				since = min(since, j.message.created)
			}
		}
		all = append(all, queue.Waiting{Destination: d.hash, Client: d.client, Jobs: d.len(), Since: time.UnixMicro(since)})
	}
	if len(hashes) == 0 {
		for _, d := range x.destinations {
			add(d)
		}
	}
	for _, h := range hashes {
		add(x.destinations[h])
	}
	return all
}

// find returns a job that waits or is dead, or nil.
func (x *index) find(id queue.JobID) *job {
	if m := x.messages[id.Message]; m != nil {
		if i, ok := slices.BinarySearchFunc(m.jobs, id.Index, func(j *job, i int) int { return int(j.index) - i }); ok {
			return m.jobs[i]
		}
	}
	return nil
}

// countWaiting returns how many jobs wait. The caller does not hold the lock.
func (x *index) countWaiting() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.queued + x.sending
}

// kept returns the size of the messages that wait and of the records.
func (x *index) kept() int64 { return x.waiting + x.records.bytes }

func (x *index) stats() queue.Stats {
	s := queue.Stats{Queued: x.queued, Sending: x.sending, Dead: x.dead, Bytes: x.kept(), Records: x.records.bytes}
	if len(x.oldest) > 0 {
		s.Oldest = time.UnixMicro(x.oldest[0].created)
	}
	return s
}

// jobHeap is a heap of jobs by due time.
type jobHeap []*job

func (h jobHeap) Len() int           { return len(h) }
func (h jobHeap) Less(a, b int) bool { return h.before(h[a], h[b]) }

// before reports whether a is due before b.
func (jobHeap) before(a, b *job) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return a.id().Compare(b.id()) < 0
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

// messageHeap is a heap of the messages that wait, by the time when they came
// in.
type messageHeap []*message

func (h messageHeap) Len() int           { return len(h) }
func (h messageHeap) Less(a, b int) bool { return h[a].created < h[b].created }
func (h messageHeap) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].place, h[b].place = int32(a), int32(b)
}

func (h *messageHeap) Push(v any) {
	m := v.(*message)
	m.place = int32(len(*h))
	*h = append(*h, m)
}

func (h *messageHeap) Pop() any {
	old := *h
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return m
}

// timedHeap is a heap of destinations by the due time of their first job.
type timedHeap []*destination

func (h timedHeap) Len() int           { return len(h) }
func (h timedHeap) Less(a, b int) bool { return h[a].first().due < h[b].first().due }
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
		r.remove(first)
		r.order[0] = nil
		r.order = r.order[1:]
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

// remove removes a message, unless it has been removed before. The caller holds the lock.
func (r *recent) remove(m *recentMessage) {
	if m.message == nil {
		return
	}
	delete(r.messages, m.id)
	r.size -= m.size
	m.message, m.jobs = nil, nil
}

// job returns a copy of a job as it was accepted, or nil.
func (r *recent) job(id queue.JobID) *queue.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.messages[id.Message]
	if m == nil || !m.has(id.Index) {
		return nil
	}
	j := m.jobs[id.Index]
	j.JobID = id
	return &j
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

package bolt

import (
	"container/heap"
	"container/list"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// index finds the next job. It holds about 85 bytes for each job that waits or
// is dead, and no content.
type index struct {
	mu           sync.Mutex
	jobs         jobList // all
	destinations map[seal.Hash]*destination

	timed  timedHeap                 // destinations with a queued job, by the due time of their first
	ready  [2][]*destination         // destinations with a due job, by turn: with their own slots, and the others
	parked map[queue.Full]*list.List // destinations with a due job that wait for a limit other than their own

	latest int64 // no queued job has a later time updated

	queued, sending, dead int                   // queued includes those that are held
	waiting               int64                 // bytes of the messages that wait
	several               map[uuid.UUID]*counts // of the messages that were added with several jobs
	large                 map[uuid.UUID]large   // of the messages with files or a large text

	records *records

	ring []byte // to be stored, because the secret has changed; else nil
}

// job is a job that waits or is dead. There can be very many, so what few of them have is not here.
type job struct {
	message      uuid.UUID
	destination  *destination
	due, updated int64  // in microseconds since 1970
	created      uint32 // when the message came in, in seconds since 1970
	expires      uint32 // the same, rounded up
	size         uint32 // of the message, at most 4 GiB
	place        int32  // in a heap of its destination; -1 if it is not queued
	index        uint16 // in the message
	slack        uint16 // how many seconds earlier than due it may be due; anySlack for any number
	status       queue.Status
	writing      writing
	own          bool // it needs attempts of its own
	unkeyed      bool // its message is known to have no idempotency key
}

const anySlack = math.MaxUint16

// large is what few messages have.
type large struct {
	files int
	text  int64 // size of the body if it is above queue.SmallText
}

// writing is what is being written about a job.
type writing uint8

const (
	nothing    writing = iota
	settling           // its outcome
	cancelling         // its cancellation, while it is Sending or Dead
)

func (j *job) id() queue.JobID { return queue.JobID{Message: j.message, Index: int(j.index)} }

// settleable reports whether j, which may be nil, is claimed and nobody settles or
// cancels it.
func (j *job) settleable() bool {
	return j != nil && j.status == queue.Sending && j.writing == nothing
}

// jobTimes are the times of a job in the index.
type jobTimes struct {
	due, updated int64
	expires      uint32
	slack        uint16
}

func timesOf(j *queue.Job) jobTimes {
	t := jobTimes{due: j.Due.UnixMicro(), updated: j.Updated.UnixMicro(), slack: anySlack}
	t.expires = uint32(min(max(j.Expires.Unix()+1, 0), math.MaxUint32))
	if !j.NotBefore.IsZero() {
		t.slack = uint16(min(max(j.Due.Sub(j.NotBefore)/time.Second, 0), anySlack-1))
	}
	return t
}

func (j *job) setTimes(t jobTimes) {
	j.due, j.updated, j.slack, j.expires = t.due, t.updated, t.slack, t.expires
}

// counts has the numbers of jobs of a message.
type counts struct{ waiting, dead int }

// add counts n more jobs with a status.
func (c *counts) add(status queue.Status, n int) {
	switch {
	case status.Waits():
		c.waiting += n
	case status == queue.Dead:
		c.dead += n
	}
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
		destinations: map[seal.Hash]*destination{}, parked: map[queue.Full]*list.List{},
		several: map[uuid.UUID]*counts{}, large: map[uuid.UUID]large{}, records: newRecords(),
	}
}

// replace replaces the content of x with the content of an index read from the
// database. Claimed jobs stay claimed.
func (x *index) replace(other *index) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for j := range x.jobs.all() {
		if j.status != queue.Sending || j.writing == cancelling {
			continue
		}
		if now := other.jobs.find(j.id()); now != nil && now.status == queue.Queued {
			other.set(now, queue.Sending)
		}
	}
	x.jobs, x.destinations, x.timed, x.ready, x.parked = other.jobs, other.destinations, other.timed, other.ready, other.parked
	x.latest, x.records, x.several, x.large = other.latest, other.records, other.several, other.large
	x.queued, x.sending, x.dead, x.waiting = other.queued, other.sending, other.dead, other.waiting
}

// place is where a job goes: its destination and host.
type place struct {
	destination, host seal.Hash
	client            bool
}

// newJob is a job to add to the index, with the status that it gets there.
type newJob struct {
	job
	to     place
	status queue.Status
}

// jobOf returns a job of the index without destination and status. created, size and unkeyed are of its
// message.
func jobOf(j *queue.Job, created time.Time, size int64, unkeyed bool) job {
	x := job{
		message: j.Message, created: uint32(created.Add(time.Second / 2).Unix()), size: uint32(min(size, math.MaxUint32)),
		index: uint16(j.Index), own: j.OwnAttempts, unkeyed: unkeyed,
	}
	x.setTimes(timesOf(j))
	return x
}

// add adds the jobs of a message that wait or are dead.
func (x *index) add(l large, jobs ...newJob) {
	if l.text <= queue.SmallText {
		l.text = 0
	}
	if l != (large{}) {
		x.large[jobs[0].message] = l
	}
	if len(jobs) > 1 {
		x.several[jobs[0].message] = &counts{}
	}
	for i := range jobs {
		n, j := &jobs[i], new(job)
		d := x.destinations[n.to.destination]
		if d == nil {
			d = &destination{hash: n.to.destination, host: n.to.host, client: n.to.client}
		}
		*j = n.job
		j.destination, j.place = d, -1
		x.jobs.add(j)
		x.set(j, n.status)
	}
}

// set changes the status of a job. A final job leaves the index.
func (x *index) set(j *job, status queue.Status) {
	d := j.destination
	x.count(j, status)
	if j.status == queue.Queued {
		x.dequeue(j)
	}
	x.reschedule(d)
	j.status, j.writing = status, nothing
	switch status {
	case queue.Queued:
		d = x.attach(j)
		x.enqueue(j)
	case queue.Sending, queue.Held, queue.Dead:
	default:
		x.jobs.remove(j)
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
		if j.due > began || j.own || expires <= now {
			break
		}
		x.dequeue(j)
		j.setTimes(jobTimes{due: min(until, expires), updated: now, slack: anySlack, expires: j.expires})
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

// counts returns how many jobs of the message of a job wait and are dead.
func (x *index) counts(j *job) (c counts) {
	if of := x.several[j.message]; of != nil {
		return *of
	}
	c.add(j.status, 1) // it is the only one
	return c
}

// count counts a job that gets a status.
func (x *index) count(j *job, status queue.Status) {
	before := x.counts(j)
	after := before
	after.add(j.status, -1)
	after.add(status, 1)
	if of := x.several[j.message]; of != nil {
		*of = after
	}
	if after == (counts{}) {
		delete(x.several, j.message)
		delete(x.large, j.message)
	}
	switch {
	case before.waiting == 0 && after.waiting > 0:
		x.waiting += int64(j.size)
	case before.waiting > 0 && after.waiting == 0:
		x.waiting -= int64(j.size)
	}
	x.total(j.status, -1)
	x.total(status, 1)
}

// total counts n more jobs with a status.
func (x *index) total(status queue.Status, n int) {
	switch status {
	case queue.Queued, queue.Held:
		x.queued += n
	case queue.Sending:
		x.sending += n
	case queue.Dead:
		x.dead += n
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
		x.makeReady(d, slots.HasOwn(x.candidate(d.first())))
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
		full, ok := c.Take(x.candidate(j))
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

func (x *index) candidate(j *job) queue.Candidate {
	d := j.destination
	return queue.Candidate{Job: j.id(), Destination: d.hash, Host: d.host, Client: d.client, Text: x.large[j.message].text}
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
				need = min(int(x.large[d.first().message].text), queue.MaxTexts)
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
// force, it leaves jobs that must not be sent yet. It reports whether there are more jobs, which may
// not be due.
func (x *index) wake(hash seal.Hash, now int64, n int, force bool) (more bool) {
	d := x.destinations[hash]
	if d == nil {
		return false
	}
	if n == 0 {
		n = d.len()
	}
	more = len(d.queued) > n
	var later []*job
	if d.queued.countDue(now, n) < n { // else nothing changes: of 100,000 that wait, most are due
		for len(later) < n && len(d.queued) > 0 {
			later = append(later, heap.Pop(&d.queued).(*job))
		}
	}
	if force {
		later = append(later, d.firm...)
		d.firm = nil
	}
	for _, j := range later {
		if j.due > now {
			earliest := now
			if !force && j.slack != anySlack {
				earliest = max(now, j.due-int64(j.slack)*1e6)
			}
			if j.due, j.slack = earliest, 0; earliest == now {
				j.slack = anySlack
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
		since := uint32(math.MaxUint32)
		for _, jobs := range []jobHeap{d.queued, d.firm} {
			for _, j := range jobs {
				since = min(since, j.created)
			}
		}
		all = append(all, queue.Waiting{Destination: d.hash, Client: d.client, Jobs: d.len(), Since: time.Unix(int64(since), 0)})
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
	for j := range x.jobs.all() {
		if j.status.Waits() {
			s.Oldest = time.Unix(int64(j.created), 0)
			break
		}
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

// countDue returns how many jobs are due, at most n.
func (h jobHeap) countDue(now int64, n int) int { return h.countDueBelow(0, now, n) }

// countDueBelow returns the same for the part of the heap below a place, which is due later.
func (h jobHeap) countDueBelow(place int, now int64, n int) (count int) {
	if n == 0 || place >= len(h) || h[place].due > now {
		return 0
	}
	count = 1 + h.countDueBelow(2*place+1, now, n-1)
	return count + h.countDueBelow(2*place+2, now, n-count)
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

package queue

import (
	"sync"
	"time"
)

// The bounds of jobs that are claimed before they have a slot.
const (
	maxUnsettled  = 128         // jobs of one destination that are claimed and whose outcome is not stored
	maxPrefetched = 1024        // jobs that wait for slots
	prefetchTime  = time.Second // until a job without a slot goes back
)

// Prefetch keeps jobs that are claimed before there is a slot for them, so that a destination that
// is quick does not wait for a store that is far away. It holds as many jobs of a destination as it
// probably takes while two claims are made. They begin in the order in which they were claimed.
//
// What a destination does not take within about a second, or before one of its attempts fails, goes
// back to the store. A nil Prefetch keeps nothing.
type Prefetch struct {
	slots *Slots

	mu      sync.Mutex
	took    time.Duration // that the last claim of jobs took
	lanes   map[Hash]*prefetchLane
	claimed map[JobID]Candidate // by the claim under way
	waiting int                 // in all lanes
}

// prefetchLane is the claimed jobs of one destination.
type prefetchLane struct {
	unsettled int           // jobs, also those without a slot
	reserved  int           // of the claim under way
	each      time.Duration // that a delivery has its slot; 0 if that is unknown
	waiting   []claimedJob
}

// claimedJob is a job that this process has claimed.
type claimedJob struct {
	*Job
	destination Hash
	at          time.Duration // when it was claimed, by clock.runs
	candidate   Candidate     // as the store offered it, if it waits for a slot
}

// NewPrefetch returns what a queue with slots keeps for destinations that take each message at once.
func NewPrefetch(slots *Slots, quick ...Hash) *Prefetch {
	p := &Prefetch{slots: slots, took: time.Second, lanes: map[Hash]*prefetchLane{}, claimed: map[JobID]Candidate{}}
	for _, h := range quick {
		p.lanes[h] = &prefetchLane{each: 1}
	}
	return p
}

// Take takes a slot for a job that is due, as [Slots.Take] does. If there is none, the job can be
// claimed all the same, until [Prefetch] has enough.
func (c Claim) Take(j Candidate) (full Full, ok bool) {
	if c.Prefetch == nil {
		return c.Slots.Take(j)
	}
	full = Full{DestinationLimit, j.Destination}
	if !c.Prefetch.keeps(j.Destination) {
		full, ok = c.Slots.Take(j)
	}
	return full, ok || c.Prefetch.take(j)
}

// keeps reports whether jobs of a destination wait for a slot, so that the next one comes after them,
// or too many outcomes are not stored.
func (p *Prefetch) keeps(destination Hash) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[destination]
	return l != nil && (len(l.waiting)+l.reserved > 0 || l.unsettled > maxUnsettled-PerDestination)
}

// take reports whether a job may be claimed without a slot.
func (p *Prefetch) take(c Candidate) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[c.Destination]
	if l == nil || l.each == 0 || c.Client || c.Text > SmallText || p.waiting+len(p.claimed) >= maxPrefetched {
		return false
	}
	if min(maxUnsettled-PerDestination-l.unsettled, int(2*PerDestination*p.took/l.each)-len(l.waiting)) <= l.reserved {
		return false
	}
	p.claimed[c.Job] = c
	l.reserved++
	return true
}

// add adds the jobs that a claim at a time has returned, and returns those that have a slot.
func (p *Prefetch) add(jobs []Job, hash func(string) Hash, at, took time.Duration) (begin []claimedJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		l.reserved = 0
	}
	if len(jobs) > 0 {
		p.took = min(took, time.Second)
	}
	for i := range jobs {
		c := claimedJob{Job: &jobs[i], destination: hash(jobs[i].Destination), at: at}
		l := p.lanes[c.destination]
		if l == nil {
			l = &prefetchLane{}
			p.lanes[c.destination] = l
		}
		l.unsettled++
		var early bool
		if c.candidate, early = p.claimed[c.JobID]; early {
			l.waiting = append(l.waiting, c)
			p.waiting++
		} else {
			begin = append(begin, c)
		}
	}
	clear(p.claimed)
	return begin
}

// next returns the next job of a destination, with a slot that it takes. ok is false if no job waits
// or there is no slot for it. Claims, in which destinations take turns, have half of the shared slots
// for themselves.
func (p *Prefetch) next(destination Hash) (first claimedJob, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[destination]
	if l == nil || len(l.waiting) == 0 {
		return first, false
	}
	first = l.waiting[0]
	if !p.slots.HasOwn(first.candidate) &&
		(p.slots.Free(Full{Limit: SharedLimit}) < p.slots.limit/2 || p.slots.Free(Full{HostLimit, first.candidate.Host}) < perHost/2) {
		return first, false
	}
	if _, ok = p.slots.take(first.candidate); ok {
		l.waiting = l.waiting[1:]
		p.waiting--
	}
	return first, ok
}

// destinations returns those for which jobs wait.
func (p *Prefetch) destinations() (all []Hash) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for h, l := range p.lanes {
		if len(l.waiting) > 0 {
			all = append(all, h)
		}
	}
	return all
}

// overdue returns the jobs that have waited too long at a time, and reports whether others wait.
func (p *Prefetch) overdue(now time.Duration) (jobs []claimedJob, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		if len(l.waiting) > 0 && now-l.waiting[0].at >= prefetchTime+p.took {
			jobs = append(jobs, p.empty(l)...)
		}
	}
	return jobs, p.waiting > 0
}

// attempted notes how long a delivery had its slot. If its attempt failed, attempted returns the jobs of its
// destination that wait for a slot.
func (p *Prefetch) attempted(destination Hash, took time.Duration, failed bool) []claimedJob {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch l := p.lanes[destination]; {
	case failed:
		return p.empty(l)
	case l.each == 0:
		l.each = max(took, 1)
	default:
		l.each = max((3*l.each+took)/4, 1)
	}
	return nil
}

// empty removes the jobs of a destination that wait for a slot. No more are claimed without one until
// the destination has taken a message. The caller holds the lock.
func (p *Prefetch) empty(l *prefetchLane) (jobs []claimedJob) {
	jobs = l.waiting
	p.waiting -= len(jobs)
	l.waiting, l.each = nil, 0
	return jobs
}

// settled notes that the outcome of a job is stored. It reports whether there is room again for jobs
// of the destination, which may have had none because too many outcomes were not stored. Nothing
// else tells the store of it, if all these outcomes are in one transaction.
func (p *Prefetch) settled(destination Hash) (room bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[destination]
	if l.unsettled--; l.unsettled == 0 {
		delete(p.lanes, destination)
	}
	return l.unsettled == maxUnsettled-PerDestination
}

package postgres

import (
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// due holds jobs that are due, as far as this handle knows: those that it has
// accepted itself, and those that it has read from the tables. A job can be
// claimed by another handle meanwhile, so that claiming it fails. Thus a claim
// needs no query for what to claim, and only one exchange with the server.
type due struct {
	mu    sync.Mutex
	lanes map[seal.Hash]*lane
	turns []*lane // in the order of their turns
	known map[queue.JobID]struct{}

	stale   bool          // other jobs may be due
	partial bool          // not all jobs that were due are here
	asked   time.Time     // when the tables were last read; zero if never
	now     int64         // the time of due jobs that was asked for
	next    int64         // when the next job is due; 0 if none is known
	took    time.Duration // that the last read of destinations took
	shard   int           // the shard that is read first
	cursor  []byte        // the destination after which destinations are read
	changes int           // of stale, to know whether it was set while the tables were read
}

// lane holds due jobs of one destination.
type lane struct {
	hash seal.Hash
	jobs []candidate
	more bool // the tables may have more
}

// candidate is a job that is due.
type candidate struct {
	queue.Candidate
	due int64
}

// The bounds of what is read at once.
const (
	perShard        = 128  // jobs of one shard
	dueAtOnce       = 512  // jobs of all shards
	maxLanes        = 4096 // destinations
	refillJobs      = 16   // jobs of one destination
	refillLanes     = 64   // destinations
	maxDue          = 4 * dueAtOnce
	restOfLaneReads = 10 // part of the time, one in so many, for reading destinations
)

// changed notes that other jobs may be due.
func (d *due) changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale = true
	d.changes++
}

// reset forgets all jobs.
func (d *due) reset() {
	d.lanes, d.turns, d.known = map[seal.Hash]*lane{}, nil, map[queue.JobID]struct{}{}
}

// add adds a job. The caller holds d.mu.
func (d *due) add(c candidate, more bool) {
	if _, ok := d.known[c.Job]; ok {
		return
	}
	if d.known == nil {
		d.reset()
	}
	l := d.lanes[c.Destination]
	if l == nil {
		l = &lane{hash: c.Destination}
		d.lanes[c.Destination] = l
		d.turns = append(d.turns, l)
	}
	l.jobs = append(l.jobs, c)
	l.more = l.more || more
	d.known[c.Job] = struct{}{}
}

// accepted notes jobs that this handle has stored.
func (d *due) accepted(s *Store, entries []*queue.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		for i := range e.Jobs {
			j := &e.Jobs[i]
			if j.Status != queue.Queued {
				continue
			}
			if j.Due.After(j.Updated) {
				d.later(j.Due)
				continue
			}
			if len(d.known) >= maxDue {
				d.partial = true
				if l := d.lanes[s.Hash(j.Destination)]; l != nil {
					l.more = true
					continue
				} else if len(d.lanes) >= maxLanes {
					continue
				}
			}
			d.add(candidate{queue.Candidate{
				Job: queue.JobID{Message: e.Message.ID, Index: i}, Destination: s.Hash(j.Destination), Host: s.Hash(j.Host), Client: j.Client, Text: int64(j.Text),
			}, j.Due.UnixMicro()}, false)
		}
	}
}

// later notes when a job is due. The caller holds d.mu.
func (d *due) later(due time.Time) {
	t := due.UnixMicro()
	if d.next == 0 || t < d.next {
		d.next = t
	}
	if t <= d.now {
		d.stale = true
		d.changes++
	}
}

// waits reports whether there are jobs that may only need a slot.
func (d *due) waits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.known) > 0 || d.partial || d.stale
}

// choose takes slots for jobs and returns these. Destinations take turns. It
// leaves out jobs for which held returns true. empty are destinations that may
// have more jobs in the tables.
func (d *due) choose(c queue.Claim, n int, held func(queue.JobID) bool) (chosen []candidate, empty [][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := c.Now.UnixMicro()
	turns := d.turns
	var blocked []*lane
	for len(turns) > 0 && len(chosen) < n {
		l := turns[0]
		turns = turns[1:]
		for len(l.jobs) > 0 && held(l.jobs[0].Job) {
			d.pop(l)
		}
		if len(l.jobs) == 0 {
			if l.more && len(empty) < refillLanes {
				empty = append(empty, slices.Clone(l.hash[:]))
			}
			if !l.more || len(empty) < refillLanes {
				delete(d.lanes, l.hash)
			} else {
				blocked = append(blocked, l)
			}
			continue
		}
		first := l.jobs[0]
		if first.due > now {
			// It was accepted with a later time, or the clock was set back.
			if d.next == 0 || first.due < d.next {
				d.next = first.due
			}
			d.pop(l)
			turns = append([]*lane{l}, turns...)
			continue
		}
		if _, ok := c.Slots.Take(first.Candidate); !ok {
			blocked = append(blocked, l)
			continue
		}
		chosen = append(chosen, first)
		d.pop(l)
		turns = append(turns, l)
	}
	d.turns = append(slices.Clone(turns), blocked...)
	return chosen, empty
}

// pop removes the first job of a lane.
func (d *due) pop(l *lane) {
	delete(d.known, l.jobs[0].Job)
	l.jobs = l.jobs[1:]
}

// The parts of the tables that a claim reads.
type reading struct {
	jobs         bool // those that are due, and when the next is
	destinations bool // with a job that is due, because not all jobs can be read
	changes      int
	shard        int
	cursor       []byte
}

// toRead returns what to read before or together with a claim of n more jobs.
func (d *due) toRead(c queue.Claim, every time.Duration) (r reading) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, age := c.Now.UnixMicro(), time.Since(d.asked)
	r = reading{changes: d.changes, shard: d.shard, cursor: d.cursor}
	r.jobs = d.stale || d.asked.IsZero() || d.next != 0 && now >= d.next || now < d.now || age >= every ||
		d.partial && (len(d.known) < c.Max || age >= max(pollEvery, restOfLaneReads*d.took))
	r.destinations = r.jobs && d.partial && age >= min(pollEvery, restOfLaneReads*d.took)
	return r
}

// nextTime returns when another claim can find more.
func (d *due) nextTime(c queue.Claim, every time.Duration) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.partial {
		every = max(pollEvery, restOfLaneReads*d.took)
	}
	next := c.Now.Add(max(every-time.Since(d.asked), time.Millisecond))
	if t := time.UnixMicro(d.next); d.next != 0 && t.Before(next) {
		next = t
	}
	return next
}

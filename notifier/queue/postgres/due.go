package postgres

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
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
	reads   int           // of the tables
	round   int           // calls of choose
}

// lane holds due jobs of one destination, in the order in which they are due.
type lane struct {
	hash  seal.Hash
	jobs  []candidate
	more  bool // the tables may have more
	round int  // the last call of choose that has chosen a job of it
}

// candidate is a job that is due.
type candidate struct {
	queue.Candidate
	due  int64
	turn bool // it is parked, and its destination has its turn
	read int  // due.reads when it was added
}

// The bounds of what is read at once.
const (
	perShard        = 128  // jobs of one shard
	dueAtOnce       = 1024 // jobs of all shards
	maxLanes        = 4096 // destinations
	refillJobs      = 16   // jobs of one destination
	refillLanes     = 64   // destinations
	maxDue          = 2 * dueAtOnce
	turnsAtOnce     = 512                    // destinations that have their turn
	readPause       = 200 * time.Millisecond // between two reads, while there are enough jobs
	restOfLaneReads = 10                     // part of the time, one in so many, for reading destinations
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
	c.read = d.reads
	i := len(l.jobs)
	for i > 0 && l.jobs[i-1].due > c.due {
		i--
	}
	l.jobs = slices.Insert(l.jobs, i, c)
	l.more = l.more || more
	d.known[c.Job] = struct{}{}
}

// accepted notes jobs that this handle has stored.
func (d *due) accepted(s *record.Sealer, entries []*queue.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		for i := range e.Jobs {
			d.queued(s, queue.JobID{Message: e.Message.ID, Index: i}, &e.Jobs[i])
		}
	}
}

// queued notes a job that this handle has stored. The caller holds d.mu.
func (d *due) queued(s *record.Sealer, id queue.JobID, j *queue.Job) {
	if j.Status != queue.Queued {
		return
	}
	if j.Due.After(j.Updated) {
		d.later(j.Due)
		return
	}
	hash := s.DestinationHash(j.Destination)
	if len(d.known) >= maxDue {
		d.partial = true
		if l := d.lanes[hash]; l != nil {
			l.more = true
			return
		} else if len(d.lanes) >= 2*maxLanes {
			return
		}
	}
	d.add(candidate{Candidate: queue.Candidate{
		Job: id, Destination: hash, Host: s.DestinationHash(j.Host), Client: j.Client, Text: int64(j.Text),
	}, due: j.Due.UnixMicro()}, false)
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

// choose takes slots for jobs and returns these jobs. Destinations with their own slots come first.
// Destinations take turns across calls: one without room keeps its turn. choose leaves out jobs for
// which held returns true. empty are destinations that may have more jobs in the tables.
func (d *due) choose(c queue.Claim, n int, held func(queue.JobID) bool) (chosen []candidate, empty [][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.round++
	turns := ownFirst(d.turns, c.Slots)
	var blocked, served []*lane // that have no room, without and with a job in this round
	for len(turns) > 0 && len(chosen) < n {
		l := turns[0]
		turns = turns[1:]
		d.skip(l, c.Now.UnixMicro(), held)
		if len(l.jobs) == 0 {
			switch {
			case !l.more:
				delete(d.lanes, l.hash)
			case len(empty) < refillLanes:
				empty = append(empty, slices.Clone(l.hash[:]))
				delete(d.lanes, l.hash)
			default:
				blocked = append(blocked, l)
			}
			continue
		}
		first := l.jobs[0]
		if _, ok := c.Take(first.Candidate); !ok {
			if l.round == d.round {
				served = append(served, l)
			} else {
				blocked = append(blocked, l)
			}
			continue
		}
		chosen = append(chosen, first)
		d.pop(l)
		l.round = d.round
		turns = append(turns, l)
	}
	d.turns = slices.Concat(blocked, turns, served)
	return chosen, empty
}

// ownFirst returns the lanes that have slots of their own and then the others, each in the
// order of their turns.
func ownFirst(turns []*lane, slots *queue.Slots) []*lane {
	sorted := make([]*lane, 0, 2*len(turns))
	var others []*lane
	for _, l := range turns {
		if len(l.jobs) > 0 && slots.HasOwn(l.jobs[0].Candidate) {
			sorted = append(sorted, l)
		} else {
			others = append(others, l)
		}
	}
	return append(sorted, others...)
}

// skip removes jobs from the start of a lane that are held or not due: they were accepted
// with a later time, or the clock was set back.
func (d *due) skip(l *lane, now int64, held func(queue.JobID) bool) {
	for len(l.jobs) > 0 {
		first := l.jobs[0]
		if first.due > now {
			if d.next == 0 || first.due < d.next {
				d.next = first.due
			}
		} else if !held(first.Job) {
			return
		}
		d.pop(l)
	}
}

// parked removes the jobs of a destination that an attempt has parked. began is when the attempt
// began, and next is when the first of the jobs is due.
func (d *due) parked(destination seal.Hash, began, next int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.later(time.UnixMicro(next))
	l := d.lanes[destination]
	if l == nil {
		return
	}
	l.jobs = slices.DeleteFunc(l.jobs, func(c candidate) bool {
		if c.due <= began {
			delete(d.known, c.Job)
			l.more = true // some may not be parked
		}
		return c.due <= began
	})
}

// pop removes the first job of a lane.
func (d *due) pop(l *lane) {
	delete(d.known, l.jobs[0].Job)
	l.jobs = l.jobs[1:]
}

// The parts of the tables that a claim reads.
type reading struct {
	jobs         bool // those that are due, whose turn it is, and when the next is
	known        bool // due jobs of known destinations, because not all jobs can be read
	destinations bool // with a job that is due, for the same reason
	changes      int
	number       int // of the read
	shard        int
	cursor       []byte
}

// toRead returns what to read before or together with a claim of n more jobs.
func (d *due) toRead(c queue.Claim, every time.Duration) (r reading) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, age := c.Now.UnixMicro(), time.Since(d.asked)
	r = reading{changes: d.changes, shard: d.shard, cursor: d.cursor}
	few := len(d.known) <= c.Max/2
	r.jobs = d.stale || d.asked.IsZero() || now < d.now || age >= every ||
		d.next != 0 && now >= d.next && (few || age >= readPause) ||
		d.partial && (few || age >= max(pollEvery, restOfLaneReads*d.took))
	r.known = r.jobs && d.partial
	r.destinations = r.known && age >= min(pollEvery, restOfLaneReads*d.took)
	if r.jobs {
		d.reads++
		r.number = d.reads
	}
	return r
}

// replace replaces the jobs by those read from the tables: jobs that are due, and jobs of
// destinations that have their turn. It keeps jobs that came after the read began and, if not all
// could be read, some of each destination. It keeps the order of turns.
func (d *due) replace(c queue.Claim, r reading, rows, turns [][][]byte, next int64) {
	before, partial := d.turns, d.partial
	d.reset()
	d.partial = len(rows) >= dueAtOnce || len(turns) >= turnsAtOnce
	n, last := 0, int64(-1)
	for _, row := range rows {
		if shard := number(row[7]); shard != last {
			n, last = 0, shard
		}
		n++
		d.partial = d.partial || n >= perShard
	}
	d.keep(before, r.number)
	slices.SortStableFunc(rows, byDue)
	for _, row := range rows {
		d.add(candidateOf(row), d.partial)
	}
	for _, row := range turns {
		t := candidateOf(row)
		t.turn = true
		d.add(t, false)
	}
	d.turns = slices.DeleteFunc(d.turns, func(l *lane) bool {
		gone := len(l.jobs) == 0 && !l.more
		if gone {
			delete(d.lanes, l.hash)
		}
		return gone
	})
	if len(rows) >= dueAtOnce {
		d.shard = int(last) // the next read begins where this one has ended
	}
	d.asked, d.now, d.next = time.Now(), c.Now.UnixMicro(), next
	d.stale = d.changes != r.changes || d.partial && !partial // known destinations were not read
}

// keep adds lanes in the order of their turns, with the jobs that they got since a read
// began. If not all jobs could be read, it keeps as many others of each as can be
// delivered at once.
func (d *due) keep(before []*lane, read int) {
	for _, old := range before {
		l := &lane{hash: old.hash, round: old.round}
		d.lanes[l.hash] = l
		d.turns = append(d.turns, l)
		for _, o := range old.jobs {
			if o.read < read && (!d.partial || o.turn || len(l.jobs) >= queue.PerDestination) {
				l.more = l.more || d.partial
				continue
			}
			if _, ok := d.known[o.Job]; !ok {
				l.jobs = append(l.jobs, o)
				d.known[o.Job] = struct{}{}
			}
		}
	}
}

// byDue compares rows by when their jobs are due.
func byDue(a, b [][]byte) int { return cmp.Compare(number(a[6]), number(b[6])) }

// addKnown adds jobs of known destinations.
func (d *due) addKnown(rows [][][]byte) {
	for _, row := range rows {
		d.add(candidateOf(row), true)
	}
}

// addLanes adds the first job of each destination.
func (d *due) addLanes(rows [][][]byte, took time.Duration) {
	d.took, d.cursor = took, nil
	if len(rows) >= maxLanes {
		d.cursor = rows[len(rows)-1][2]
	}
	slices.SortFunc(rows, byDue)
	for _, row := range rows {
		d.add(candidateOf(row), true)
	}
}

// refill adds more jobs of destinations.
func (d *due) refill(rows [][][]byte) {
	count := map[string]int{}
	for _, row := range rows {
		count[string(row[2])]++
	}
	for _, row := range rows {
		d.add(candidateOf(row), count[string(row[2])] >= refillJobs)
	}
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

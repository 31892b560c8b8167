package queue

import "sync"

// The limits of deliveries that run at once.
const (
	// PerDestination is the limit for one destination, and perDownDestination the limit for a
	// destination that is down.
	PerDestination     = 4
	perDownDestination = 1

	// perHost is the limit of shared slots for one host.
	perHost = 16

	// Texts above SmallText take together at most MaxTexts of memory.
	SmallText = 64 << 10
	MaxTexts  = 64 << 20
)

// Slots counts the deliveries under way and decides which others have room.
//
// Each known destination of the operator has its own slot. All other deliveries share a number of
// slots. Deliveries that clients decide take at most half of the shared slots, deliveries to one
// host at most 16, and deliveries with texts above 64 KiB as many as have 64 MiB of text together.
// In addition, at most four deliveries go to one destination at once, and one if it is down.
//
// So a delivery to a known destination with none under way always has a slot,
// however many others hang.
type Slots struct {
	limit  int // of shared slots
	health *health

	mu           sync.Mutex
	taken        map[JobID]taken
	claiming     []JobID // since the last call of claimed
	destinations map[Hash]use
	hosts        map[Hash]int
	shared       int
	clients      int
	texts        int64
}

// taken is the slot of one delivery.
type taken struct {
	Candidate
	own bool
}

// use counts the deliveries to one destination.
type use struct {
	n   int
	own bool // one of them has the destination's own slot
}

// NewSlots returns the slots of a queue with shared slots, for destinations with
// the given states.
func NewSlots(shared int, states ...Health) *Slots {
	h := newHealth()
	h.merge(states)
	return newSlots(shared, h)
}

func newSlots(shared int, h *health) *Slots {
	return &Slots{limit: shared, health: h, taken: map[JobID]taken{}, destinations: map[Hash]use{}, hosts: map[Hash]int{}}
}

// Candidate is a job that is due, as a store offers it to [Slots.Take].
type Candidate struct {
	Job         JobID
	Destination Hash  // of Job.Destination
	Host        Hash  // of Job.Host
	Client      bool  // Job.Client
	Text        int64 // Job.Text
}

// Limit is a limit of deliveries that run at once.
type Limit uint8

// The limits.
const (
	DestinationLimit Limit = iota + 1 // of a destination
	HostLimit                         // of a host
	ClientLimit                       // of deliveries that clients decide
	TextLimit                         // of large texts, in bytes
	SharedLimit                       // of all deliveries that share slots
)

// Full names a limit that is reached.
type Full struct {
	Limit Limit
	Of    Hash // the destination or host; zero for other limits
}

// Take takes a slot for a job. If there is none, it reports false and the limit
// that the job has to wait for. A nil Slots has room for every job.
func (s *Slots) Take(c Candidate) (full Full, ok bool) {
	if s == nil {
		return full, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The job has a slot already if its lease ran out, or if the store repeats a
	// claim that has failed.
	s.release(c.Job)
	known, down := s.health.state(c.Destination)
	d := s.destinations[c.Destination]
	if d.n >= perDestination(down) {
		return Full{DestinationLimit, c.Destination}, false
	}
	own := known && !c.Client && !d.own
	if !own {
		switch {
		case s.hosts[c.Host] >= perHost:
			return Full{HostLimit, c.Host}, false
		case c.Client && s.clients >= s.limit/2:
			return Full{Limit: ClientLimit}, false
		case c.Text > SmallText && s.texts > 0 && s.texts+c.Text > MaxTexts:
			return Full{Limit: TextLimit}, false
		case s.shared >= s.limit:
			return Full{Limit: SharedLimit}, false
		}
	}
	s.taken[c.Job] = taken{c, own}
	s.claiming = append(s.claiming, c.Job)
	s.count(c, own, 1)
	return full, true
}

// hold adds n, 1 or -1, to the deliveries to a destination that a caller of [Queue.Accept] makes.
// They take no slot, but count for the limit of the destination.
func (s *Slots) hold(destination Hash, n int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.destinations[destination]
	if d.n += n; d.n == 0 {
		delete(s.destinations, destination)
		return
	}
	s.destinations[destination] = d
}

func perDestination(down bool) int {
	if down {
		return perDownDestination
	}
	return PerDestination
}

// count adds n, 1 or -1, to the deliveries under way. The caller holds the lock.
func (s *Slots) count(c Candidate, own bool, n int) {
	d := s.destinations[c.Destination]
	d.n += n
	if own {
		d.own = n > 0
	}
	if s.destinations[c.Destination] = d; d.n == 0 {
		delete(s.destinations, c.Destination)
	}
	if own {
		return
	}
	s.shared += n
	if s.hosts[c.Host] += n; s.hosts[c.Host] == 0 {
		delete(s.hosts, c.Host)
	}
	if c.Client {
		s.clients += n
	}
	if c.Text > SmallText {
		s.texts += int64(n) * c.Text
	}
}

// Release gives the slot of a job back, if it has one.
func (s *Slots) Release(id JobID) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(id)
}

// release does the work of Release. The caller holds the lock.
func (s *Slots) release(id JobID) {
	if t, ok := s.taken[id]; ok {
		delete(s.taken, id)
		s.count(t.Candidate, t.own, -1)
	}
}

// claimed ends a claim that returned jobs. It gives back the slots that the claim took for other
// jobs.
func (s *Slots) claimed(jobs []Job) {
	s.mu.Lock()
	claiming := s.claiming
	s.claiming = nil
	s.mu.Unlock()
	if len(claiming) == len(jobs) {
		return
	}
	returned := make(map[JobID]bool, len(jobs))
	for i := range jobs {
		returned[jobs[i].JobID] = true
	}
	for _, id := range claiming {
		if !returned[id] {
			s.Release(id)
		}
	}
}

// Free returns how many more deliveries a limit allows, or bytes of text for
// [TextLimit]. A store uses it to find jobs again that it has put aside because
// [Slots.Take] reported the limit as reached.
func (s *Slots) Free(f Full) int {
	if s == nil {
		return 1 << 30
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	free := 0
	switch f.Limit {
	case DestinationLimit:
		_, down := s.health.state(f.Of)
		free = perDestination(down) - s.destinations[f.Of].n
	case HostLimit:
		free = perHost - s.hosts[f.Of]
	case ClientLimit:
		free = s.limit/2 - s.clients
	case TextLimit:
		free = int(MaxTexts - s.texts)
	case SharedLimit:
		free = s.limit - s.shared
	}
	return max(free, 0)
}

// HasOwn reports whether a job's destination has a slot of its own that is free. A store
// offers its job before jobs of other destinations: it begins within a second of being due, and
// takes no room from them.
func (s *Slots) HasOwn(c Candidate) bool {
	if s == nil || c.Client {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, _ := s.health.state(c.Destination)
	return known && !s.destinations[c.Destination].own
}

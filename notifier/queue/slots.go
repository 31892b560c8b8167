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

	// untriedPerShared is the number of untried destinations that can have slots of their own for
	// each shared slot, and untriedPerHost the limit of these slots for one host.
	untriedPerShared = 8
	untriedPerHost   = 256

	// Texts above SmallText take together at most MaxTexts of memory.
	SmallText = 64 << 10
	MaxTexts  = 64 << 20
)

// Slots counts the deliveries under way and decides which others have room.
//
// Each known destination of the operator has its own slot. So has each untried one, which has
// neither succeeded nor failed in a way that may get better, for a text of at most 64 KiB: at most
// eight times as many as there are shared slots, and 256 at one host. All other deliveries share a
// number of slots. Deliveries that clients decide take at most half of the shared slots, deliveries to one
// host at most 16, and deliveries with texts above 64 KiB as many as have 64 MiB of text together.
// In addition, at most four deliveries go to one destination at once, and one if it is down.
//
// So a delivery to a known destination with none under way always has a slot, however many others
// hang. The first delivery to an untried one has a slot unless as many other first ones hang at the
// same time: a destination that hangs takes this slot once, and shares slots afterwards.
type Slots struct {
	limit  int // of shared slots
	health *health

	mu           sync.Mutex
	taken        map[JobID]taken
	claiming     []JobID // since the last call of claimed
	destinations map[Hash]use
	hosts        map[Hash]hostUse
	untried      int
	shared       int
	clients      int
	texts        int64
}

// taken is the slot of one delivery.
type taken struct {
	Candidate
	slot
}

// slot is the kind of a slot.
type slot uint8

const (
	sharedSlot  slot = iota
	untriedSlot      // the own slot of an untried destination
	knownSlot        // the own slot of a known destination
)

// use counts the deliveries to one destination.
type use struct {
	n   int
	own bool // one of them has a slot that is not shared
}

// hostUse counts the slots of deliveries to one host.
type hostUse struct{ shared, untried int }

// NewSlots returns the slots of a queue with shared slots, for destinations with
// the given states.
func NewSlots(shared int, states ...Health) *Slots {
	h := newHealth()
	h.merge(states)
	return newSlots(shared, h)
}

func newSlots(shared int, h *health) *Slots {
	return &Slots{limit: shared, health: h, taken: map[JobID]taken{}, destinations: map[Hash]use{}, hosts: map[Hash]hostUse{}}
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
	UntriedLimit                      // of deliveries to untried destinations in their own slots
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
	if full, ok = s.take(c); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.claiming = append(s.claiming, c.Job)
	}
	return full, ok
}

// take is Take outside of a claim.
func (s *Slots) take(c Candidate) (full Full, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The job has a slot already if its lease ran out, or if the store repeats a
	// claim that has failed.
	s.release(c.Job)
	h := s.health.state(c.Destination)
	d := s.destinations[c.Destination]
	if d.n >= perDestination(h.down) {
		return Full{DestinationLimit, c.Destination}, false
	}
	t := taken{c, s.slotFor(c, d, h)}
	switch {
	case t.slot == knownSlot:
	case t.slot == untriedSlot:
		if s.untried >= s.limit*untriedPerShared {
			return Full{Limit: UntriedLimit}, false
		}
	case s.hosts[c.Host].shared >= perHost:
		return Full{HostLimit, c.Host}, false
	case c.Client && s.clients >= s.limit/2:
		return Full{Limit: ClientLimit}, false
	case c.Text > SmallText && s.texts > 0 && s.texts+c.Text > MaxTexts:
		return Full{Limit: TextLimit}, false
	case s.shared >= s.limit:
		return Full{Limit: SharedLimit}, false
	}
	s.taken[c.Job] = t
	s.count(t, 1)
	return full, true
}

// slotFor returns the kind of slot for a job whose destination is in use as d and has the state h.
// The caller holds the lock.
func (s *Slots) slotFor(c Candidate, d use, h state) slot {
	switch {
	case c.Client || d.own:
	case h.known:
		return knownSlot
	case h.untried && c.Text <= SmallText && s.hosts[c.Host].untried < untriedPerHost:
		return untriedSlot
	}
	return sharedSlot
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
func (s *Slots) count(c taken, n int) {
	d := s.destinations[c.Destination]
	d.n += n
	if c.slot != sharedSlot {
		d.own = n > 0
	}
	if s.destinations[c.Destination] = d; d.n == 0 {
		delete(s.destinations, c.Destination)
	}
	if c.slot == knownSlot {
		return
	}
	h := s.hosts[c.Host]
	if c.slot == untriedSlot {
		s.untried += n
		h.untried += n
	} else {
		s.shared += n
		h.shared += n
	}
	if s.hosts[c.Host] = h; h == (hostUse{}) {
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
		s.count(t, -1)
	}
}

// claimed ends a claim that returned jobs. It gives back the slots that the claim took for other
// jobs.
func (s *Slots) claimed(jobs []claimedJob) {
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
		free = perDestination(s.health.state(f.Of).down) - s.destinations[f.Of].n
	case HostLimit:
		free = perHost - s.hosts[f.Of].shared
	case ClientLimit:
		free = s.limit/2 - s.clients
	case TextLimit:
		free = int(MaxTexts - s.texts)
	case SharedLimit:
		free = s.limit - s.shared
	case UntriedLimit:
		free = s.limit*untriedPerShared - s.untried
	}
	return max(free, 0)
}

// HasOwn reports whether a job's destination is known and has a slot of its own that is free. A
// store offers its job before jobs of other destinations: it begins within a second of being due,
// and takes no room from them.
func (s *Slots) HasOwn(c Candidate) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slotFor(c, s.destinations[c.Destination], s.health.state(c.Destination)) == knownSlot
}

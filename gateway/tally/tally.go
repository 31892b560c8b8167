package tally

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Length is the time counted together, and Kept the number of such times.
const (
	Length = 30 * time.Minute
	Kept   = 48
)

// maxSeries is the maximum number of destinations and keys counted in a half hour. The rest have no
// bar.
const maxSeries = 20_000

// Slot is the number of a half hour since 1970.
type Slot int64

// SlotOf returns the half hour of a time.
func SlotOf(t time.Time) Slot { return Slot(t.Unix() / int64(Length/time.Second)) }

// End returns when the half hour ends.
func (s Slot) End() time.Time { return time.Unix(int64(s+1)*int64(Length/time.Second), 0) }

// ID stands for a key, or for a destination of a key. It is a hash, which nobody can reverse.
type ID [12]byte

// OfKey returns the ID of a key of a site.
func OfKey(key site.KeyID) ID { return newID(key.Site, key.Key) }

// OfDestination returns the ID of a destination of a key of a site.
func OfDestination(key site.KeyID, t notifier.Target) ID { return OfHash(key, HashOf(t)) }

// OfHash is like OfDestination for the hash of a destination.
func OfHash(key site.KeyID, hash string) ID { return newID(key.Site, key.Key, hash) }

// HashOf returns the hash by which a destination is counted. If its URL has variables, it is the
// hash of the URL as written, so that all values count together.
func HashOf(t notifier.Target) string {
	if t.Variable != nil {
		return t.Variable.URL
	}
	return t.Hash()
}

func newID(parts ...string) (id ID) {
	text := make([]byte, 0, 256) // on the stack, unless the parts are longer
	for i, part := range parts {
		if i > 0 {
			text = append(text, 0)
		}
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	copy(id[:], sum[:])
	return id
}

// Counts are the outcomes of deliveries. A waiting delivery counts once in each half hour with a
// failed attempt that will be repeated.
type Counts struct{ Delivered, Waited, Failed int }

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Delivered += other.Delivered
	c.Waited += other.Waited
	c.Failed += other.Failed
}

// Counter counts the deliveries of a process. The zero value is ready for use.
type Counter struct {
	mu      sync.Mutex
	process [16]byte // zero until it is needed
	slots   map[Slot]*counted
}

// counted has the counts of a half hour.
type counted struct {
	byID    map[ID]*Counts
	changes int // number of changes
	saved   int // number of changes when last stored
}

// Add counts a delivery for a key and its destination.
func (c *Counter) Add(now time.Time, key site.KeyID, destination string, what Counts) {
	slot, ids := SlotOf(now), [2]ID{OfKey(key), OfHash(key, destination)}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[slot]
	if s == nil {
		if c.slots == nil {
			c.slots = map[Slot]*counted{}
		}
		maps.DeleteFunc(c.slots, func(old Slot, _ *counted) bool { return old <= slot-Kept })
		s = &counted{byID: map[ID]*Counts{}}
		c.slots[slot] = s
	}
	for _, id := range ids {
		n := s.byID[id]
		if n == nil {
			if len(s.byID) >= maxSeries {
				continue
			}
			n = new(Counts)
			s.byID[id] = n
		}
		n.Add(what)
	}
	s.changes++
}

// Sum adds the counts for an ID to the parts of the last 24 hours, the latest last.
func (c *Counter) Sum(now time.Time, id ID, parts *[Kept]Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for slot, s := range c.slots {
		if n := s.byID[id]; n != nil {
			addPart(parts, SlotOf(now), slot, *n)
		}
	}
}

// addPart adds the counts of a slot to the parts that end with the slot last.
func addPart(parts *[Kept]Counts, last, slot Slot, n Counts) {
	if i := Kept - 1 - int(last-slot); i >= 0 && i < Kept {
		parts[i].Add(n)
	}
}

// Record is the stored form of a process's counts in a half hour.
type Record struct {
	Process [16]byte
	Slot    Slot
	Series  []Series

	changes int
}

// Series are the counts for an ID.
type Series struct {
	ID ID
	Counts
}

// Fields names the fields of a stored record.
func (r *Record) Fields(c *wire.Codec) {
	wire.Array(c, 1, r.Process[:])
	wire.Number(c, 2, &r.Slot)
	wire.Records(c, 3, &r.Series, (*Series).fields)
}

func (s *Series) fields(c *wire.Codec) {
	wire.Array(c, 1, s.ID[:])
	wire.Number(c, 2, &s.Delivered)
	wire.Number(c, 3, &s.Waited)
	wire.Number(c, 4, &s.Failed)
}

// Changed returns the half hours that have changed since they were stored, the oldest first.
func (c *Counter) Changed() (out []Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for slot, s := range c.slots {
		if s.changes == s.saved {
			continue
		}
		r := Record{Process: c.name(), Slot: slot, changes: s.changes}
		for id, n := range s.byID {
			r.Series = append(r.Series, Series{id, *n})
		}
		slices.SortFunc(r.Series, func(a, b Series) int { return slices.Compare(a.ID[:], b.ID[:]) })
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Record) int { return cmp.Compare(a.Slot, b.Slot) })
	return out
}

// Saved records that a record from Changed is stored.
func (c *Counter) Saved(r *Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.slots[r.Slot]; s != nil {
		s.saved = r.changes
	}
}

// Process returns the random ID in the names of the counter's records.
func (c *Counter) Process() [16]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name()
}

// name is like Process. The caller holds the lock.
func (c *Counter) name() [16]byte {
	if c.process == ([16]byte{}) {
		_, _ = rand.Read(c.process[:]) // it never fails
	}
	return c.process
}

// Others are the counts of other processes, and of this one before its last start.
type Others map[ID]map[Slot]Counts

// Add adds a record.
func (o Others) Add(r *Record) {
	for _, s := range r.Series {
		if o[s.ID] == nil {
			o[s.ID] = map[Slot]Counts{}
		}
		n := o[s.ID][r.Slot]
		n.Add(s.Counts)
		o[s.ID][r.Slot] = n
	}
}

// Sum is like [Counter.Sum].
func (o Others) Sum(now time.Time, id ID, parts *[Kept]Counts) {
	for slot, n := range o[id] {
		addPart(parts, SlotOf(now), slot, n)
	}
}

// Observe counts the outcome of an attempt. repeats reports whether the attempt is repeated if that
// can help. last is the time of the attempt before; zero for the first.
func (c *Counter) Observe(now time.Time, key site.KeyID, t notifier.Target, r *notifier.Result, repeats bool, last time.Time) {
	var what Counts
	switch {
	case r.Status == notifier.Delivered:
		what.Delivered = 1
	case r.Status != notifier.Failed:
		return
	case repeats && r.Temporary:
		if !last.IsZero() && SlotOf(last) == SlotOf(now) {
			return // it is already counted
		}
		what.Waited = 1
	default:
		what.Failed = 1
	}
	c.Add(now, key, HashOf(t), what)
}

package notifier

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/workers"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// senderSlots limits the deliveries under way. See [NewSender].
type senderSlots struct {
	transient slots   // for deliveries to transient destinations, in addition to a shared slot
	client    []slots // only transient
	maxOwn    int
	maxShared int
	workers   *workers.Workers[*delivery]

	mu     sync.Mutex
	own    int // slots that are taken
	shared int // the same
	lines  map[*Destination]line
	turns  []*sending // with deliveries that wait, in the order of their turns for a shared slot
}

// line is what is under way to a destination, and what waits.
type line struct {
	own     bool // its own slot is taken
	waiting []*delivery
}

// slot is what a delivery has of [senderSlots].
type slot uint8

const (
	noSlot slot = iota
	waitsForSlot
	ownSlot
	sharedSlot
)

// hangTime is the time after which a delivery that fails shows that its destination hangs.
const hangTime = 3 * time.Second

func newSenderSlots(n int) senderSlots {
	shared := max(n/4, 1)
	transient := make(slots, (shared+1)/2)
	return senderSlots{
		transient: transient, client: []slots{transient}, maxOwn: n - shared, maxShared: shared,
		workers: workers.New((*delivery).run), lines: map[*Destination]line{},
	}
}

// begin reports whether there is a slot for a delivery, which the caller then runs. Otherwise it is
// run as soon as there is one; until then it has no goroutine.
func (s *senderSlots) begin(d *delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := d.target.Destination
	l := s.lines[to]
	if s.take(d, &l, ownSlot) || s.take(d, &l, sharedSlot) {
		s.put(to, l)
		return true
	}
	if d.done == nil {
		d.done = make(chan struct{})
	}
	d.slot = waitsForSlot
	l.waiting = append(l.waiting, d)
	s.put(to, l)
	x := d.sending
	if x.waiting++; x.waiting == 1 {
		s.turns = append(s.turns, x)
	}
	return false
}

// take reports whether it has taken a slot of a kind for d, whose destination has the line l. The
// caller holds the lock.
func (s *senderSlots) take(d *delivery, l *line, kind slot) bool {
	switch {
	case kind == sharedSlot && s.shared < s.maxShared:
		s.shared++
	case kind == ownSlot && s.own < s.maxOwn && !l.own && d.mayHaveOwnSlot():
		l.own = true
		s.own++
	default:
		return false
	}
	d.slot = kind
	return true
}

// mayHaveOwnSlot reports whether the destination is one of the operator's that does not hang.
func (d *delivery) mayHaveOwnSlot() bool {
	return !d.options.Transient && d.options.Limits == nil && d.target.Values == nil && !d.target.hangs()
}

// end gives the slot of a delivery back, and begins others that have waited.
func (s *senderSlots) end(d *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := d.target.Destination
	switch d.slot {
	case ownSlot:
		l := s.lines[to]
		l.own = false
		s.put(to, l)
		s.own--
	case sharedSlot:
		s.shared--
	}
	d.slot = noSlot
	if l := s.lines[to]; (len(l.waiting) == 0 || !s.next(l.waiting[0], ownSlot)) && s.own == s.maxOwn-1 {
		for _, x := range s.turns { // they may wait because all own slots were taken
			if s.next(x.firstWaiting(), ownSlot) {
				break
			}
		}
	}
	for len(s.turns) > 0 && s.shared < s.maxShared {
		x := s.turns[0]
		s.turns = append(s.turns[1:], x)
		s.next(x.firstWaiting(), sharedSlot)
	}
}

// next begins a delivery that waits, if there is a slot of a kind for it. The caller holds the lock.
func (s *senderSlots) next(d *delivery, kind slot) bool {
	to := d.target.Destination
	l := s.lines[to]
	if !s.take(d, &l, kind) {
		return false
	}
	s.lines[to] = l
	s.stopWaiting(d)
	d.waited = time.Since(d.start)
	s.workers.Start(d)
	return true
}

// stopWaiting removes a delivery from those that wait. The caller holds the lock.
func (s *senderSlots) stopWaiting(d *delivery) {
	to, x := d.target.Destination, d.sending
	l := s.lines[to]
	l.waiting = slices.DeleteFunc(l.waiting, func(o *delivery) bool { return o == d })
	s.put(to, l)
	if x.waiting--; x.waiting == 0 {
		s.turns = slices.DeleteFunc(s.turns, func(o *sending) bool { return o == x })
	}
}

// firstWaiting returns the first delivery that waits for a slot. There must be one.
func (x *sending) firstWaiting() *delivery {
	for x.deliveries[x.mayWait].slot != waitsForSlot {
		x.mayWait++
	}
	return &x.deliveries[x.mayWait]
}

// put stores a line, or removes it if it says nothing. The caller holds the lock.
func (s *senderSlots) put(to *Destination, l line) {
	if !l.own && len(l.waiting) == 0 {
		delete(s.lines, to)
		return
	}
	s.lines[to] = l
}

// giveUp ends the deliveries of x that wait for a slot.
func (s *senderSlots) giveUp(x *sending) {
	for i := range x.deliveries {
		if d := &x.deliveries[i]; s.leave(d) {
			d.end(0, errNoRoom)
		}
	}
}

// leave reports whether a delivery has waited for a slot. It does not wait any more.
func (s *senderSlots) leave(d *delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.slot != waitsForSlot {
		return false
	}
	d.slot = noSlot
	s.stopWaiting(d)
	return true
}

// slots is a semaphore: each value in it is a slot that is taken.
type slots chan struct{}

// forMessage returns the semaphores that each of n deliveries of one message takes a slot of
// before it begins.
func (s *senderSlots) forMessage(transient bool, n int) []slots {
	if !transient {
		return nil
	}
	if limit := max(cap(s.transient)/4, 1); n > limit {
		return []slots{make(slots, limit), s.transient}
	}
	return s.client
}

// copiesOfText is the number of copies of a text in memory for a delivery:
// encoded, and once more while it is encoded.
const copiesOfText = 2

// takeCopies returns the semaphore for the deliveries of one message with a text of n bytes. The
// memory of the first one is taken with the text. free returns what is taken for the others.
func takeCopies(memory *memory.Allocation, n, deliveries int) (s slots, free func()) {
	size, room := copiesOfText*int64(n), 1
	for room < deliveries && memory.Take(size) {
		room++
	}
	return make(slots, room), func() { memory.Free(int64(room-1) * size) }
}

// takeSlots waits for a slot of each of all. It takes none and reports false if ctx ends before.
func takeSlots(ctx context.Context, all []slots) bool {
	for i, s := range all {
		if !s.take(ctx) {
			releaseSlots(all[:i])
			return false
		}
	}
	return true
}

func releaseSlots(all []slots) {
	for _, s := range all {
		<-s
	}
}

// take takes a slot, also if ctx has ended and a slot is free.
func (s slots) take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	default:
	}
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

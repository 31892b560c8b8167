package notifier

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// senderSlots limits the deliveries under way.
type senderSlots struct {
	all       slots   // for every delivery
	transient slots   // for deliveries to transient destinations, in addition to all
	operator  []slots // only all
	client    []slots // transient and all
}

// slots is a semaphore: each value in it is a slot that is taken.
type slots chan struct{}

func newSenderSlots(n int) senderSlots {
	all, transient := make(slots, n), make(slots, (n+1)/2)
	return senderSlots{all, transient, []slots{all}, []slots{transient, all}}
}

// forMessage returns the semaphores that each of n deliveries of one message
// takes a slot of.
func (s senderSlots) forMessage(transient bool, n int) []slots {
	if !transient {
		return s.operator
	}
	if limit := max(cap(s.transient)/4, 1); n > limit {
		return []slots{make(slots, limit), s.transient, s.all}
	}
	return s.client
}

// copiesOfText is the number of copies of a text in memory for a delivery:
// encoded, and once more while it is encoded.
const copiesOfText = 2

// takeCopies returns the semaphore for the deliveries of one message with a text
// of n bytes. The memory of the first one is taken with the text. free returns
// what is taken for the others.
func takeCopies(memory *memory.Allocation, n, deliveries int) (s slots, free func()) {
	size, room := copiesOfText*int64(n), 1
	for room < deliveries && memory.Take(size) {
		room++
	}
	return make(slots, room), func() { memory.Free(int64(room-1) * size) }
}

// takeSlots waits for a slot of each of all. It takes none and reports false if
// ctx ends before.
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

package queue

import "testing"

// TestRoomAfterSettling checks that a destination that had too many outcomes to store is offered again
// when they are stored, however many are stored at once. Otherwise its jobs would wait for the next message.
func TestRoomAfterSettling(t *testing.T) {
	p := NewPrefetch(newSlots(SharedSlots, newHealth()))
	to := Hash{1}
	p.lanes[to] = &prefetchLane{unsettled: maxUnsettled}
	told := 0
	for n := maxUnsettled - 1; n >= 0; n-- {
		room := p.settled(to)
		if room {
			told++
		}
		if room && p.keeps(to) || p.keeps(to) != (n > maxUnsettled-PerDestination) {
			t.Errorf("with %d outcomes: room %t", n, room)
		}
	}
	if told != 1 {
		t.Errorf("told %d times that there is room", told)
	}
}

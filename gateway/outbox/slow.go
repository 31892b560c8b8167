package outbox

import (
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// maxDirect is the maximum number of messages that are sent to one destination
// at once without going through the queue first.
const maxDirect = notifier.DefaultConcurrency / 8

// slowDestinations counts the deliveries that requests make to each
// destination. Messages to a slow destination go through the queue, which makes
// few deliveries to one destination at once, so that they do not block those to
// others. The zero value is ready for use.
type slowDestinations struct {
	mu     sync.Mutex
	counts map[*notifier.Destination]*directCount
}

// directCount counts the deliveries to one destination.
type directCount struct {
	all  int
	late int // deliveries that had not ended when the request was answered
}

// begin counts a delivery. It reports false without counting if the destination
// is slow and force is false. A destination is slow if [queue.PerDestination]
// deliveries to it are late or maxDirect are in progress.
func (s *slowDestinations) begin(d *notifier.Destination, force bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[d]
	if c == nil {
		if s.counts == nil {
			s.counts = map[*notifier.Destination]*directCount{}
		}
		c = &directCount{}
		s.counts[d] = c
	}
	if !force && (c.late >= queue.PerDestination || c.all >= maxDirect) {
		return false
	}
	c.all++
	return true
}

// late counts a delivery as late.
func (s *slowDestinations) late(d *notifier.Destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[d].late++
}

// end ends a delivery that begin has counted.
func (s *slowDestinations) end(d *notifier.Destination, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[d]
	if c.all--; c.all == 0 {
		delete(s.counts, d)
	}
	if late {
		c.late--
	}
}

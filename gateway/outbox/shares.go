package outbox

import (
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Shares bound how many of something each key has in the queue: several requests at once must
// not exceed what each of them finds free. The zero value is ready for use. Several gateways
// that store something at the same moment may exceed the bound by a few.
type Shares struct {
	mu    sync.Mutex
	under map[site.Place]int // that are being stored
}

// Reserve makes room for one more of a key. stored returns how many it has. If these are most,
// ok is false. Otherwise the caller calls done when it has stored the one, or has not.
func (s *Shares) Reserve(at site.Place, most int, stored func() (int, error)) (done func(), ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := stored()
	if err != nil || n+s.under[at] >= most {
		return nil, false, err
	}
	if s.under == nil {
		s.under = map[site.Place]int{}
	}
	s.under[at]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.under[at]--; s.under[at] == 0 {
			delete(s.under, at)
		}
	}, true, nil
}

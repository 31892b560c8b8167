package notifier

import (
	"container/list"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// destinationKey is a URL under a policy, with the files that it names. It is
// short, because there is one for each URL of a configuration.
type destinationKey struct{ policy, text, files string }

// sharedDestinations holds the destinations of the configurations that are
// loaded. Two configurations, before and after a reload, share the destinations
// that both have.
type sharedDestinations struct {
	mu    sync.Mutex
	byKey map[destinationKey]*Destination
}

// acquire returns the destination of a URL and adds a use to it.
func (s *sharedDestinations) acquire(text string, policy *egress.Policy, files Files) (*Destination, error) {
	// A destination with files is not found by this key: they may have changed.
	if d := s.use(destinationKey{policy: policy.Key(), text: text}, nil); d != nil {
		return d, nil
	}
	d, err := ParseWithFiles(text, policy, files)
	if err != nil {
		return nil, err
	}
	return s.use(d.key(), d), nil
}

// use adds a use to the destination of key. If there is none, it stores fresh,
// or returns nil if fresh is nil.
func (s *sharedDestinations) use(key destinationKey, fresh *Destination) *Destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.byKey[key]
	if d == nil {
		if fresh == nil {
			return nil
		}
		if s.byKey == nil {
			s.byKey = map[destinationKey]*Destination{}
		}
		d = fresh
		s.byKey[key] = d
	}
	d.uses++
	return d
}

// key returns the key of a destination.
func (d *Destination) key() destinationKey {
	key := destinationKey{policy: d.policy.Key(), text: d.text}
	if d.files != nil {
		key.files = d.files.dir + string(d.files.digest[:])
	}
	return key
}

// release removes a use. The last one closes the destination.
func (s *sharedDestinations) release(d *Destination) {
	if s.removeUse(d) {
		d.Close()
	}
}

// removeUse reports whether it removed the last use of d.
func (s *sharedDestinations) removeUse(d *Destination) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := d.key()
	if s.byKey[key] != d {
		return false
	}
	if d.uses--; d.uses > 0 {
		return false
	}
	delete(s.byKey, key)
	return true
}

// clear forgets and closes all destinations.
func (s *sharedDestinations) clear() {
	s.mu.Lock()
	all := s.byKey
	s.byKey = nil
	s.mu.Unlock()
	for _, d := range all {
		d.Close()
	}
}

// The size of recentDestinations. Longer URLs are rare, and a destination
// takes several times the memory of its URL.
const (
	maxRecentDestinations = 1000
	maxRecentURL          = 1 << 10 // bytes of each
)

// recentDestinations remembers the destinations that clients used last. It holds only destinations
// of services without state between messages.
type recentDestinations struct {
	mu    sync.Mutex
	byKey map[destinationKey]*list.Element
	order list.List // of recentDestination, the last used one first
}

type recentDestination struct {
	key destinationKey
	d   *Destination
}

func (r *recentDestinations) get(text string, policy *egress.Policy) (*Destination, error) {
	key := destinationKey{policy: policy.Key(), text: text}
	if d := r.find(key); d != nil {
		return d, nil
	}
	d, err := Parse(text, policy)
	if err == nil && !d.entry.hasState && len(text) <= maxRecentURL {
		r.add(key, d)
	}
	return d, err
}

func (r *recentDestinations) find(key destinationKey) *Destination {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byKey[key]
	if e == nil {
		return nil
	}
	r.order.MoveToFront(e)
	return e.Value.(recentDestination).d
}

func (r *recentDestinations) add(key destinationKey, d *Destination) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[key] != nil {
		return // another goroutine was faster
	}
	if r.byKey == nil {
		r.byKey = map[destinationKey]*list.Element{}
	}
	r.byKey[key] = r.order.PushFront(recentDestination{key, d})
	if r.order.Len() > maxRecentDestinations {
		delete(r.byKey, r.order.Remove(r.order.Back()).(recentDestination).key)
	}
}

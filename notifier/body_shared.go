package notifier

import (
	"bytes"
	"hash/maphash"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// sharedBodies holds equal bodies of one message once. A message with a long
// text may go to many destinations that get the same JSON.
type sharedBodies struct {
	seed maphash.Seed

	mu     sync.Mutex
	byHash map[uint64][]byte
}

func newSharedBodies() *sharedBodies {
	return &sharedBodies{seed: maphash.MakeSeed(), byHash: map[uint64][]byte{}}
}

// share replaces the long segments of b by equal ones of other bodies. A nil s
// shares nothing.
func (s *sharedBodies) share(b *Body) {
	if s == nil {
		return
	}
	for i := range b.segments {
		if data := b.segments[i].bytes; len(data) > memory.SmallText {
			b.segments[i].bytes = s.get(data)
		}
	}
}

func (s *sharedBodies) get(data []byte) []byte {
	hash := maphash.Bytes(s.seed, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.byHash[hash]; ok && bytes.Equal(other, data) {
		return other
	}
	s.byHash[hash] = data
	return data
}

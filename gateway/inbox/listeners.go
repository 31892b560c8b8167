package inbox

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The limits of inboxes.
const (
	MaxListeners = 100 // of an inbox at a gateway

	maxAllCount = 100_000 // messages of all inboxes
)

// ErrTooManyListeners is returned when an inbox has [MaxListeners] listeners.
var ErrTooManyListeners = &message.Error{
	Kind: message.Full, RetryAfter: outbox.QueueRetryAfter,
	Err: fmt.Errorf("%d clients follow the inbox of this key at this gateway already, which is the limit; end one of them", MaxListeners),
}

// known is what a gateway knows of inboxes: who listens to them, and how large they are. The
// zero value is ready for use.
type known struct {
	mu    sync.Mutex
	feeds map[string]*sharedFeed // by the place; those with listeners
	heads map[string]Head        // by the place
	read  time.Time              // when all heads were read
}

// sharedFeed is the feed of an inbox for all its listeners.
type sharedFeed struct {
	*Feed
	listeners int
}

// note records the head of an inbox, and tells its listeners.
func (k *known) note(h Head) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heads == nil {
		k.heads = map[string]Head{}
	}
	switch before, ok := k.heads[h.Place]; {
	case h.Count <= 0:
		delete(k.heads, h.Place)
	case !ok || before.Last <= h.Last:
		k.heads[h.Place] = h
	}
	if f := k.feeds[h.Place]; f != nil {
		f.tell(h.Last)
	}
}

func (k *known) forget(place string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.heads, place)
}

// join counts a listener in. newFeed makes the feed for the first one.
func (k *known) join(place string, newFeed func() *Feed) (f *Feed, leave func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	shared := k.feeds[place]
	if shared == nil {
		shared = &sharedFeed{Feed: newFeed()}
		if k.feeds == nil {
			k.feeds = map[string]*sharedFeed{}
		}
		k.feeds[place] = shared
	}
	if shared.listeners == MaxListeners {
		return nil, nil, ErrTooManyListeners
	}
	shared.listeners++
	return shared.Feed, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if shared.listeners--; shared.listeners == 0 {
			delete(k.feeds, place)
		}
	}, nil
}

// followed returns the places of the inboxes with listeners.
func (k *known) followed() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.feeds))
}

// crowded returns an inbox whose oldest messages must be removed, and how much to remove; place is
// "" if there is room for all. It chooses an inbox with too many messages, or the largest inbox if
// it or all inboxes together take too much of a queue of maxSize.
func (k *known) crowded(maxSize int64) (place string, more surplus) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind := KindMessage
	var largest, all Head
	for _, h := range k.heads {
		if h.Count > kind.Most() {
			return h.Place, surplus{count: h.Count - kind.Most()}
		}
		if all.Count, all.Size = all.Count+h.Count, all.Size+h.Size; h.Size > largest.Size {
			largest = h
		}
	}
	more = surplus{all.Count - maxAllCount, max(largest.Size-kind.KeyShare(maxSize), all.Size-kind.Share(maxSize))}
	if more.count <= 0 && more.size <= 0 {
		return "", more
	}
	return largest.Place, more
}

// Listen returns the feed of an inbox. The caller calls leave when it does not listen any
// more.
func (s *Store) Listen(ctx context.Context, place string) (f *Feed, leave func(), err error) {
	// The head is read twice, so that the feed learns of a message that comes in between.
	before, err := s.Head(ctx, place)
	if err != nil {
		return nil, nil, err
	}
	if f, leave, err = s.known.join(place, func() *Feed {
		return newFeed(before.Last, func(ctx context.Context, after Cursor) ([]*Message, error) { return s.Read(ctx, place, after) })
	}); err != nil {
		return nil, nil, err
	}
	now, err := s.Head(ctx, place)
	if err != nil {
		leave()
		return nil, nil, err
	}
	f.tell(now.Last)
	return f, leave, nil
}

// readEvery is how often the heads of all inboxes are read from a store that other gateways use,
// too.
const readEvery = 30 * time.Second

// Refresh tells listeners about messages that other gateways have accepted, and removes the oldest
// messages of inboxes with too many. used reports whether a key has an inbox. The caller calls
// Refresh each second, so that failures are tried again.
func (s *Store) Refresh(ctx context.Context, used func() bool) {
	for _, place := range s.known.followed() {
		h, err := s.Head(ctx, place)
		if err != nil {
			return
		}
		s.known.note(h)
	}
	s.known.mu.Lock()
	due := s.known.read.IsZero() || s.Shared && time.Since(s.known.read) > readEvery
	s.known.mu.Unlock()
	if due && used() {
		if err := s.readHeads(ctx); err != nil {
			return
		}
	}
	s.Trim(ctx)
}

// readHeads reads the heads of all inboxes.
func (s *Store) readHeads(ctx context.Context) error {
	began := time.Now()
	for after := (queue.Hash{}); ; {
		records, err := s.Queue.Records.Group(ctx, s.heads(), after, page)
		if err != nil {
			return err
		}
		for _, r := range records {
			after = r.Name
			s.known.note(decodeHead("", r.Data))
		}
		if len(records) < page {
			break
		}
	}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	s.known.read = began
	return nil
}

// maxTrims is the maximum number of pages that Trim removes at once.
const maxTrims = 20

// Trim removes the oldest messages of inboxes with too many, and reports whether it has removed
// any.
func (s *Store) Trim(ctx context.Context) (removed bool) {
	for range maxTrims {
		place, more := s.known.crowded(s.Queue.MaxSize())
		if place == "" {
			break
		}
		n, err := s.remove(ctx, place, math.MaxUint64, more)
		if err != nil {
			break
		}
		if n == 0 { // the known head is wrong
			s.known.forget(place)
			continue
		}
		removed = true
		s.Removed(place, n)
	}
	return removed
}

package alerting

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// silenceCache has the silences of all keys, so that a message to a key without one costs
// no more than a look at it. Where the store is shared, it is read anew each second.
type silenceCache struct {
	places atomic.Pointer[map[string]rules.Silences] // nil before it was read

	mu      sync.Mutex      // held while it is read
	version []byte          // of what was read; see KindSilencesVersion
	near    map[string]bool // the places of keys with a silence that holds, or will in a minute

	isNear atomic.Bool  // there are some
	look   atomic.Int64 // nanoseconds of the time at which there may be others; 0 for never
}

// change takes over a change of this gateway, which has replaced a version of all silences by
// another: the silences of the key with a place. ok is false if another change has come
// between; then all have to be read.
func (c *silenceCache) change(place string, silences rules.Silences, before, version []byte) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.places.Load()
	if known == nil || !slices.Equal(c.version, before) {
		return false
	}
	all := maps.Clone(*known)
	if all[place] = silences; len(silences) == 0 {
		delete(all, place)
	}
	c.version = version
	c.store(all)
	return true
}

// store stores the silences of all keys.
func (c *silenceCache) store(all map[string]rules.Silences) {
	c.places.Store(&all)
	c.look.Store(1)
}

// newlyNear returns the places of keys of which a silence holds, or will in a minute, since
// the last call.
func (c *silenceCache) newlyNear(now time.Time) (places []string) {
	if look := c.look.Load(); look == 0 || now.UnixNano() < look {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all, near, next := c.places.Load(), map[string]bool{}, time.Time{}
	if all == nil {
		return nil
	}
	for place, silences := range *all {
		isNear, at := silences.NextNear(now)
		if isNear {
			near[place] = true
			if !c.near[place] {
				places = append(places, place)
			}
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	c.near = near
	c.isNear.Store(len(near) > 0)
	if c.look.Store(0); !next.IsZero() {
		c.look.Store(next.UnixNano())
	}
	return places
}

// of returns the silences of the key of a delivery.
func (c *silenceCache) of(d *dispatch.Delivery) rules.Silences {
	all := c.places.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	return (*all)[d.Place()]
}

// has reports whether the key with a place has silences, or may have some.
func (c *silenceCache) has(place string) bool {
	all := c.places.Load()
	return all == nil || len((*all)[place]) > 0
}

// hasWindows reports whether the key with a place has a silence of a window.
func (c *silenceCache) hasWindows(place string) bool {
	all := c.places.Load()
	return all != nil && slices.ContainsFunc((*all)[place], func(x rules.Silence) bool { return x.Window != uuid.UUID{} })
}

// Refresh reads the silences that other gateways may have changed.
func (s *Silences) Refresh(ctx context.Context) {
	if s.outbox.Shared || s.cache.places.Load() == nil {
		if err := s.read(ctx); err != nil && s.cache.places.Load() == nil && ctx.Err() == nil {
			s.outbox.Log.Debug("silences cannot be read yet", zap.Error(err))
		}
	}
	s.storeNear(ctx)
}

// storeNear stores what destinations of keys know of which a silence holds now, or will in a
// minute.
func (s *Silences) storeNear(ctx context.Context) {
	for _, place := range s.cache.newlyNear(s.outbox.Queue.Now()) {
		s.storeKnown(ctx, place)
	}
}

// read reads the silences if they have changed.
func (s *Silences) read(ctx context.Context) error {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	version, err := s.outbox.Queue.Records.Get(ctx, s.records.silencesVersion())
	if err != nil || s.cache.places.Load() != nil && slices.Equal(version, s.cache.version) {
		return err
	}
	all := map[string]rules.Silences{}
	if err := s.eachIn(ctx, s.records.silencesGroup(), func(r queue.NamedRecord) error {
		if x := silencesRecords.DecodeOrNew(r.Data); len(x.All) > 0 {
			all[x.Home+"\x00"+x.Key] = x.All
		}
		return nil
	}); err != nil {
		return err
	}
	s.cache.version = version
	s.cache.store(all)
	return nil
}

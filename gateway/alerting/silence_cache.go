package alerting

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// silenceCache has the silences of all keys, so that a message to a key without one costs
// no more than a look at it. Where the store is shared, it is read anew each second.
type silenceCache struct {
	places atomic.Pointer[map[string]rules.Silences] // nil before it was read

	mu      sync.Mutex // held while it is read
	version []byte     // of what was read; see outbox.KindSilencesVersion
}

// change takes over a change of this gateway, which has replaced a version of all silences by
// another: the silences of the key with a place. begun reports whether the key had none. ok is
// false if another change has come between; then all have to be read.
func (c *silenceCache) change(place string, silences rules.Silences, before, version []byte) (begun, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.places.Load()
	if known == nil || !slices.Equal(c.version, before) {
		return false, false
	}
	all := maps.Clone(*known)
	begun = len(all[place]) == 0 && len(silences) > 0
	if all[place] = silences; len(silences) == 0 {
		delete(all, place)
	}
	c.version = version
	c.places.Store(&all)
	return begun, true
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

// any reports whether a key has a silence.
func (c *silenceCache) any() bool {
	all := c.places.Load()
	return all != nil && len(*all) > 0
}

// Refresh reads the silences that other gateways may have changed.
func (s *Silences) Refresh(ctx context.Context) {
	if !s.outbox.Shared && s.cache.places.Load() != nil {
		return
	}
	if err := s.read(ctx); err != nil && s.cache.places.Load() == nil && ctx.Err() == nil {
		s.outbox.Log.Debug("silences cannot be read yet", zap.Error(err))
	}
}

// read reads the silences if they have changed.
func (s *Silences) read(ctx context.Context) error {
	begun, err := s.cache.read(ctx, s)
	for _, place := range begun {
		s.storeKnown(ctx, place)
	}
	return err
}

// read reads the silences if they have changed, and returns the places of the keys that
// have new ones.
func (c *silenceCache) read(ctx context.Context, q *Silences) (begun []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, err := q.outbox.Queue.CallersRecord(ctx, q.records.silencesVersion())
	if err != nil || c.places.Load() != nil && slices.Equal(version, c.version) {
		return nil, err
	}
	all, before := map[string]rules.Silences{}, c.places.Load()
	for after, more := (queue.Hash{}), true; more; {
		records, err := q.outbox.Queue.CallersGroup(ctx, q.records.silencesGroup(), after, outbox.PageSize)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			after = r.Name
			s := decodeSilences(r.Data)
			if len(s.All) == 0 {
				continue
			}
			place := s.Home + "\x00" + s.Key
			all[place] = s.All
			if before == nil || len((*before)[place]) == 0 {
				begun = append(begun, place)
			}
		}
		more = len(records) == outbox.PageSize
	}
	c.version = version
	c.places.Store(&all)
	return begun, nil
}

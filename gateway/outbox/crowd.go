package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The messages of a key that wait, or that rules hold, may fill the queue only as long as it is
// not nearly full, so that one key whose destination is down or silent does not keep those of
// others out.
const (
	nearlyFull = 4                      // the queue is, with less than this part of max_size left
	crowdShare = 2                      // the part of max_size that one key has then
	crowdPage  = 100                    // messages that are read at once
	crowdEvery = 5 * time.Second        // between two looks whether it is nearly full
	crowdTime  = 100 * time.Millisecond // of each second that reading them may take
)

// crowd finds the key whose messages take more than its part of a queue that is nearly full.
// Nothing counts them as they come and go: they are read while it is nearly full.
type crowd struct {
	key atomic.Pointer[crowdKey] // nil for none

	next   time.Time          // when to look again
	before uuid.UUID          // where reading goes on; zero for the beginning
	sizes  map[crowdKey]int64 // of those that were read
}

// crowdKey names a key as the summaries of messages do.
type crowdKey struct{ site, key string }

// look reads messages for a moment. The caller calls it each second.
func (c *crowd) look(ctx context.Context, q *Outbox, conf *Configuration) {
	now := time.Now()
	if wait := c.next.Sub(now); wait > 0 && wait <= crowdEvery {
		return
	}
	size := q.Queue.MaxSize()
	stats, err := q.Queue.Stats(ctx)
	if err != nil {
		return // nothing can be stored
	}
	if stats.Bytes < size-size/nearlyFull || !conf.hasSeveralKeys(ctx) {
		c.key.Store(nil)
		c.next, c.before, c.sizes = now.Add(crowdEvery), uuid.UUID{}, nil
		return
	}
	if c.sizes == nil {
		c.sizes = map[crowdKey]int64{}
	}
	for end := time.Now().Add(crowdTime); time.Now().Before(end); {
		page, next, err := q.Queue.Messages(ctx, c.before, crowdPage)
		if err != nil {
			return
		}
		for _, e := range page {
			var s queued.Summary
			if e.Waits() && s.Decode(e.Message.Summary) == nil && s.Key != "" {
				c.sizes[crowdKey{s.Site, s.Key}] += e.Message.StoredSize
			}
		}
		if c.before = next; next == (uuid.UUID{}) {
			c.decide(q, size/crowdShare)
			return
		}
	}
}

// decide decides which key has more than its part, when all messages were read.
func (c *crowd) decide(q *Outbox, part int64) {
	var found *crowdKey
	for k, size := range c.sizes {
		if size > part {
			found = &k
		}
	}
	if c.sizes = nil; found != nil && c.key.Load() == nil {
		q.Log.Warn("the queue is nearly full, and the messages of one key that wait take more than half of max_size; new ones that would wait are refused until there is room, so that others have some",
			zap.String("key", found.key), zap.String("site", found.site))
	}
	c.key.Store(found)
}

// check returns an error if an entry is of a key that has more than its part.
func (c *crowd) check(e *queue.Entry, size int64) error {
	key := c.key.Load()
	var s queued.Summary
	if key == nil || e.Unlimited || !e.Waits() || s.Decode(e.Message.Summary) != nil || (crowdKey{s.Site, s.Key}) != *key {
		return nil
	}
	return &ShareError{"the queue is nearly full, and the messages of the key that wait take more than " + humanize.IBytes(uint64(max(size/crowdShare, 0))) +
		", which is half of max_size; see which of its destinations are down, or raise max_size"}
}

// hasSeveralKeys reports whether there is more than one key: of the configuration, or saved ones.
func (a *Configuration) hasSeveralKeys(ctx context.Context) bool {
	d := &a.Directory
	keys := map[string]bool{}
	for _, s := range d.All() {
		for _, k := range s.Keys {
			keys[k.Home(d.SiteID(s))+"\x00"+k.Name] = true
		}
		if s.Saved.Names != nil && len(keys) < 2 {
			names, _ := s.Saved.Names(ctx) // none if they cannot be listed
			for _, name := range names {
				keys[d.SiteID(s)+"\x00\x00"+name] = true
			}
		}
	}
	return len(keys) > 1
}

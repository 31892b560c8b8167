package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Refresh looks for what other gateways have stored, stores what could not be stored before, and
// keeps keys within their shares. The queue calls it each second.
func (q *Outbox) Refresh(ctx context.Context, conf *Configuration) {
	q.cancelling.Look(ctx, q, func() queue.Hash { return q.cancelling.group(q.Queue) })
	for _, u := range q.usages {
		u.refresh(ctx)
	}
	q.OpenAlerts.Refresh(ctx)
	q.usages.forgetOldest(ctx)
	q.crowd.look(ctx, q, conf)
}

// ShareError says that a key has no room for what a message adds. For the message, the queue is
// full: [errors.Is] finds [queue.ErrFull] in it.
type ShareError struct {
	Reason string // why, and what to do
}

func (e *ShareError) Error() string { return e.Reason }

func (e *ShareError) Unwrap() error { return queue.ErrFull }

// room is when room was made last in a queue that was full.
type room struct {
	mu   sync.Mutex // one caller makes room at a time
	made time.Time
}

// makeRoom removes what is dispensable, because the queue was full at the time full. It reports
// whether there may be room since then.
func (q *Outbox) makeRoom(ctx context.Context, full time.Time) bool {
	q.room.mu.Lock()
	made := q.usages.forgetOldest(ctx)
	if q.Policy.Trim(ctx) || made {
		q.room.made = time.Now()
	}
	made = q.room.made.After(full)
	q.room.mu.Unlock()
	return q.Policy.MakeRoom(ctx, full) || made
}

// Accept stores an entry of the queue. If the queue is full, keys that remember more than their
// share make room first.
func (q *Outbox) Accept(ctx context.Context, e *queue.Entry) error {
	if err := q.crowd.check(e, q.Queue.MaxSize()); err != nil {
		return err
	}
	jobs, tried := slices.Clone(e.Jobs), time.Now()
	accept := func() error {
		copy(e.Jobs, jobs)
		return q.Queue.Accept(ctx, e)
	}
	err := counted(ctx, accept)
	if errors.Is(err, queue.ErrFull) && q.makeRoom(ctx, tried) {
		err = counted(ctx, accept)
	}
	return err
}

// silent reports which targets a silence matches; nil for none. all means that it is all of
// them: then nobody has to be told now, and nobody could hold the message for later.
func (s *submission) silent() (silent []bool, all bool) {
	if s.plan != nil {
		silent = s.plan.Silent()
	}
	return silent, len(silent) > 0 && !slices.Contains(silent, false)
}

// sendAround makes all destinations that no silence matches direct, because the message cannot be
// stored. It reports false if silences match all of them.
func (s *submission) sendAround() bool {
	silent, all := s.silent()
	if all {
		return false
	}
	s.endDirect()
	s.direct = s.direct[:0]
	for i, t := range s.d.To.Targets {
		x := &s.targets[i]
		if x.direct = silent == nil || !silent[i]; x.direct {
			s.q.slow.begin(t.Destination, true)
			s.direct = append(s.direct, i)
			continue
		}
		x.own = queuedNotYet(t)
		x.own.Status, x.own.Rule = notifier.Skipped, notifier.RuleSilenced
		x.result = &x.own
	}
	return true
}

// sendUnstored sends a message that escalates although the queue is full: an alert must not be lost
// because others have taken the room. Its destinations are told at once, without steps and without
// a link. What was to change in the transaction that stores the message changes without it.
// sendUnstored reports false if nobody has to be told now: all destinations are silent, steps of
// the incident are under way, or somebody takes care of it.
func (s *submission) sendUnstored(ctx context.Context) bool {
	if s.plan == nil || !s.plan.Tells(ctx) {
		return false
	}
	if _, all := s.silent(); all || s.d.With != nil && s.q.Queue.Records.Apply(ctx, s.d.With) != nil || !s.sendAround() {
		return false
	}
	s.unstored = true
	s.q.unstored.Add(1, func(n int) {
		s.q.Log.Error("the queue or the share of a key is full; alerts that escalate are told to all their numbers at once, without "+
			"steps and links",
			zap.String("key", s.d.Key), zap.Stringer("id", s.d.ID), zap.Int("messages", n))
	})
	return true
}

// The messages of a key that wait, or that rules hold, may fill the queue only as long as it is not
// nearly full. So one key whose destination is down or silent does not keep messages to other keys
// out.
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
		q.Log.Warn("the queue is nearly full, and the messages of one key that wait take more than half of max_size; new ones that would wait "+
			"are refused until there is room, so that others have some",
			zap.String("key", found.key), zap.String("site", found.site))
	}
	c.key.Store(found)
}

// check returns an error if an entry is of a key that has more than its part.
func (c *crowd) check(e *queue.Entry, size int64) error {
	key := c.key.Load()
	if key == nil || e.Unlimited || !e.Waits() {
		return nil
	}
	var s queued.Summary
	if s.Decode(e.Message.Summary) != nil || (crowdKey{s.Site, s.Key}) != *key {
		return nil
	}
	return &ShareError{"the queue is nearly full, and the messages of the key that wait take more than " +
		humanize.IBytes(uint64(max(size/crowdShare, 0))) +
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

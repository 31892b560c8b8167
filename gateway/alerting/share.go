package alerting

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// What rules remember of a key has a share of max_size, and so has what they remember of all
// keys, so that neither takes the room of messages. Beyond it, what was heard of least recently is
// forgotten: first incidents about which nothing is under way, what destinations know of incidents
// and texts, and what was sent to them in the time of a rate; then incidents that somebody takes
// care of, and silenced ones. Those whose steps are under way stay. If they take the share of a
// key, an alert that would begin steps is treated as if the queue were full: it is told to all
// numbers at once.

// The bounds of what is remembered.
const (
	KeyShare    = 8                // of max_size that a key has, as a divisor
	AllShare    = 4                // of max_size that all keys have, as a divisor
	ShareEvery  = 10 * time.Second // between two looks at the shares
	shareAgain  = time.Second      // between two looks while the queue is full
	ShareTime   = 30 * time.Second // that forgetting may take
	shareSample = 100              // records of a group by which its size is estimated
	sharePage   = 1000             // records that are read at once
	shareBatch  = 50               // records that are removed in one transaction
	shareAtOnce = 5000             // records that are removed while other work waits

	recordOverhead = 180     // of a record in the store, about
	maxRecord      = 4 << 10 // size of a large record
)

// shares keeps what is remembered of each key within its share of the queue.
type shares struct {
	outbox  *outbox.Outbox
	records records
	memory  *memory

	full atomic.Pointer[map[string]bool] // the places of the keys that have too much all the same

	mu   sync.Mutex // one caller looks at a time
	next time.Time

	looked, found time.Time // when the last look for room ended, and the last one that found some
}

// watch keeps keys within their shares, every few seconds.
func (s *shares) watch(ctx context.Context, conf *outbox.Configuration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Before(s.next) && !now.Before(s.next.Add(-ShareEvery)) {
		return nil
	}
	n, err := s.keep(ctx, conf, shareAtOnce)
	if s.next = time.Now(); n < shareAtOnce { // else it goes on a second later
		s.next = s.next.Add(ShareEvery)
	}
	return err
}

// makeRoom forgets what keys remember beyond their share, because the queue was full at the time
// full. It reports whether there may be room since then.
func (s *shares) makeRoom(ctx context.Context, conf *outbox.Configuration, full time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := time.Since(s.looked); since < 0 || since >= shareAgain {
		ctx, cancel := context.WithTimeout(ctx, ShareTime)
		defer cancel()
		n, _ := s.keep(ctx, conf, math.MaxInt)
		if s.looked = time.Now(); n > 0 {
			s.found = s.looked
		}
	}
	return s.found.After(full)
}

// errShareFull is returned if an incident cannot be opened because other incidents of its key take
// the share of the key.
var errShareFull = &outbox.ShareError{Reason: "the incidents of the key that are escalated take as much as one key may; acknowledge or " +
	"resolve some"}

// isFull reports whether the key with a place has no room for an incident that begins steps.
func (s *shares) isFull(place string) bool {
	full := s.full.Load()
	return full != nil && (*full)[place]
}

// keep forgets what keys remember beyond their share, but about most records at most. It returns
// how many it has forgotten. The caller holds the lock of the shares.
func (s *shares) keep(ctx context.Context, conf *outbox.Configuration, most int) (forgotten int, err error) {
	share, all := conf.QueueSettings.MaxSize/KeyShare, conf.QueueSettings.MaxSize/AllShare
	stats, err := s.outbox.Queue.Stats(ctx)
	if err != nil {
		return 0, err
	}
	full := map[string]bool{}
	if stats.Records <= share {
		s.full.Store(&full)
		return 0, nil
	}
	sizes, err := s.sizes(ctx, &conf.Directory, share, stats.Records > all)
	if err != nil {
		return 0, err
	}
	for share > 1 && sumOf(sizes, share) > all {
		share /= 2
	}
	for _, place := range slices.Sorted(maps.Keys(sizes)) {
		if sizes[place] <= share {
			continue
		}
		left, n, err := s.forgetOldest(ctx, conf, place, share, most-forgotten)
		if full[place] = left > share && n < most-forgotten; err != nil {
			return forgotten + n, err
		}
		if forgotten += n; forgotten >= most {
			return forgotten, nil
		}
	}
	s.full.Store(&full)
	return forgotten, nil
}

// sumOf returns what keys have together if each has at most limit bytes.
func sumOf(sizes map[string]int64, limit int64) (sum int64) {
	for _, n := range sizes {
		sum += min(n, limit)
	}
	return sum
}

// sizes estimates the sizes of what is remembered of keys. Without all, it leaves out keys that
// cannot have more than a share.
func (s *shares) sizes(ctx context.Context, d *site.Directory, share int64, all bool) (map[string]int64, error) {
	numbers, err := s.outbox.Queue.Records.GroupSizes(ctx)
	if err != nil {
		return nil, err
	}
	places, _ := Places(ctx, d, "") // without saved keys if they cannot be listed now
	sizes := map[string]int64{}
	for _, place := range places {
		if _, ok := sizes[place]; ok {
			continue
		}
		least := share
		if all {
			least = 0
		}
		if sizes[place], err = s.size(ctx, place, numbers, least); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// size estimates the size of what is remembered of a key, if it can be more than
// least bytes. sizes are the sizes of groups.
func (s *shares) size(ctx context.Context, place string, sizes map[queue.Hash]int, least int64) (size int64, err error) {
	groups := s.records.rememberedGroups(place)
	n := 0
	for _, g := range groups {
		n += sizes[g]
	}
	if int64(n)*maxRecord <= least {
		return 0, nil
	}
	for _, g := range groups {
		if sizes[g] == 0 {
			continue
		}
		sample, err := s.outbox.Queue.Records.Group(ctx, g, queue.Hash{}, shareSample) // their names are hashes
		if err != nil {
			return 0, err
		}
		sum := int64(0)
		for _, r := range sample {
			sum += remembersSize(r.Data)
		}
		size += sum * int64(sizes[g]) / int64(max(len(sample), 1))
	}
	return size, nil
}

// remembersSize returns the size of a record with these data in the store.
func remembersSize(data []byte) int64 { return int64(recordOverhead + len(data)) }

// lastTime returns when something was heard of last that a destination knows, or that counts for
// a rate.
func lastTime(record []byte) time.Time {
	if outbox.KindOf(record) == KindLane {
		return laneRecords.DecodeOrNew(record).LastSpent()
	}
	return subjectRecords.DecodeOrNew(record).LastTime()
}

// forgetOldest forgets the oldest of what a key remembers until a tenth of its share is free, but
// about most records at most. It returns the size of what is left, and how many records are
// forgotten.
func (s *shares) forgetOldest(ctx context.Context, conf *outbox.Configuration, place string, share int64, most int) (left int64, n int,
	err error,
) {
	all, left, err := s.forgettable(ctx, conf, place)
	if err != nil {
		return left, 0, err
	}
	aim, incidents := share-share/10, 0
	for len(all) > 0 && left > aim && n < most {
		batch := all[:batchTo(all, left-aim)]
		all = all[len(batch):]
		gone, err := s.memory.forget(ctx, batch)
		if err != nil {
			return left, n, err
		}
		n, incidents = n+len(gone), incidents+countIncidents(gone)
		for _, r := range gone {
			left -= r.size
		}
	}
	if n > 0 {
		_, key, _ := strings.Cut(place, "\x00")
		s.outbox.Log.Warn("what rules remember of a key has reached its share of max_size, so that the oldest is forgotten: incidents whose "+
			"steps are not under way, and what destinations know",
			zap.String("key", key), zap.Int("incidents", incidents), zap.Int("others", n-incidents), zap.Int64("share", share))
	}
	return left, n, nil
}

// batchTo returns how many of the records are forgotten next, so that size bytes are free.
func batchTo(all []remembered, size int64) (n int) {
	for n < len(all) && n < shareBatch && size > 0 {
		size -= all[n].size
		n++
	}
	return n
}

// forgettable returns what can be forgotten of a key, in the order in which it is, and the size of
// all that is remembered of the key.
func (s *shares) forgettable(ctx context.Context, conf *outbox.Configuration, place string) (all []remembered, total int64, err error) {
	var ids []remembered
	var w *waiting
	current := map[queue.Hash]bool{} // the names of the records of public IDs
	for _, g := range s.records.rememberedGroups(place) {
		err := s.memory.each(ctx, g, func(r queue.NamedRecord) (err error) {
			size := remembersSize(r.Data)
			total += size
			x := incidentRecords.Decode(r.Data)
			if outbox.KindOf(r.Data) == KindIncidentID {
				ids = append(ids, remembered{name: r.Name, size: size})
				return nil
			}
			if x == nil {
				all = append(all, remembered{name: r.Name, at: lastTime(r.Data), size: size})
				return nil
			}
			current[s.records.incidentIDName(x.ID)] = true
			if w == nil {
				if w, err = s.memory.whatWaits(ctx, conf, x); err != nil {
					return err
				}
			}
			if !w.holds(x) && !hasSteps(x) {
				all = append(all, remembered{name: r.Name, id: x.ID, at: x.Changed, size: size, lasts: !w.quiet(x)})
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	for _, id := range ids {
		if !current[id.name] { // it identifies an earlier opening
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b remembered) int {
		if a.lasts != b.lasts {
			if b.lasts {
				return -1
			}
			return 1
		}
		return a.at.Compare(b.at)
	})
	return all, total, nil
}

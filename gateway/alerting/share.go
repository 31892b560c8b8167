package alerting

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// What rules remember of a key has a share of max_size, so that one key cannot take the
// room of all. Beyond it, what was heard of least recently is forgotten: incidents about
// which nothing is under way, what destinations know of incidents and texts, and what was sent to
// them in the time of a rate.

// The bounds of what is remembered of a key.
const (
	KeyShare    = 8                // of max_size, as a divisor
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

	mu   sync.Mutex // one caller looks at a time
	next time.Time

	looked, found time.Time // when the last look for room ended, and the last one that found some
}

// watch keeps keys within their shares, every few seconds.
func (s *shares) watch(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Before(s.next) && !now.Before(s.next.Add(-ShareEvery)) {
		return nil
	}
	n, err := s.keep(ctx, shareAtOnce)
	if s.next = time.Now(); n < shareAtOnce { // else it goes on a second later
		s.next = s.next.Add(ShareEvery)
	}
	return err
}

// makeRoom forgets what keys remember beyond their share, because the queue was full at a
// time. It reports whether there may be room since then.
func (s *shares) makeRoom(ctx context.Context, full time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := time.Since(s.looked); since < 0 || since >= shareAgain {
		ctx, cancel := context.WithTimeout(ctx, ShareTime)
		defer cancel()
		n, _ := s.keep(ctx, math.MaxInt)
		if s.looked = time.Now(); n > 0 {
			s.found = s.looked
		}
	}
	return s.found.After(full)
}

// keep forgets what keys remember beyond their share, about most records at most, and
// returns how many they were. The caller holds the lock of the shares.
func (s *shares) keep(ctx context.Context, most int) (forgotten int, err error) {
	app := s.outbox.Engine.Load()
	share := app.QueueSettings.MaxSize / KeyShare
	stats, err := s.outbox.Queue.Stats(ctx)
	if err != nil || stats.Records <= share {
		return 0, err
	}
	sizes, err := s.outbox.Queue.CallersGroupSizes(ctx)
	if err != nil {
		return 0, err
	}
	places, _ := Places(ctx, &app.Directory, "") // without saved keys if they cannot be listed now
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		size, err := s.size(ctx, place, sizes, share)
		if err != nil {
			return forgotten, err
		}
		if size <= share {
			continue
		}
		n, err := s.forgetOldest(ctx, place, share, most-forgotten)
		if forgotten += n; err != nil || forgotten >= most {
			return forgotten, err
		}
	}
	return forgotten, nil
}

// size estimates the size of what is remembered of a key, if it can be more than
// the share. sizes are the sizes of groups.
func (s *shares) size(ctx context.Context, place string, sizes map[queue.Hash]int, share int64) (size int64, err error) {
	groups := s.records.rememberedGroups(place)
	n := 0
	for _, g := range groups {
		n += sizes[g]
	}
	if int64(n)*maxRecord <= share {
		return 0, nil
	}
	for _, g := range groups {
		if sizes[g] == 0 {
			continue
		}
		sample, err := s.outbox.Queue.CallersGroup(ctx, g, queue.Hash{}, shareSample) // their names are hashes
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
	if outbox.KindOf(record) == outbox.KindLane {
		return decodeLane(record).LastSpent()
	}
	return decodeSubject(record).LastTime()
}

// forgetOldest forgets what a key remembers until a tenth of its share is free, the oldest
// first and about most records at most, and returns how many they were.
func (s *shares) forgetOldest(ctx context.Context, place string, share int64, most int) (n int, err error) {
	var all, ids []remembered
	var total int64
	var w *waiting
	current := map[queue.Hash]bool{} // the names of the records of public IDs
	key := ""
	for _, g := range s.records.rememberedGroups(place) {
		err := s.memory.each(ctx, g, func(r queue.NamedRecord) (err error) {
			size := remembersSize(r.Data)
			total += size
			x := decodeIncident(r.Data)
			if outbox.KindOf(r.Data) == outbox.KindIncidentID {
				ids = append(ids, remembered{r.Name, "", time.Time{}, size})
				return nil
			}
			if x == nil {
				all = append(all, remembered{r.Name, "", lastTime(r.Data), size})
				return nil
			}
			key, current[s.records.incidentIDName(x.ID)] = x.Key, true
			if w == nil {
				if w, err = s.memory.whatWaits(ctx, x); err != nil {
					return err
				}
			}
			if w.quiet(x) {
				all = append(all, remembered{r.Name, x.ID, x.Changed, size})
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	for _, id := range ids {
		if !current[id.name] { // it is that of an earlier opening
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b remembered) int { return a.at.Compare(b.at) })
	aim, incidents := share-share/10, 0
	for batch := range slices.Chunk(all, shareBatch) {
		if total <= aim || n >= most {
			break
		}
		gone, err := s.memory.forget(ctx, batch)
		if err != nil {
			return n, err
		}
		n, incidents = n+len(gone), incidents+countIncidents(gone)
		for _, r := range gone {
			total -= r.size
		}
	}
	if n > 0 {
		s.outbox.Log.Warn("what rules remember of a key has reached its share of max_size, so that the oldest is forgotten: incidents of which nothing is under way, and what destinations know",
			zap.String("key", key), zap.Int("incidents", incidents), zap.Int("others", n-incidents), zap.Int64("share", share))
	}
	return n, nil
}

package outbox

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Memory is the [Usage] of a kind that forgets the oldest records of a key which has too much. It
// refuses no change.
type Memory struct {
	*Usage
	members func(place string) queue.Hash // the group of the records of a key
	rank    func(record []byte) time.Time
	forget  func(record []byte) queue.Record
	log     loglimit.Limiter

	mu    sync.Mutex
	limit int64           // bytes of a key; 0 before it was computed
	full  map[string]bool // the places of the keys that have too much
}

// NewMemory returns the usage of a kind of which the oldest is forgotten. group returns the group
// of all records of the key with a place. Records with the earliest rank are forgotten first:
// forget returns what is left of one, which is less or nothing. A change that makes a record worth
// keeping changes its rank.
func (q *Outbox) NewMemory(
	kind *Kind, group func(place string) queue.Hash, rank func(record []byte) time.Time, forget func(record []byte) queue.Record,
) *Memory {
	m := &Memory{members: group, rank: rank, forget: forget, full: map[string]bool{}}
	m.Usage = q.usages.add(q, &Usage{
		kind: kind, weigh: Weigh, memory: m,
		records: func(ctx context.Context, place string, f func([]byte)) error {
			return EachOfGroup(ctx, q.Queue, group(place), func(x queue.NamedRecord) bool { f(x.Data); return true })
		},
	})
	return m
}

// keyLimit returns how many bytes a key may have. The caller holds the lock.
func (m *Memory) keyLimit() int64 {
	share := m.kind.KeyShare(m.outbox.Queue.MaxSize())
	if m.limit == 0 {
		return share
	}
	return min(m.limit, share)
}

// note notes what the key with a place has, or may have if a transaction succeeds.
func (m *Memory) note(place string, has Used) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if has.Count > m.kind.most || has.Bytes > m.keyLimit() {
		m.full[place] = true
	}
}

// share divides the share of the kind between the keys that have something, so that all of them
// together stay within it.
func (m *Memory) share(has map[string]Used) {
	share := m.kind.Share(m.outbox.Queue.MaxSize())
	limit := share / 2
	for limit > 1 && all(has, limit) > share {
		limit /= 2
	}
	m.mu.Lock()
	m.limit = max(limit, 1)
	m.mu.Unlock()
	for place, x := range has {
		m.note(place, x)
	}
}

// all returns what keys have together if each has at most limit bytes.
func all(has map[string]Used, limit int64) (sum int64) {
	for _, x := range has {
		sum += min(x.Bytes, limit)
	}
	return sum
}

// forgetBatch is how many records are forgotten in one transaction.
const forgetBatch = 50

// forgetOldest forgets the oldest of the keys that have too much, and reports whether there is
// room since then. What fails is done a second later.
func (m *Memory) forgetOldest(ctx context.Context) (made bool) {
	m.mu.Lock()
	if len(m.full) == 0 {
		m.mu.Unlock()
		return false
	}
	full, limit := m.full, m.keyLimit()
	m.full = map[string]bool{}
	m.mu.Unlock()
	for place := range full {
		n, err := m.forgetOf(ctx, place, limit)
		if err != nil {
			m.mu.Lock()
			m.full[place] = true
			m.mu.Unlock()
		}
		if n > 0 {
			made = true
			m.log.Add(n, func(n int) {
				_, key, _ := strings.Cut(place, "\x00")
				m.outbox.Log.Warn("the oldest of what is remembered of a key is forgotten, because it has reached its share of max_size",
					zap.Stringer("what", m.kind), zap.String("key", key), zap.Int("records", n))
			})
		}
	}
	return made
}

// forgetOf forgets the oldest records of the key with a place until a tenth of the limit is free,
// and returns how many they were.
func (m *Memory) forgetOf(ctx context.Context, place string, limit int64) (n int, err error) {
	type remembered struct {
		name queue.Hash
		rank time.Time
		size int64
	}
	var some []remembered
	var has Used
	err = EachOfGroup(ctx, m.outbox.Queue, m.members(place), func(r queue.NamedRecord) bool {
		if KindOf(r.Data) == m.kind {
			w := m.weigh(r.Data)
			some, has = append(some, remembered{r.Name, m.rank(r.Data), w.Bytes}), has.plus(w)
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	if has.Count <= m.kind.most && has.Bytes <= limit { // the number is wrong
		return 0, m.count(ctx, place, true)
	}
	slices.SortFunc(some, func(a, b remembered) int { return a.rank.Compare(b.rank) })
	aim := Used{m.kind.most - m.kind.most/10, limit - limit/10}
	for len(some) > 0 && (has.Count > aim.Count || has.Bytes > aim.Bytes) {
		var names []queue.Hash
		batch, after := some, has
		for i, r := range some {
			if i == forgetBatch || after.Count <= aim.Count && after.Bytes <= aim.Bytes {
				batch = some[:i]
				break
			}
			names, after = append(names, r.name), after.minus(Used{1, r.size})
		}
		some = some[len(batch):]
		var less Used
		err := m.outbox.Queue.Records.Apply(ctx, m.Ruled(place, false, &queue.Ruled{Names: names, Decide: func(tx *queue.Tx) error {
			less = Used{}
			for _, r := range batch {
				b := tx.Get(r.name)
				if KindOf(b) != m.kind {
					continue // it is gone
				}
				if !m.rank(b).Equal(r.rank) {
					return queue.ErrChanged
				}
				left := m.forget(b)
				tx.Put(r.name, left)
				less = less.plus(m.weightOf(b)).minus(m.weightOf(left.Data))
			}
			return nil
		}}))
		if err != nil {
			return n, err
		}
		n, has = n+len(batch), has.minus(less)
	}
	return n, nil
}

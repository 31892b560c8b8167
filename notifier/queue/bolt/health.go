package bolt

import (
	"context"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Health implements [queue.Store]. No other process stores states.
func (s *Store) Health(_ context.Context, age time.Duration) (all []queue.Health, err error) {
	if age != 0 {
		return nil, nil
	}
	err = s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketHealth)).ForEach(func(k, v []byte) error {
			if len(k) != seal.HashSize {
				return nil // the filler
			}
			if h := s.sealer.OpenHealth(bucketHealth, k, v); h != nil {
				all = append(all, *h)
			}
			return nil
		})
	})
	return all, err
}

// SaveHealth implements [queue.Store].
func (s *Store) SaveHealth(ctx context.Context, states ...queue.Health) error {
	return s.do(ctx, &change{
		size:       256 * len(states),
		pages:      pagesPerResult * len(states),
		deferrable: true,
		check:      func(*batch) error { return nil },
		write:      func(b *batch) error { return b.putHealth(states) },
	})
}

// putHealth stores states of destinations, unless the disk is full: then the
// pages are for what waits, and the states are in memory only.
func (b *batch) putHealth(states []queue.Health) error {
	if b.tight {
		return nil
	}
	for i := range states {
		h := &states[i]
		b.key = append(b.key[:0], h.Destination[:]...)
		if !h.Known && !h.Down() {
			if err := b.delete(bucketHealth, b.key); err != nil {
				return err
			}
			continue
		}
		b.plain = record.AppendHealth(b.plain[:0], h)
		if err := b.put(bucketHealth, b.key, b.plain); err != nil {
			return err
		}
	}
	return nil
}

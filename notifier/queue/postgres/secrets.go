package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres/internal/reseal"
)

// placeRing is the place of the ring of secrets, in the table of the version.
const placeRing = "version"

// errForeign is returned while another gateway seals under a secret that this one does not have. What
// that one has stored is not damaged, and is left alone.
var errForeign = &queue.UnavailableError{Err: errors.New("another gateway seals what it stores " +
	"under a secret that this one does not have: write that secret after the present one, then reload")}

// errJoined is returned once if the server was not reachable at the start, and the ring was read later.
var errJoined = &queue.UnavailableError{Err: errors.New("the server is reached for the first time; try again")}

const (
	selectRing = "SELECT secret FROM notify_queue_version WHERE id = 1"
	updateRing = "UPDATE notify_queue_version SET secret = $1 WHERE id = 1"
)

// joinRing makes the sealer use the ring, and stores it if the secret has changed. The caller holds the lock
// of migrate, or runs alone.
func (t *tables) joinRing(ctx context.Context, c *conn, ring []byte) error {
	changed, err := t.sealer.Join(ring, placeRing, nil, time.Now())
	switch {
	case errors.Is(err, seal.ErrOldSecret):
		return refusef("%s: the tables of the queue: %w", c.address, err)
	case err != nil:
		return fmt.Errorf("%s: %w", c.address, errSecret)
	case changed == nil:
		return nil
	}
	_, err = c.query(ctx, updateRing, changed)
	return err
}

// changeRing changes the ring in a transaction. f returns the new one, or nil.
func (t *tables) changeRing(ctx context.Context, f func(ring []byte) ([]byte, error)) error {
	return t.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		return c.transaction(ctx, func() error {
			rows, err := c.query(ctx, selectRing+" FOR UPDATE")
			if err != nil || len(rows) == 0 {
				return err
			}
			changed, err := f(rows[0][0])
			if err != nil {
				return refusef("%w", err)
			}
			if changed != nil {
				_, err = c.query(ctx, updateRing, changed)
			}
			return err
		})
	})
}

// isForeign reports whether what cannot be opened may be sealed under a secret that this gateway does
// not have.
func (t *tables) isForeign(ctx context.Context) bool {
	_, reads, err := t.format(ctx)
	return err != nil || !reads
}

// openRecord opens a record. A damaged one has no content.
func (t *tables) openRecord(ctx context.Context, c *conn, sealed []byte, name queue.Hash) ([]byte, error) {
	data, err := t.sealer.Open(sealed, record.Records, name[:])
	if err == nil {
		return data, nil
	}
	rows, err := c.query(ctx, selectRing)
	if err == nil && len(rows) > 0 && !t.sealer.Reads(rows[0][0], placeRing, nil) {
		err = errForeign
	}
	return nil, err
}

// SetSecrets implements [queue.Resealer].
func (s *Store) SetSecrets(ctx context.Context, secret string, older ...string) error {
	sealer, err := seal.New(secret, older...)
	if err != nil {
		return err
	}
	err = s.changeRing(ctx, func(ring []byte) ([]byte, error) { return sealer.Join(ring, placeRing, nil, time.Now()) })
	if err == nil {
		s.sealer.Use(sealer)
	}
	return err
}

// workReseal is the lease of the gateway that seals records again.
const workReseal = "reseal"

// resealEvery is how often one of the gateways looks through the tables for what was sealed under an
// older secret: others may seal under it.
const resealEvery = 5 * time.Minute

// Reseal implements [queue.Resealer].
func (s *Store) Reseal(ctx context.Context) (old queue.OldSecrets, err error) {
	if old.Set = s.sealer.HasOld(); !old.Set {
		return old, nil
	}
	shares, newest := false, false
	if err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, selectRing)
		if err == nil && len(rows) > 0 {
			shares, newest = s.sealer.Shares(rows[0][0], placeRing, nil)
		}
		return err
	}); err != nil || !shares {
		return old, err
	}
	clean := false
	if now := s.clock.now(); newest && !now.IsZero() {
		query := func(ctx context.Context, sql string, args ...any) (rows [][][]byte, err error) {
			err = s.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
				rows, err = c.query(ctx, sql, args...)
				return err
			})
			return rows, err
		}
		r := reseal.Reseal{Sealer: s.sealer.Sealer, Number: number, Query: query}
		began, err := s.doWork(ctx, work{name: workReseal, since: now.Add(s.later - resealEvery), step: r.Step})
		if err != nil {
			return old, err
		}
		clean = !began.IsZero() && r.Began && r.Changed == 0
	}
	err = s.changeRing(ctx, func(ring []byte) (changed []byte, err error) {
		changed, old.Used = s.sealer.Tend(ring, placeRing, nil, time.Now().Add(s.later), clean)
		return changed, nil
	})
	return old, err
}

package postgres

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A gateway of a later version may upgrade the tables while this one runs. If they then need a program that
// knows them, this one stores nothing new: it takes no messages, claims no jobs and changes no records. The
// outcomes of deliveries that are under way are stored for a time, so that they are not made twice; then this
// gateway gives up what it has claimed.
const (
	versionEvery = 2 * time.Second
	handOverTime = 10 * time.Second
)

// watchVersion looks again and again at the version of the tables.
func (s *Store) watchVersion(ctx context.Context) {
	var since time.Time // when the tables were first found to be too new; zero if they are not
	handedOver := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(versionEvery):
		}
		format, reads, err := s.format(ctx)
		if err != nil {
			continue // there are no tables, or the server does not answer
		}
		if format.Needs <= s.knows && reads {
			if !since.IsZero() {
				s.log.Info("this program knows the version of the queue's tables again", zap.Int("version", format.Written))
				s.newer.Store(nil)
				s.foreign.Store(false)
				since, handedOver = time.Time{}, false
				s.lookAgain()
			}
			continue
		}
		if since.IsZero() {
			since = time.Now()
			if format.Needs <= s.knows {
				s.foreign.Store(true)
				s.log.Error("the tables of the queue cannot be used any more, and others deliver what waits", zap.Error(errForeign))
				continue
			}
			s.newer.Store(&format)
			s.log.Error("another gateway has brought the tables of the queue up to date, and this program is too old for them: "+
				"it stores nothing more, and leaves to the others what waits; update it",
				zap.Int("version", format.Written), zap.Int("needs", format.Needs), zap.Int("known", s.knows))
		}
		if !handedOver && time.Since(since) >= handOverTime {
			handedOver = s.giveUpClaims(ctx) == nil
		}
	}
}

// format returns the format of the tables, and reports whether the sealer can read all of them.
func (t *tables) format(ctx context.Context) (f queue.Format, reads bool, err error) {
	err = t.pool.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, selectFormat)
		f, reads = formatOf(rows), len(rows) == 0 || t.sealer.Reads(rows[0][1], placeRing, nil)
		return err
	})
	return f, reads, err
}

// isTooOld returns an error if this program is too old for the tables.
func (t *tables) isTooOld() error {
	if f := t.newer.Load(); f != nil {
		return &queue.UnavailableError{Err: f.Check(t.knows)}
	}
	if t.foreign.Load() {
		return errForeign
	}
	return nil
}

// store calls f with a connection, as do does, to store something new.
func (t *tables) store(ctx context.Context, f func(ctx context.Context, c *conn, repeated bool) error) error {
	if err := t.isTooOld(); err != nil {
		return err
	}
	return t.do(ctx, f)
}

// giveUpClaims gives up all jobs that this handle has claimed, and the leases of the work that
// it does for all gateways. If it fails, the leases run out.
func (t *tables) giveUpClaims(ctx context.Context) error {
	return t.pool.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		const release = "UPDATE notify_queue_jobs SET status = 1, owner = NULL, lease = NULL WHERE owner = $1 AND status = 2 RETURNING idx"
		rows, err := c.query(ctx, release, t.owner)
		if err == nil && len(rows) > 0 {
			_, _ = c.query(ctx, sendNotification, channel, "") // the others look for themselves if this fails
		}
		if err == nil {
			_, err = c.query(ctx, endLeases, t.owner)
		}
		return err
	})
}

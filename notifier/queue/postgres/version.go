package postgres

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A gateway of a later version may upgrade the tables while this one runs. This one does not know
// the new tables, so it stores nothing new: it takes no messages, claims no jobs and changes no
// records. The outcomes of deliveries that are under way are stored for a time, so that they are
// not made twice; then this gateway gives up what it has claimed.
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
		version, err := s.version(ctx)
		if err != nil {
			continue // there are no tables, or the server does not answer
		}
		if version <= s.knows {
			if !since.IsZero() {
				s.log.Info("this program knows the version of the queue's tables again", zap.Int("version", version))
				s.newer.Store(0)
				since, handedOver = time.Time{}, false
				s.lookAgain()
			}
			continue
		}
		if since.IsZero() {
			since = time.Now()
			s.newer.Store(int64(version))
			s.log.Error("another gateway has brought the tables of the queue up to date, and this program is too old for them: "+
				"it stores nothing more, and leaves to the others what waits; update it",
				zap.Int("version", version), zap.Int("known", s.knows))
		}
		if !handedOver && time.Since(since) >= handOverTime {
			handedOver = s.giveUpClaims(ctx) == nil
		}
	}
}

// version returns the version of the tables.
func (t *tables) version(ctx context.Context) (version int, err error) {
	err = t.pool.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, "SELECT version FROM notify_queue_version WHERE id = 1")
		if version = 0; err == nil && len(rows) > 0 {
			version = int(number(rows[0][0]))
		}
		return err
	})
	return version, err
}

// isTooOld returns an error if this program does not know the version of the tables.
func (t *tables) isTooOld() error {
	if version := t.newer.Load(); version != 0 {
		err := fmt.Errorf("its tables have version %d, and this program knows up to %d: update it", version, t.knows)
		return &queue.UnavailableError{Err: err}
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

package postgres

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Work on all that the tables hold is done by one gateway at a time: it holds a row of
// notify_queue_leases. A gateway that dies leaves its row until the lease ends. Nothing breaks if
// two gateways do the same work, so that a paused gateway may go on.
//
// Locks of sessions (advisory locks) would not do: they are lost behind a pooler that
// gives each transaction another session, and not every server has them.

// The work that one gateway does at a time.
const (
	workClock    = "clock"    // makes those jobs due that were written when the clock was ahead
	workWaiting  = "waiting"  // counts what waits for each destination
	workFinished = "finished" // forgets finished messages
)

// workLease is how long a gateway keeps others from its work without renewing the lease.
// A step of the work takes at most a few times replyTime.
const workLease = 30 * time.Second

// takeLease takes a lease if nobody else holds it, or renews it. done is when the last completed
// work began, by the clock of the server. A lease that ends later than it can was taken before the
// clock was set back.
const takeLease = `INSERT INTO notify_queue_leases AS l (name, owner, ends, done) VALUES ($1, $2, ` + serverTime + ` + $3::BIGINT, 0)
	ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, ends = excluded.ends
	WHERE l.owner = excluded.owner OR l.ends < ` + serverTime + ` OR l.ends > excluded.ends
	RETURNING done, ` + serverTime

const endLease = `UPDATE notify_queue_leases SET ends = 0 WHERE name = $1 AND owner = $2`

// completeLease ends a lease after the work, and leaves a result for the others.
const completeLease = `UPDATE notify_queue_leases SET ends = 0, done = $3, data = $4 WHERE name = $1 AND owner = $2`

// endLeases ends all leases of a handle.
const endLeases = `UPDATE notify_queue_leases SET ends = 0 WHERE owner = $1 AND ends > 0`

// work is something that one gateway does at a time.
type work struct {
	name  string
	since time.Time // not needed if another gateway has begun it since then and completed it; zero if always needed

	// step does a part of it, and reports whether that was the last.
	step func(ctx context.Context) (last bool, err error)
	// result, if not nil, returns what to leave for the others at the end.
	result func() []byte
}

// do does work, unless another gateway is at it. done is when the completed work began, by the
// clock of the server, or the zero time if another gateway is doing it.
func (t *tables) doWork(ctx context.Context, w work) (done time.Time, err error) {
	held, completed, began, err := t.takeLease(ctx, w.name)
	if err != nil || !held {
		return time.Time{}, err
	}
	defer func() {
		if done.IsZero() {
			t.endLease(ctx, w.name)
		}
	}()
	if !w.since.IsZero() && !completed.Before(w.since) && !completed.After(began) {
		t.endLease(ctx, w.name)
		return completed, nil
	}
	for {
		last, err := w.step(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if last {
			break
		}
		if held, _, _, err = t.takeLease(ctx, w.name); err != nil || !held {
			return time.Time{}, err
		}
	}
	var data any
	if w.result != nil {
		data = w.result()
	}
	err = t.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, completeLease, w.name, t.owner, began.UnixMicro(), data)
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return began, nil
}

// takeLease takes a lease or renews it. completed is when the last completed work began.
func (t *tables) takeLease(ctx context.Context, name string) (held bool, completed, now time.Time, err error) {
	err = t.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, takeLease, name, t.owner, workLease.Microseconds())
		if held = len(rows) > 0; held {
			completed, now = time.UnixMicro(number(rows[0][0])), time.UnixMicro(number(rows[0][1]))
		}
		return err
	})
	return held, completed, now, err
}

// endLease ends a lease before its time. If it cannot, the lease runs out.
func (t *tables) endLease(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	err := t.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, endLease, name, t.owner)
		return err
	})
	if err != nil {
		t.log.Debug("another gateway has to wait for the end of a lease", zap.String("work", name), zap.Error(err))
	}
}

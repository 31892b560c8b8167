package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// walk goes through the messages that wait, the oldest first. To read their jobs by the
// messages costs no more than what waits, however much has finished, and each step is
// short, so that it neither runs into a limit of time nor holds up the server's vacuum.
type walk struct {
	created int64
	id      uuid.UUID
}

// walkAtOnce is the number of messages that a step of a walk reads.
const walkAtOnce = 5000

const nextWaiting = `SELECT id, created FROM notify_queue_messages WHERE finished IS NULL AND (created, id) > ($1, $2) ORDER BY ` +
	`created, id LIMIT $3`

// next returns the next messages.
func (w *walk) next(ctx context.Context, c *conn) (ids array, last bool, err error) {
	ids.oid = oidUUID
	rows, err := c.query(ctx, nextWaiting, w.created, w.id, walkAtOnce)
	if err != nil {
		return ids, false, err
	}
	for _, row := range rows {
		ids.uuid(id(row[0]))
		w.id, w.created = id(row[0]), number(row[1])
	}
	return ids, len(rows) < walkAtOnce, nil
}

// keepDue makes those jobs due that were written when the clock of the server was ahead:
// at the start, when the clock was set back, and now and then. One gateway does so for all.
func (s *Store) keepDue(ctx context.Context) {
	var done time.Time // when this was last begun, by the clock of the server
	var base time.Time // of the clock then
	for {
		if now, at := s.clock.now(), s.clock.startsAt(); !now.IsZero() {
			since := now // what others have done before is not enough
			changed := done.IsZero() || base.Sub(at) > queue.ClockTolerance/2
			if !changed {
				since = now.Add(-correctEvery)
			}
			if changed || done.Before(since) {
				began, err := s.correct(ctx, since)
				if err == nil && !began.IsZero() {
					done, base = began, at
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollEvery):
		}
	}
}

// correct makes those jobs due that were written when the clock was ahead, unless another
// gateway is doing so or has begun to since a time. It returns when it was begun.
func (s *Store) correct(ctx context.Context, since time.Time) (began time.Time, err error) {
	var w walk
	corrected := false
	began, err = s.doWork(ctx, work{name: workClock, since: since, step: func(ctx context.Context) (last bool, err error) {
		at := w
		err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
			w = at
			var ids array
			if ids, last, err = w.next(ctx, c); err != nil || len(ids.items) == 0 {
				return err
			}
			rows, err := c.query(ctx, writtenAhead, ids, queue.MaxJobs, queue.ClockTolerance.Microseconds())
			if err != nil || len(rows) == 0 {
				return err
			}
			var messages, indexes array
			for _, row := range rows {
				messages.uuid(id(row[0]))
				indexes.bigint(number(row[1]))
			}
			corrected = true
			_, err = c.query(ctx, makeDue, messages, indexes)
			return err
		})
		return last, err
	}})
	if corrected {
		s.lookAgain()
		signal(s.dirty)
	}
	return began, err
}

const (
	writtenAhead = `SELECT j.message, j.idx FROM unnest($1::UUID[]) AS k (id), LATERAL (
			SELECT q.message, q.idx, q.updated FROM notify_queue_jobs q WHERE q.message = k.id AND q.status = 1 LIMIT $2) j
		WHERE j.updated > ` + serverTime + ` + $3::BIGINT`

	makeDue = `UPDATE notify_queue_jobs j SET due = ` + serverTime + `, updated = ` + serverTime + `
		FROM unnest($1::UUID[], $2::BIGINT[]) AS k (message, idx) WHERE j.message = k.message AND j.idx = k.idx AND j.status = 1`
)

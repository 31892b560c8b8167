package queuetest

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Cancel cancels the jobs of a message that have one of the statuses, and returns how many
// there were.
func Cancel(ctx context.Context, s queue.Store, id uuid.UUID, now time.Time, statuses ...queue.Status) (int, error) {
	before, err := change(ctx, s, id, now, statuses, func(j *queue.Job) { j.Status = queue.Cancelled })
	return len(before), err
}

// Retry makes the jobs of a message due that are Queued or Dead.
func Retry(ctx context.Context, s queue.Store, id uuid.UUID, now, expires time.Time) (n queue.Retried, err error) {
	before, err := change(ctx, s, id, now, []queue.Status{queue.Queued, queue.Dead}, func(j *queue.Job) { j.Hurry(now, expires) })
	for _, status := range before {
		if status == queue.Dead {
			n.Dead++
		} else {
			n.Queued++
		}
	}
	return n, err
}

// change applies f to the jobs of a message that have one of the statuses, and returns the
// statuses that they had.
func change(
	ctx context.Context, s queue.Store, id uuid.UUID, now time.Time, statuses []queue.Status, f func(*queue.Job),
) (before []queue.Status, err error) {
	e, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	ids := make([]queue.JobID, len(e.Jobs))
	for i := range e.Jobs {
		ids[i] = e.Jobs[i].JobID
	}
	err = s.Update(ctx, &queue.Update{Jobs: len(ids), Decide: func(tx *queue.Tx) error {
		all, err := tx.Status(ids...)
		before = nil
		for i, st := range all {
			if slices.Contains(statuses, st) {
				before = append(before, st)
				tx.Change(ids[i], func(j *queue.Job) {
					j.Updated = now
					f(j)
				})
			}
		}
		return err
	}})
	return before, err
}

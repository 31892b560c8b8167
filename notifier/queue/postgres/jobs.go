package postgres

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Settle implements [queue.Store].
func (s *Store) Settle(ctx context.Context, t *queue.Settlement) error {
	j := t.Job
	c := s.claims.settle(j.JobID)
	if c == nil {
		return queue.ErrNotClaimed
	}
	if s.due.waits() {
		signal(s.changed) // the slot of the job is free already
	}
	st := &settling{Settlement: t, tokens: c.tokens}
	var err error
	switch {
	case t.Shared != nil:
		err = s.parking.fail(j, t.Shared, true, t.Deferrable)
	case st.decides():
		err = s.outcomes.do(st, t.Deferrable)
	default:
		err = s.settlings.do(st, t.Deferrable)
	}
	s.claims.settled(j.JobID, c, st.tokens, err == nil || errors.Is(err, queue.ErrNotClaimed))
	s.size.add(-st.size)
	if err == nil && t.Next != nil {
		s.size.add(t.Next.Size())
		s.claims.hold(t.Next)
	}
	if err == nil {
		s.due.mu.Lock()
		s.due.queued(s.sealer, j.JobID, j)
		s.due.mu.Unlock()
	}
	if err == nil {
		s.turnEnded(ctx, t, c.turn)
	}
	if st.files > 0 {
		s.deleteFiles(ctx, j.Message)
	}
	if err == nil {
		s.done(ctx, st.decided)
	}
	if err == nil && t.Next != nil {
		s.due.accepted(s.sealer, []*queue.Entry{t.Next})
		signal(s.dirty)
	}
	return err
}

// turnEnded stores the effect of a job's outcome on other jobs that wait for its destination. turn
// means that the job was claimed because the destination had its turn.
func (s *Store) turnEnded(ctx context.Context, t *queue.Settlement, turn bool) {
	switch {
	case t.Failure != nil:
		if err := s.parking.fail(t.Job, t.Failure, false, t.Deferrable); err != nil && !errors.Is(err, queue.ErrClosed) {
			s.log.Warn("what waits for a destination that is down is tried one by one, because the queue's store failed", zap.Error(err))
		}
	case turn && !t.Job.Status.Waits():
		s.parking.nextTurn(ctx, s.Hash(t.Job.Destination))
	}
}

const (
	changeJob = `UPDATE notify_queue_jobs SET status = $3, due = $4, not_before = $5, updated = $6, record = $7, expires = $8, parked ` +
		`= 0, owner = NULL, lease = NULL WHERE message = $1 AND idx = $2`
	changeMessage = `UPDATE notify_queue_messages SET waiting = $2, dead = $3, finished = $4, kept = $5,
		body = CASE WHEN $2::INT + $3::INT = 0 THEN NULL ELSE body END WHERE id = $1`
)

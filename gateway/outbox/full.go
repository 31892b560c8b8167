package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Refresh looks for what other gateways have stored, stores what could not be stored before, and
// keeps keys within their shares. The queue calls it each second.
func (q *Outbox) Refresh(ctx context.Context, conf *Configuration) {
	q.cancelling.Look(ctx, q, q.cancelledGroup)
	for _, u := range q.usages {
		u.refresh(ctx)
	}
	q.OpenAlerts.Refresh(ctx)
	q.forgetOldest(ctx)
	q.crowd.look(ctx, q, conf)
}

// forgetOldest forgets the oldest of what keys remember beyond their shares, and reports whether
// there was some.
func (q *Outbox) forgetOldest(ctx context.Context) (made bool) {
	for _, u := range q.usages {
		if u.memory != nil && u.memory.forgetOldest(ctx) {
			made = true
		}
	}
	return made
}

// ShareError says that a key has no room for what a message adds. For the message, the queue is
// full: [errors.Is] finds [queue.ErrFull] in it.
type ShareError struct {
	Reason string // why, and what to do
}

func (e *ShareError) Error() string { return e.Reason }

func (e *ShareError) Unwrap() error { return queue.ErrFull }

// room is when room was made last in a queue that was full.
type room struct {
	mu   sync.Mutex // one caller makes room at a time
	made time.Time
}

// makeRoom removes what is dispensable, because the queue was full at a time. It reports whether
// there may be room since then.
func (q *Outbox) makeRoom(ctx context.Context, full time.Time) bool {
	q.room.mu.Lock()
	made := q.forgetOldest(ctx)
	if q.Policy.Trim(ctx) || made {
		q.room.made = time.Now()
	}
	made = q.room.made.After(full)
	q.room.mu.Unlock()
	return q.Policy.MakeRoom(ctx, full) || made
}

// Accept stores an entry of the queue. If the queue is full, keys that remember more than their
// share make room first.
func (q *Outbox) Accept(ctx context.Context, e *queue.Entry) error {
	if err := q.crowd.check(e, q.Queue.MaxSize()); err != nil {
		return err
	}
	jobs, tried := slices.Clone(e.Jobs), time.Now()
	accept := func() error {
		copy(e.Jobs, jobs)
		return q.Queue.Accept(ctx, e)
	}
	err := counted(ctx, accept)
	if errors.Is(err, queue.ErrFull) && q.makeRoom(ctx, tried) {
		err = counted(ctx, accept)
	}
	return err
}

// silent reports which targets a silence matches; nil for none. all means that it is all of
// them: then nobody has to be told now, and nobody could hold the message for later.
func (s *submission) silent() (silent []bool, all bool) {
	if s.plan != nil {
		silent = s.plan.Silent()
	}
	return silent, len(silent) > 0 && !slices.Contains(silent, false)
}

// sendAround makes all destinations direct that no silence matches, because the message cannot
// be stored. It reports false if silences match all of them.
func (s *submission) sendAround() bool {
	silent, all := s.silent()
	if all {
		return false
	}
	s.endDirect()
	s.direct = s.direct[:0]
	for i, t := range s.d.To.Targets {
		x := &s.targets[i]
		if x.direct = silent == nil || !silent[i]; x.direct {
			s.q.slow.begin(t.Destination, true)
			s.direct = append(s.direct, i)
			continue
		}
		x.own = queuedNotYet(t)
		x.own.Status, x.own.Rule = notifier.Skipped, notifier.RuleSilenced
		x.result = &x.own
	}
	return true
}

// sendUnstored is sendAround for a message that escalates, because the queue is full: an alert
// must not be lost because others have taken the room. Its destinations are told at once,
// without steps and without a link. What is to change in the transaction that stores the
// message changes without it. It reports false if nobody has to be told now: all are silent,
// or steps of the incident are under way, or somebody takes care of it.
func (s *submission) sendUnstored(ctx context.Context) bool {
	if s.plan == nil || !s.plan.Tells(ctx) {
		return false
	}
	if _, all := s.silent(); all || s.d.With != nil && s.q.Queue.Records.Apply(ctx, s.d.With) != nil || !s.sendAround() {
		return false
	}
	s.unstored = true
	s.q.unstored.Add(1, func(n int) {
		s.q.Log.Error("the queue or the share of a key is full; alerts that escalate are told to all their numbers at once, without steps and links",
			zap.String("key", s.d.Key), zap.Stringer("id", s.d.ID), zap.Int("messages", n))
	})
	return true
}

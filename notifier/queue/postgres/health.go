package postgres

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// placeHealth is the place in the store that states of destinations are bound
// to.
const placeHealth = "destinations"

// Wake implements [queue.Store].
func (s *Store) Wake(ctx context.Context, w queue.Wake) (more []queue.Hash, err error) {
	limit := int64(w.Max)
	if limit == 0 {
		limit = math.MaxInt32
	}
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		var calls []call
		for _, d := range w.Destinations {
			calls = append(calls, call{wakeJobs, []any{d[:], w.Now.UnixMicro(), limit, int(bit(w.Force))}}, call{otherJobs, []any{d[:], w.Now.UnixMicro()}})
		}
		results, err := c.exec(ctx, calls...)
		if err != nil {
			return err
		}
		more = nil
		for i, d := range w.Destinations {
			if len(results[2*i+1].Rows) > 0 {
				more = append(more, d)
			}
		}
		return nil
	})
	s.due.changed()
	return more, err
}

const wakeJobs = `WITH c AS (
		SELECT message, idx, due FROM notify_queue_jobs
		WHERE destination = $1 AND status = 1 AND (due <= $2 OR not_before < due OR $4::INT = 1)
		ORDER BY due LIMIT $3)
	UPDATE notify_queue_jobs j SET due = CASE WHEN $4::INT = 1 THEN $2 ELSE greatest($2, j.not_before) END
	FROM c WHERE j.message = c.message AND j.idx = c.idx AND j.status = 1 AND c.due > $2`

// otherJobs returns a row if a destination has jobs that wakeJobs could make due.
const otherJobs = `SELECT 1 FROM notify_queue_jobs WHERE destination = $1 AND status = 1 AND due > $2 AND not_before < due LIMIT 1`

// Health implements [queue.Store].
func (s *Store) Health(ctx context.Context, age time.Duration) (all []queue.Health, err error) {
	if age == 0 {
		age = math.MaxInt64
	}
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, `SELECT hash, record FROM notify_queue_destinations WHERE stored >= `+serverTime+` - $1::BIGINT`, age.Microseconds())
		all = nil
		for _, row := range rows {
			plain, err := s.sealer.Open(row[1], placeHealth, row[0])
			if err != nil {
				continue // the next attempt stores it again
			}
			if h, err := record.DecodeHealth(seal.Hash(row[0]), plain); err == nil {
				all = append(all, *h)
			}
		}
		return err
	})
	return all, err
}

// SaveHealth implements [queue.Store].
func (s *Store) SaveHealth(ctx context.Context, states ...queue.Health) error {
	all := make([]jobHealth, len(states))
	for i := range states {
		all[i].Health = &states[i]
	}
	gone, saved := s.sealHealth(all)
	calls := []call{begin, {"DELETE FROM notify_queue_destinations WHERE hash = ANY ($1::BYTEA[])", []any{gone.hash}}}
	calls = append(calls, call{saveHealth + onConflict, []any{saved.hash, saved.changed, saved.record}}, commit)
	return s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.exec(ctx, calls...)
		return err
	})
}

// jobHealth is the state of a destination, and the job whose outcome it comes
// from.
type jobHealth struct {
	*queue.Health
	job queue.JobID
}

// healthRows are columns of states of destinations.
type healthRows struct{ hash, changed, record, message, index array }

// sealHealth returns the states to remove and those to store.
func (s *Store) sealHealth(states []jobHealth) (gone, saved healthRows) {
	// All transactions lock rows in the same order.
	slices.SortStableFunc(states, func(a, b jobHealth) int { return bytes.Compare(a.Destination[:], b.Destination[:]) })
	gone, saved = healthRows{hash: array{oid: oidBytea}}, healthRows{hash: array{oid: oidBytea}, changed: array{oid: oidBigint}, record: array{oid: oidBytea}}
	sealer := s.sealer.Batch()
	for i, h := range states {
		if i+1 < len(states) && states[i+1].Destination == h.Destination {
			continue // a later state follows
		}
		rows := &gone
		if h.Known || h.Down() {
			rows = &saved
			rows.changed.bigint(h.Changed.UnixMicro())
			rows.record.bytes(sealer.Seal(record.AppendHealth(nil, h.Health), placeHealth, h.Destination[:]))
		}
		rows.hash.bytes(bytes.Clone(h.Destination[:]))
		rows.message.uuid(h.job.Message)
		rows.index.bigint(int64(h.job.Index))
	}
	return gone, saved
}

// settledHealth returns the statements that store states of destinations if the
// jobs that they come from are settled with a token.
func (s *Store) settledHealth(states []jobHealth, token uuid.UUID) (calls []call) {
	gone, saved := s.sealHealth(states)
	if len(gone.hash.items) > 0 {
		calls = append(calls, call{`DELETE FROM notify_queue_destinations WHERE hash IN (
			SELECT k.hash FROM unnest($1::BYTEA[], $2::UUID[], $3::BIGINT[]) AS k (hash, message, idx), notify_queue_jobs j
			WHERE j.message = k.message AND j.idx = k.idx AND j.owner = $4)`, []any{gone.hash, gone.message, gone.index, token}})
	}
	if len(saved.hash.items) > 0 {
		calls = append(calls, call{
			saveHealth + ` WHERE EXISTS (
				SELECT 1 FROM unnest($4::BYTEA[], $5::UUID[], $6::BIGINT[]) AS q (hash, message, idx), notify_queue_jobs j
				WHERE q.hash = k.hash AND j.message = q.message AND j.idx = q.idx AND j.owner = $7)` + onConflict,
			[]any{saved.hash, saved.changed, saved.record, saved.hash, saved.message, saved.index, token},
		})
	}
	return calls
}

const saveHealth = `INSERT INTO notify_queue_destinations AS d (hash, changed, stored, record)
	SELECT k.hash, k.changed, ` + serverTime + `, k.record FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BYTEA[]) AS k (hash, changed, record)`

// onConflict lets the gateway win that has seen the later change.
const onConflict = ` ON CONFLICT (hash) DO UPDATE SET changed = excluded.changed, stored = excluded.stored, record = excluded.record
	WHERE d.changed <= excluded.changed`

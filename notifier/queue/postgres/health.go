package postgres

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

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
	err = s.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
		var calls []call
		for _, d := range w.Destinations {
			calls = append(calls, call{wakeJobs, []any{d[:], w.Now.UnixMicro(), limit, int(bit(w.Force))}},
				call{otherJobs, []any{d[:], w.Now.UnixMicro()}})
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

// wakeJobs makes jobs due that wait for a destination: first those with times of their own,
// then those that are parked.
const wakeJobs = `WITH c AS (
		SELECT a.message, a.idx, a.due, a.parked FROM (
			(SELECT q.message, q.idx, q.due, q.parked FROM notify_queue_jobs q
				WHERE q.destination = $1 AND q.status = 1 AND q.parked = 0 AND (q.due <= $2 OR q.not_before < q.due OR $4::INT = 1)
				ORDER BY q.due LIMIT $3)
			UNION ALL
			(SELECT q.message, q.idx, q.due, q.parked FROM notify_queue_jobs q
				WHERE q.destination = $1 AND q.status = 1 AND q.parked = 1
				ORDER BY q.due LIMIT $3)) a
		ORDER BY a.parked, a.due LIMIT $3)
	UPDATE notify_queue_jobs j SET parked = 0, due = CASE WHEN c.due <= $2 THEN c.due WHEN $4::INT = 1 THEN $2 ELSE greatest($2, j.not_before)
		END
	FROM c WHERE j.message = c.message AND j.idx = c.idx AND j.status = 1 AND (c.due > $2 OR c.parked = 1)`

// otherJobs returns a row if a destination has jobs that wakeJobs could make due.
const otherJobs = `SELECT 1 FROM (
		(SELECT 1 FROM notify_queue_jobs WHERE destination = $1 AND status = 1 AND parked = 0 AND due > $2 AND not_before < due LIMIT 1)
		UNION ALL (SELECT 1 FROM notify_queue_jobs WHERE destination = $1 AND status = 1 AND parked = 1 LIMIT 1)) a`

// Health implements [queue.Store].
func (t *tables) Health(ctx context.Context, age time.Duration) (all []queue.Health, err error) {
	if age == 0 {
		age = math.MaxInt64
	}
	err = t.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, `SELECT hash, record FROM notify_queue_destinations WHERE stored >= `+serverTime+` - $1::BIGINT`,
			age.Microseconds())
		all = nil
		for _, row := range rows {
			if h := t.sealer.OpenHealth(placeHealth, row[0], row[1]); h != nil {
				all = append(all, *h)
			}
		}
		return err
	})
	return all, err
}

// SaveHealth implements [queue.Store].
func (t *tables) SaveHealth(ctx context.Context, states ...queue.Health) error {
	all := make([]jobHealth, len(states))
	for i := range states {
		all[i].Health = &states[i]
	}
	gone, saved := t.sealHealth(all)
	calls := []call{begin}
	for _, sql := range removeHealth {
		calls = append(calls, call{sql + "ANY ($1::BYTEA[])", []any{gone.hash}})
	}
	calls = append(calls, call{saveHealth + onConflict, saved.args()}, commit)
	return t.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
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
type healthRows struct{ hash, changed, record, known, client, message, index array }

// args returns the arguments of saveHealth.
func (r *healthRows) args() []any { return []any{r.hash, r.changed, r.record, r.known, r.client} }

// sealHealth returns the states to remove and those to store.
func (t *tables) sealHealth(states []jobHealth) (gone, saved healthRows) {
	// All transactions lock rows in the same order.
	slices.SortStableFunc(states, func(a, b jobHealth) int { return bytes.Compare(a.Destination[:], b.Destination[:]) })
	bytea, bigint := array{oid: oidBytea}, array{oid: oidBigint}
	gone, saved = healthRows{hash: bytea}, healthRows{hash: bytea, changed: bigint, record: bytea, known: bigint, client: bigint}
	sealer := t.sealer.Batch()
	for i, h := range states {
		if i+1 < len(states) && states[i+1].Destination == h.Destination {
			continue // a later state follows
		}
		rows := &gone
		if h.Known || h.Down() {
			rows = &saved
			rows.changed.bigint(h.Changed.UnixMicro())
			rows.known.bigint(bit(h.Known))
			rows.client.bigint(bit(h.Client))
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
func (t *tables) settledHealth(states []jobHealth, token uuid.UUID) (calls []call) {
	gone, saved := t.sealHealth(states)
	if len(gone.hash.items) > 0 {
		for _, sql := range removeHealth {
			calls = append(calls, call{sql + `ANY (SELECT k.hash FROM unnest($1::BYTEA[], $2::UUID[], $3::BIGINT[]) AS k (hash, message, idx),
				notify_queue_jobs j
				WHERE j.message = k.message AND j.idx = k.idx AND j.owner = $4)`, []any{gone.hash, gone.message, gone.index, token}})
		}
	}
	if len(saved.hash.items) > 0 {
		calls = append(calls, call{
			saveHealth + ` WHERE EXISTS (
				SELECT 1 FROM unnest($6::BYTEA[], $7::UUID[], $8::BIGINT[]) AS q (hash, message, idx), notify_queue_jobs j
				WHERE q.hash = k.hash AND j.message = q.message AND j.idx = q.idx AND j.owner = $9)` + onConflict,
			append(saved.args(), saved.hash, saved.message, saved.index, token),
		})
	}
	return calls
}

// removeHealth removes states, but not the turns of destinations for which jobs are parked.
var removeHealth = [...]string{
	"DELETE FROM notify_queue_destinations WHERE parks = 0 AND hash = ",
	"UPDATE notify_queue_destinations SET known = 0, changed = 0, record = '' WHERE parks = 1 AND hash = ",
}

const saveHealth = `INSERT INTO notify_queue_destinations AS d (hash, changed, stored, record, known, client)
	SELECT k.hash, k.changed, ` + serverTime + `, k.record, k.known, k.client
	FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[]) AS k (hash, changed, record, known, client)`

// onConflict lets the gateway win that has seen the later change. A destination that has
// succeeded has its turn at once.
const onConflict = ` ON CONFLICT (hash) DO UPDATE SET changed = excluded.changed, stored = excluded.stored, record = excluded.record,
		known = excluded.known, client = excluded.client, until = CASE WHEN excluded.known = 1 THEN 0 ELSE d.until END
	WHERE d.changed <= excluded.changed`

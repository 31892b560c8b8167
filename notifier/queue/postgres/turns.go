package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// What waits for a destination that is down is parked: until it expires, it is not due, and only
// the row of its destination tells when the destination has its next turn. So an attempt that fails
// for all jobs changes one row, and a claim does not read the parked jobs. In its turn, the first
// parked job is claimed. A success makes the others due again (see wakeJobs).

// parkedAtOnce is the number of jobs of one destination that one transaction parks. The
// others are due, and each that fails parks as many again.
const parkedAtOnce = 1000

// failing is a failed attempt that counts for all jobs that wait for its destination.
type failing struct {
	failure     queue.SharedFailure
	now         time.Time
	destination seal.Hash
	client      bool
	shared      *queue.Job // a claimed job that the attempt counts for; nil for none

	next int64 // when the first parked job is due; park sets it
}

// parking parks jobs that wait for destinations that are down, and gives the destinations turns.
type parking struct {
	*tables
	due      *due
	failures batch[*failing]
}

// fail parks the jobs for which the failed attempt of j counts. shared means that another job had
// the attempt.
func (p *parking) fail(j *queue.Job, f *queue.SharedFailure, shared, linger bool) error {
	v := &failing{failure: *f, now: j.Updated, destination: p.sealer.DestinationHash(j.Destination), client: j.Client}
	if shared {
		v.shared = j
	}
	err := p.failures.do(v, linger)
	if err == nil {
		p.due.parked(v.destination, f.Began.UnixMicro(), v.next)
	}
	return err
}

// park parks the jobs for which failed attempts count, in one transaction. It returns an error for
// each attempt whose shared job is not claimed.
func (p *parking) park(all []*failing) []error {
	errs := make([]error, len(all))
	err := p.do(context.Background(), func(ctx context.Context, c *conn, _ bool) error {
		last := lastFailures(all)
		calls := []call{begin, p.parkShared(all), postponeTurns(last)}
		for _, f := range last {
			now := f.now.UnixMicro()
			calls = append(calls,
				call{parkJobs, []any{f.destination[:], now, f.failure.Began.UnixMicro(), parkedAtOnce}},
				call{unparkExpired, []any{f.destination[:], now, parkedAtOnce}})
		}
		results, err := c.exec(ctx, append(calls, commit)...)
		if err != nil {
			return err
		}
		parked := map[queue.JobID]bool{}
		for _, row := range results[1].Rows {
			parked[queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}] = true
		}
		expire := map[seal.Hash]int64{}
		for i, f := range last {
			expire[f.destination] = number(results[3+2*i].Rows[0][0])
		}
		for i, f := range all {
			f.next = f.failure.Until.UnixMicro()
			if e := expire[f.destination]; e != 0 {
				f.next = min(f.next, e)
			}
			if f.shared != nil && !f.shared.Expires.IsZero() {
				f.next = min(f.next, f.shared.Expires.UnixMicro())
			}
			if errs[i] = nil; f.shared != nil && !parked[f.shared.JobID] {
				errs[i] = queue.ErrNotClaimed
			}
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// lastFailures returns the last failure of each destination, in the order in which all
// transactions lock their rows.
func lastFailures(all []*failing) []*failing {
	last := map[seal.Hash]*failing{}
	for _, f := range all {
		if l := last[f.destination]; l == nil || f.failure.Began.After(l.failure.Began) {
			last[f.destination] = f
		}
	}
	sorted := make([]*failing, 0, len(last))
	for _, f := range last {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b *failing) int { return bytes.Compare(a.destination[:], b.destination[:]) })
	return sorted
}

// parkShared returns the statement that gives up the claims of shared jobs and parks them.
func (p *parking) parkShared(all []*failing) call {
	message, index, parked, due, updated, expires := array{oid: oidUUID}, array{oid: oidBigint}, array{oid: oidBigint}, array{oid: oidBigint},
		array{oid: oidBigint}, array{oid: oidBigint}
	for _, f := range all {
		j := f.shared
		if j == nil {
			continue
		}
		at, end := j.Due.UnixMicro(), expiresOf(j)
		parks := end > f.now.UnixMicro()
		if parks {
			at = end
		}
		message.uuid(j.Message)
		index.bigint(int64(j.Index))
		parked.bigint(bit(parks))
		due.bigint(at)
		updated.bigint(j.Updated.UnixMicro())
		expires.bigint(end)
	}
	return call{parkClaimed, []any{message, index, parked, due, updated, expires, p.owner}}
}

// parkClaimed parks claimed jobs. If one is parked already, the reply to an earlier run of this
// statement was lost.
const parkClaimed = `UPDATE notify_queue_jobs j SET status = 1, owner = NULL, lease = NULL, parked = k.parked, due = k.due, not_before = 0,
		updated = k.updated, expires = k.expires
	FROM unnest($1::UUID[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[]) AS k (message, idx, parked, due, updated,
		expires)
	WHERE j.message = k.message AND j.idx = k.idx AND (j.status = 2 AND j.owner = $7 OR j.status = 1 AND j.parked = 1)
	RETURNING j.message, j.idx`

// postponeTurns returns the statement that stores when destinations have their next turns.
func postponeTurns(last []*failing) call {
	var hash, client, failed, until, now array
	for _, f := range last {
		hash.bytes(slices.Clone(f.destination[:]))
		client.bigint(bit(f.client))
		failed.bigint(f.failure.Began.UnixMicro())
		until.bigint(f.failure.Until.UnixMicro())
		now.bigint(f.now.UnixMicro())
	}
	return call{postpone, []any{hash, client, failed, until, now}}
}

// postpone adds or changes rows of destinations. Their turn is soon if they have succeeded
// since the attempt, and stays if it comes from a later attempt. Whoever parks jobs changes
// the row in the same transaction, so that forgetTurns cannot miss them.
const postpone = `INSERT INTO notify_queue_destinations AS d (hash, changed, stored, record, client, failed, until, parks)
	SELECT k.hash, 0, ` + serverTime + `, '', k.client, k.failed, CASE WHEN k.until > k.now THEN k.until ELSE k.now + 1000000 END, 1
		FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[]) AS k (hash, client, failed, until, now)
	ON CONFLICT (hash) DO UPDATE SET parks = 1, failed = greatest(d.failed, excluded.failed), until = CASE
		WHEN d.known = 1 AND d.changed > excluded.failed THEN ` + serverTime + ` + 1000000
		WHEN d.failed >= excluded.failed AND d.until > 0 THEN d.until
		ELSE excluded.until END`

// parkJobs parks jobs of a destination that were due before an attempt began. It returns when
// the first of them expires, or 0.
const parkJobs = `WITH c AS (
		SELECT q.message, q.idx FROM notify_queue_jobs q
		WHERE q.status = 1 AND q.parked = 0 AND q.destination = $1 AND q.due <= $3 AND q.expires > $2
		ORDER BY q.due LIMIT $4 FOR UPDATE SKIP LOCKED),
	u AS (
		UPDATE notify_queue_jobs j SET parked = 1, due = j.expires, not_before = 0, updated = $2
		FROM c WHERE j.message = c.message AND j.idx = c.idx AND j.status = 1 AND j.parked = 0 RETURNING j.due)
	SELECT coalesce(min(due), 0) FROM u`

// unparkExpired lets claims find the parked jobs of a destination that have expired. Each
// ends with its last attempt, or with one that began after it expired.
const unparkExpired = `WITH c AS (
		SELECT q.message, q.idx FROM notify_queue_jobs q
		WHERE q.status = 1 AND q.parked = 1 AND q.destination = $1 AND q.due <= $2
		ORDER BY q.due LIMIT $3 FOR UPDATE SKIP LOCKED)
	UPDATE notify_queue_jobs j SET parked = 0 FROM c WHERE j.message = c.message AND j.idx = c.idx AND j.status = 1`

// dueTurns returns the first parked job of each destination that has its turn, the one that
// has waited longest first.
const dueTurns = `SELECT j.message, j.idx, j.destination, j.host, j.client, j.text, d.until FROM (
		SELECT hash, until FROM notify_queue_destinations WHERE parks = 1 AND until <= $1 ORDER BY until LIMIT $2) d, LATERAL (
		SELECT * FROM notify_queue_jobs q WHERE q.status = 1 AND q.parked = 1 AND q.destination = d.hash
		ORDER BY q.due LIMIT 1) j`

// knownJobs returns the first jobs that are due of known destinations.
const knownJobs = `SELECT ` + candidateColumns + ` FROM notify_queue_destinations d, LATERAL (
		SELECT * FROM notify_queue_jobs q WHERE q.status = 1 AND q.parked = 0 AND q.destination = d.hash AND q.due <= $1
		ORDER BY q.due LIMIT $2) j
	WHERE d.known = 1 LIMIT $3`

// longestTurn is the longest time until the next turn of a destination. A later one comes
// from a clock that was ahead.
const longestTurn = 2 * queue.MaxRetryAfter

// recoverTurns adds the statements that keep the rows of destinations in order: turns of a clock
// that was ahead come now, and rows that nobody needs are removed.
func recoverTurns(now time.Time, add func(sql string, args ...any)) {
	t := now.UnixMicro()
	add(`UPDATE notify_queue_destinations SET until = $1 WHERE parks = 1 AND until > $2`, t, now.Add(longestTurn).UnixMicro())
	add(forgetTurns, t, forgetAtOnce)
	add(forgetClients, forgetAtOnce)
}

// forgetTurns notes for destinations that have their turn that nothing is parked for them.
const forgetTurns = `UPDATE notify_queue_destinations SET parks = 0 WHERE hash IN (
		SELECT d.hash FROM notify_queue_destinations d WHERE d.parks = 1 AND d.until <= $1
			AND NOT EXISTS (SELECT 1 FROM notify_queue_jobs j WHERE j.status = 1 AND j.parked = 1 AND j.destination = d.hash)
		ORDER BY d.until LIMIT $2 FOR UPDATE SKIP LOCKED) AND until <= $1`

// forgetClients removes the rows of clients' destinations for which nothing waits. Gateways read
// the rows every few seconds, so they have read these.
const forgetClients = `DELETE FROM notify_queue_destinations WHERE hash IN (
		SELECT d.hash FROM notify_queue_destinations d WHERE d.client = 1 AND d.parks = 0 AND d.stored < ` + serverTime + ` - 60000000
			AND NOT EXISTS (SELECT 1 FROM notify_queue_jobs j WHERE j.status = 1 AND j.parked = 0 AND j.destination = d.hash)
		LIMIT $1 FOR UPDATE SKIP LOCKED) AND parks = 0`

// nextTurn lets the next parked job of a destination be tried at once.
func (p *parking) nextTurn(ctx context.Context, destination seal.Hash) {
	err := p.store(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, "UPDATE notify_queue_destinations SET until = 0 WHERE hash = $1 AND parks = 1", destination[:])
		return err
	})
	if err != nil {
		p.log.Warn("what waits for a destination is tried in a minute, because the queue's store failed", zap.Error(err))
		return
	}
	p.due.changed()
}

// expiresOf returns the column expires of a job: 0 if no attempt of another job counts for it.
func expiresOf(j *queue.Job) int64 {
	if j.OwnAttempts {
		return 0
	}
	return micro(j.Expires)
}

// fillDestinations fills the columns of destinations that were stored before there were any.
func (t *tables) fillDestinations(ctx context.Context, c *conn) error {
	rows, err := c.query(ctx, "SELECT hash, record FROM notify_queue_destinations")
	if err != nil {
		return err
	}
	var hash, known, client array
	for _, row := range rows {
		h := t.sealer.OpenHealth(placeHealth, row[0], row[1])
		if h == nil {
			continue
		}
		hash.bytes(row[0])
		known.bigint(bit(h.Known))
		client.bigint(bit(h.Client))
	}
	if len(hash.items) == 0 {
		return nil
	}
	_, err = c.query(ctx, `UPDATE notify_queue_destinations d SET known = k.known, client = k.client
		FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BIGINT[]) AS k (hash, known, client) WHERE d.hash = k.hash`, hash, known, client)
	return err
}

// dueColumn is when a job of jobsWithDue is due.
const (
	dueColumn   = `CASE WHEN j.parked = 1 AND d.until < j.due THEN d.until ELSE j.due END`
	jobsWithDue = `notify_queue_jobs j LEFT JOIN notify_queue_destinations d ON d.hash = j.destination`
)

package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// The places in the store that records are bound to.
const (
	placeHead = "messages"
	placeBody = "bodies"
	placeJob  = "jobs"
)

// serverTime is the clock of the server.
const serverTime = `(extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT`

// maxBody is the maximum length of a message's body.
const maxBody = 32 << 20

// Accept implements [queue.Store].
func (s *Store) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	var size int64
	for _, e := range entries {
		if len(e.Jobs) > queue.MaxJobs {
			return refusef("the message has %d deliveries; at most %d can be queued", len(e.Jobs), queue.MaxJobs)
		}
		if len(e.Message.Body) > maxBody {
			return refusef("the message has %d bytes; at most %d can be queued", len(e.Message.Body), maxBody)
		}
		if e.Waits() {
			size += e.Size()
		}
	}
	if size > 0 {
		if err := s.checkSize(ctx, size, maxSize); err != nil {
			return err
		}
	}
	var err error
	if len(entries) == 1 && len(entries[0].Message.Files) == 0 {
		err = s.accepting.do(entries[0])
	} else {
		err = s.do(ctx, func(ctx context.Context, c *conn, repeated bool) error {
			err := c.transaction(ctx, func() error { return s.insertAll(ctx, c, entries) })
			if isDuplicate(err) {
				if err := c.rollback(); err != nil {
					return err
				}
				return s.duplicate(ctx, c, entries, repeated)
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.waiting += size
	for _, e := range entries {
		s.hold(e)
	}
	s.mu.Unlock()
	if size > 0 {
		signal(s.dirty)
	}
	return nil
}

// hold records that this handle has claimed the jobs of an entry that are
// Sending.
func (s *Store) hold(e *queue.Entry) {
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Status == queue.Sending {
			s.claim(queue.JobID{Message: e.Message.ID, Index: i}, s.hash("destination", j.Destination))
		}
	}
}

// claim records that this handle has claimed a job. The caller holds s.mu.
func (s *Store) claim(id queue.JobID, destination seal.Hash) {
	// The job can be claimed already: a call queued it again, and another call
	// claimed it before the first one recorded that.
	s.unclaim(id, s.claimed[id])
	s.claimed[id] = &claim{destination: destination}
	s.counts[destination]++
}

// unclaim is the inverse of claim, unless the job has been claimed again since.
// The caller holds s.mu.
func (s *Store) unclaim(id queue.JobID, c *claim) {
	if c == nil || s.claimed[id] != c {
		return
	}
	delete(s.claimed, id)
	if s.counts[c.destination]--; s.counts[c.destination] == 0 {
		delete(s.counts, c.destination)
	}
	if m := s.messages[id.Message]; m != nil {
		if m.jobs--; m.jobs <= 0 {
			delete(s.messages, id.Message)
		}
	}
}

// checkSize returns [queue.ErrFull] if size more bytes would exceed maxSize.
func (s *Store) checkSize(ctx context.Context, size, maxSize int64) error {
	s.mu.Lock()
	old := time.Since(s.counted) > countEvery
	s.mu.Unlock()
	if old {
		if _, err := s.Stats(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting+size > maxSize {
		return queue.ErrFull
	}
	return nil
}

// insertAll stores entries and their files within a transaction.
func (s *Store) insertAll(ctx context.Context, c *conn, entries []*queue.Entry) error {
	for part := range slices.Chunk(entries, batchSize) {
		if _, err := c.exec(ctx, s.insertion(part)); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := s.insertFiles(ctx, c, e.Message); err != nil {
			return err
		}
	}
	return nil
}

func sealJob(b *seal.Batch, id queue.JobID, j *queue.Job) []byte {
	return b.Seal(record.EncodeJob(j, 0), placeJob, record.JobKey(id))
}

// openJob opens the record of a job. Its status comes from the table.
func (s *Store) openJob(id queue.JobID, status int64, sealed []byte) (*queue.Job, error) {
	plain, err := s.sealer.Open(sealed, placeJob, record.JobKey(id))
	if err != nil {
		return nil, err
	}
	j, _, err := record.DecodeJob(id, plain)
	if err == nil {
		j.Status = queue.Status(status)
	}
	return j, err
}

func (s *Store) openMessage(id uuid.UUID, sealed []byte) (*record.Message, error) {
	plain, err := s.sealer.Open(sealed, placeHead, id[:])
	if err != nil {
		return nil, err
	}
	return record.DecodeMessage(id, plain)
}

// duplicate returns an error for the entry that is stored already. repeated
// reports whether an earlier attempt may have stored the entries.
func (s *Store) duplicate(ctx context.Context, c *conn, entries []*queue.Entry, repeated bool) error {
	stored := 0
	for _, e := range entries {
		rows, err := c.query(ctx, "SELECT 1 FROM notify_queue_messages WHERE id = $1", e.Message.ID)
		if err != nil {
			return err
		}
		if len(rows) > 0 && repeated {
			stored++
			continue
		} else if len(rows) > 0 {
			return refusef("the message %s is stored already", e.Message.ID)
		}
		if e.Message.Key == "" {
			continue
		}
		hash := s.hash("idempotency key", e.Message.Key)
		rows, err = c.query(ctx, "SELECT id, head FROM notify_queue_messages WHERE idempotency = $1", hash[:])
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			first := id(rows[0][0])
			m, err := s.openMessage(first, rows[0][1])
			if err != nil {
				return s.damaged("the record of message " + first.String())
			}
			return &queue.DuplicateError{ID: first, SameRequest: bytes.Equal(m.Request, e.Message.Request)}
		}
	}
	if stored == len(entries) {
		return nil
	}
	// The stored message has been forgotten meanwhile.
	return &pgconn.PgError{Code: "40001", Message: "a message with the same key was removed at the same time"}
}

func (s *Store) damaged(what string) error {
	err := &queue.DamagedError{What: what}
	s.log.Error(err.Error())
	return err
}

// Claim implements [queue.Store].
func (s *Store) Claim(ctx context.Context, c queue.Claim) (jobs []queue.Job, next time.Time, err error) {
	next = c.Now.Add(pollEvery)
	if err := s.recover(ctx); err != nil {
		return nil, next, err
	}
	s.mu.Lock()
	cursor := s.cursor
	room := map[seal.Hash]int{}
	full := array{oid: oidBytea}
	for d, n := range s.counts {
		if room[d] = c.PerDestination - n; room[d] <= 0 {
			full.bytes(bytes.Clone(d[:]))
		}
	}
	s.mu.Unlock()
	var turns [][]byte
	if err := s.do(ctx, func(ctx context.Context, conn *conn, _ bool) (err error) {
		turns, err = s.turns(ctx, conn, c, full, cursor)
		return err
	}); err != nil || len(turns) == 0 {
		return nil, next, err
	}

	// One job each, as long as there is room.
	turns = turns[:min(len(turns), c.Max)]
	take := make([]int, len(turns))
	for left, more := c.Max, true; left > 0 && more; {
		more = false
		for i, d := range turns {
			r, known := room[seal.Hash(d)]
			if !known {
				r = c.PerDestination
			}
			if left > 0 && take[i] < r {
				take[i]++
				left--
				more = true
			}
		}
	}
	err = s.do(ctx, func(ctx context.Context, conn *conn, _ bool) error {
		calls := make([]call, len(turns))
		for i, d := range turns {
			calls[i] = call{claimJobs, []any{d, c.Now.UnixMicro(), take[i], s.owner, c.Lease.Microseconds()}}
		}
		jobs = nil
		results, err := conn.exec(ctx, calls...)
		if err != nil {
			return err
		}
		for i, result := range results {
			jobs = append(jobs, s.take(result.Rows)...)
			if len(result.Rows) == take[i] {
				next = c.Now // more jobs may be due
			}
		}
		return nil
	})
	s.mu.Lock()
	s.cursor = turns[len(turns)-1]
	s.mu.Unlock()
	return s.endDamaged(ctx, jobs), next, err
}

// endDamaged settles the jobs whose records are damaged as Lost, and returns
// the others.
func (s *Store) endDamaged(ctx context.Context, jobs []queue.Job) []queue.Job {
	return slices.DeleteFunc(jobs, func(j queue.Job) bool {
		if j.Status != queue.Lost {
			return false
		}
		j.Updated, j.Reason = time.Now(), "its record in the queue's store was damaged"
		if err := s.Settle(ctx, &queue.Settlement{Job: &j}); err != nil {
			s.log.Error("ending a damaged delivery", zap.Error(err))
		}
		return true
	})
}

// claimJobs claims jobs of one destination. Statements that run at the same
// time claim different jobs.
const claimJobs = `WITH c AS (
		SELECT message, idx FROM notify_queue_jobs WHERE destination = $1 AND status = 1 AND due <= $2
		ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED)
	UPDATE notify_queue_jobs j SET status = 2, owner = $4, lease = ` + serverTime + ` + $5::BIGINT
	FROM c, notify_queue_messages m WHERE j.message = c.message AND j.idx = c.idx AND m.id = c.message
	RETURNING j.message, j.idx, j.destination, j.record, m.head, CASE WHEN length(m.body) <= 65536 AND m.files = 0 THEN m.body END`

// take records that this handle has claimed jobs, and opens their records. A
// job with a damaged record has the status Lost.
func (s *Store) take(rows [][][]byte) (jobs []queue.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		jid := queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}
		s.claim(jid, seal.Hash(row[2]))
		j, err := s.openJob(jid, int64(queue.Sending), row[3])
		if err != nil {
			_ = s.damaged(jobName(jid))
			j = &queue.Job{JobID: jid, Status: queue.Lost}
		}
		if row[5] != nil {
			m := s.messages[jid.Message]
			if m == nil {
				m = &loaded{head: row[4], body: row[5]}
				s.messages[jid.Message] = m
			}
			m.jobs++
		}
		jobs = append(jobs, *j)
	}
	return jobs
}

// maxDue is the number of due jobs in which turns looks for destinations first.
const maxDue = 200

// turns returns destinations with a due job that have not reached their limit,
// in the order of their turns.
func (s *Store) turns(ctx context.Context, conn *conn, c queue.Claim, full array, cursor []byte) ([][]byte, error) {
	now := c.Now.UnixMicro()
	rows, err := conn.query(ctx, dueJobs, now, maxDue)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, d := range full.items {
		seen[string(d)] = true
	}
	var turns [][]byte
	for _, row := range rows {
		if d := string(row[0]); !seen[d] {
			seen[d] = true
			turns = append(turns, row[0])
		}
	}
	if len(turns) >= c.Max || len(rows) < maxDue {
		return turns, nil
	}
	// The first jobs belong to few destinations, which can have many more. So look
	// up the first job of each destination.
	turns = nil
	for _, from := range [][]byte{cursor, {}} {
		rows, err := conn.query(ctx, dueDestinations, from, now, full, c.Max)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if !slices.ContainsFunc(turns, func(d []byte) bool { return bytes.Equal(d, row[0]) }) {
				turns = append(turns, row[0])
			}
		}
		if len(turns) >= c.Max || len(cursor) == 0 {
			break
		}
	}
	return turns, nil
}

const dueJobs = `SELECT destination FROM notify_queue_jobs WHERE status = 1 AND due <= $1 ORDER BY due LIMIT $2`

// dueDestinations skips from one destination to the next in the index. Its cost
// does not depend on the number of jobs.
const dueDestinations = `WITH RECURSIVE d (destination, due) AS (
		(SELECT destination, due FROM notify_queue_jobs WHERE status = 1 AND destination > $1 ORDER BY destination, due LIMIT 1)
		UNION ALL
		SELECT n.destination, n.due FROM d, LATERAL (
			SELECT j.destination, j.due FROM notify_queue_jobs j WHERE j.status = 1 AND j.destination > d.destination
			ORDER BY j.destination, j.due LIMIT 1) n
	) SELECT destination FROM d WHERE due <= $2 AND NOT destination = ANY ($3::BYTEA[]) LIMIT $4`

// recover queues the jobs again whose lease has run out.
func (s *Store) recover(ctx context.Context) error {
	s.mu.Lock()
	recent := time.Since(s.recovered) < recoverEvery
	if !recent {
		s.recovered = time.Now()
	}
	s.mu.Unlock()
	if recent {
		return nil
	}
	return s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, `UPDATE notify_queue_jobs SET status = 1, owner = NULL, lease = NULL WHERE status = 2 AND lease < `+serverTime)
		return err
	})
}

// Expire implements [queue.Store].
func (s *Store) Expire(ctx context.Context, now time.Time, lease time.Duration, n int) (jobs []queue.Job, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		// Lock nothing if no job has expired.
		rows, err := c.query(ctx, "SELECT 1 FROM notify_queue_jobs WHERE status = 1 AND expires <= $1 LIMIT 1", now.UnixMicro())
		if err != nil || len(rows) == 0 {
			return err
		}
		rows, err = c.query(ctx, expireJobs, now.UnixMicro(), n, s.owner, lease.Microseconds())
		jobs = s.take(rows)
		return err
	})
	queue.SortJobs(jobs)
	return s.endDamaged(ctx, jobs), err
}

const expireJobs = `WITH c AS (
		SELECT message, idx FROM notify_queue_jobs WHERE status = 1 AND expires <= $1
		ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED)
	UPDATE notify_queue_jobs j SET status = 2, owner = $3, lease = ` + serverTime + ` + $4::BIGINT
	FROM c WHERE j.message = c.message AND j.idx = c.idx
	RETURNING j.message, j.idx, j.destination, j.record, NULL::BYTEA, NULL::BYTEA`

// Renew implements [queue.Store].
func (s *Store) Renew(ctx context.Context, lease time.Duration) error {
	s.mu.Lock()
	var messages, index array
	for id := range s.claimed {
		messages.uuid(id.Message)
		index.bigint(int64(id.Index))
	}
	s.mu.Unlock()
	if len(messages.items) == 0 {
		return nil
	}
	return s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, `UPDATE notify_queue_jobs j SET lease = `+serverTime+` + $4::BIGINT
			FROM unnest($1::UUID[], $2::BIGINT[]) AS k (message, idx)
			WHERE j.message = k.message AND j.idx = k.idx AND j.status = 2 AND j.owner = $3`, messages, index, s.owner, lease.Microseconds())
		return err
	})
}

// Settle implements [queue.Store].
func (s *Store) Settle(ctx context.Context, t *queue.Settlement) error {
	j := t.Job
	s.mu.Lock()
	c := s.claimed[j.JobID]
	free := c != nil && !c.settling
	if free {
		c.settling = true
	}
	s.mu.Unlock()
	if !free {
		return queue.ErrNotClaimed
	}
	st := &settling{job: j, tokens: c.tokens}
	var err error
	if t.Next == nil {
		err = s.settlings.do(st)
	} else {
		err = s.settle(ctx, []*settling{st}, t.Next)[0]
	}
	s.mu.Lock()
	c.settling, c.tokens = false, st.tokens
	if err == nil || errors.Is(err, queue.ErrNotClaimed) {
		s.unclaim(j.JobID, c)
	}
	s.waiting -= st.size
	if err == nil && t.Next != nil {
		s.waiting += t.Next.Size()
		s.hold(t.Next)
	}
	s.mu.Unlock()
	if st.files > 0 {
		s.deleteFiles(ctx, j.Message)
	}
	if t.Next != nil {
		signal(s.dirty)
	}
	return err
}

// Cancel implements [queue.Store].
func (s *Store) Cancel(ctx context.Context, id uuid.UUID, now time.Time, statuses ...queue.Status) (int, error) {
	return s.change(ctx, id, now, statuses, func(j *queue.Job) { j.Status = queue.Cancelled })
}

// Retry implements [queue.Store].
func (s *Store) Retry(ctx context.Context, id uuid.UUID, now, expires time.Time) (int, error) {
	n, err := s.change(ctx, id, now, []queue.Status{queue.Dead}, func(j *queue.Job) {
		j.Status, j.Attempts, j.Due, j.Expires, j.Reason = queue.Queued, 0, now, expires, ""
	})
	signal(s.dirty)
	return n, err
}

// change applies f to the jobs of a message that have one of the statuses, in
// one transaction, and returns how many there were.
func (s *Store) change(ctx context.Context, id uuid.UUID, now time.Time, statuses []queue.Status, f func(j *queue.Job)) (n int, err error) {
	var size, files int64
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		return c.transaction(ctx, func() (err error) {
			n, size, files, err = s.changeJobs(ctx, c, id, now, statuses, f)
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.waiting -= size
	s.mu.Unlock()
	if files > 0 {
		s.deleteFiles(ctx, id)
	}
	return n, nil
}

func (s *Store) changeJobs(ctx context.Context, c *conn, id uuid.UUID, now time.Time, statuses []queue.Status, f func(j *queue.Job)) (n int, size, files int64, err error) {
	var in array
	for _, st := range statuses {
		in.bigint(int64(st))
	}
	results, err := c.exec(ctx,
		call{"SELECT idx, status, record FROM notify_queue_jobs WHERE message = $1 AND status = ANY ($2::BIGINT[]) ORDER BY idx FOR UPDATE", []any{id, in}},
		call{"SELECT waiting, dead, jobs, size, files FROM notify_queue_messages WHERE id = $1 FOR UPDATE", []any{id}})
	if err != nil {
		return 0, 0, 0, err
	}
	if len(results[1].Rows) == 0 {
		return 0, 0, 0, queue.ErrNotFound
	}
	if len(results[0].Rows) == 0 {
		return 0, 0, 0, nil
	}
	row := results[1].Rows[0]
	waiting, dead, total := int(number(row[0])), int(number(row[1])), int(number(row[2]))
	size, files = number(row[3]), number(row[4])
	before := waiting
	sealer := s.sealer.Batch()
	var calls []call
	for _, row := range results[0].Rows {
		jid := queue.JobID{Message: id, Index: int(number(row[0]))}
		j, err := s.openJob(jid, number(row[1]), row[2])
		if err != nil {
			return 0, 0, 0, s.damaged(jobName(jid))
		}
		if j.Status == queue.Dead {
			dead--
		} else {
			waiting--
		}
		j.Updated = now
		f(j)
		if j.Status.Waits() {
			waiting++
		}
		calls = append(calls, call{changeJob, []any{id, jid.Index, int(j.Status), j.Due.UnixMicro(), j.Expires.UnixMicro(), sealJob(sealer, jid, j)}})
	}
	var finished any
	var kept int64
	if waiting == 0 {
		finished, kept = now.UnixMicro(), record.KeptSize(size, total, dead)
	}
	calls = append(calls, call{changeMessage, []any{id, waiting, dead, finished, kept}})
	if _, err := c.exec(ctx, calls...); err != nil {
		return 0, 0, 0, err
	}
	switch {
	case before > 0 && waiting > 0, before == 0 && waiting == 0:
		size = 0
	case waiting > 0:
		size = -size
	}
	if waiting+dead > 0 {
		files = 0
	}
	return len(results[0].Rows), size, files, nil
}

const (
	changeJob     = `UPDATE notify_queue_jobs SET status = $3, due = $4, expires = $5, record = $6, owner = NULL, lease = NULL WHERE message = $1 AND idx = $2`
	changeMessage = `UPDATE notify_queue_messages SET waiting = $2, dead = $3, finished = $4, kept = $5,
		body = CASE WHEN $2::INT + $3::INT = 0 THEN NULL ELSE body END WHERE id = $1`
)

// Forget implements [queue.Store].
func (s *Store) Forget(ctx context.Context, before time.Time, maxSize int64) (total int, err error) {
	for {
		n := 0
		err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
			rows, err := c.query(ctx, "SELECT coalesce(sum(kept), 0)::BIGINT FROM notify_queue_messages WHERE finished IS NOT NULL")
			if err != nil {
				return err
			}
			over := number(rows[0][0]) - maxSize
			rows, err = c.query(ctx, "SELECT id, finished, kept FROM notify_queue_messages WHERE finished IS NOT NULL ORDER BY finished LIMIT $1", forgetAtOnce)
			if err != nil {
				return err
			}
			var ids array
			for _, row := range rows {
				if number(row[1]) >= before.UnixMicro() && over <= 0 {
					break
				}
				over -= number(row[2])
				ids.uuid(id(row[0]))
			}
			if len(ids.items) == 0 {
				return nil
			}
			// A message that is retried at the same time waits again, and is not
			// removed.
			rows, err = c.query(ctx, forget, ids)
			n = len(rows)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += n; n < forgetAtOnce {
			return total, nil
		}
	}
}

// forgetAtOnce is the number of messages that one transaction removes.
const forgetAtOnce = 500

const forget = `WITH m AS (DELETE FROM notify_queue_messages WHERE id = ANY ($1::UUID[]) AND finished IS NOT NULL RETURNING id),
		j AS (DELETE FROM notify_queue_jobs WHERE message IN (SELECT id FROM m)),
		f AS (DELETE FROM notify_queue_files WHERE message IN (SELECT id FROM m))
	SELECT id FROM m`

// Stats implements [queue.Store].
func (s *Store) Stats(ctx context.Context) (st queue.Stats, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		results, err := c.exec(ctx,
			call{"SELECT status, count(*) FROM notify_queue_jobs WHERE status IN (1, 2, 5) GROUP BY status", nil},
			call{"SELECT coalesce(min(created), 0), coalesce(sum(size), 0)::BIGINT FROM notify_queue_messages WHERE finished IS NULL", nil})
		if err != nil {
			return err
		}
		st = queue.Stats{}
		for _, row := range results[0].Rows {
			n := int(number(row[1]))
			switch queue.Status(number(row[0])) {
			case queue.Queued:
				st.Queued = n
			case queue.Sending:
				st.Sending = n
			case queue.Dead:
				st.Dead = n
			}
		}
		row := results[1].Rows[0]
		if t := number(row[0]); t != 0 {
			st.Oldest = time.UnixMicro(t)
		}
		st.Bytes = number(row[1])
		return nil
	})
	if err == nil {
		s.mu.Lock()
		s.waiting, s.counted = st.Bytes, time.Now()
		s.mu.Unlock()
	}
	return st, err
}

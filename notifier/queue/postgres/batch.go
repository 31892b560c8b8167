package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// The bounds of transactions that several callers share. A separate transaction
// for each message costs the server several times as much.
const (
	batches   = 2 // transactions at once, of each kind
	batchSize = 64
)

// batch collects values of several callers for one transaction.
type batch[T any] struct {
	in   chan item[T]
	stop <-chan struct{}
}

type item[T any] struct {
	value T
	done  chan error // has room for the result
}

// do adds a value and waits until its transaction has ended.
func (b *batch[T]) do(v T) error {
	it := item[T]{v, make(chan error, 1)}
	select {
	case b.in <- it:
		return <-it.done
	case <-b.stop:
		return queue.ErrClosed
	}
}

// run calls write with the values that wait, until the batch is stopped. write
// returns an error for each value, or nil if all succeed.
func (b *batch[T]) run(write func([]T) []error) {
	for {
		var items []item[T]
		select {
		case it := <-b.in:
			items = append(items, it)
		case <-b.stop:
			return
		}
		for more := true; more && len(items) < batchSize; {
			select {
			case it := <-b.in:
				items = append(items, it)
			default:
				more = false
			}
		}
		values := make([]T, len(items))
		for i, it := range items {
			values[i] = it.value
		}
		errs := write(values)
		for i, it := range items {
			if errs == nil {
				it.done <- nil
			} else {
				it.done <- errs[i]
			}
		}
	}
}

// accept stores entries without files in one transaction. If one of them is
// stored already, it stores each in a separate transaction.
func (s *Store) accept(entries []*queue.Entry) []error {
	ctx := context.Background()
	err := s.do(ctx, func(ctx context.Context, c *conn, repeated bool) error {
		_, err := c.exec(ctx, s.insertion(entries))
		if len(entries) == 1 && isDuplicate(err) {
			return s.duplicate(ctx, c, entries, repeated)
		}
		return err
	})
	if err == nil {
		return nil
	}
	errs := make([]error, len(entries))
	for i, e := range entries {
		if errs[i] = err; len(entries) > 1 && isDuplicate(err) {
			errs[i] = s.acceptAgain(ctx, e)
		}
	}
	return errs
}

// acceptAgain stores an entry of a failed transaction. The entry can be stored
// already, because the connection can be lost after a successful commit.
func (s *Store) acceptAgain(ctx context.Context, e *queue.Entry) error {
	return s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.exec(ctx, s.insertion([]*queue.Entry{e}))
		if isDuplicate(err) {
			return s.duplicate(ctx, c, []*queue.Entry{e}, true)
		}
		return err
	})
}

// isDuplicate reports whether err is returned because an ID or an idempotency
// key is stored already.
func isDuplicate(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23505" // unique_violation
}

// insertion returns the statement that stores messages and their jobs.
func (s *Store) insertion(entries []*queue.Entry) call {
	var m struct{ id, created, size, kept, jobs, waiting, dead, files, finished, key, head, body array }
	var j struct{ message, index, destination, status, due, expires, record array }
	sealer := s.sealer.Batch()
	for _, e := range entries {
		id := e.Message.ID
		m.id.uuid(id)
		m.created.bigint(e.Message.Created.UnixMicro())
		var hash *seal.Hash
		if e.Message.Key != "" {
			h := s.hash("idempotency key", e.Message.Key)
			hash = &h
			m.key.bytes(h[:])
		} else {
			m.key.bytes(nil)
		}
		r := record.NewMessage(e, hash)
		m.head.bytes(sealer.Seal(r.Encode(), placeHead, id[:]))
		waiting, dead := 0, 0
		for i := range e.Jobs {
			job := &e.Jobs[i]
			switch {
			case job.Status.Waits():
				waiting++
			case job.Status == queue.Dead:
				dead++
			default:
				continue // it is part of the message
			}
			h := s.hash("destination", job.Destination)
			j.message.uuid(id)
			j.index.bigint(int64(i))
			j.destination.bytes(h[:])
			j.status.bigint(int64(job.Status))
			j.due.bigint(job.Due.UnixMicro())
			j.expires.bigint(job.Expires.UnixMicro())
			j.record.bytes(sealJob(sealer, queue.JobID{Message: id, Index: i}, job))
		}
		m.size.bigint(r.Size)
		m.jobs.bigint(int64(len(e.Jobs)))
		m.waiting.bigint(int64(waiting))
		m.dead.bigint(int64(dead))
		m.files.bigint(int64(len(e.Message.Files)))
		if waiting > 0 {
			m.kept.bigint(0)
			m.finished.null()
		} else {
			m.kept.bigint(record.KeptSize(r.Size, len(e.Jobs), dead))
			m.finished.bigint(e.Message.Created.UnixMicro())
		}
		if waiting+dead > 0 {
			m.body.bytes(sealer.Seal(e.Message.Body, placeBody, id[:]))
		} else {
			m.body.bytes(nil)
		}
	}
	m.finished.oid = oidBigint // all can be NULL
	if len(j.index.items) == 0 {
		return call{insertMessages, []any{m.id, m.created, m.size, m.kept, m.jobs, m.waiting, m.dead, m.files, m.finished, m.key, m.head, m.body}}
	}
	return call{insertEntries, []any{
		m.id, m.created, m.size, m.kept, m.jobs, m.waiting, m.dead, m.files, m.finished, m.key, m.head, m.body,
		j.message, j.index, j.destination, j.status, j.due, j.expires, j.record, s.owner, lease.Microseconds(),
	}}
}

const insertMessages = `INSERT INTO notify_queue_messages
	(id, created, size, kept, jobs, waiting, dead, files, finished, idempotency, head, body)
	SELECT * FROM unnest($1::UUID[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[],
		$8::BIGINT[], $9::BIGINT[], $10::BYTEA[], $11::BYTEA[], $12::BYTEA[])`

const insertEntries = `WITH m AS (` + insertMessages + ` RETURNING 1)
	INSERT INTO notify_queue_jobs (message, idx, destination, status, due, expires, record, owner, lease)
	SELECT j.message, j.idx, j.destination, j.status, j.due, j.expires, j.record,
		CASE WHEN j.status = 2 THEN $20::UUID END, CASE WHEN j.status = 2 THEN ` + serverTime + ` + $21::BIGINT END
	FROM unnest($13::UUID[], $14::BIGINT[], $15::BYTEA[], $16::BIGINT[], $17::BIGINT[], $18::BIGINT[], $19::BYTEA[])
		AS j (message, idx, destination, status, due, expires, record)`

// lease is the duration of the claim on a job that the caller of Accept sends
// itself.
const lease = time.Minute

// settling is a job whose outcome is to be written.
type settling struct {
	job         *queue.Job
	size, files int64 // size of its message if it no longer waits; size of files that can be removed

	// tokens identify the attempts to write the outcome. settle adds one.
	tokens []uuid.UUID
}

// settle records the outcomes of jobs in one transaction. If next is not nil,
// the transaction accepts it too.
func (s *Store) settle(ctx context.Context, jobs []*settling, next *queue.Entry) []error {
	token := uuid.New()
	var tokens array // of this call and of earlier ones, whose commit may have succeeded without a reply
	tokens.uuid(token)
	earlier := false
	for _, j := range jobs {
		for _, t := range j.tokens {
			tokens.uuid(t)
			earlier = true
		}
		j.tokens = append(j.tokens, token)
	}
	errs := make([]error, len(jobs))
	update, count := s.settlement(jobs, token)
	err := s.do(ctx, func(ctx context.Context, c *conn, repeated bool) error {
		settled := map[queue.JobID]bool{}
		note := func(rows [][][]byte) {
			for _, row := range rows {
				settled[queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}] = true
			}
		}
		var messages [][][]byte
		if repeated || earlier {
			rows, err := c.query(ctx, "SELECT message, idx FROM notify_queue_jobs WHERE owner = ANY($1::UUID[])", tokens)
			if err != nil {
				return err
			}
			note(rows)
			var ids array
			for _, row := range rows {
				ids.uuid(id(row[0]))
			}
			if len(rows) > 0 {
				if messages, err = c.query(ctx, settledMessages, ids); err != nil {
					return err
				}
			}
		}
		if len(settled) < len(jobs) {
			rows, err := c.settle(ctx, update, count, note, func() error {
				if next == nil || len(settled) == 0 {
					return nil
				}
				return s.insertAll(ctx, c, []*queue.Entry{next})
			})
			if err != nil {
				return err
			}
			if s.loseReply != nil {
				if err := s.loseReply(); err != nil {
					return err
				}
			}
			messages = append(messages, rows...)
		}
		for _, row := range messages {
			for _, j := range jobs {
				if j.job.Message == id(row[0]) {
					j.size, j.files = number(row[1]), number(row[2])
					break // once for each message
				}
			}
		}
		for i, j := range jobs {
			if errs[i] = nil; !settled[j.job.JobID] {
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

// settle updates jobs and messages. It passes the rows of the jobs to note,
// calls then before the commit, and returns the rows of the messages.
func (c *conn) settle(ctx context.Context, update, count call, note func([][][]byte), then func() error) (messages [][][]byte, err error) {
	results, err := c.exec(ctx, begin, update, count)
	if err != nil {
		return nil, err
	}
	note(results[1].Rows)
	if err := then(); err != nil {
		return nil, err
	}
	_, err = c.exec(ctx, commit)
	return results[2].Rows, err
}

// settlement returns the statements that update jobs and their messages.
func (s *Store) settlement(jobs []*settling, token uuid.UUID) (update, count call) {
	var message, index, status, due, expires, sealed, updated array
	sealer := s.sealer.Batch()
	for _, j := range jobs {
		message.uuid(j.job.Message)
		index.bigint(int64(j.job.Index))
		status.bigint(int64(j.job.Status))
		due.bigint(j.job.Due.UnixMicro())
		expires.bigint(j.job.Expires.UnixMicro())
		sealed.bytes(sealJob(sealer, j.job.JobID, j.job))
		updated.bigint(j.job.Updated.UnixMicro())
	}
	return call{settleJobs, []any{message, index, status, due, expires, sealed, s.owner, token}},
		call{settleMessages, []any{message, index, updated, token}}
}

const settleJobs = `UPDATE notify_queue_jobs j SET status = k.status, due = k.due, expires = k.expires, record = k.record, owner = $8, lease = NULL
	FROM unnest($1::UUID[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BYTEA[]) AS k (message, idx, status, due, expires, record)
	WHERE j.message = k.message AND j.idx = k.idx AND j.status = 2 AND j.owner = $7
	RETURNING j.message, j.idx`

// settleMessages records that a message is finished when none of its jobs
// waits, and removes its body when none is dead either. It is a separate
// statement: if rows are joined with the result of another part of the same
// statement, PostgreSQL does not see what another transaction has changed in
// them meanwhile.
const settleMessages = `UPDATE notify_queue_messages m SET waiting = m.waiting - k.n, dead = m.dead + k.dead,
		finished = CASE WHEN m.waiting = k.n THEN k.updated END,
		kept = CASE WHEN m.waiting > k.n THEN 0 WHEN m.dead + k.dead = 0 THEN least(m.size, 512 + 512 * m.jobs) ELSE m.size END,
		body = CASE WHEN m.waiting = k.n AND m.dead + k.dead = 0 THEN NULL ELSE m.body END
	FROM (
		SELECT j.message, count(*) AS n, count(*) FILTER (WHERE j.status = 5) AS dead, max(q.updated) AS updated
		FROM notify_queue_jobs j, unnest($1::UUID[], $2::BIGINT[], $3::BIGINT[]) AS q (message, idx, updated)
		WHERE j.message = q.message AND j.idx = q.idx AND j.owner = $4 AND j.status <> 1
		GROUP BY j.message) k
	WHERE m.id = k.message
	RETURNING m.id, CASE WHEN m.finished IS NOT NULL THEN m.size ELSE 0 END, CASE WHEN m.body IS NULL THEN m.files ELSE 0 END`

// settledMessages returns the same columns as settleMessages, without an
// update.
const settledMessages = `SELECT m.id, CASE WHEN m.finished IS NOT NULL THEN m.size ELSE 0 END, CASE WHEN m.body IS NULL THEN m.files ELSE 0 END
	FROM notify_queue_messages m WHERE m.id = ANY($1::UUID[])`

package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
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
	batches    = 2 // transactions at once, of each kind
	batchSize  = 128
	lingerTime = 5 * time.Millisecond // how long a value that can wait does so for others
)

// batch collects values of several callers for one transaction.
type batch[T any] struct {
	in      chan item[T]
	stop    <-chan struct{}
	collect sync.Mutex // one transaction collects values while others are written
}

func newBatch[T any](stop <-chan struct{}) batch[T] {
	return batch[T]{in: make(chan item[T]), stop: stop}
}

type item[T any] struct {
	value  T
	linger bool       // it can wait for others
	done   chan error // has room for the result
}

// do adds a value and waits until its transaction has ended. linger means that
// the transaction may wait some milliseconds for other values.
func (b *batch[T]) do(v T, linger bool) error {
	it := item[T]{v, linger, make(chan error, 1)}
	select {
	case b.in <- it:
		return <-it.done
	case <-b.stop:
		return queue.ErrClosed
	}
}

// run calls write with the values that wait, until the batch is stopped. write
// returns an error for each value, or nil if all succeed. Values with [errLater] are written again.
func (b *batch[T]) run(write func([]T) []error) {
	var later []item[T]
	for {
		items := later // others are collected meanwhile
		if later = nil; items == nil {
			items = b.next()
		}
		if items == nil {
			return
		}
		values := make([]T, len(items))
		for i, it := range items {
			values[i] = it.value
		}
		errs := write(values)
		for i, it := range items {
			switch {
			case errs == nil:
				it.done <- nil
			case errors.Is(errs[i], errLater):
				later = append(later, it)
			default:
				it.done <- errs[i]
			}
		}
	}
}

// next returns the values of the next transaction, or nil when the batch is
// stopped.
func (b *batch[T]) next() (items []item[T]) {
	b.collect.Lock()
	defer b.collect.Unlock()
	var late <-chan time.Time // when values no longer wait for others
	for linger := true; len(items) < batchSize; {
		if len(items) > 0 {
			select {
			case it := <-b.in:
				items = append(items, it)
				linger = linger && it.linger
				continue
			default:
			}
			if !linger {
				break
			}
		}
		select {
		case it := <-b.in:
			items = append(items, it)
			linger = linger && it.linger
			if late == nil {
				late = time.After(lingerTime)
			}
		case <-late:
			linger = false
		case <-b.stop:
			if len(items) == 0 {
				return nil
			}
			linger = false
		}
	}
	return items
}

// writer stores messages and the outcomes of jobs, mostly several in one transaction.
type writer struct {
	*tables
	accepting batch[*queue.Entry]
	deciding  batch[*accepting] // those with an update
	settlings batch[*settling]
	outcomes  batch[*settling] // those with an update or a message
	loseReply func() error     // of Options
}

// accept stores entries without files in one transaction. Entries that are stored already, or that
// have the idempotency key of another entry, are left out and stored separately.
func (w *writer) accept(entries []*queue.Entry) []error {
	ctx := context.Background()
	// All transactions store keys in the same order, because each waits for others
	// that store one of its keys.
	order := slices.Clone(entries)
	slices.SortStableFunc(order, func(a, b *queue.Entry) int { return strings.Compare(a.Message.Key, b.Message.Key) })
	separate := map[*queue.Entry]bool{}
	err := w.acceptOnce(ctx, order)
	if len(entries) > 1 && isDuplicate(err) {
		var rest []*queue.Entry
		if rest, err = w.unstored(ctx, order); err == nil {
			for _, e := range order {
				separate[e] = !slices.Contains(rest, e)
			}
			if len(rest) > 0 {
				err = w.acceptOnce(ctx, rest)
			}
			if isDuplicate(err) { // another transaction was faster
				for _, e := range rest {
					separate[e] = true
				}
			}
		}
	}
	if err == nil && len(separate) == 0 {
		return nil
	}
	errs := make([]error, len(entries))
	for i, e := range entries {
		if errs[i] = err; separate[e] {
			errs[i] = w.acceptAgain(ctx, e)
		}
	}
	return errs
}

// acceptOnce stores entries without files in one transaction.
func (w *writer) acceptOnce(ctx context.Context, entries []*queue.Entry) error {
	return w.storing(ctx, func(ctx context.Context, c *conn, repeated bool) error {
		err := w.insertAlone(ctx, c, entries)
		if err == nil && w.loseReply != nil {
			err = w.loseReply()
		}
		if len(entries) == 1 && isDuplicate(err) {
			if err := c.rollback(); err != nil {
				return err
			}
			return w.duplicate(ctx, c, entries, repeated)
		}
		return err
	})
}

// insertAlone stores entries without files in a transaction that does nothing else.
func (w *writer) insertAlone(ctx context.Context, c *conn, entries []*queue.Entry) error {
	insert, n := w.insertion(entries)
	_, err := c.exec(ctx, slices.Concat([]call{begin, insert}, n.calls(c), []call{commit})...)
	return err
}

// unclearError is returned when the connection was lost while messages were
// stored, so that they may be stored.
type unclearError struct{ error }

// Unwrap returns the cause.
func (e *unclearError) Unwrap() error { return e.error }

// storing is do for a transaction that stores messages. After an unclear error, another look can
// find out whether they are stored.
func (w *writer) storing(ctx context.Context, f func(ctx context.Context, c *conn, repeated bool) error) error {
	unclear := false
	err := w.store(ctx, func(ctx context.Context, c *conn, repeated bool) error {
		err := f(ctx, c, repeated)
		unclear = unclear || err != nil && broken(err)
		return err
	})
	if _, failed := errors.AsType[*queue.UnavailableError](err); failed && unclear && !errors.Is(err, errUnconfirmed) {
		return &unclearError{err}
	}
	return err
}

// unstored returns the entries whose ID and idempotency key are not stored. Of entries with the
// same key, it returns the first.
func (w *writer) unstored(ctx context.Context, entries []*queue.Entry) (rest []*queue.Entry, err error) {
	ids, keys := array{oid: oidUUID}, array{oid: oidBytea}
	for _, e := range entries {
		ids.uuid(e.Message.ID)
		if h := w.sealer.KeyHash(e.Message.Key); h != (seal.Hash{}) {
			keys.bytes(bytes.Clone(h[:]))
		}
	}
	err = w.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		results, err := c.exec(ctx,
			call{"SELECT id FROM notify_queue_messages WHERE id = ANY ($1::UUID[])", []any{ids}},
			call{"SELECT idempotency FROM notify_queue_messages WHERE idempotency = ANY ($1::BYTEA[])", []any{keys}})
		if err != nil {
			return err
		}
		stored := map[string]bool{} // by ID or hash; they differ in length
		for _, r := range results {
			for _, row := range r.Rows {
				stored[string(row[0])] = true
			}
		}
		rest = nil
		for _, e := range entries {
			id, h := string(e.Message.ID[:]), w.sealer.KeyHash(e.Message.Key)
			keyed := h != (seal.Hash{})
			if stored[id] || keyed && stored[string(h[:])] {
				continue
			}
			if stored[id] = true; keyed {
				stored[string(h[:])] = true
			}
			rest = append(rest, e)
		}
		return nil
	})
	return rest, err
}

// acceptAgain stores an entry of a failed transaction. The entry can be stored
// already, because the connection can be lost after a successful commit.
func (w *writer) acceptAgain(ctx context.Context, e *queue.Entry) error {
	return w.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		err := w.insertAlone(ctx, c, []*queue.Entry{e})
		if isDuplicate(err) {
			if err := c.rollback(); err != nil {
				return err
			}
			return w.duplicate(ctx, c, []*queue.Entry{e}, true)
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

// insertion returns the statement that stores messages and their jobs, and its change of the
// counts.
func (w *writer) insertion(entries []*queue.Entry) (insert call, all counts) {
	var m struct{ id, created, size, kept, jobs, waiting, dead, files, finished, key, head, body array }
	var j jobColumns
	sealer := w.sealer.Batch()
	for _, e := range entries {
		id, created := e.Message.ID, e.Message.Created.UnixMicro()
		m.id.uuid(id)
		m.created.bigint(created)
		hash := w.sealer.KeyHash(e.Message.Key)
		if hash != (seal.Hash{}) {
			m.key.bytes(bytes.Clone(hash[:]))
		} else {
			m.key.bytes(nil)
		}
		r := record.NewMessage(e, hash)
		m.head.bytes(sealer.Seal(r.Encode(), record.Heads, id[:]))
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
			j.add(w.sealer, sealer, queue.JobID{Message: id, Index: i}, created, job)
		}
		m.size.bigint(r.Size)
		m.jobs.bigint(int64(len(e.Jobs)))
		m.waiting.bigint(int64(waiting))
		m.dead.bigint(int64(dead))
		m.files.bigint(int64(len(e.Message.Files)))
		all.waiting += int64(waiting)
		all.dead += int64(dead)
		if waiting > 0 {
			all.bytes += r.Size
			m.kept.bigint(0)
			m.finished.null()
		} else {
			kept := queue.KeptSize(r.Size, len(e.Jobs), dead)
			all.kept += kept
			m.kept.bigint(kept)
			m.finished.bigint(created)
		}
		if waiting+dead > 0 {
			m.body.bytes(sealer.Seal(e.Message.Body, record.Bodies, id[:]))
		} else {
			m.body.bytes(nil)
		}
	}
	m.finished.oid = oidBigint // all can be NULL
	args := []any{m.id, m.created, m.size, m.kept, m.jobs, m.waiting, m.dead, m.files, m.finished, m.key, m.head, m.body}
	if len(j.index.items) == 0 {
		return call{insertMessages, args}, all
	}
	return call{insertEntries, append(args,
		j.message, j.index, j.shard, j.created, j.destination, j.host, j.client, j.text, j.status, j.due, j.notBefore, j.updated, j.record,
		w.owner, lease.Microseconds(), j.expires,
	)}, all
}

// jobColumns are the columns of jobs that are inserted.
type jobColumns struct {
	message, index, shard, created, destination, host, client, text, status, due, notBefore, updated, record, expires array
}

// add adds a job of a message that was created at a time.
func (j *jobColumns) add(s *record.Sealer, sealer *seal.Batch, id queue.JobID, created int64, job *queue.Job) {
	h, host := s.DestinationHash(job.Destination), s.DestinationHash(job.Host)
	j.message.uuid(id.Message)
	j.index.bigint(int64(id.Index))
	j.shard.bigint(shardOf(id.Message))
	j.created.bigint(created)
	j.destination.bytes(h[:])
	j.host.bytes(host[:])
	j.client.bigint(bit(job.Client))
	j.text.bigint(int64(job.Text))
	j.status.bigint(int64(job.Status))
	j.due.bigint(job.Due.UnixMicro())
	j.notBefore.bigint(micro(job.NotBefore))
	j.updated.bigint(job.Updated.UnixMicro())
	j.record.bytes(sealJob(sealer, id, job))
	j.expires.bigint(expiresOf(job))
}

const insertMessages = `INSERT INTO notify_queue_messages (id, created, size, kept, jobs, waiting, dead, files, finished, idempotency,
	head, body)
	SELECT * FROM unnest($1::UUID[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[],
		$8::BIGINT[], $9::BIGINT[], $10::BYTEA[], $11::BYTEA[], $12::BYTEA[])`

const insertEntries = `WITH m AS (` + insertMessages + ` RETURNING 1)
	INSERT INTO notify_queue_jobs (message, idx, shard, created, destination, host, client, text, status, due, not_before, updated, record,
		owner, lease, expires)
	SELECT j.message, j.idx, j.shard, j.created, j.destination, j.host, j.client, j.text, j.status, j.due, j.not_before, j.updated, j.record,
		CASE WHEN j.status = 2 THEN $26::UUID END, CASE WHEN j.status = 2 THEN ` + serverTime + ` + $27::BIGINT END, j.expires
	FROM unnest($13::UUID[], $14::BIGINT[], $15::BIGINT[], $16::BIGINT[], $17::BYTEA[], $18::BYTEA[], $19::BIGINT[], $20::BIGINT[],
		$21::BIGINT[],
		$22::BIGINT[], $23::BIGINT[], $24::BIGINT[], $25::BYTEA[], $28::BIGINT[])
		AS j (message, idx, shard, created, destination, host, client, text, status, due, not_before, updated, record, expires)`

// bit returns 1 if v is true, and else 0.
func bit(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// micro returns t in microseconds since 1970; the zero time is 0.
func micro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// lease is the duration of the claim on a job that the caller of Accept sends
// itself.
const lease = time.Minute

// settling is a job whose outcome is to be written.
type settling struct {
	*queue.Settlement
	size, files int64     // size of its message if it no longer waits; size of files that can be removed
	decided     *decision // what the transaction has changed; nil if another settlement has it

	// tokens identify the attempts to write the outcome. settle adds one for each.
	tokens []uuid.UUID
}

// settle records the outcomes of jobs in one transaction.
func (w *writer) settle(jobs []*settling) []error {
	// Earlier calls have tokens, too, if their commit may have succeeded without a
	// reply.
	earlier := slices.ContainsFunc(jobs, func(j *settling) bool { return len(j.tokens) > 0 })
	errs := make([]error, len(jobs))
	err := w.do(context.Background(), func(ctx context.Context, c *conn, repeated bool) error {
		settled := map[queue.JobID]bool{}
		note := func(rows [][][]byte) {
			for _, row := range rows {
				settled[queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}] = true
			}
		}
		var messages [][][]byte
		if repeated || earlier {
			var err error
			if messages, err = settledBefore(ctx, c, jobs, note); err != nil {
				return err
			}
		}
		left := slices.DeleteFunc(slices.Clone(jobs), func(j *settling) bool { return settled[j.Job.JobID] })
		failed := map[*settling]error{}
		if len(left) > 0 {
			rows, err := w.writeOutcomes(ctx, c, left, failed, note)
			if err != nil {
				return err
			}
			if w.loseReply != nil {
				if err := w.loseReply(); err != nil {
					return err
				}
			}
			messages = append(messages, rows...)
		}
		for _, row := range messages {
			for _, j := range jobs {
				if j.Job.Message == id(row[0]) {
					j.size, j.files = number(row[1]), number(row[2])
					break // once for each message
				}
			}
		}
		for i, j := range jobs {
			if errs[i] = failed[j]; errs[i] == nil && !settled[j.Job.JobID] {
				errs[i] = queue.ErrNotClaimed
			}
		}
		return nil
	})
	for i := range errs {
		switch {
		case err == nil:
		case isDuplicate(err) && len(jobs) > 1:
			errs[i] = w.settle(jobs[i : i+1])[0]
		default:
			errs[i] = err
		}
	}
	return errs
}

// settledBefore calls note with the jobs that an earlier call has settled, and
// returns their messages.
func settledBefore(ctx context.Context, c *conn, jobs []*settling, note func(rows [][][]byte)) (messages [][][]byte, err error) {
	var tokens, all array
	for _, j := range jobs {
		all.uuid(j.Job.Message)
		for _, t := range j.tokens {
			tokens.uuid(t)
		}
	}
	rows, err := c.query(ctx, "SELECT message, idx FROM notify_queue_jobs WHERE message = ANY ($2::UUID[]) AND owner = ANY ($1::UUID[])",
		tokens, all)
	if err != nil {
		return nil, err
	}
	note(rows)
	var ids array
	for _, row := range rows {
		ids.uuid(id(row[0]))
	}
	if len(rows) > 0 {
		if messages, err = c.query(ctx, settledMessages, ids); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// writeOutcomes updates jobs and their messages with a new token. It passes the rows of the jobs to
// note, and returns the rows of the messages. failed gets the errors of updates, whose jobs it leaves
// out. Without updates, all is one request.
func (w *writer) writeOutcomes(ctx context.Context, c *conn, jobs []*settling, failed map[*settling]error,
	note func([][][]byte),
) (messages [][][]byte, err error) {
	calls, d := []call{begin}, new(decision)
	if slices.ContainsFunc(jobs, (*settling).decides) {
		calls = nil // decide begins the transaction
		if jobs, d, err = w.decideOutcomes(ctx, c, jobs, failed); err != nil || len(jobs) == 0 {
			return nil, err
		}
	}
	token, changed := uuid.New(), d.counts
	var next []*queue.Entry
	for _, j := range jobs {
		if j.tokens = append(j.tokens, token); j.Next != nil {
			next = append(next, j.Next)
		}
	}
	if len(next) > 0 {
		var added counts
		if calls, added, err = w.insertEntries(ctx, c, next); err != nil {
			return nil, err
		}
		changed.add(added)
	}
	settled := len(calls)
	settle, health, finish := w.settlement(jobs, token, c.counter)
	calls = slices.Concat(calls, []call{settle}, health, d.calls, []call{finish}, changed.calls(c), []call{commit})
	results, err := c.exec(ctx, calls...)
	if err != nil {
		return nil, err
	}
	note(results[settled].Rows)
	return results[settled+1+len(health)+len(d.calls)].Rows, nil
}

// decides reports whether the outcome is stored in a transaction that decides, and needs the claim
// to be known before.
func (j *settling) decides() bool { return j.Update != nil || j.Next != nil }

// decideOutcomes decides the updates of jobs that are claimed, and returns these jobs. failed gets the
// errors of the others.
func (w *writer) decideOutcomes(ctx context.Context, c *conn, all []*settling, failed map[*settling]error) (
	jobs []*settling, d *decision, err error,
) {
	updates := make([]decided, len(all))
	for i, j := range all {
		updates[i] = decided{j.Update, []queue.JobID{j.Job.JobID}, j.Job.JobID}
	}
	d, errs, err := w.decide(ctx, c, updates...)
	if err != nil {
		return nil, nil, err
	}
	for i, j := range all {
		if failed[j] = errs[i]; errs[i] == nil {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return nil, nil, c.rollback()
	}
	jobs[0].decided = d
	return jobs, d, nil
}

// settlement returns the statements that update jobs, the states of their destinations,
// and their messages.
func (w *writer) settlement(jobs []*settling, token uuid.UUID, counter int) (settle call, health []call, finish call) {
	var message, index, status, due, notBefore, sealed, updated, expires array
	var states []jobHealth
	sealer := w.sealer.Batch()
	for _, j := range jobs {
		message.uuid(j.Job.Message)
		index.bigint(int64(j.Job.Index))
		status.bigint(int64(j.Job.Status))
		due.bigint(j.Job.Due.UnixMicro())
		notBefore.bigint(micro(j.Job.NotBefore))
		sealed.bytes(sealJob(sealer, j.Job.JobID, j.Job))
		updated.bigint(j.Job.Updated.UnixMicro())
		expires.bigint(expiresOf(j.Job))
		for i := range j.Health {
			states = append(states, jobHealth{&j.Health[i], j.Job.JobID})
		}
	}
	return call{settleJobs, []any{message, index, status, due, notBefore, updated, sealed, w.owner, token, expires}},
		w.settledHealth(states, token), call{finishMessages, []any{message, index, updated, token, counter}}
}

const settleJobs = `UPDATE notify_queue_jobs j SET status = k.status, due = k.due, not_before = k.not_before, updated = k.updated, record =
	k.record,
		expires = k.expires, owner = $9, lease = NULL
	FROM unnest($1::UUID[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BYTEA[], $10::BIGINT[])
		AS k (message, idx, status, due, not_before, updated, record, expires)
	WHERE j.message = k.message AND j.idx = k.idx AND j.status = 2 AND j.owner = $8
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
		RETURNING m.id, CASE WHEN m.finished IS NOT NULL THEN m.size ELSE 0 END AS ended, CASE WHEN m.body IS NULL THEN m.files ELSE 0 END AS
			files,
			k.n, k.dead, m.kept`

// finishMessages is settleMessages with the change of the counts.
const finishMessages = `WITH m AS (` + settleMessages + `),
	n AS (
		UPDATE notify_queue_counts c SET waiting = c.waiting - t.n, dead = c.dead + t.dead, bytes = c.bytes - t.ended, kept = c.kept + t.kept
		FROM (SELECT coalesce(sum(n), 0)::BIGINT AS n, coalesce(sum(dead), 0)::BIGINT AS dead, coalesce(sum(ended), 0)::BIGINT AS ended,
			coalesce(sum(kept), 0)::BIGINT AS kept FROM m) t
		WHERE c.shard = $5 RETURNING 1)
	SELECT id, ended, files FROM m`

// settledMessages returns the same columns as finishMessages, without an
// update.
const settledMessages = `SELECT m.id, CASE WHEN m.finished IS NOT NULL THEN m.size ELSE 0 END, CASE WHEN m.body IS NULL THEN m.files ELSE 0
	END
	FROM notify_queue_messages m WHERE m.id = ANY($1::UUID[])`

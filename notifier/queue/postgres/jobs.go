package postgres

import (
	"bytes"
	"cmp"
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

// maxBody is the maximum length of a message's body.
const maxBody = 32 << 20

// Accept implements [queue.Store].
func (s *Store) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if s.pool.resting() {
		return unavailable(errStalled)
	}
	if len(entries) == 0 {
		return s.checkWritable(ctx)
	}
	size, err := sizeOf(entries)
	if err != nil {
		return err
	}
	if size > 0 {
		if err := s.checkSize(ctx, size, maxSize); err != nil {
			return err
		}
	}
	decided, err := s.insert(ctx, entries)
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
		s.due.accepted(s, entries)
		signal(s.dirty)
	}
	for _, d := range decided {
		s.done(ctx, d)
	}
	return nil
}

// sizeOf returns the size of those of the entries that wait, or an error if one is too large.
func sizeOf(entries []*queue.Entry) (size int64, err error) {
	for _, e := range entries {
		if len(e.Jobs) > queue.MaxJobs {
			return 0, refusef("the message has %d deliveries; at most %d can be queued", len(e.Jobs), queue.MaxJobs)
		}
		if len(e.Message.Body) > maxBody {
			return 0, refusef("the message has %d bytes; at most %d can be queued", len(e.Message.Body), maxBody)
		}
		if e.Waits() {
			size += e.Size()
		}
	}
	return size, nil
}

// insert inserts the entries, and returns what was decided with them. A simple one is
// inserted together with those of other callers.
func (s *Store) insert(ctx context.Context, entries []*queue.Entry) (decided []*decision, err error) {
	if len(entries) == 1 && len(entries[0].Message.Files) == 0 && entries[0].Update == nil {
		if err = s.accepting.do(entries[0], false); isUnclear(err) && s.rest() {
			err = s.acceptAgain(context.WithoutCancel(ctx), entries[0])
		}
		return nil, err
	}
	again := false
	store := func(ctx context.Context, c *conn, repeated bool) error {
		var err error
		decided, err = s.insertOrdered(ctx, c, entries)
		if isDuplicate(err) {
			if err := c.rollback(); err != nil {
				return err
			}
			return s.duplicate(ctx, c, entries, repeated || again)
		}
		return err
	}
	if err = s.storing(ctx, store); isUnclear(err) && s.rest() {
		again = true
		err = s.do(context.WithoutCancel(ctx), store)
	}
	return decided, err
}

// insertOrdered stores entries, their files and their updates in a transaction.
func (s *Store) insertOrdered(ctx context.Context, c *conn, entries []*queue.Entry) (decided []*decision, err error) {
	var calls []call
	var n counts
	for _, e := range entries {
		if e.Update == nil {
			continue
		}
		d, err := s.decide(ctx, c, e.Update)
		if err != nil {
			return nil, err
		}
		decided, calls = append(decided, d), append(calls, d.calls...)
		n.add(d.counts)
	}
	if len(decided) == 0 {
		if _, err := c.exec(ctx, begin); err != nil {
			return nil, err
		}
	}
	return decided, s.insertLast(ctx, c, entries, calls, n)
}

// insertLast ends a transaction: it stores entries with their files, makes the calls, adds
// to the counts and commits. What needs no answer is one exchange with the server.
func (s *Store) insertLast(ctx context.Context, c *conn, entries []*queue.Entry, calls []call, n counts) error {
	var last []call
	for part := range slices.Chunk(entries, batchSize) {
		if len(last) > 0 {
			if _, err := c.exec(ctx, last...); err != nil {
				return err
			}
		}
		insert, added := s.insertion(part)
		last = []call{insert}
		n.add(added)
	}
	for _, e := range entries {
		if len(e.Message.Files) == 0 {
			continue
		}
		if _, err := c.exec(ctx, last...); err != nil {
			return err
		}
		last = nil
		if err := s.insertFiles(ctx, c, e.Message); err != nil {
			return err
		}
	}
	_, err := c.exec(ctx, slices.Concat(last, calls, n.calls(c), []call{commit})...)
	return err
}

// checkWritable returns an error if the tables cannot be written, for example
// because the server has become a standby. An empty transaction would succeed
// there.
func (s *Store) checkWritable(ctx context.Context) error {
	return s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, "UPDATE notify_queue_counts SET waiting = waiting WHERE shard = $1", c.counter)
		return err
	})
}

// isUnclear reports whether messages may be stored although err is returned.
func isUnclear(err error) bool {
	_, ok := errors.AsType[*unclearError](err)
	return ok
}

// rest waits until a server that does not answer may be asked again. It reports
// false if the store is closed meanwhile.
func (s *Store) rest() bool {
	select {
	case <-time.After(restTime):
		return true
	case <-s.stop:
		return false
	}
}

// hold records that this handle has claimed the jobs of an entry that are
// Sending.
func (s *Store) hold(e *queue.Entry) {
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Status == queue.Sending {
			s.claim(queue.JobID{Message: e.Message.ID, Index: i})
		}
	}
}

// claim records that this handle has claimed a job. The caller holds s.mu.
func (s *Store) claim(id queue.JobID) {
	// The job can be claimed already: a call queued it again, and another call
	// claimed it before the first one recorded that.
	s.unclaim(id, s.claimed[id])
	s.claimed[id] = &claim{}
}

// unclaim is the inverse of claim, unless the job has been claimed again since.
// The caller holds s.mu.
func (s *Store) unclaim(id queue.JobID, c *claim) {
	if c == nil || s.claimed[id] != c {
		return
	}
	delete(s.claimed, id)
	if m := s.messages[id.Message]; m != nil {
		if m.jobs--; m.jobs <= 0 {
			delete(s.messages, id.Message)
		}
	}
}

// checkSize returns [queue.ErrFull] if size more bytes would exceed maxSize.
func (s *Store) checkSize(ctx context.Context, size, maxSize int64) error {
	if err := s.refreshSize(ctx); err != nil {
		return err
	}
	if !s.fits(size, maxSize) {
		return queue.ErrFull
	}
	return nil
}

// fits reports whether size more bytes do not exceed maxSize, as far as this handle knows.
func (s *Store) fits(size, maxSize int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting+size <= maxSize
}

// refreshSize reads the counts if they are old.
func (s *Store) refreshSize(ctx context.Context) error {
	s.mu.Lock()
	never, old := s.counted.IsZero(), time.Since(s.counted) > countEvery
	s.mu.Unlock()
	// One caller reads the counts; the others use the last ones.
	if never {
		s.counting.Lock()
	}
	if never || old && s.counting.TryLock() {
		defer s.counting.Unlock()
		return s.count(ctx, never)
	}
	return nil
}

// count reads the counts, or if first is true, does so unless another caller has
// done so. The caller holds s.counting.
func (s *Store) count(ctx context.Context, first bool) error {
	s.mu.Lock()
	done := first && !s.counted.IsZero()
	s.mu.Unlock()
	if done {
		return nil
	}
	var bytes int64
	err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, "SELECT coalesce(sum(bytes + record_bytes), 0)::BIGINT FROM notify_queue_counts")
		if err == nil {
			bytes = number(rows[0][0])
		}
		return err
	})
	if err == nil {
		s.setWaiting(bytes)
	}
	return err
}

// setWaiting sets the size of the messages that wait and of the records.
func (s *Store) setWaiting(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.counted = bytes, time.Now()
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
// reports whether an earlier attempt may have stored the entries. Only what is stored for
// good counts, see [conn.confirm].
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
			if err := c.confirm(ctx); err != nil {
				return err
			}
			return &queue.DuplicateError{ID: first, SameRequest: bytes.Equal(m.Request, e.Message.Request)}
		}
	}
	if stored == len(entries) {
		return c.confirm(ctx)
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
	s.claiming.Lock()
	defer s.claiming.Unlock()
	s.gather(ctx)
	every := pollEvery
	if s.listening.Load() {
		every = listenedEvery
	}
	// If the chosen jobs were all claimed by others, there may be more.
	for range 4 {
		s.takeBack(ctx)
		chosen, empty := s.due.choose(c, c.Max, s.held)
		r := s.due.toRead(c, every)
		if len(chosen) == 0 && len(empty) == 0 && !r.jobs {
			break
		}
		began := time.Now()
		got, err := s.claimAndRead(ctx, c, chosen, empty, r)
		s.exchanged = time.Now()
		s.exchange = min(s.exchanged.Sub(began), time.Second)
		if err != nil {
			s.due.changed()
			return nil, c.Now.Add(pollEvery), err
		}
		for _, o := range chosen {
			if !slices.ContainsFunc(got, func(j queue.Job) bool { return j.JobID == o.Job }) {
				c.Slots.Release(o.Job)
			}
		}
		if len(got) > 0 {
			return s.endDamaged(ctx, got), c.Now, nil // more jobs may be due
		}
	}
	next = s.due.nextTime(c, every)
	if t := c.Now.Add(pollEvery); len(s.unclear.jobs) > 0 && t.Before(next) {
		next = t
	}
	return nil, next, nil
}

// gather waits a moment before a claim that follows another one, while other jobs
// wait: a tenth of the time that the last claim took. Deliveries that end at about
// the same time then share an exchange with the server, instead of the first of
// them having one of its own, for which the others wait.
func (s *Store) gather(ctx context.Context) {
	if s.exchange == 0 || time.Since(s.exchanged) > s.exchange || !s.due.waits() {
		return
	}
	select {
	case <-time.After(s.exchange / 10):
	case <-ctx.Done():
	case <-s.stop:
	}
}

// held reports whether this handle has claimed a job.
func (s *Store) held(id queue.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed[id] != nil
}

// claimAndRead claims jobs, and reads which others are due, in one exchange with
// the server.
func (s *Store) claimAndRead(ctx context.Context, c queue.Claim, chosen []candidate, empty [][]byte, r reading) (jobs []queue.Job, err error) {
	now := c.Now.UnixMicro()
	var calls []call
	add := func(sql string, args ...any) int {
		calls = append(calls, call{sql, args})
		return len(calls) - 1
	}
	claim, refill, due, turns, known, next, lanes, clock := -1, -1, -1, -1, -1, -1, -1, -1
	if len(chosen) > 0 {
		var message, index array
		turns := array{oid: oidBytea}
		for _, o := range chosen {
			message.uuid(o.Job.Message)
			index.bigint(int64(o.Job.Index))
			if o.turn {
				turns.bytes(slices.Clone(o.Destination[:]))
			}
		}
		claim = add(claimJobs, message, index, s.owner, c.Lease.Microseconds(), now, turns)
	}
	if r.jobs {
		if time.Since(s.recovered) >= recoverEvery {
			s.recovered = time.Now()
			add(recoverJobs)
			recoverTurns(c.Now, func(sql string, args ...any) { add(sql, args...) })
		}
		due = add(dueJobs, allShards(r.shard), now, perShard, dueAtOnce)
		turns = add(dueTurns, now, turnsAtOnce)
		next = add(nextDue, allShards(0), now)
		clock = add(readTime.sql)
	}
	if r.known {
		known = add(knownJobs, now, queue.PerDestination, maxLanes)
	}
	if r.destinations {
		lanes = add(dueDestinations, append([]byte{}, r.cursor...), now, maxLanes)
	}
	if len(empty) > 0 {
		var destinations array
		for _, d := range empty {
			destinations.bytes(d)
		}
		refill = add(firstJobs, destinations, now, refillJobs)
	}
	began := time.Now()
	err = s.do(ctx, func(ctx context.Context, conn *conn, _ bool) error {
		asked := s.clock.elapsed()
		results, err := conn.exec(ctx, calls...)
		if err = s.noteClaim(err, chosen, c.Lease); err != nil {
			return err
		}
		if clock >= 0 {
			s.clock.set(time.UnixMicro(number(results[clock].Rows[0][0])), asked, s.clock.elapsed())
		}
		if claim >= 0 {
			jobs = s.take(results[claim].Rows)
		}
		s.due.mu.Lock()
		defer s.due.mu.Unlock()
		if due >= 0 {
			s.due.replace(c, r, results[due].Rows, results[turns].Rows, number(results[next].Rows[0][0]))
		}
		if known >= 0 {
			s.due.addKnown(results[known].Rows)
		}
		if lanes >= 0 {
			s.due.addLanes(results[lanes].Rows, time.Since(began))
		}
		if refill >= 0 {
			s.due.refill(results[refill].Rows)
		}
		return nil
	})
	return jobs, err
}

// candidateColumns are the columns that candidateOf reads. j are the jobs.
const candidateColumns = "j.message, j.idx, j.destination, j.host, j.client, j.text, j.due"

func candidateOf(row [][]byte) candidate {
	return candidate{Candidate: queue.Candidate{
		Job: queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}, Destination: seal.Hash(row[2]), Host: seal.Hash(row[3]),
		Client: number(row[4]) != 0, Text: number(row[5]),
	}, due: number(row[6])}
}

// dueJobs returns the first jobs that are due of each shard. It ends when it has
// enough, so that gateways that begin with different shards claim different jobs.
const dueJobs = `SELECT ` + candidateColumns + `, j.shard FROM unnest($1::BIGINT[]) AS s (shard), LATERAL (
		SELECT * FROM notify_queue_jobs q WHERE q.shard = s.shard AND q.status = 1 AND q.due <= $2
		ORDER BY q.due LIMIT $3) j
	LIMIT $4`

// nextDue returns when the next job is due or the next destination has its turn, or 0.
const nextDue = `SELECT coalesce(min(t), 0) FROM (
		SELECT min(j.due) AS t FROM unnest($1::BIGINT[]) AS s (shard), LATERAL (
			SELECT q.due FROM notify_queue_jobs q WHERE q.shard = s.shard AND q.status = 1 AND q.due > $2
			ORDER BY q.due LIMIT 1) j
		UNION ALL SELECT min(until) FROM notify_queue_destinations WHERE parks = 1 AND until > $2) n`

// firstJobs returns the first jobs of each destination that are due.
const firstJobs = `SELECT ` + candidateColumns + ` FROM unnest($1::BYTEA[]) AS d (destination), LATERAL (
		SELECT * FROM notify_queue_jobs q WHERE q.parked = 0 AND q.destination = d.destination AND q.status = 1 AND q.due <= $2
		ORDER BY q.due LIMIT $3) j`

// dueDestinations returns the first job of each destination that is due. It skips
// from one destination to the next in the index, so that its cost does not depend
// on the number of jobs, and reads nothing that is parked.
const dueDestinations = `WITH RECURSIVE j (message, idx, destination, host, client, text, due) AS (
		(SELECT message, idx, destination, host, client, text, due FROM notify_queue_jobs WHERE status = 1 AND parked = 0 AND destination > $1
			ORDER BY destination, due LIMIT 1)
		UNION ALL
		SELECT n.message, n.idx, n.destination, n.host, n.client, n.text, n.due FROM j, LATERAL (
			SELECT q.message, q.idx, q.destination, q.host, q.client, q.text, q.due FROM notify_queue_jobs q
			WHERE q.status = 1 AND q.parked = 0 AND q.destination > j.destination
			ORDER BY q.destination, q.due LIMIT 1) n
	) SELECT ` + candidateColumns + ` FROM j WHERE j.due <= $2 LIMIT $3`

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

// claimJobs claims jobs, except those that another statement claims at the same
// time. A parked job is claimed if its destination has its turn, of which there is one: the
// next comes when the lease is over, unless the outcome changes it. A failed attempt of the
// destination counts as one of a parked job.
const claimJobs = `WITH t AS (
		UPDATE notify_queue_destinations SET until = $5 + $4::BIGINT WHERE hash IN (
			SELECT d.hash FROM notify_queue_destinations d WHERE d.hash = ANY ($6::BYTEA[]) AND d.parks = 1 AND d.until <= $5 FOR UPDATE SKIP LOCKED)
		RETURNING hash),
	c AS (
		SELECT q.message, q.idx, CASE WHEN q.parked = 1 AND q.destination IN (SELECT hash FROM t) THEN 1 ELSE 0 END AS turn,
			least(q.due, $5) AS due, greatest(q.updated, d.failed) AS updated
		FROM unnest($1::UUID[], $2::BIGINT[]) AS k (message, idx) JOIN notify_queue_jobs q ON q.message = k.message AND q.idx = k.idx
			LEFT JOIN notify_queue_destinations d ON d.hash = q.destination AND q.parked = 1
		WHERE q.status = 1 AND (q.due <= $5 OR q.parked = 1 AND q.destination IN (SELECT hash FROM t)) FOR UPDATE OF q SKIP LOCKED)
	UPDATE notify_queue_jobs j SET status = 2, owner = $3, lease = ` + serverTime + ` + $4::BIGINT, due = c.due, parked = 0
	FROM c, notify_queue_messages m WHERE j.message = c.message AND j.idx = c.idx AND m.id = c.message
	RETURNING j.message, j.idx, j.due, j.record, m.head, CASE WHEN length(m.body) <= 65536 AND m.files = 0 THEN m.body END, c.turn, c.updated`

// take records that this handle has claimed jobs, and opens their records. A
// job with a damaged record has the status Lost.
func (s *Store) take(rows [][][]byte) (jobs []queue.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		jid := queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}
		s.claim(jid)
		s.claimed[jid].turn = number(row[6]) != 0
		j, err := s.openJob(jid, int64(queue.Sending), row[3])
		if err != nil {
			_ = s.damaged(jobName(jid))
			j = &queue.Job{JobID: jid, Status: queue.Lost}
		}
		j.Due, j.Updated = time.UnixMicro(number(row[2])), time.UnixMicro(number(row[7])) // it may have been woken or parked
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

// recoverJobs queues jobs again whose lease has run out.
const recoverJobs = `UPDATE notify_queue_jobs SET status = 1, owner = NULL, lease = NULL WHERE status = 2 AND lease < ` + serverTime

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
	if s.due.waits() {
		signal(s.changed) // the slot of the job is free already
	}
	st := &settling{job: j, health: t.Health, tokens: c.tokens}
	var err error
	switch {
	case t.Shared != nil:
		err = s.fail(j, t.Shared, true, t.Deferrable)
	case t.Next == nil && t.Update == nil:
		err = s.settlings.do(st, t.Deferrable)
	default:
		err = s.settle(ctx, []*settling{st}, t)[0]
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
	if err == nil && j.Status == queue.Queued {
		s.due.mu.Lock()
		s.due.later(j.Due)
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
		s.due.accepted(s, []*queue.Entry{t.Next})
		signal(s.dirty)
	}
	return err
}

// turnEnded stores what the outcome of a job means for others that wait for its destination.
// turn reports whether it was claimed because the destination had its turn.
func (s *Store) turnEnded(ctx context.Context, t *queue.Settlement, turn bool) {
	switch {
	case t.Failure != nil:
		if err := s.fail(t.Job, t.Failure, false, t.Deferrable); err != nil && !errors.Is(err, queue.ErrClosed) {
			s.log.Warn("what waits for a destination that is down is tried one by one, because the queue's store failed", zap.Error(err))
		}
	case turn && !t.Job.Status.Waits():
		s.nextTurn(ctx, s.Hash(t.Job.Destination))
	}
}

// Cancel implements [queue.Store].
func (s *Store) Cancel(ctx context.Context, id uuid.UUID, now time.Time, statuses ...queue.Status) (int, error) {
	changed, err := s.change(ctx, id, now, statuses, func(j *queue.Job) { j.Status = queue.Cancelled })
	return len(changed), err
}

// Retry implements [queue.Store].
func (s *Store) Retry(ctx context.Context, id uuid.UUID, now, expires time.Time) (n queue.Retried, err error) {
	changed, err := s.change(ctx, id, now, []queue.Status{queue.Queued, queue.Dead}, func(j *queue.Job) { j.Hurry(now, expires) })
	for _, status := range changed {
		n.Count(status)
	}
	s.due.changed()
	signal(s.dirty)
	return n, err
}

// change applies f to the jobs of a message that have one of the statuses, in
// one transaction, and returns the statuses that they had.
func (s *Store) change(ctx context.Context, id uuid.UUID, now time.Time, statuses []queue.Status, f func(j *queue.Job)) (changed []queue.Status, err error) {
	var size, files int64
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		changed, size, files, err = s.changeJobs(ctx, c, id, now, statuses, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.waiting -= size
	s.mu.Unlock()
	if files > 0 {
		s.deleteFiles(ctx, id)
	}
	return changed, nil
}

// changeJobs does the work of change on a connection.
func (s *Store) changeJobs(ctx context.Context, c *conn, id uuid.UUID, now time.Time, statuses []queue.Status, f func(j *queue.Job)) (changed []queue.Status, size, files int64, err error) {
	var in array
	for _, st := range statuses {
		in.bigint(int64(st))
	}
	results, err := c.exec(ctx, begin,
		call{"SELECT idx, status, record FROM notify_queue_jobs WHERE message = $1 AND status = ANY ($2::BIGINT[]) ORDER BY idx FOR UPDATE", []any{id, in}},
		call{lockMessage, []any{id}})
	if err != nil {
		return nil, 0, 0, err
	}
	if len(results[2].Rows) == 0 {
		return nil, 0, 0, cmp.Or(c.rollback(), queue.ErrNotFound)
	}
	if len(results[1].Rows) == 0 {
		return nil, 0, 0, c.rollback()
	}
	calls, n, e, err := s.changeRows(id, results[1].Rows, results[2].Rows[0], func(j *queue.Job) {
		changed = append(changed, j.Status)
		j.Updated = now
		f(j)
	})
	if err != nil {
		return nil, 0, 0, err
	}
	if _, err := c.exec(ctx, slices.Concat(calls, n.calls(c), []call{commit})...); err != nil {
		return nil, 0, 0, err
	}
	return changed, e.size, e.files, nil
}

const (
	changeJob     = `UPDATE notify_queue_jobs SET status = $3, due = $4, not_before = $5, updated = $6, record = $7, expires = $8, parked = 0, owner = NULL, lease = NULL WHERE message = $1 AND idx = $2`
	changeMessage = `UPDATE notify_queue_messages SET waiting = $2, dead = $3, finished = $4, kept = $5,
		body = CASE WHEN $2::INT + $3::INT = 0 THEN NULL ELSE body END WHERE id = $1`
)

// Forget implements [queue.Store]. It does nothing while another gateway forgets.
func (s *Store) Forget(ctx context.Context, before time.Time, maxSize int64) (total int, err error) {
	lost := 0 // dead deliveries and idempotency keys that were forgotten early
	_, err = s.doWork(ctx, work{name: workFinished, step: func(ctx context.Context) (last bool, err error) {
		n, early, err := s.forgetSome(ctx, before, maxSize)
		total += n
		lost += early
		return n == 0, err
	}})
	if lost > 0 {
		s.log.Warn("messages with dead deliveries or idempotency keys were forgotten before their time, because they fill a quarter of max_size; raise max_size, or drop what is not needed",
			zap.Int("messages", lost))
	}
	return total, err
}

// forgetSome removes some of the messages that Forget removes, in one transaction. It
// returns how many, and how many of them only results should have gone before.
func (s *Store) forgetSome(ctx context.Context, before time.Time, maxSize int64) (total, early int, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		results, err := c.exec(ctx, call{"SELECT coalesce(sum(kept), 0)::BIGINT FROM notify_queue_counts", nil},
			call{oldest + onlyResults + oldestFirst, []any{forgetAtOnce}}, call{oldest + lasting + oldestFirst, []any{forgetAtOnce}})
		if err != nil {
			return err
		}
		var ids array
		ids, early = forgettable(results[1].Rows, results[2].Rows, before.UnixMicro(), number(results[0].Rows[0][0])-maxSize)
		if total = 0; len(ids.items) == 0 {
			return nil
		}
		// A message that is retried at the same time waits again, and is not
		// removed.
		results, err = c.exec(ctx, begin, call{forget, []any{ids}})
		if err != nil {
			return err
		}
		rows := results[1].Rows
		var n counts
		for _, row := range rows {
			n.add(counts{kept: -number(row[1]), dead: -number(row[2])})
		}
		total = len(rows)
		_, err = c.exec(ctx, append(n.calls(c), commit)...)
		return err
	})
	return total, early, err
}

// forgetAtOnce is the number of messages of each kind that one transaction
// removes.
const forgetAtOnce = 500

// forgettable returns which of the oldest messages to forget: those that finished
// before a time, then as many results as are over the limit, and then others.
// early is how many of the last there are.
func forgettable(results, others [][][]byte, before, over int64) (ids array, early int) {
	isOld := func(row [][]byte) bool { return number(row[1]) < before }
	for _, rows := range [][][][]byte{results, others} {
		for _, row := range rows {
			if isOld(row) {
				over -= number(row[2])
				ids.uuid(id(row[0]))
			}
		}
	}
	for i, rows := range [][][][]byte{results, others} {
		for _, row := range rows {
			if over > 0 && !isOld(row) {
				over -= number(row[2])
				ids.uuid(id(row[0]))
				early += i
			}
		}
		if len(rows) == forgetAtOnce {
			break // the next transaction sees more of them
		}
	}
	return ids, early
}

const (
	oldest      = "SELECT id, finished, kept FROM notify_queue_messages WHERE "
	oldestFirst = " ORDER BY finished LIMIT $1"

	forget = `WITH m AS (DELETE FROM notify_queue_messages WHERE id = ANY ($1::UUID[]) AND finished IS NOT NULL RETURNING id, kept, dead),
		j AS (DELETE FROM notify_queue_jobs WHERE message IN (SELECT id FROM m)),
		f AS (DELETE FROM notify_queue_files WHERE message IN (SELECT id FROM m))
	SELECT id, kept, dead FROM m`
)

// Stats implements [queue.Store]. The jobs that are being sent are few, so that
// they are counted.
func (s *Store) Stats(ctx context.Context) (st queue.Stats, err error) {
	err = s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		rows, err := c.query(ctx, `SELECT coalesce(sum(waiting), 0)::BIGINT, coalesce(sum(dead), 0)::BIGINT, coalesce(sum(bytes + record_bytes), 0)::BIGINT,
			(SELECT count(*) FROM notify_queue_jobs WHERE status = 2),
			coalesce((SELECT min(created) FROM notify_queue_messages WHERE finished IS NULL), 0),
			coalesce(sum(record_bytes), 0)::BIGINT FROM notify_queue_counts`)
		if err != nil {
			return err
		}
		row := rows[0]
		st = queue.Stats{Dead: int(number(row[1])), Bytes: number(row[2]), Sending: int(number(row[3])), Records: number(row[5])}
		st.Queued = int(number(row[0])) - st.Sending
		if t := number(row[4]); t != 0 {
			st.Oldest = time.UnixMicro(t)
		}
		return nil
	})
	if err == nil {
		s.setWaiting(st.Bytes)
	}
	return st, err
}

package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

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
		chosen, empty := s.due.choose(c, c.Max, s.claims.has)
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
		place := make(map[queue.JobID]int, len(chosen))
		for i, o := range chosen {
			place[o.Job] = i
		}
		slices.SortFunc(got, func(a, b queue.Job) int { return cmp.Compare(place[a.JobID], place[b.JobID]) })
		for _, j := range got {
			delete(place, j.JobID)
		}
		for id := range place {
			c.Slots.Release(id)
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

// claimAndRead claims jobs, and reads which others are due, in one exchange with
// the server.
func (s *Store) claimAndRead(ctx context.Context, c queue.Claim, chosen []candidate, empty [][]byte,
	r reading,
) (jobs []queue.Job, err error) {
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
	err = s.store(ctx, func(ctx context.Context, conn *conn, _ bool) error {
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
	isLost := func(j queue.Job) bool { return j.Status == queue.Lost }
	if slices.ContainsFunc(jobs, isLost) && s.isForeign(ctx) {
		return slices.DeleteFunc(jobs, isLost) // they are given up when watchVersion finds the same
	}
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

// claimJobs claims jobs, except those that another statement claims at the same time. A parked job
// is claimed if its destination has its turn. Each turn is for one job: the next comes when the
// lease is over, unless the outcome changes it. A failed attempt to the destination counts as an
// attempt of a parked job.
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
	for _, row := range rows {
		jid := queue.JobID{Message: id(row[0]), Index: int(number(row[1]))}
		s.claims.take(jid, number(row[6]) != 0, row[4], row[5])
		j, err := s.openJob(jid, int64(queue.Sending), row[3])
		if err != nil {
			_ = s.sealer.DamagedJob(jid)
			j = &queue.Job{JobID: jid, Status: queue.Lost}
		}
		j.Due, j.Updated = time.UnixMicro(number(row[2])), time.UnixMicro(number(row[7])) // it may have been woken or parked
		jobs = append(jobs, *j)
	}
	return jobs
}

// recoverJobs queues jobs again whose lease has run out.
const recoverJobs = `UPDATE notify_queue_jobs SET status = 1, owner = NULL, lease = NULL WHERE status = 2 AND lease < ` + serverTime

// Renew implements [queue.Store].
func (s *Store) Renew(ctx context.Context, lease time.Duration) error {
	claimed := s.claims.all()
	if len(claimed) == 0 {
		return nil
	}
	return s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, `UPDATE notify_queue_jobs j SET lease = `+serverTime+` + $4::BIGINT
			FROM unnest($1::UUID[], $2::BIGINT[]) AS k (message, idx)
			WHERE j.message = k.message AND j.idx = k.idx AND j.status = 2 AND j.owner = $3`, append(jobArrays(claimed), s.owner,
			lease.Microseconds())...)
		return err
	})
}

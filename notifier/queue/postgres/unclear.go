package postgres

import (
	"context"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// unclearClaims are claims whose reply was lost with the connection. The server may have
// made them, also some time later, so that their jobs would wait until the lease is over.
// [Store.Claim] uses it.
type unclearClaims struct {
	jobs  map[queue.JobID]time.Time // until when the claim can last
	asked time.Time                 // when they were last taken back
}

// add adds the jobs of a claim that failed.
func (u *unclearClaims) add(chosen []candidate, lease time.Duration) {
	if u.jobs == nil {
		u.jobs = map[queue.JobID]time.Time{}
	}
	for _, o := range chosen {
		u.jobs[o.Job] = time.Now().Add(lease)
	}
	u.asked = time.Time{}
}

// noteClaim notes that a claim of jobs had an error, and returns the error.
func (s *Store) noteClaim(err error, chosen []candidate, lease time.Duration) error {
	if err == nil && s.loseReply != nil {
		err = s.loseReply()
	}
	if err != nil && broken(err) {
		s.unclear.add(chosen, lease)
	}
	return err
}

// takeBack queues the jobs of unclear claims again. It does so once a second as long as a
// claim can last, because the server may still be making it.
func (s *Store) takeBack(ctx context.Context) {
	if len(s.unclear.jobs) == 0 || time.Since(s.unclear.asked) < pollEvery {
		return
	}
	var message, index array
	for id, until := range s.unclear.jobs {
		if s.claims.has(id) || time.Now().After(until) {
			delete(s.unclear.jobs, id)
			continue
		}
		message.uuid(id.Message)
		index.bigint(int64(id.Index))
	}
	if len(message.items) == 0 {
		return
	}
	var rows [][][]byte
	err := s.do(ctx, func(ctx context.Context, c *conn, _ bool) (err error) {
		rows, err = c.query(ctx, takeBack, message, index, s.owner)
		return err
	})
	if err != nil {
		return // the claim fails as well
	}
	s.unclear.asked = time.Now()
	if len(rows) > 0 {
		s.lookAgain()
	}
}

const takeBack = `UPDATE notify_queue_jobs j SET status = 1, owner = NULL, lease = NULL FROM unnest($1::UUID[], $2::BIGINT[]) AS k
	(message, idx)
	WHERE j.message = k.message AND j.idx = k.idx AND j.status = 2 AND j.owner = $3 RETURNING j.idx`

package postgres

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestClaimWithoutReply checks that a job is claimed again at once if the reply to its claim
// is lost, and by the next claim if the server cannot be reached at once. Once it waited
// until the lease was over.
func TestClaimWithoutReply(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection is lost")
	var replies atomic.Int32 // how many are lost
	var down atomic.Bool     // transactions fail after that
	s, err := openReady(t.Context(), Options{
		DSN: sharedServer(t).schema(t), Secret: secret, noListen: true,
		conflict: func() error {
			if replies.Load() <= 0 && down.Load() {
				return lost
			}
			return nil
		},
		loseReply: func() error {
			if replies.Add(-1) == 0 {
				return lost
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
			t.Fatal(err)
		}
	}
	replies.Store(1)
	first, _, err := s.Claim(t.Context(), claimOf(1))
	if err != nil || len(first) != 1 {
		t.Fatalf("claimed %d, %v; want the job whose claim was lost", len(first), err)
	}
	down.Store(true)
	replies.Store(1)
	_, _, err = s.Claim(t.Context(), claimOf(1))
	isUnavailable(t, "a claim", err)
	down.Store(false)
	second, _, err := s.Claim(t.Context(), claimOf(10))
	if err != nil || len(second) != 1 || second[0].JobID == first[0].JobID {
		t.Fatalf("claimed %v, %v; want the other job", second, err)
	}
	for _, j := range append(first, second...) {
		j.Status, j.Updated = queue.Delivered, time.Now()
		if err := s.Settle(t.Context(), &queue.Settlement{Job: &j}); err != nil {
			t.Error(err)
		}
	}
}

// TestLateClaim checks that a job is queued again if the server claims it only after the first look
// for it, and that a job which another gateway has claimed meanwhile is left alone.
func TestLateClaim(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s, other := open(t, dsn), open(t, dsn)
	late, taken := newEntry("text", "a"), newEntry("text", "b")
	if err := s.Accept(t.Context(), 1<<40, late, taken); err != nil {
		t.Fatal(err)
	}
	var chosen []candidate
	for _, e := range []*queue.Entry{late, taken} {
		chosen = append(chosen, candidate{Candidate: queue.Candidate{Job: queue.JobID{Message: e.Message.ID}}})
	}
	s.unclear.add(chosen, time.Minute)
	s.takeBack(t.Context())
	execute(t, dsn, "UPDATE notify_queue_jobs SET status = 2, lease = 1::BIGINT << 60, owner = '"+s.owner.String()+"' WHERE message = '"+
		late.Message.ID.String()+"'")
	execute(t, dsn, "UPDATE notify_queue_jobs SET status = 2, lease = 1::BIGINT << 60, owner = '"+other.owner.String()+"' WHERE message = '"+
		taken.Message.ID.String()+"'")
	s.unclear.asked = time.Time{} // a second later
	jobs, _, err := s.Claim(t.Context(), claimOf(10))
	if err != nil || len(jobs) != 1 || jobs[0].Message != late.Message.ID {
		t.Errorf("claimed %v, %v; want the job that was claimed late", jobs, err)
	}
}

package queuetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// sharedClaims checks that no job is claimed by two handles.
func (s *suite) sharedClaims() {
	const total = 400
	for range total / 4 {
		s.add("a", "b", "c", "d")
	}
	var mu sync.Mutex
	given := map[queue.JobID]bool{}
	var wg sync.WaitGroup
	for range 4 {
		h := s.handle()
		wg.Go(func() {
			for range 1000 {
				jobs, _, err := h.Claim(s.Context(), queue.Claim{Now: s.now, Max: 7, Lease: lease})
				if err != nil {
					s.Error(err)
					return
				}
				mu.Lock()
				for _, j := range jobs {
					if given[j.JobID] {
						s.Errorf("job %v is given out twice", j.JobID)
					}
					given[j.JobID] = true
				}
				done := len(given) == total
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(given) != total {
		s.Errorf("%d of %d are given out", len(given), total)
	}
	s.wantErr(s.Settle(s.Context(), &queue.Settlement{Job: &queue.Job{JobID: firstOf(given), Status: queue.Delivered}}), queue.ErrNotClaimed)
}

func firstOf(m map[queue.JobID]bool) queue.JobID {
	for id := range m {
		return id
	}
	return queue.JobID{}
}

// eventually repeats f until it returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); {
		if time.Now().After(end) {
			t.Fatal("timed out after a minute: " + what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sharedLease checks that the jobs of a handle that does not renew its lease go
// to another handle, and that the first can no longer settle them.
func (s *suite) sharedLease() {
	e := s.add("a")
	jobs, _, err := s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 1, Lease: time.Second})
	s.must(err)
	other := s.handle()
	var second []queue.Job
	eventually(s.T, "the lease runs out", func() bool {
		second, _, err = other.Claim(s.Context(), queue.Claim{Now: s.now, Max: 1, Lease: lease})
		s.must(err)
		return len(second) == 1
	})
	j := jobs[0]
	j.Status, j.Updated = queue.Delivered, s.now
	s.wantErr(s.Settle(s.Context(), &queue.Settlement{Job: &j}), queue.ErrNotClaimed)
	j = second[0]
	j.Status, j.Updated = queue.Delivered, s.now
	s.must(other.Settle(s.Context(), &queue.Settlement{Job: &j}))
	s.gone(e.Message.ID)
}

// sharedRenew checks that a renewed lease does not expire.
func (s *suite) sharedRenew() {
	s.add("a")
	const short = 2 * time.Second
	jobs, _, err := s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 1, Lease: short})
	s.must(err)
	other := s.handle()
	for start := time.Now(); time.Since(start) < 3*short; time.Sleep(short / 10) {
		s.must(s.Renew(s.Context(), time.Minute))
		stolen, _, err := other.Claim(s.Context(), queue.Claim{Now: s.now, Max: 1, Lease: lease})
		s.must(err)
		if len(stolen) > 0 {
			s.Fatal("the job was given to another handle")
		}
	}
	s.settle(jobs[0], queue.Delivered)
}

func (s *suite) sharedIdempotencyKey() {
	e := s.entry("a")
	e.Message.Key = "key"
	s.must(s.Accept(s.Context(), noLimit, e))
	again := s.entry("a")
	again.Message.Key = "key"
	duplicate, ok := errors.AsType[*queue.DuplicateError](s.handle().Accept(s.Context(), noLimit, again))
	if !ok || duplicate.ID != e.Message.ID {
		s.Errorf("%v", duplicate)
	}
}

// sharedHeld checks that another handle sends an accepted job unless the handle
// that accepted it does.
func (s *suite) sharedHeld() {
	other := s.handle()
	e := s.entry("a", "b")
	e.Jobs[0].Status = queue.Sending
	s.must(s.Accept(s.Context(), noLimit, e))
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	claim := queue.Claim{Now: s.now, Max: 10, Lease: lease}
	claimed := 0
	for claimed == 0 && ctx.Err() == nil {
		for _, h := range []queue.Store{s.Store, other} {
			jobs, _, err := h.Claim(ctx, claim)
			s.must(err)
			for _, j := range jobs {
				claimed++
				if j.Index != 1 {
					s.Errorf("claimed %v", j.JobID)
				}
			}
		}
	}
	s.must(s.Close())
	eventually(s.T, "a handle that is closed gives its claims back", func() bool {
		jobs, _, err := other.Claim(ctx, claim)
		s.must(err)
		for _, j := range jobs {
			if j.Index == 0 {
				return true
			}
		}
		return false
	})
}

package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// leased is a store whose renewals can fail and whose renewals and reads can take long, as
// if the process was paused.
type leased struct {
	queue.Store
	inLoad, inRenew atomic.Int64 // how long the next call takes
	refuses         atomic.Bool  // renewals fail
	loads           atomic.Int32
}

func (s *leased) Load(ctx context.Context, id uuid.UUID) (*queue.Message, func(), error) {
	s.loads.Add(1)
	m, release, err := s.Store.Load(ctx, id)
	time.Sleep(time.Duration(s.inLoad.Swap(0)))
	return m, release, err
}

func (s *leased) Renew(ctx context.Context, d time.Duration) error {
	time.Sleep(time.Duration(s.inRenew.Swap(0)))
	if s.refuses.Load() {
		return &queue.UnavailableError{Err: context.DeadlineExceeded}
	}
	return s.Store.Renew(ctx, d)
}

// TestLease checks how long a delivery may go on: as long as its lease is renewed, and not
// after it was over, even if it is renewed later, because another process may have claimed
// the job meanwhile. Once it went on.
func TestLease(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(s *leased)
		after time.Duration
		over  bool
	}{
		{"at first", func(*leased) {}, 0, false},
		{"renewed", func(*leased) {}, 10 * time.Minute, false},
		{"not renewed for a while", func(s *leased) { s.refuses.Store(true) }, 50 * time.Second, false},
		{"not renewed", func(s *leased) { s.refuses.Store(true) }, 81 * time.Second, true},
		{"renewed too late", func(s *leased) { s.inRenew.Store(int64(2 * time.Minute)) }, 10 * time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &leased{Store: open(t, t.TempDir())}
				lease := make(chan error, 1)
				q := start(t, s, queue.Options{Deliver: func(ctx context.Context, _ *queue.Message, _ *queue.Job) queue.Outcome {
					tt.spoil(s)
					time.Sleep(tt.after)
					lease <- queue.LeaseErr(ctx)
					return queue.Outcome{Status: queue.Delivered}
				}})
				accept(t, q, entry("text", "a"))
				if err := <-lease; (err != nil) != tt.over {
					t.Errorf("the lease has the error %v", err)
				}
				s.refuses.Store(false)
				time.Sleep(5 * time.Minute)
				if err := q.Lease().Err(); err != nil {
					t.Errorf("a new lease has the error %v", err)
				}
			})
		})
	}
}

// TestLateAttempt checks that an attempt is not made if the lease is over before it begins,
// and is made after the job was claimed again.
func TestLateAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leased{Store: open(t, t.TempDir())}
		s.refuses.Store(true)
		s.inLoad.Store(int64(75 * time.Second))
		var made atomic.Int32
		q := start(t, s, queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			made.Add(1)
			return queue.Outcome{Status: queue.Delivered}
		}})
		accept(t, q, entry("text", "a"))
		time.Sleep(76 * time.Second)
		synctest.Wait()
		if n, loads := made.Load(), s.loads.Load(); n != 1 || loads != 2 {
			t.Errorf("%d attempts were made, and the message was read %d times; want 1 after it was read again", n, loads)
		}
	})
}

package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestServerClock checks that a handle knows the time of a server whose clock differs from this
// machine's, and follows it when it changes.
func TestServerClock(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t) + ",pg_catalog"
	setAhead := func(d time.Duration) { setClock(t, dsn, d) }
	ahead := func(s *Store) time.Duration { return time.Until(s.Now()).Round(time.Minute) }
	setAhead(7 * time.Minute)
	s := open(t, dsn)
	if got := ahead(s); got != 7*time.Minute {
		t.Errorf("the server is %v ahead, want 7 minutes", got)
	}
	for _, want := range []time.Duration{-2 * time.Hour, 3 * time.Hour} {
		setAhead(want)
		for deadline := time.Now().Add(time.Minute); ahead(s) != want; {
			if time.Now().After(deadline) {
				t.Fatalf("the server is %v ahead, want %v", ahead(s), want)
			}
			s.due.changed()
			if _, _, err := s.Claim(t.Context(), queue.Claim{Now: s.Now(), Max: 1, Lease: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// setClock sets the clock of a server, as the handles with dsn see it, ahead of the clock of this
// machine.
func setClock(t *testing.T, dsn string, ahead time.Duration) {
	t.Helper()
	execute(t, dsn, fmt.Sprintf(`CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE plpgsql VOLATILE AS
		$$ BEGIN RETURN pg_catalog.clock_timestamp() + INTERVAL '%d seconds'; END $$`, int(ahead.Seconds())))
}

// TestServerClockJumps checks that jobs which wait for a destination are not dead after the first
// failed attempt that follows a jump of the server's clock by more than max_age, as after a
// fail-over to a server whose clock is ahead.
func TestServerClockJumps(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t) + ",pg_catalog"
	setClock(t, dsn, 0)
	var q *queue.Queue
	var after atomic.Int32 // attempts that began after the jump
	began := time.Now()
	q = queue.New(open(t, dsn), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
		if q.Now().Sub(began) > queue.DefaultMaxAge {
			after.Add(1)
		}
		return queue.Outcome{Status: queue.Queued, Reason: "it is down"}
	}})
	q.Start()
	t.Cleanup(func() { q.Close(context.WithoutCancel(t.Context())) })
	e := newEntry("text", "a")
	if err := q.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	jobWhen := func(done func(*queue.Job) bool) *queue.Job {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			got, err := q.Get(t.Context(), e.Message.ID)
			if err != nil {
				t.Fatal(err)
			}
			if j := &got.Jobs[0]; j.Status != queue.Sending && done(j) {
				return j
			}
			if time.Now().After(deadline) {
				t.Fatalf("%+v", got.Jobs[0])
			}
		}
	}
	jobWhen(func(j *queue.Job) bool { return j.Attempts == 1 })
	setClock(t, dsn, queue.DefaultMaxAge+time.Hour)
	if _, err := q.RetryDestinations(t.Context(), q.Hash("a")); err != nil {
		t.Fatal(err)
	}
	// The attempt may begin before the new time is known.
	if j := jobWhen(func(*queue.Job) bool { return after.Load() == 1 }); j.Status != queue.Queued {
		t.Errorf("%+v", j)
	}
}

// TestServerClockBounds checks that an exchange changes the known time only as far as it
// proves that it is wrong.
func TestServerClockBounds(t *testing.T) {
	c := serverClock{start: time.Now()}
	if now := c.now(); !now.IsZero() {
		t.Errorf("a clock that was not read shows %v", now)
	}
	base := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name         string
		at           time.Duration // of the server's answer, since base
		began, ended time.Duration
		want         time.Duration // of c.base after base
	}{
		{"the first", 10 * time.Second, 9 * time.Second, 11 * time.Second, 0},
		{"a slow one proves nothing", 20 * time.Second, 15 * time.Second, 25 * time.Second, 0},
		{"at least a second ahead", 31 * time.Second, 29 * time.Second, 30 * time.Second, time.Second},
		{"at most half a second ahead", 40 * time.Second, 39500 * time.Millisecond, 41 * time.Second, 500 * time.Millisecond},
		{"set back by an hour", -time.Hour, 50 * time.Second, 51 * time.Second, -time.Hour - 50*time.Second},
	} {
		c.set(base.Add(tt.at), tt.began, tt.ended)
		if got := c.base.Sub(base); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if d := c.now().Sub(c.base.Add(time.Since(c.start))); d > 0 || d < -time.Minute {
		t.Errorf("the clock is %v wrong", d)
	}
}

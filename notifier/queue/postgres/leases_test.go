package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// holdLease makes an unknown gateway hold the lease of some work for a time.
func holdLease(tb testing.TB, dsn, name string, d time.Duration) {
	tb.Helper()
	execute(tb, dsn, fmt.Sprintf(`INSERT INTO notify_queue_leases (name, owner, ends, done) VALUES ('%s', '%s', %s + %d, 0)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, ends = excluded.ends`, name, uuid.New(), serverTime, d.Microseconds()))
}

// TestWorkOfOne checks that only one gateway does work until its lease ends, and that a gateway
// without the lease does not go on.
func TestWorkOfOne(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	a, b := open(t, dsn), open(t, dsn)
	inStep, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan time.Time, 1)
	steps := 0
	go func() {
		defer close(inStep)
		done, err := a.doWork(t.Context(), work{name: "test", step: func(context.Context) (bool, error) {
			steps++
			inStep <- struct{}{}
			<-goOn
			return false, nil
		}})
		if err != nil {
			t.Error(err)
		}
		ended <- done
	}()
	// wait waits until a is in a step.
	wait := func() {
		t.Helper()
		if _, ok := <-inStep; !ok {
			t.Fatal("the work has ended")
		}
	}
	doB := func() bool {
		t.Helper()
		done, err := b.doWork(t.Context(), work{name: "test", step: func(context.Context) (bool, error) { return true, nil }})
		if err != nil {
			t.Fatal(err)
		}
		return !done.IsZero()
	}
	for range 2 { // a renews its lease after each step
		wait()
		if doB() {
			t.Error("two gateways do the same work")
		}
		goOn <- struct{}{}
	}
	wait()
	execute(t, dsn, "UPDATE notify_queue_leases SET ends = 1 WHERE name = 'test'") // as if a had hung for long
	if !doB() {
		t.Error("nobody takes over the work of a gateway whose lease has ended")
	}
	holdLease(t, dsn, "test", workLease)
	goOn <- struct{}{}
	if done := <-ended; !done.IsZero() || steps != 3 {
		t.Errorf("a gateway went on after it had lost its lease: %d steps, %v", steps, done)
	}
	if doB() {
		t.Error("a lease that has not ended is taken")
	}
	holdLease(t, dsn, "test", 2*workLease)
	if !doB() {
		t.Error("a lease that ends later than any could, because the clock was set back, is not taken")
	}
}

// TestWorkIsHandedOver checks that others need not wait for the lease of a gateway that
// was closed during its work, or whose work failed.
func TestWorkIsHandedOver(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	last := open(t, dsn)
	for _, tt := range []struct {
		name string
		end  func(s *Store) error // the end of the work
	}{
		{"closed", func(s *Store) error { s.Close(); return queue.ErrClosed }},
		{"failed", func(*Store) error { return errors.New("failed") }},
	} {
		s := open(t, dsn)
		if _, err := s.doWork(t.Context(), work{
			name: tt.name,
			step: func(context.Context) (bool, error) { return false, tt.end(s) },
		}); err == nil {
			t.Errorf("%s: no error", tt.name)
		}
		done, err := last.doWork(t.Context(), work{name: tt.name, step: func(context.Context) (bool, error) { return true, nil }})
		if err != nil || done.IsZero() {
			t.Errorf("%s: the work is not handed over: %v", tt.name, err)
		}
	}
}

// TestWorkOnce checks that gateways do not repeat what another one has begun and completed
// since the time that they need.
func TestWorkOnce(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	stores := []*Store{open(t, dsn), open(t, dsn), open(t, dsn)}
	since := time.Now().Add(-time.Second)
	var inside, did atomic.Int32
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			for done := (time.Time{}); done.IsZero(); {
				var err error
				done, err = s.doWork(t.Context(), work{name: "test", since: since, step: func(context.Context) (bool, error) {
					if inside.Add(1) > 1 {
						t.Error("two gateways do the same work")
					}
					did.Add(1)
					time.Sleep(10 * time.Millisecond)
					inside.Add(-1)
					return true, nil
				}})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := did.Load(); n != 1 {
		t.Errorf("the work was done %d times", n)
	}
	// One that was completed later than now was done before the clock was set back.
	execute(t, dsn, "UPDATE notify_queue_leases SET done = done + 3600000000 WHERE name = 'test'")
	_, err := stores[0].doWork(t.Context(),
		work{name: "test", since: since, step: func(context.Context) (bool, error) { did.Add(1); return true, nil }})
	if n := did.Load(); n != 2 || err != nil {
		t.Errorf("the work was done %d times, %v", n, err)
	}
}

// TestForgetOfOne checks that one gateway at a time forgets finished messages.
func TestForgetOfOne(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	e := newEntry("text", "a")
	e.Jobs[0].Status = queue.Delivered
	if err := s.Accept(t.Context(), 1<<40, e); err != nil {
		t.Fatal(err)
	}
	forget := func(want int) {
		t.Helper()
		if n, err := s.Forget(t.Context(), time.Now().Add(time.Hour), 1<<40); err != nil || n != want {
			t.Errorf("%d are forgotten, %v; want %d", n, err, want)
		}
	}
	holdLease(t, dsn, workFinished, workLease)
	forget(0)
	holdLease(t, dsn, workFinished, -time.Second)
	forget(1)
	forget(0)
}

// TestWaitingOfOne checks that a gateway uses what another one has counted, that it counts
// itself when that is old, and that old counts will do while another one counts.
func TestWaitingOfOne(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a"), newEntry("text", "a")); err != nil {
		t.Fatal(err)
	}
	keep := func(jobs int, took time.Duration) {
		t.Helper()
		n := count{took: took, all: map[queue.Hash]queue.Waiting{s.Hash("a"): {
			Destination: s.Hash("a"), Client: true, Jobs: jobs,
			Since: time.UnixMicro(1),
		}}}
		execute(t, dsn, fmt.Sprintf(`INSERT INTO notify_queue_leases (name, owner, ends, done, data) VALUES ('waiting', '%s', 0, %s - 1000,
			'\x%x')
			ON CONFLICT (name) DO UPDATE SET ends = 0, done = excluded.done, data = excluded.data`, uuid.New(), serverTime, n.encode()))
	}
	want := func(jobs int, client bool) {
		t.Helper()
		s.waitingCounts.end = time.Time{}
		all, err := s.Waiting(t.Context())
		if err != nil || len(all) != 1 || all[0].Jobs != jobs || all[0].Client != client || all[0].Destination != s.Hash("a") {
			t.Errorf("%+v, %v; want %d", all, err, jobs)
		}
	}
	keep(7, time.Hour)
	want(7, true)
	keep(8, 0)
	holdLease(t, dsn, workWaiting, workLease)
	want(8, true)
	holdLease(t, dsn, workWaiting, -time.Second)
	want(2, false)
	// Old counts will do while a count of this gateway takes long.
	keep(9, 0)
	c, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	run := func(sql string) {
		if _, err := c.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	run("BEGIN; LOCK TABLE notify_queue_messages")
	want(9, true)
	run("COMMIT")
	// Nobody has counted yet.
	execute(t, dsn, "UPDATE notify_queue_leases SET data = NULL WHERE name = 'waiting'")
	holdLease(t, dsn, workWaiting, 200*time.Millisecond)
	want(2, false)
}

// TestManyWaiting checks that waiting jobs are counted in steps, each message once, even if many
// messages have the same time.
func TestManyWaiting(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	const n = 2*walkAtOnce + 10
	fill(t, s, dsn, n, "down", time.Now().Add(time.Hour))
	execute(t, dsn, "UPDATE notify_queue_messages SET created = created / 1000 * 1000") // many at the same time
	all, err := s.Waiting(t.Context())
	if err != nil || len(all) != 1 || all[0].Jobs != n {
		t.Errorf("%+v, %v; want %d", all, err, n)
	}
}

// TestClockSetBackOfServer checks that jobs which were written when the clock of the server
// was ahead are due when it is set back, also if another gateway has looked for them not
// long before.
func TestClockSetBackOfServer(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t) + ",pg_catalog"
	setAhead := func(d time.Duration) {
		execute(t, dsn, fmt.Sprintf(`CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE plpgsql VOLATILE AS
			$$ BEGIN RETURN pg_catalog.clock_timestamp() + INTERVAL '%d seconds'; END $$`, int(d.Seconds())))
	}
	setAhead(time.Hour)
	s := open(t, dsn)
	if _, err := s.Stats(t.Context()); err != nil { // the tables are there
		t.Fatal(err)
	}
	looked := func() bool {
		return len(execute(t, dsn, "SELECT name FROM notify_queue_leases WHERE name = 'clock' AND done > 0")[0].Rows) > 0
	}
	for end := time.Now().Add(time.Minute); !looked() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	e := newEntry("text", "a")
	e.Jobs[0].Updated, e.Jobs[0].Due = s.Now(), s.Now().Add(time.Minute)
	if err := s.Accept(t.Context(), 1<<40, e); err != nil {
		t.Fatal(err)
	}
	setAhead(0)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s.due.changed()
		jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: s.Now(), Max: 1, Lease: time.Minute})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the job waits for the clock; %v", err)
		}
		if len(jobs) == 1 {
			break
		}
	}
}

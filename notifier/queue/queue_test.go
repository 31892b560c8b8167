package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

func open(t *testing.T, dir string) queue.Store {
	t.Helper()
	s, err := bolt.Open(bolt.Options{Path: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a queue that is closed when the test ends.
func start(t *testing.T, s queue.Store, o queue.Options) *queue.Queue {
	q := queue.New(s, o)
	q.Start()
	t.Cleanup(func() { q.Close(context.WithoutCancel(t.Context())) })
	return q
}

func entry(body string, destinations ...string) *queue.Entry {
	e := &queue.Entry{Message: &queue.Message{ID: queue.NewID(), Body: []byte(body)}}
	for _, d := range destinations {
		e.Jobs = append(e.Jobs, queue.Job{Status: queue.Queued, Destination: d})
	}
	return e
}

func accept(t *testing.T, q *queue.Queue, e *queue.Entry) *queue.Entry {
	t.Helper()
	if err := q.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

func get(t *testing.T, q *queue.Queue, id uuid.UUID) []queue.Job {
	t.Helper()
	e, err := q.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e.Jobs
}

func delivered(context.Context, *queue.Message, *queue.Job) queue.Outcome {
	return queue.Outcome{Status: queue.Delivered, Result: []byte("delivered")}
}

// deliveries counts how often each job was delivered.
type deliveries struct {
	mu sync.Mutex
	n  map[string]int
}

func (d *deliveries) deliver(_ context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == nil {
		d.n = map[string]int{}
	}
	d.n[string(m.Body)+" to "+j.Destination]++
	return queue.Outcome{Status: queue.Delivered}
}

func (d *deliveries) want(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range want {
		if d.n[w] != 1 {
			t.Errorf("%s: delivered %d times", w, d.n[w])
		}
	}
	if len(d.n) != len(want) {
		t.Errorf("delivered %v, want %v", slices.Sorted(maps.Keys(d.n)), want)
	}
}

func TestDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deliveries
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: d.deliver})
		e := accept(t, q, entry("text", "a", "b"))
		synctest.Wait() // a success makes due what waits
		later := entry("later", "a")
		later.Jobs[0].Due = time.Now().Add(time.Hour)
		accept(t, q, later)
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		d.want(t, "text to a", "text to b")
		for _, j := range get(t, q, e.Message.ID) {
			if j.Status != queue.Delivered || j.Attempts != 1 {
				t.Errorf("job %+v", j)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		d.want(t, "text to a", "text to b", "later to a")
	})
}

// TestRetries checks the times of attempts, the state that each passes to the
// next, and the end.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []time.Time
		var dead []queue.Job
		fallback := entry("fallback", "other")
		q := start(t, open(t, t.TempDir()), queue.Options{
			MaxAge: 5 * time.Hour,
			Deliver: func(_ context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
				if string(m.Body) == "fallback" {
					return queue.Outcome{Status: queue.Delivered}
				}
				if want := fmt.Sprint(len(attempts)); len(attempts) > 0 && string(j.State) != want || j.Attempts != len(attempts) {
					t.Errorf("attempt %d begins with the state %q and %d attempts", len(attempts)+1, j.State, j.Attempts)
				}
				attempts = append(attempts, time.Now())
				return queue.Outcome{Status: queue.Queued, State: []byte(fmt.Sprint(len(attempts))), Result: []byte("failed")}
			},
			Dead: func(j *queue.Job) *queue.Entry { return fallback },
			Settled: func(j *queue.Job) {
				if j.Status == queue.Dead {
					dead = append(dead, *j)
				}
			},
		})
		e := accept(t, q, entry("text", "a"))
		time.Sleep(6 * time.Hour)
		synctest.Wait() // the deliveries have ended, so that what they wrote can be read
		want := []time.Duration{
			0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
			time.Hour, time.Hour,
		}
		last := len(attempts) - 1
		for i := 1; i <= last; i++ {
			d, want := attempts[i].Sub(attempts[i-1]), want[min(i, len(want)-1)]
			if d > want*12/10+time.Second || d < want*8/10 && i < last {
				t.Errorf("attempt %d after %s, want %s ±20 %%", i+1, d, want)
			}
		}
		if last < 8 || last > 11 {
			t.Errorf("%d attempts", last+1)
		}
		if late := attempts[last].Sub(e.Jobs[0].Expires); late < 0 || late > time.Second {
			t.Errorf("the last attempt was made %s after the job expired", late)
		}
		if len(dead) != 1 || dead[0].Message != e.Message.ID || !strings.Contains(dead[0].Reason, "not delivered before") ||
			string(dead[0].Result) != "failed" {
			t.Fatalf("dead: %+v", dead)
		}
		if late := dead[0].Updated.Sub(dead[0].Expires); late < 0 || late > 10*time.Second {
			t.Errorf("dead %s after it expired", late)
		}
		if jobs := get(t, q, fallback.Message.ID); jobs[0].Status != queue.Delivered {
			t.Errorf("the fallback: %+v", jobs[0])
		}
		// The retried job starts again like a new one.
		attempts = nil
		if n, err := q.Retry(t.Context(), e.Message.ID); n != (queue.Retried{Dead: 1}) || err != nil {
			t.Errorf("%+v, %v", n, err)
		}
		synctest.Wait()
		attempts = slices.Clone(attempts)
		time.Sleep(time.Second)
		synctest.Wait()
		if jobs := get(t, q, e.Message.ID); len(attempts) != 1 || jobs[0].Status != queue.Queued || jobs[0].Attempts != 1 {
			t.Errorf("%d attempts, %+v", len(attempts), jobs[0])
		}
	})
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []time.Time
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			attempts = append(attempts, time.Now())
			if len(attempts) == 2 {
				return queue.Outcome{Status: queue.Delivered}
			}
			return queue.Outcome{Status: queue.Queued, RetryAfter: time.Hour}
		}})
		accept(t, q, entry("text", "a"))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(attempts) != 2 || attempts[1].Sub(attempts[0]) < time.Hour || attempts[1].Sub(attempts[0]) > time.Hour+time.Minute {
			t.Errorf("attempts at %v", attempts)
		}
	})
}

// A postponed delivery does not count as an attempt.
func TestPostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			if n++; n == 1 {
				return queue.Outcome{Postponed: true, RetryAfter: time.Second}
			}
			return queue.Outcome{Status: queue.Delivered}
		}})
		e := entry("text", "a")
		e.Jobs[0].State, e.Jobs[0].Result = []byte("state"), []byte("result")
		accept(t, q, e)
		time.Sleep(time.Second / 2)
		synctest.Wait()
		if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Queued || j.Attempts != 0 || string(j.State) != "state" ||
			string(j.Result) != "result" {
			t.Errorf("%+v", j)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Delivered || j.Attempts != 1 {
			t.Errorf("%+v", j)
		}
	})
}

func TestFailuresForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		q := start(t, open(t, t.TempDir()), queue.Options{
			Keep: 26 * time.Hour,
			Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
				attempts++
				return queue.Outcome{Status: queue.Dead, Reason: "no such user"}
			},
		})
		e := accept(t, q, entry("text", "a"))
		time.Sleep(time.Second)
		synctest.Wait()
		if jobs, err := q.List(t.Context(), queue.JobID{}, 10, queue.Dead); err != nil || len(jobs) != 1 || jobs[0].Reason != "no such user" {
			t.Errorf("dead: %+v, %v", jobs, err)
		}
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		if attempts != 1 {
			t.Errorf("%d attempts", attempts)
		}
		if n, err := q.Drop(t.Context(), e.Message.ID); n != 1 || err != nil {
			t.Errorf("%d dropped, %v", n, err)
		}
		// The time to keep results starts when the job ends.
		if jobs := get(t, q, e.Message.ID); jobs[0].Status != queue.Cancelled {
			t.Errorf("%+v", jobs)
		}
		time.Sleep(27 * time.Hour)
		synctest.Wait()
		if _, err := q.Get(t.Context(), e.Message.ID); !errors.Is(err, queue.ErrNotFound) {
			t.Error(err)
		}
	})
}

// TestSilentDestination checks that 2,000 jobs for a silent destination delay
// no other, and that at most four are sent to it at once.
func TestSilentDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent, most, others atomic.Int32
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(_ context.Context, _ *queue.Message, j *queue.Job) queue.Outcome {
			if j.Destination != "silent" {
				others.Add(1)
				return queue.Outcome{Status: queue.Delivered}
			}
			most.Store(max(most.Load(), silent.Add(1)))
			time.Sleep(30 * time.Second)
			silent.Add(-1)
			return queue.Outcome{Status: queue.Queued}
		}})
		accept(t, q, entry("text", slices.Repeat([]string{"silent"}, 2000)...))
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range 100 {
			accept(t, q, entry("text", fmt.Sprint("other ", i)))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := others.Load(); n != 100 {
			t.Errorf("%d of 100 have arrived", n)
		}
		if n := most.Load(); n != queue.PerDestination {
			t.Errorf("%d deliveries to one destination at once", n)
		}
	})
}

// TestClose checks that deliveries in progress finish, that the others remain
// for the next start, and that every message is delivered once.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var d deliveries
		slow := func(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
			time.Sleep(10 * time.Second)
			return d.deliver(ctx, m, j)
		}
		q := queue.New(open(t, dir), queue.Options{Deliver: slow})
		q.Start()
		for i := range 6 { // four of them at once
			accept(t, q, entry(fmt.Sprint(i), "a"))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		begin := time.Now()
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begin); waited != 9*time.Second {
			t.Errorf("closed after %s", waited)
		}
		if len(d.n) != 4 {
			t.Errorf("delivered before the end: %v", d.n)
		}
		if err := q.Accept(t.Context(), entry("late", "a")); !errors.Is(err, queue.ErrClosed) {
			t.Error(err)
		}
		q = queue.New(open(t, dir), queue.Options{Deliver: slow})
		q.Start()
		time.Sleep(time.Minute)
		synctest.Wait()
		d.want(t, "0 to a", "1 to a", "2 to a", "3 to a", "4 to a", "5 to a")

		// If ctx ends first, the error has the number of unfinished deliveries.
		accept(t, q, entry("6", "a"))
		time.Sleep(time.Second)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 deliveries") {
			t.Error(err)
		}
		time.Sleep(time.Minute) // the delivery ends
		synctest.Wait()
	})
}

// TestConfigure replaces the options 100 times under load and checks that every
// message is delivered once.
func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deliveries
		options := queue.Options{Deliver: func(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
			time.Sleep(time.Second)
			return d.deliver(ctx, m, j)
		}}
		q := start(t, open(t, t.TempDir()), options)
		var want []string
		for i := range 100 {
			accept(t, q, entry(fmt.Sprint(i), "a", "b"))
			want = append(want, fmt.Sprint(i, " to a"), fmt.Sprint(i, " to b"))
			old := options.Deliver
			options.Deliver = func(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome { return old(ctx, m, j) }
			q.Configure(options)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		d.want(t, want...)
	})
}

// TestHeld checks a job that the caller sends itself.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deliveries
		q := queue.New(open(t, t.TempDir()), queue.Options{Deliver: d.deliver})
		q.Start()
		e := entry("text", "a", "b", "c")
		e.Jobs[0].Status, e.Jobs[1].Status, e.Jobs[2].Status = queue.Sending, queue.Sending, queue.Delivered
		accept(t, q, e)
		time.Sleep(time.Hour)
		synctest.Wait()
		d.want(t)
		q.Settle(&e.Jobs[0], queue.Outcome{Status: queue.Delivered, Result: []byte("result")})
		if jobs := get(t, q, e.Message.ID); jobs[0].Status != queue.Delivered || string(jobs[0].Result) != "result" || jobs[0].Attempts != 1 {
			t.Errorf("%+v", jobs[0])
		}
		closed := make(chan error)
		go func() { closed <- q.Close(t.Context()) }()
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case err := <-closed:
			t.Error("the queue closes while a caller sends", err)
		default:
		}
		q.Settle(&e.Jobs[1], queue.Outcome{Status: queue.Queued})
		if err := <-closed; err != nil {
			t.Error(err)
		}
		d.want(t)
	})
}

// record records a message that failed, and returns its ID.
func record(q *queue.Queue, result string) uuid.UUID {
	id := queue.NewID()
	q.Record(id, time.Now(), []byte("summary"),
		[]queue.FinalJob{{Status: queue.Delivered}, {Status: queue.Failed, Attempts: 1, Result: []byte(result)}})
	return id
}

// wantRecorded checks that a message of record can be read.
func wantRecorded(t *testing.T, q *queue.Queue, id uuid.UUID, result string) {
	t.Helper()
	jobs := get(t, q, id)
	if len(jobs) != 2 || jobs[0].Status != queue.Delivered || jobs[1].Status != queue.Failed || jobs[1].Attempts != 1 ||
		string(jobs[1].Result) != result {
		t.Errorf("%+v", jobs)
	}
	retry := func(ctx context.Context, id uuid.UUID) (int, error) {
		r, err := q.Retry(ctx, id)
		return r.Dead + r.Queued, err
	}
	for _, change := range []func(context.Context, uuid.UUID) (int, error){q.Cancel, q.Drop, retry} {
		if n, err := change(t.Context(), id); n != 0 || err != nil {
			t.Errorf("%d jobs changed, %v", n, err)
		}
	}
}

func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		q := queue.New(open(t, dir), queue.Options{Deliver: delivered})
		q.Start()
		first := record(q, "first")
		wantRecorded(t, q, first, "first")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantRecorded(t, q, first, "first")
		last := record(q, "last")
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		q = start(t, open(t, dir), queue.Options{Deliver: delivered, Keep: time.Hour})
		wantRecorded(t, q, first, "first")
		wantRecorded(t, q, last, "last")
		if _, err := q.Get(t.Context(), queue.NewID()); !errors.Is(err, queue.ErrNotFound) {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if _, err := q.Get(t.Context(), last); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("after Keep: %v", err)
		}
	})
}

// TestDropDestination checks that dropping what waits for a destination leaves the
// other destinations of the same messages, what was given up unless asked for, and what
// the caller may not drop.
func TestDropDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(open(t, t.TempDir()), queue.Options{Deliver: delivered})
		t.Cleanup(func() { _ = q.Close(context.Background()) })
		add := func(incident string, statuses ...queue.Status) uuid.UUID {
			e := entry("text", "a", "b")
			for i, status := range statuses {
				e.Jobs[i].Status, e.Jobs[i].Due, e.Jobs[i].Incident = status, time.Now().Add(time.Hour), incident
			}
			return accept(t, q, e).Message.ID
		}
		plain, ordered, dead := add("", queue.Queued, queue.Queued), add("disk", queue.Queued, queue.Queued), add("", queue.Dead, queue.Queued)
		kept := add("", queue.Queued, queue.Queued)
		want := func(id uuid.UUID, statuses ...queue.Status) {
			t.Helper()
			for i, j := range get(t, q, id) {
				if j.Status != statuses[i] {
					t.Errorf("job %d is %s, want %s", i, j.Status, statuses[i])
				}
			}
		}
		for _, step := range []struct {
			dead bool
			n    int
			last queue.Status
		}{{false, 2, queue.Dead}, {false, 0, queue.Dead}, {true, 1, queue.Cancelled}} {
			if n, more, err := q.DropDestination(t.Context(), q.Hash("a"), step.dead,
				func(j *queue.Job) bool { return j.Message != kept }); n != step.n || more || err != nil {
				t.Errorf("dropped %d, more %t, %v, want %d", n, more, err, step.n)
			}
			want(plain, queue.Cancelled, queue.Queued)
			want(ordered, queue.Cancelled, queue.Queued)
			want(dead, step.last, queue.Queued)
			want(kept, queue.Queued, queue.Queued)
		}
	})
}

// TestMessages lists stored messages and recorded results together, the latest first,
// before and after they are stored.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		q := queue.New(open(t, dir), queue.Options{Deliver: delivered, MaxAge: time.Hour})
		q.Start()
		var want []uuid.UUID
		for i := range 60 {
			if i%4 == 0 {
				e := entry("text", "a")
				e.Jobs[0].Status, e.Jobs[0].Result = queue.Failed, []byte("result")
				if err := q.Accept(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				want = append(want, e.Message.ID)
			} else {
				want = append(want, record(q, "result"))
			}
			time.Sleep(2 * time.Millisecond)
			if i%13 == 0 {
				time.Sleep(2 * time.Second)
			}
		}
		slices.Reverse(want)
		check := func() {
			t.Helper()
			for _, n := range []int{1, 10, 100} {
				var got []uuid.UUID
				before, pages := uuid.UUID{}, 0
				for {
					page, next, err := q.Messages(t.Context(), before, n)
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range page {
						got = append(got, e.Message.ID)
						if queue.IsBatch(e.Message.ID) || string(e.Jobs[len(e.Jobs)-1].Result) != "result" {
							t.Errorf("%+v", e)
						}
					}
					if before, pages = next, pages+1; next == (uuid.UUID{}) || pages > len(want) {
						break
					}
				}
				if n == 100 && !slices.Equal(got, want) || len(got) != len(want) {
					t.Errorf("pages of %d have %d messages, want %d in the order of their time", n, len(got), len(want))
				}
			}
		}
		check() // some results are not stored yet
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		q = start(t, open(t, dir), queue.Options{Deliver: delivered, MaxAge: time.Hour})
		check()
	})
}

// TestRecordMany records messages that end in a different order than they came
// in, up to a minute later. They fill many batches. It reads all results, or one
// in five if CI is not set.
func TestRecordMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		q := queue.New(open(t, dir), queue.Options{Deliver: delivered})
		q.Start()
		results := map[uuid.UUID]string{}
		var ids []uuid.UUID
		end := func(id uuid.UUID) {
			results[id] = strings.Repeat("x", len(results)%300)
			ids = append(ids, id)
			q.Record(id, time.Now(), []byte("summary"),
				[]queue.FinalJob{{Status: queue.Delivered}, {Status: queue.Failed, Attempts: 1, Result: []byte(results[id])}})
		}
		var late []uuid.UUID
		for i := range 1000 {
			if i%10 == 0 {
				time.Sleep(200 * time.Millisecond)
			}
			if id := queue.NewID(); i%3 == 0 {
				late = append(late, id)
			} else {
				end(id)
			}
			if i%7 == 0 && len(late) > 0 {
				n := i % len(late)
				end(late[n])
				late = slices.Delete(late, n, n+1)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range late {
			end(id)
		}
		check := func() {
			t.Helper()
			for i := 0; i < len(ids); i += racetest.Amount(1, 5) {
				wantRecorded(t, q, ids[i], results[ids[i]])
			}
		}
		check()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		q = start(t, open(t, dir), queue.Options{Deliver: delivered})
		check()
	})
}

// Results wait while the store fails, and are bounded.
func TestRecordWhileStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &failing{Store: open(t, t.TempDir())}
		core, logs := observer.New(zap.WarnLevel)
		q := start(t, s, queue.Options{Deliver: delivered, Logger: zap.New(core)})
		s.fails.Store(true)
		var ids []uuid.UUID
		for range 10 {
			ids = append(ids, record(q, "result"))
			time.Sleep(time.Second)
		}
		long := strings.Repeat("x", 1<<20)
		for range 5 {
			ids = append(ids, record(q, long))
		}
		for i, id := range ids {
			if _, err := q.Get(t.Context(), id); (err == nil) != (i < 14) {
				t.Errorf("result %d: %v", i, err)
			}
		}
		s.fails.Store(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantRecorded(t, q, ids[0], "result")
		wantRecorded(t, q, ids[13], long)
		if n := logs.FilterField(zap.Int("messages", 1)).Len(); n != 1 {
			t.Errorf("%d lines about lost results", n)
		}
	})
}

func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			if attempts++; attempts == 1 {
				panic("first attempt")
			}
			return queue.Outcome{Status: queue.Delivered}
		}})
		e := accept(t, q, entry("text", "a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if jobs := get(t, q, e.Message.ID); attempts != 2 || jobs[0].Status != queue.Delivered || jobs[0].Attempts != 2 {
			t.Errorf("%d attempts, %+v", attempts, jobs[0])
		}
	})
}

// failing is a store in which some methods fail.
type failing struct {
	queue.Store
	fails   atomic.Bool
	damaged atomic.Bool
}

func (f *failing) err() error {
	if f.fails.Load() {
		return &queue.UnavailableError{Err: errors.New("the disk is full")}
	}
	return nil
}

func (f *failing) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Accept(ctx, maxSize, entries...)
}

func (f *failing) Settle(ctx context.Context, s *queue.Settlement) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Settle(ctx, s)
}

func (f *failing) Claim(ctx context.Context, c queue.Claim) ([]queue.Job, time.Time, error) {
	if err := f.err(); err != nil {
		return nil, time.Time{}, err
	}
	return f.Store.Claim(ctx, c)
}

func (f *failing) Load(ctx context.Context, id uuid.UUID) (*queue.Message, func(), error) {
	if f.damaged.Load() {
		return nil, nil, &queue.DamagedError{What: "the text"}
	}
	return f.Store.Load(ctx, id)
}

// TestStoreFails checks that a delivery made while the store fails is recorded
// when the store works again, and is not repeated.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &failing{Store: open(t, t.TempDir())}
		attempts := 0
		q := start(t, s, queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			attempts++
			s.fails.Store(true)
			return queue.Outcome{Status: queue.Delivered}
		}})
		e := accept(t, q, entry("text", "a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if jobs := get(t, q, e.Message.ID); jobs[0].Status != queue.Sending {
			t.Errorf("%+v", jobs[0])
		}
		s.fails.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if jobs := get(t, q, e.Message.ID); attempts != 1 || jobs[0].Status != queue.Delivered {
			t.Errorf("%d attempts, %+v", attempts, jobs[0])
		}
	})
}

func TestDamagedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &failing{Store: open(t, t.TempDir())}
		s.damaged.Store(true)
		q := start(t, s, queue.Options{Deliver: delivered})
		e := accept(t, q, entry("text", "a"))
		time.Sleep(time.Second)
		synctest.Wait()
		if jobs := get(t, q, e.Message.ID); jobs[0].Status != queue.Dead || !strings.Contains(jobs[0].Reason, "damaged") {
			t.Errorf("%+v", jobs[0])
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deliveries
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
			time.Sleep(10 * time.Second)
			return d.deliver(ctx, m, j)
		}})
		e := entry("text", "a", "b")
		e.Jobs[1].Due = time.Now().Add(time.Hour)
		accept(t, q, e)
		time.Sleep(time.Second)
		synctest.Wait()
		if n, err := q.Cancel(t.Context(), e.Message.ID); n != 1 || err != nil {
			t.Errorf("%d cancelled, %v", n, err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		d.want(t, "text to a")
		if _, err := q.Cancel(t.Context(), queue.NewID()); !errors.Is(err, queue.ErrNotFound) {
			t.Error(err)
		}
	})
}

// Messages of untrusted clients may fill half of the queue.
func TestUntrusted(t *testing.T) {
	hold := make(chan struct{})
	q := start(t, open(t, t.TempDir()), queue.Options{
		MaxSize: 10_000,
		Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			<-hold
			return queue.Outcome{Status: queue.Delivered}
		},
	})
	defer close(hold)
	e := entry(strings.Repeat("x", 5000), "a")
	e.Untrusted = true
	if err := q.Accept(t.Context(), e); !errors.Is(err, queue.ErrFull) {
		t.Errorf("error %v", err)
	}
	e.Untrusted = false
	accept(t, q, e)
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := start(t, open(t, t.TempDir()), queue.Options{
			MaxSize: 5000,
			Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
				return queue.Outcome{Status: queue.Queued}
			},
		})
		accepted := 0
		for accepted < 100 {
			err := q.Accept(t.Context(), entry("text", "a"))
			if errors.Is(err, queue.ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			accepted++
		}
		if accepted == 0 || accepted == 100 {
			t.Errorf("%d accepted", accepted)
		}
		time.Sleep(48 * time.Hour) // all jobs are dead
		synctest.Wait()
		accept(t, q, entry("text", "a"))
	})
}

func TestGoroutinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(open(t, t.TempDir()), queue.Options{Deliver: delivered})
		q.Start()
		accept(t, q, entry("text", "a"))
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := q.Close(t.Context()); !errors.Is(err, queue.ErrClosed) {
			t.Error(err)
		}
		// The bubble waits for all goroutines.
	})
}

// TestStart checks that a stored message is not delivered before Start, so that
// Deliver can use the queue. Once, a restart made the first deliveries while the
// caller of New did not have the queue yet.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		if err := s.Accept(t.Context(), 1<<30, entry("text", "a")); err != nil {
			t.Fatal(err)
		}
		started := false
		made := make(chan bool, 1)
		q := queue.New(s, queue.Options{Deliver: func(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
			made <- started
			return delivered(ctx, m, j)
		}})
		time.Sleep(time.Minute)
		synctest.Wait()
		started = true
		q.Start()
		if !<-made {
			t.Error("a delivery was made before Start")
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

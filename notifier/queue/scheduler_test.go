package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// clock is a clock that can be set, and a machine that can be paused.
type clock struct {
	start  time.Time
	ahead  atomic.Int64 // of the time of day
	paused atomic.Int64 // how long the process has been stopped
}

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) now() time.Time {
	return time.Now().Add(time.Duration(c.ahead.Load() + c.paused.Load()))
}

func (c *clock) runs() time.Duration { return time.Since(c.start) + time.Duration(c.paused.Load()) }

// startWith starts a queue with the clock. It closes the queue when the test ends.
func (c *clock) startWith(t *testing.T, s queue.Store, o queue.Options) *queue.Queue {
	q := queue.New(s, o)
	q.SetClock(c.now, c.runs)
	q.Start()
	t.Cleanup(func() { q.Close(context.WithoutCancel(t.Context())) })
	return q
}

// hosts returns a message with a job for each of n destinations at a host.
func hosts(n int, name, host string, client bool) *queue.Entry {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint(name, " ", i))
	}
	e := entry(name, names...)
	for i := range e.Jobs {
		e.Jobs[i].Host, e.Jobs[i].Client = host, client
	}
	return e
}

// TestKnownDestination checks the promise that 2,000 destinations that hang, some of clients and
// some at the same host, do not delay a delivery to one whose last attempt succeeded, also after a
// restart.
func TestKnownDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var mu sync.Mutex
		begun := map[string][]time.Time{}
		o := queue.Options{Deliver: func(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
			mu.Lock()
			begun[j.Destination] = append(begun[j.Destination], time.Now())
			mu.Unlock()
			if string(m.Body) == "good" {
				return queue.Outcome{Status: queue.Delivered}
			}
			time.Sleep(time.Minute)
			return queue.Outcome{Status: queue.Queued}
		}}
		q := queue.New(open(t, dir), o)
		q.Start()
		good := hosts(1, "good", "push.example.org", false)
		accept(t, q, good)
		direct := queue.Attempt{Destination: "direct", Host: "push.example.org", Status: queue.Delivered}
		q.Destinations.Observe(direct)
		time.Sleep(time.Minute)
		synctest.Wait()
		for range 2 {
			accept(t, q, hosts(1000, "hangs", "push.example.org", false))
			accept(t, q, hosts(500, "hangs of a client", "other.example.org", true))
			for i := range 500 {
				accept(t, q, hosts(1, fmt.Sprint("hangs elsewhere ", i), fmt.Sprint("host ", i), false))
			}
			time.Sleep(time.Second)
			for i := range 10 {
				at := time.Now()
				accept(t, q, hosts(1, "good", "push.example.org", false))
				e := entry("good", "direct")
				e.Jobs[0].Host = "push.example.org"
				accept(t, q, e)
				time.Sleep(time.Second)
				mu.Lock()
				for _, d := range []string{"good 0", "direct"} {
					if all := begun[d]; len(all) == 0 || all[len(all)-1].Before(at) {
						t.Errorf("message %d to %s has not been sent", i, d)
					}
				}
				mu.Unlock()
			}
			if err := q.Close(t.Context()); err != nil {
				t.Error(err)
			}
			q = queue.New(open(t, dir), o)
			q.Start()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := q.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestFirstMessage checks the promise that the first message to a destination begins within a
// second, however many others hang, and that one that answers slowly gets it once.
func TestFirstMessage(t *testing.T) {
	for _, n := range []int{64, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				begun := map[string][]time.Time{}
				q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(_ context.Context, _ *queue.Message, j *queue.Job) queue.Outcome {
					mu.Lock()
					begun[j.Destination] = append(begun[j.Destination], time.Now())
					mu.Unlock()
					if strings.HasPrefix(j.Destination, "hangs") {
						time.Sleep(30 * time.Second)
						return queue.Outcome{Status: queue.Queued, Reason: "timeout"}
					}
					time.Sleep(8 * time.Second)
					return queue.Outcome{Status: queue.Delivered}
				}})
				for i := range n {
					for range 4 {
						accept(t, q, hosts(1, fmt.Sprint("hangs ", i), fmt.Sprint("host ", i), false))
					}
				}
				accept(t, q, hosts(2000, "hangs of a client", "other.example.org", true))
				at := map[string]time.Time{}
				for i, pause := range []time.Duration{0, time.Second, 3 * time.Second, 30 * time.Second, 5 * time.Minute, time.Hour} {
					time.Sleep(pause)
					e := hosts(1, fmt.Sprint("new ", i), "push.example.org", false)
					at[e.Jobs[0].Destination] = time.Now()
					accept(t, q, e)
				}
				time.Sleep(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				for d, at := range at {
					if all := begun[d]; len(all) != 1 || all[0].Sub(at) >= time.Second {
						t.Errorf("the message to %s at %s was sent at %s", d, at, all)
					}
				}
			})
		})
	}
}

// elsewhere returns n messages to destinations at different hosts.
func elsewhere(n int, client bool) (all []*queue.Entry) {
	for i := range n {
		all = append(all, hosts(1, fmt.Sprint("elsewhere ", i), fmt.Sprint("host ", i), client))
	}
	return all
}

// TestSharedSlots checks the limits of deliveries that run at once, to destinations that have
// failed.
func TestSharedSlots(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []*queue.Entry
		want    int
	}{
		{"all", []*queue.Entry{hosts(300, "a", "", false)}, 16}, // no host is a host, too
		{"one host", []*queue.Entry{hosts(300, "a", "h:443", false), hosts(3, "b", "i:443", false)}, 16 + 3},
		{"many hosts", elsewhere(300, false), 256},
		{"many hosts of clients", elsewhere(300, true), 128},
		{"a destination", []*queue.Entry{
			hosts(1, "a", "h", false), hosts(1, "a", "h", false), hosts(1, "a", "h", false),
			hosts(1, "a", "h", false), hosts(1, "a", "h", false),
		}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int32
				q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(time.Minute)
					running.Add(-1)
					return queue.Outcome{Status: queue.Delivered}
				}})
				failed := map[string]bool{}
				for _, e := range tt.entries {
					for _, j := range e.Jobs {
						if !failed[j.Destination] {
							failed[j.Destination] = true
							q.Destinations.Observe(queue.Attempt{Destination: j.Destination, Client: j.Client, Status: queue.Queued})
						}
					}
				}
				for _, e := range tt.entries {
					accept(t, q, e)
				}
				time.Sleep(30 * time.Second)
				if n := running.Load(); int(n) != tt.want {
					t.Errorf("%d deliveries run, want %d", n, tt.want)
				}
				time.Sleep(3 * time.Hour)
				if s, err := q.Stats(t.Context()); err != nil || s.Queued+s.Sending > 0 {
					t.Errorf("%+v, %v", s, err)
				}
			})
		})
	}
}

// destination is a destination that can be down.
type destination struct {
	mu         sync.Mutex
	down       bool
	retryAfter time.Duration
	attempts   []time.Time
	bodies     []string // that have arrived
}

func (d *destination) deliver(_ context.Context, m *queue.Message, _ *queue.Job) queue.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts = append(d.attempts, time.Now())
	if d.down {
		return queue.Outcome{Status: queue.Queued, Reason: "connection refused", RetryAfter: d.retryAfter}
	}
	d.bodies = append(d.bodies, string(m.Body))
	return queue.Outcome{Status: queue.Delivered}
}

func (d *destination) set(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func (d *destination) arrived() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.bodies)
}

func (d *destination) tried() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.attempts)
}

// TestWake checks that a success brings what waits, and that a destination that
// goes down and comes back is reported once. Five messages waited for 24 minutes
// after a server was back.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &destination{down: true}
		var mu sync.Mutex
		var down, up []queue.Health
		note := func(to *[]queue.Health) func(queue.Health) {
			return func(h queue.Health) {
				mu.Lock()
				defer mu.Unlock()
				*to = append(*to, h)
			}
		}
		deliver := func(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
			out := d.deliver(ctx, m, j)
			if out.Status == queue.Delivered {
				time.Sleep(time.Millisecond) // so that Up is called while others wait
			}
			return out
		}
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: deliver, Down: note(&down), Up: note(&up)})
		begin := time.Now()
		for i := range 40 {
			e := entry(fmt.Sprint(i), "a")
			e.Jobs[0].Host = "a:443"
			accept(t, q, e)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		state := func() queue.Health {
			t.Helper()
			all, err := q.Destinations.All(t.Context())
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			one, err := q.Destinations.Of(t.Context(), q.Hash("a"))
			if err != nil || len(one) != 1 || one[0] != all[0] {
				t.Fatalf("%+v, %v", one, err)
			}
			return one[0]
		}
		if h := state(); h.Host != "a:443" || h.Known || !h.DownSince.Equal(begin) || h.Failures < 3 || h.LastError != "connection refused" ||
			h.Waiting != 40 || h.WaitingSince.Sub(begin).Abs() > time.Second {
			t.Errorf("down: %+v", h)
		}
		d.set(false)
		q.Destinations.Observe(queue.Attempt{Destination: "a", Host: "a:443", Status: queue.Delivered}) // of a new message, sent at once
		time.Sleep(time.Second)
		synctest.Wait()
		if n := d.arrived(); n != 40 {
			t.Errorf("%d of 40 have arrived", n)
		}
		if h := state(); !h.Known || h.Down() || h.Failures != 0 || h.LastError != "" || h.Waiting != 0 {
			t.Errorf("up: %+v", h)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(down) != 1 || len(up) != 1 || !up[0].DownSince.Equal(begin) || up[0].Waiting == 0 || down[0].LastError != "connection refused" {
			t.Errorf("told: down %+v, up %+v", down, up)
		}
	})
}

// TestPermanentFailure checks that a permanent refusal does not make a destination unknown or down,
// and that people see the failure. Once a destination whose token was revoked counted as working.
func TestPermanentFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: delivered})
		q.Destinations.Observe(queue.Attempt{Destination: "a", Status: queue.Delivered})
		began := time.Now()
		for range 5 {
			q.Destinations.Observe(queue.Attempt{Destination: "a", Status: queue.Failed, Error: "400 Bad Request"})
			time.Sleep(time.Second)
		}
		all, err := q.Destinations.All(t.Context())
		if err != nil || len(all) != 1 || !all[0].Known || all[0].Down() || all[0].LastError != "400 Bad Request" || !all[0].Failing() ||
			!all[0].FailingSince.Equal(began) {
			t.Errorf("%+v, %v", all, err)
		}
		if n := q.Destinations.Count(); n != (queue.Counts{Failing: 1}) {
			t.Errorf("%+v", n)
		}
		q.Destinations.Observe(queue.Attempt{Destination: "a", Status: queue.Delivered})
		if all, err := q.Destinations.All(t.Context()); err != nil || len(all) != 1 || all[0].Failing() || !all[0].FailingSince.IsZero() {
			t.Errorf("%+v, %v", all, err)
		}
		if n := q.Destinations.Count(); n != (queue.Counts{Known: 1}) {
			t.Errorf("%+v", n)
		}
	})
}

// TestDownIsRemembered checks that a restart does not forget that a destination
// is down.
func TestDownIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := &destination{down: true}
		q := queue.New(open(t, dir), queue.Options{Deliver: d.deliver})
		q.Start()
		accept(t, q, entry("text", "a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		q = start(t, open(t, dir), queue.Options{Deliver: d.deliver})
		time.Sleep(time.Second)
		synctest.Wait()
		if all, err := q.Destinations.All(t.Context()); err != nil || len(all) != 1 || !all[0].Down() ||
			all[0].LastError != "connection refused" {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// TestDownDestination checks that a destination that is down has one attempt at
// a time.
func TestDownDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(10 * time.Second)
			running.Add(-1)
			return queue.Outcome{Status: queue.Queued}
		}})
		for range 4 {
			accept(t, q, entry("text", "a"))
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		most.Store(0)
		for range 20 {
			accept(t, q, entry("text", "a"))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d attempts at once", n)
		}
	})
}

// TestHurry checks that a person can have a message sent that waits, also if the
// destination has asked for a pause.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &destination{down: true, retryAfter: 5 * time.Hour}
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: d.deliver})
		first, second := accept(t, q, entry("first", "a")), accept(t, q, entry("second", "a"))
		time.Sleep(time.Second)
		synctest.Wait()
		if j := get(t, q, first.Message.ID)[0]; time.Until(j.Due) > queue.MaxRetryAfter {
			t.Errorf("the next attempt is in %s", time.Until(j.Due))
		}
		d.set(false)
		q.Destinations.Observe(queue.Attempt{Destination: "a", Status: queue.Delivered})
		time.Sleep(time.Second)
		synctest.Wait()
		if n := d.arrived(); n != 0 {
			t.Errorf("%d have arrived before the destination wants them", n)
		}
		if r, err := q.Retry(t.Context(), first.Message.ID); err != nil || r != (queue.Retried{Queued: 1}) {
			t.Errorf("%+v, %v", r, err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := d.arrived(); n != 1 {
			t.Errorf("%d have arrived after a retry", n)
		}
		if n, err := q.RetryDestinations(t.Context(), q.Hash("a")); err != nil || n != 1 {
			t.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if j := get(t, q, second.Message.ID)[0]; j.Status != queue.Delivered {
			t.Errorf("%+v", j)
		}
	})
}

// TestClockSetBack checks that a job does not wait for the clock: one that is due
// in 5 s waited for 5 hours.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := newClock(), &destination{down: true}
		c.ahead.Store(int64(5 * time.Hour))
		q := c.startWith(t, open(t, t.TempDir()), queue.Options{Deliver: d.deliver})
		accept(t, q, entry("text", "a"))
		time.Sleep(time.Second)
		synctest.Wait()
		d.set(false)
		c.ahead.Store(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if d.arrived() != 1 {
			t.Error("the message waits for the clock")
		}
	})
}

// TestClockAhead checks a job that was accepted while the clock was a day ahead,
// over a restart.
func TestClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, dir := newClock(), &destination{down: true}, t.TempDir()
		c.ahead.Store(int64(25 * time.Hour))
		q := queue.New(open(t, dir), queue.Options{Deliver: d.deliver})
		q.SetClock(c.now, c.runs)
		e := accept(t, q, entry("text", "a"))
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.ahead.Store(0)
		q = c.startWith(t, open(t, dir), queue.Options{Deliver: d.deliver})
		time.Sleep(time.Second)
		synctest.Wait()
		if d.tried() != 1 {
			t.Errorf("%d attempts", d.tried())
		}
		if j := get(t, q, e.Message.ID)[0]; j.Expires.After(c.now().Add(queue.DefaultMaxAge)) {
			t.Errorf("it expires in %s", j.Expires.Sub(c.now()))
		}
	})
}

// TestClockForward checks that a jump of the clock does not kill a job after one
// attempt.
func TestClockForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := newClock(), &destination{down: true}
		q := c.startWith(t, open(t, t.TempDir()), queue.Options{Deliver: d.deliver})
		time.Sleep(time.Second) // so that the job gets no further attempt because of the start
		e := accept(t, q, entry("text", "a"))
		time.Sleep(time.Second)
		synctest.Wait()
		c.ahead.Store(int64(25 * time.Hour))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Queued || d.tried() != 2 {
			t.Errorf("after %d attempts: %+v", d.tried(), j)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Dead || d.tried() != 3 {
			t.Errorf("after %d attempts: %+v", d.tried(), j)
		}
	})
}

// TestPause checks that a process that was stopped does not give up what has
// become too old meanwhile before it has tried twice.
func TestPause(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, d, dir := newClock(), &destination{down: true}, t.TempDir()
				q := queue.New(open(t, dir), queue.Options{Deliver: d.deliver})
				q.SetClock(c.now, c.runs)
				q.Start()
				e := accept(t, q, entry("text", "a"))
				time.Sleep(time.Minute)
				before := d.tried()
				if restart {
					if err := q.Close(t.Context()); err != nil {
						t.Error(err)
					}
					c.paused.Store(int64(30 * time.Hour))
					q = queue.New(open(t, dir), queue.Options{Deliver: d.deliver})
					q.SetClock(c.now, c.runs)
					q.Start()
				} else {
					c.paused.Store(int64(30 * time.Hour))
				}
				time.Sleep(10 * time.Minute)
				if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Dead || d.tried() != before+2 {
					t.Errorf("after %d more attempts: %+v", d.tried()-before, j)
				}
				if err := q.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLastAttempt checks that an attempt which began before the time of its job and
// failed after that is not the last one.
func TestLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int32
		q := start(t, open(t, t.TempDir()), queue.Options{
			MaxAge: time.Minute,
			Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
				attempts.Add(1)
				time.Sleep(40 * time.Second)
				return queue.Outcome{Status: queue.Queued, Reason: "timeout"}
			},
		})
		time.Sleep(time.Second) // so that the job gets no further attempt because of the start
		e := accept(t, q, entry("text", "a"))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Dead || attempts.Load() != 3 {
			t.Errorf("%d attempts: %+v", attempts.Load(), j)
		}
	})
}

// TestUnknownDestination checks that a destination that the configuration does
// not know gets its messages if a reload brings it back within ten minutes.
func TestUnknownDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known atomic.Bool
		var sent atomic.Int32
		q := start(t, open(t, t.TempDir()), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			if !known.Load() {
				return queue.Outcome{Status: queue.Dead, Reason: "no such destination", Unknown: true}
			}
			sent.Add(1)
			return queue.Outcome{Status: queue.Delivered}
		}})
		first := accept(t, q, entry("first", "a"))
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		known.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if j := get(t, q, first.Message.ID)[0]; j.Status != queue.Delivered || j.Attempts != 1 {
			t.Errorf("%+v", j)
		}
		known.Store(false)
		second := accept(t, q, entry("second", "a"))
		time.Sleep(9*time.Minute + 30*time.Second)
		synctest.Wait()
		if j := get(t, q, second.Message.ID)[0]; j.Status != queue.Queued {
			t.Errorf("%+v", j)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if j := get(t, q, second.Message.ID)[0]; j.Status != queue.Dead || j.Reason != "no such destination" {
			t.Errorf("%+v", j)
		}
		if all, err := q.Destinations.All(t.Context()); err != nil ||
			slices.ContainsFunc(all, func(h queue.Health) bool { return h.Down() || !h.Known }) {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// TestSlotTakenAgain checks that a job which is claimed again before its delivery
// has ended, because its lease ran out, takes one slot.
func TestSlotTakenAgain(t *testing.T) {
	s := queue.NewSlots(10)
	c := queue.Candidate{Job: queue.JobID{Message: queue.NewID()}}
	for range 2 {
		if _, ok := s.Take(c); !ok {
			t.Error("there is no slot")
		}
	}
	s.Release(c.Job)
	s.Release(c.Job)
	if n := s.Free(queue.Full{Limit: queue.SharedLimit}); n != 10 {
		t.Errorf("%d slots are free", n)
	}
}

// TestClientsAreNotReported checks that clients cannot fill the log with
// destinations that are down.
func TestClientsAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := start(t, open(t, t.TempDir()), queue.Options{
			Deliver: delivered,
			Down:    func(h queue.Health) { t.Errorf("down: %+v", h) },
			Up:      func(h queue.Health) { t.Errorf("up: %+v", h) },
		})
		for range 4 {
			q.Destinations.Observe(queue.Attempt{Destination: "a", Client: true, Status: queue.Queued, Error: "connection refused"})
		}
		if all, err := q.Destinations.All(t.Context()); err != nil || len(all) != 1 || !all[0].Down() {
			t.Errorf("%+v, %v", all, err)
		}
		q.Destinations.Observe(queue.Attempt{Destination: "a", Client: true, Status: queue.Delivered})
		synctest.Wait()
	})
}

// TestHangingDestination checks that what waits for a destination that hangs is
// dead soon after its time. The last attempts of thousands of jobs, one at a time,
// took hours.
func TestHangingDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perHour, hours, maxAge = 100, 10, 4 * time.Hour
		var mu sync.Mutex
		var running, most, dead int
		var late time.Duration
		began := map[string]time.Time{} // the last attempt
		q := start(t, open(t, t.TempDir()), queue.Options{
			MaxAge: maxAge,
			Deliver: func(_ context.Context, _ *queue.Message, j *queue.Job) queue.Outcome {
				mu.Lock()
				running++
				most = max(most, running)
				began[j.Destination] = time.Now()
				mu.Unlock()
				time.Sleep(30 * time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return queue.Outcome{Status: queue.Queued, Reason: "timeout"}
			},
			Settled: func(j *queue.Job) {
				if j.Status != queue.Dead {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				dead++
				late = max(late, j.Updated.Sub(j.Expires))
				if began["a"].Before(j.Expires) {
					t.Errorf("dead at %s, but the last attempt began at %s", j.Updated, began["a"])
				}
			},
		})
		for range hours {
			for range perHour {
				accept(t, q, entry("text", "a"))
			}
			time.Sleep(time.Hour)
		}
		time.Sleep(maxAge)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if dead != perHour*hours {
			t.Errorf("%d of %d are dead", dead, perHour*hours)
		}
		if late > 5*time.Minute {
			t.Errorf("dead %s after its time", late)
		}
		if most > queue.PerDestination {
			t.Errorf("%d attempts at once", most)
		}
	})
}

// TestSharedFailuresAreNotStored checks that what waits for a destination that is
// down is written only when it is attempted. Its retries once took more time than
// storing new messages.
func TestSharedFailuresAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &settlements{Store: open(t, t.TempDir())}
		var attempts atomic.Int32
		q := start(t, s, queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			time.Sleep(10 * time.Second)
			attempts.Add(1)
			return queue.Outcome{Status: queue.Queued, Reason: "timeout"}
		}})
		for range 300 {
			accept(t, q, entry("text", "a"))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := attempts.Load(); n == 0 || n > 400 || s.stored.Load() != n || s.shared.Load() == 0 {
			t.Errorf("%d attempts, %d settlements are stored, and %d others are not", n, s.stored.Load(), s.shared.Load())
		}
		jobs, err := q.List(t.Context(), queue.JobID{}, 1000, queue.Queued, queue.Sending)
		if err != nil || len(jobs) != 300 {
			t.Errorf("%d jobs wait, %v", len(jobs), err)
		}
		for _, j := range jobs {
			if wait := time.Until(j.Due); wait < -time.Minute || wait > 75*time.Minute {
				t.Errorf("the next attempt is in %s", wait)
			}
		}
	})
}

// settlements counts settlements.
type settlements struct {
	queue.Store
	stored, shared atomic.Int32
}

func (s *settlements) Settle(ctx context.Context, t *queue.Settlement) error {
	if t.Shared != nil {
		s.shared.Add(1)
	} else {
		s.stored.Add(1)
	}
	return s.Store.Settle(ctx, t)
}

// TestOwnAttempt checks that a job with OwnAttempts has attempts of its own.
func TestOwnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := map[string]int{}
		var mu sync.Mutex
		q := start(t, open(t, t.TempDir()), queue.Options{
			MaxAge: time.Hour,
			Deliver: func(_ context.Context, m *queue.Message, _ *queue.Job) queue.Outcome {
				time.Sleep(30 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				attempts[string(m.Body)]++
				return queue.Outcome{Status: queue.Queued}
			},
		})
		for range 50 {
			accept(t, q, entry("text", "a"))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		e := entry("chain", "a")
		e.Jobs[0].OwnAttempts = true
		accept(t, q, e)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		j := get(t, q, e.Message.ID)[0]
		mu.Lock()
		defer mu.Unlock()
		if j.Status != queue.Dead || attempts["chain"] != j.Attempts {
			t.Errorf("%d attempts: %+v", attempts["chain"], j)
		}
	})
}

// TestLastSuccess checks that a restart keeps about when a destination last had a
// message, and what the caller knows it by.
func TestLastSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		q := queue.New(open(t, dir), queue.Options{Deliver: delivered})
		q.Start()
		succeed := func() {
			q.Destinations.Observe(queue.Attempt{Destination: "a", Host: "a:443", About: "ops", Status: queue.Delivered})
		}
		succeed()
		time.Sleep(time.Hour)
		synctest.Wait()
		succeed()
		time.Sleep(time.Minute)
		synctest.Wait()
		last := time.Now()
		succeed()
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		q = start(t, open(t, dir), queue.Options{Deliver: delivered})
		time.Sleep(time.Second)
		synctest.Wait()
		all, err := q.Destinations.All(t.Context())
		if err != nil || len(all) != 1 || !all[0].LastSuccess.Equal(last) || all[0].About != "ops" {
			t.Errorf("%+v, %v, want %s", all, err, last)
		}
	})
}

// TestSuccessesAreStoredRarely checks that the successes of a destination are not
// stored one by one.
func TestSuccessesAreStoredRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &savings{Store: open(t, t.TempDir())}
		q := start(t, s, queue.Options{Deliver: delivered})
		for range 3600 {
			q.Destinations.Observe(queue.Attempt{Destination: "a", Status: queue.Delivered})
			time.Sleep(time.Second)
		}
		stored, err := s.Health(t.Context(), 0)
		if err != nil || len(stored) != 1 || time.Since(stored[0].LastSuccess) > 11*time.Minute {
			t.Errorf("%+v, %v", stored, err)
		}
		if n := s.saved.Load(); n > 7 {
			t.Errorf("stored %d times in an hour", n)
		}
	})
}

// savings counts the states of destinations that are stored.
type savings struct {
	queue.Store
	saved atomic.Int32
}

func (s *savings) SaveHealth(ctx context.Context, states ...queue.Health) error {
	s.saved.Add(int32(len(states)))
	return s.Store.SaveHealth(ctx, states...)
}

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// clockedStore is a store with a clock, the bubble's.
type clockedStore struct{ queue.Store }

func (clockedStore) Now() time.Time { return time.Now() }

// TestClockJumps checks that what waits for a destination that is down gets two attempts after
// the clock of the machine or of the store has jumped by more than max_age, whenever it jumps:
// shortly before an attempt, or during one.
func TestClockJumps(t *testing.T) {
	for _, ofStore := range []bool{false, true} {
		for _, during := range []bool{false, true} {
			for ms := 0; ms < 10_000; ms += 2100 { // over two regular looks and the first attempts
				t.Run(fmt.Sprint("of the store ", ofStore, ", during an attempt ", during, ", after ", ms, " ms"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c, machine := newClock(), newClock()
						store := open(t, t.TempDir())
						if ofStore {
							store = settableStore{store, c}
						} else {
							machine = c
						}
						const jump = 25 * time.Hour
						var mu sync.Mutex
						after := map[string]int{} // attempts that began after the jump
						q := machine.startWith(t, store, queue.Options{Deliver: func(_ context.Context, _ *queue.Message, j *queue.Job) queue.Outcome {
							switch {
							case c.ahead.Load() != 0:
								mu.Lock()
								after[j.Destination]++
								mu.Unlock()
							case during && time.Since(c.start) >= time.Duration(ms)*time.Millisecond:
								time.Sleep(time.Second)
								c.ahead.Store(int64(jump))
							}
							return queue.Outcome{Status: queue.Queued, Reason: "it is down"}
						}})
						e := accept(t, q, entry("text", "a", "b", "c", "d", "e", "f", "g", "h")) // their delays differ
						time.Sleep(time.Duration(ms) * time.Millisecond)
						if !during {
							c.ahead.Store(int64(jump))
						}
						time.Sleep(2 * time.Minute)
						synctest.Wait()
						for _, j := range get(t, q, e.Message.ID) {
							if n := after[j.Destination]; j.Status != queue.Dead || n != 2 {
								t.Errorf("%d attempts after the jump: %+v", n, j)
							}
						}
					})
				})
			}
		}
	}
}

// settableStore is a store whose clock can be set.
type settableStore struct {
	queue.Store
	clock *clock
}

func (s settableStore) Now() time.Time { return s.clock.now() }

// TestClockJumpsWithoutDestination checks that the ten minutes in which the caller may not know
// a destination begin again after a jump of the clock.
func TestClockJumpsWithoutDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		q := c.startWith(t, open(t, t.TempDir()), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			return queue.Outcome{Status: queue.Dead, Reason: "no such destination", Unknown: true}
		}})
		e := accept(t, q, entry("text", "a"))
		time.Sleep(59 * time.Second) // shortly before it is tried again
		c.ahead.Store(int64(time.Hour))
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Queued {
			t.Errorf("%+v", j)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Dead {
			t.Errorf("%+v", j)
		}
	})
}

// TestClockOfStore checks that two gateways with wrong clocks, one minutes ahead and one behind, do
// what is due by the clock of their store, and that only one of them does it.
func TestClockOfStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		store := clockedStore{open(t, t.TempDir())}
		name := store.Hash("digest")
		var mu sync.Mutex
		var told, attempts []time.Duration
		note := func(to *[]time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, time.Since(begin))
		}
		var gateways []*queue.Queue
		for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
			c := newClock()
			c.ahead.Store(int64(ahead))
			var q *queue.Queue
			ready := make(chan struct{})
			q = c.startWith(t, store, queue.Options{
				Punctual: func() bool { return true },
				Recheck:  func(context.Context, []queue.Job) {},
				Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
					note(&attempts)
					mu.Lock()
					defer mu.Unlock()
					if len(attempts) < 3 {
						return queue.Outcome{Status: queue.Queued, Reason: "it is down"}
					}
					return queue.Outcome{Status: queue.Delivered}
				},
				Due: func(ctx context.Context, name queue.Hash, _ []byte, _ bool) error {
					<-ready
					release := false
					err := q.Records.Apply(ctx,
						&queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
							var due time.Time
							old := tx.Get(name)
							if release = len(old) > 0; !release {
								return nil
							}
							if err := due.UnmarshalBinary(old); err != nil {
								return err
							}
							if release = !q.Now().Before(due); release {
								tx.Delete(name)
							}
							return nil
						}})
					if release && err == nil {
						note(&told)
					}
					return err
				},
			})
			close(ready)
			gateways = append(gateways, q)
		}
		for i, q := range gateways {
			if d := time.Until(q.Now()); d != 0 {
				t.Errorf("gateway %d is %v ahead", i, d)
			}
			const took = 3 * time.Second
			// Its own clock is right about durations.
			at := time.Now().Add([]time.Duration{10 * time.Minute, -10 * time.Minute}[i] - took)
			if got := q.At(at); !got.Equal(time.Now().Add(-took)) {
				t.Errorf("gateway %d: %v ago is %v", i, took, time.Since(got))
			}
		}
		due := begin.Add(time.Minute)
		err := gateways[0].Records.Apply(t.Context(),
			&queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
				data, err := due.MarshalBinary()
				tx.Put(name, queue.Record{Data: data, Due: due})
				return err
			}})
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range gateways {
			e := entry(string(rune('a'+i)), string(rune('a'+i)))
			if err := q.Accept(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if got := e.Jobs[0].Expires.Sub(begin).Round(time.Minute); got != queue.DefaultMaxAge {
				t.Errorf("a message expires after %v", got)
			}
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 1 || told[0] < time.Minute || told[0] > time.Minute+3*time.Second {
			t.Errorf("the digest is told after %v", told)
		}
		// Two at once, and again after about 5 seconds.
		if len(attempts) != 4 || slices.Max(attempts[:2]) > time.Second || slices.Min(attempts[2:]) < 4*time.Second ||
			slices.Max(attempts) > 8*time.Second {
			t.Errorf("attempts after %v", attempts)
		}
	})
}

// TestDueIsNotCrowded checks that a record that is due is not taken for one of too many. The
// outcome of a question whose time ended on the minute was once forgotten at once.
func TestDueIsNotCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := open(t, t.TempDir())
		var calls, crowds atomic.Int64
		q := start(t, store, queue.Options{
			Punctual: func() bool { return true },
			Recheck:  func(context.Context, []queue.Job) {},
			Due: func(_ context.Context, _ queue.Hash, _ []byte, crowded bool) error {
				calls.Add(1)
				if crowded {
					crowds.Add(1)
				}
				return errors.New("not now")
			},
		})
		err := q.Records.Apply(t.Context(),
			&queue.Ruled{Names: []queue.Hash{store.Hash("x")}, Decide: func(tx *queue.Tx) error {
				tx.Put(store.Hash("x"), queue.Record{Data: []byte("x"), Due: time.Now().Add(time.Second)})
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if calls.Load() < 3 || crowds.Load() > 0 {
			t.Errorf("%d calls, %d of them for too many records", calls.Load(), crowds.Load())
		}
	})
}

// TestRecordsWrittenAhead checks that records which were written when the clock was ahead are
// due when it was set back, also if the queue was stopped meanwhile, and that others are not.
func TestRecordsWrittenAhead(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprint("stopped ", stopped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClock()
				dir := t.TempDir()
				store := open(t, dir)
				var mu sync.Mutex
				var due []string
				o := queue.Options{
					Due: func(_ context.Context, _ queue.Hash, data []byte, _ bool) error {
						mu.Lock()
						defer mu.Unlock()
						due = append(due, string(data))
						return nil
					},
					Ahead: func(data []byte, now time.Time) bool {
						return string(data) == "ahead" && now.Before(c.start.Add(time.Hour))
					},
					Recheck: func(context.Context, []queue.Job) {},
				}
				const jump = 25 * time.Hour
				c.ahead.Store(int64(jump))
				q := c.startWith(t, store, o)
				for _, text := range []string{"ahead", "at a time"} {
					err := q.Records.Apply(t.Context(), &queue.Ruled{Names: []queue.Hash{store.Hash(text)}, Decide: func(tx *queue.Tx) error {
						tx.Put(store.Hash(text), queue.Record{Data: []byte(text), Due: q.Now().Add(time.Hour)})
						return nil
					}})
					if err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if len(due) > 0 {
					t.Errorf("%q is due an hour early", due)
				}
				if stopped {
					if err := q.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				c.ahead.Store(0)
				if stopped {
					c.startWith(t, open(t, dir), o)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if len(due) == 0 {
					t.Error("nothing is due")
				}
				for _, text := range due {
					if text != "ahead" {
						t.Errorf("%q is due", text)
					}
				}
			})
		})
	}
}

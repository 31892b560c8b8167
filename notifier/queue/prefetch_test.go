package queue_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// far is a store that is far away. It settles several jobs at once, as a shared store does.
type far struct {
	queue.Store
	claims    atomic.Int32
	unsettled atomic.Int32 // claimed jobs
	highest   atomic.Int32 // number of unsettled ones
}

const roundTrip = 100 * time.Millisecond

func (s *far) Claim(ctx context.Context, c queue.Claim) ([]queue.Job, time.Time, error) {
	jobs, next, err := s.Store.Claim(ctx, c)
	if len(jobs) > 0 {
		s.claims.Add(1)
		time.Sleep(roundTrip)
		n := s.unsettled.Add(int32(len(jobs)))
		s.highest.Store(max(s.highest.Load(), n))
	}
	return jobs, next, err
}

func (s *far) Settle(ctx context.Context, t *queue.Settlement) error {
	time.Sleep(roundTrip)
	defer s.unsettled.Add(-1)
	return s.Store.Settle(ctx, t)
}

func (s *far) Record(ctx context.Context, name queue.Hash) ([]byte, error) {
	time.Sleep(roundTrip)
	return s.Store.Record(ctx, name)
}

// told is what a destination was told, in the order in which the attempts began.
type told struct {
	mu    sync.Mutex
	texts []string
}

func (d *told) add(m *queue.Message) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts = append(d.texts, string(m.Body))
	return len(d.texts)
}

// wantOrder checks that the texts are those of numbered entries, each once. Those that are sent at
// once can begin in any order.
func (d *told) wantOrder(t *testing.T, n int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[int]bool{}
	for i, text := range d.texts {
		number, err := strconv.Atoi(text)
		if all[number] = true; err != nil || max(number-i, i-number) >= queue.PerDestination {
			t.Fatalf("text %d is %s", i, text)
		}
	}
	if len(d.texts) != n || len(all) != n {
		t.Errorf("%d texts, %d different ones, want %d", len(d.texts), len(all), n)
	}
}

// numbered accepts numbered messages to a destination, each due a moment after the one before, and about
// an incident of its own if there is a prefix for their names.
func numbered(t *testing.T, s queue.Store, n int, incident string) {
	t.Helper()
	for i := range n {
		e := entry(fmt.Sprint(i), "a")
		now := time.Now()
		e.Message.Created = now
		e.Jobs[0].JobID = queue.JobID{Message: e.Message.ID}
		if incident != "" {
			e.Jobs[0].Incident, e.Jobs[0].NewState = fmt.Sprint(incident, i), true
		}
		e.Jobs[0].Due, e.Jobs[0].Updated, e.Jobs[0].Expires = now, now, now.Add(24*time.Hour)
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Microsecond)
	}
}

// TestFarStore checks that messages to one destination are claimed and settled together if the store
// is far away, that they begin in their order, and how many of them are sent again if the process
// ends at any moment.
func TestFarStore(t *testing.T) {
	for _, tt := range []struct {
		name   string
		takes  time.Duration // each attempt
		claims int           // at most
		time   time.Duration // at most

		incident string
	}{
		{"at once", time.Millisecond, 25, 4 * time.Second, ""},
		{"quick", 10 * time.Millisecond, 50, 6 * time.Second, ""},
		{"slow", time.Second, 1000, 300 * time.Second, ""},
		{"incidents", time.Millisecond, 300, 60 * time.Second, "incident "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 1000
				s := &far{Store: open(t, t.TempDir())}
				numbered(t, s.Store, n, tt.incident)
				began, done := time.Now(), make(chan struct{})
				var d told
				start(t, s, queue.Options{Deliver: func(_ context.Context, m *queue.Message, _ *queue.Job) queue.Outcome {
					number := d.add(m)
					time.Sleep(tt.takes)
					if number == n {
						close(done)
					}
					return queue.Outcome{Status: queue.Delivered}
				}})
				<-done
				if took := time.Since(began); took > tt.time {
					t.Errorf("they took %v", took)
				}
				if c := int(s.claims.Load()); c > tt.claims {
					t.Errorf("%d claims", c)
				}
				if h := s.highest.Load(); h > 128 {
					t.Errorf("%d jobs were claimed at once", h)
				}
				d.wantOrder(t, n)
			})
		})
	}
}

// TestPrefetchedGoBack checks that what a destination does not take soon goes back to the store, and
// keeps its place there, so that it can be cancelled, and another process can send it.
func TestPrefetchedGoBack(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("fails %v", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n, good = 600, 300
				s := &far{Store: open(t, t.TempDir())}
				numbered(t, s.Store, n, "")
				var d told
				q := start(t, s, queue.Options{Deliver: func(_ context.Context, m *queue.Message, _ *queue.Job) queue.Outcome {
					switch number := d.add(m); {
					case number <= good || number > good+queue.PerDestination && !fails:
						time.Sleep(time.Millisecond)
					case fails:
						return queue.Outcome{Status: queue.Queued, Reason: "it is down"}
					default:
						time.Sleep(time.Minute)
					}
					return queue.Outcome{Status: queue.Delivered}
				}})
				time.Sleep(12 * time.Second)
				synctest.Wait()
				d.mu.Lock()
				told := len(d.texts)
				d.mu.Unlock()
				st, err := q.Stats(t.Context())
				if err != nil || st.Sending > queue.PerDestination || st.Queued+st.Sending != n-good || told > good+25 {
					t.Fatalf("%+v, %v after %d attempts; %d messages are not delivered", st, err, told, n-good)
				}
				waiting, err := q.List(t.Context(), queue.JobID{}, n, queue.Queued)
				if err != nil {
					t.Fatal(err)
				}
				cancelled := waiting[len(waiting)-1].Message
				if c, err := q.Cancel(t.Context(), cancelled); c != 1 || err != nil {
					t.Errorf("%d cancelled, %v", c, err)
				}
				if fails {
					return
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				d.wantOrder(t, n-1)
			})
		})
	}
}

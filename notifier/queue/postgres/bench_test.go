package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// drain delivers what waits in the tables with a number of gateways, and returns
// how long that took. Each delivery ends at once.
func drain(tb testing.TB, dsns []string, n int) time.Duration {
	tb.Helper()
	var delivered atomic.Int64
	done := make(chan struct{})
	var queues []*queue.Queue
	for _, dsn := range dsns {
		queues = append(queues, queue.New(open(tb, dsn), queue.Options{Deliver: func(context.Context, *queue.Message, *queue.Job) queue.Outcome {
			if delivered.Add(1) == int64(n) {
				close(done)
			}
			return queue.Outcome{Status: queue.Delivered}
		}}))
	}
	start := time.Now()
	for _, q := range queues {
		q.Start()
	}
	<-done
	took := time.Since(start)
	for _, q := range queues {
		if err := q.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	}
	return took
}

// waitFor stores messages of 1 KB to some destinations.
func waitFor(tb testing.TB, dsn string, messages, destinations int) {
	tb.Helper()
	first := open(tb, dsn)
	defer first.Close()
	var entries []*queue.Entry
	for i := range messages {
		entries = append(entries, newEntry(strings.Repeat("x", 1000), fmt.Sprint("json://host", i%destinations)))
	}
	if err := first.Accept(tb.Context(), 1<<40, entries...); err != nil {
		tb.Fatal(err)
	}
}

// TestRoundTrips checks that claims, results and the statements that a session does not know yet
// travel together, so that a server that is far away delivers to one destination as well.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	waitFor(t, dsn, 1000, 1)
	p := newProxy(t, server.port, 10*time.Millisecond)
	drain(t, []string{p.dsn(dsn)}, 1000)
	if n := p.waits.Load(); n > 150 {
		t.Errorf("1,000 messages need %d round trips", n)
	}
}

// TestRoundTripsOfIncidents checks that messages and outcomes about incidents share transactions, too.
func TestRoundTripsOfIncidents(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	p := newProxy(t, server.port, 10*time.Millisecond)
	s := open(t, p.dsn(dsn))
	update := func(i int) *queue.Update {
		name := s.Hash(fmt.Sprint("incident ", i))
		return &queue.Update{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			tx.Put(name, queue.Record{Data: append(tx.Get(name), 'x'), Due: time.Now().Add(time.Hour)})
			return nil
		}}
	}
	const n = 200
	atOnce := func(f func(i int) error) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if err := f(i); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	atOnce(func(i int) error {
		e := newEntry("text", "json://host")
		e.Update = update(i)
		return s.Accept(t.Context(), 1<<40, e)
	})
	jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: s.Now(), Max: n, Lease: time.Minute})
	if err != nil || len(jobs) != n {
		t.Fatalf("claimed %d, %v", len(jobs), err)
	}
	atOnce(func(i int) error {
		jobs[i].Status, jobs[i].Updated = queue.Delivered, s.Now()
		return s.Settle(t.Context(), &queue.Settlement{Job: &jobs[i], Update: update(i)})
	})
	if n := p.waits.Load(); n > 150 {
		t.Errorf("they need %d round trips", n)
	}
}

// BenchmarkDrain delivers 10,000 messages of 1 KB to 16 destinations, or 1,000 to
// one.
func BenchmarkDrain(b *testing.B) {
	for _, test := range []struct {
		gateways, messages, destinations int
		delay                            time.Duration // to and from the server together
	}{{1, 10000, 16, 0}, {3, 10000, 16, 0}, {1, 5000, 16, 20 * time.Millisecond}, {1, 1000, 1, 100 * time.Millisecond}} {
		b.Run(fmt.Sprintf("%d gateways, %d messages, %d destinations, round trip %s", test.gateways, test.messages, test.destinations,
			test.delay), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				server := ownServer(b)
				dsn := server.schema(b)
				waitFor(b, dsn, test.messages, test.destinations)
				dsns := make([]string, test.gateways)
				for i := range dsns {
					if dsns[i] = dsn; test.delay > 0 {
						dsns[i] = newProxy(b, server.port, test.delay/2).dsn(dsn)
					}
				}
				b.StartTimer()
				b.ReportMetric(float64(test.messages)/drain(b, dsns, test.messages).Seconds(), "delivered/s")
			}
		})
	}
}

// BenchmarkAcceptWaiting accepts messages of 1 KB from 64 clients while others
// wait.
func BenchmarkAcceptWaiting(b *testing.B) {
	for _, waiting := range []int{0, 200_000, 800_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			server := ownServer(b)
			dsn := server.schema(b)
			s := open(b, dsn)
			fill(b, s, dsn, waiting, "json://down", time.Now().Add(time.Hour))
			body := strings.Repeat("x", 1000)
			for b.Loop() {
				end := time.Now().Add(8 * time.Second)
				var n atomic.Int64
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						for time.Now().Before(end) {
							if err := s.Accept(b.Context(), 1<<40, newEntry(body, "json://host")); err != nil {
								b.Error(err)
							}
							n.Add(1)
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(n.Load())/8, "accepted/s")
			}
		})
	}
}

// BenchmarkIncidents accepts messages of 1 KB from 64 clients to each of some gateways,
// with and without a record that each message changes, as one about an incident does.
func BenchmarkIncidents(b *testing.B) {
	for _, gateways := range []int{1, 3} {
		for _, incident := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d gateways, incidents %v", gateways, incident), func(b *testing.B) {
				dsn := ownServer(b).schema(b)
				body, data := strings.Repeat("x", 1000), []byte(strings.Repeat("y", 300))
				stores := make([]*Store, gateways)
				for i := range stores {
					stores[i] = open(b, dsn)
				}
				var left, next atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var wg sync.WaitGroup
				for i := range 64 * gateways {
					s := stores[i%gateways]
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							e := newEntry(body, "json://host")
							if incident {
								name := s.Hash(fmt.Sprint("incident ", next.Add(1)))
								e.Update = &queue.Update{
									Names: []queue.Hash{name},
									Decide: func(tx *queue.Tx) error {
										tx.Put(name, queue.Record{Data: data, Due: time.Now().Add(time.Hour)})
										return nil
									},
								}
							}
							if err := s.Accept(b.Context(), 1<<40, e); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accepted/s")
			})
		}
	}
}

package bolt

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

func newEntry(body []byte, destinations ...string) *queue.Entry {
	now := time.Now()
	e := &queue.Entry{Message: &queue.Message{ID: queue.NewID(), Created: now, Body: body}}
	for i, d := range destinations {
		e.Jobs = append(e.Jobs, queue.Job{
			JobID: queue.JobID{Message: e.Message.ID, Index: i}, Status: queue.Queued, Destination: d,
			Due: now, Expires: now.Add(24 * time.Hour), Updated: now,
		})
	}
	return e
}

func randomText(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + rand.IntN(90))
	}
	return b
}

// BenchmarkAccept stores messages of 1 KB by 64 writers.
func BenchmarkAccept(b *testing.B) {
	s, err := Open(Options{Path: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body := randomText(1000)
	b.SetParallelism((64 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Accept(b.Context(), 1<<40, newEntry(body, "json://host")); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkAcceptAndDeliver stores messages of 1 KB by 64 writers while 64
// others claim and settle them.
func BenchmarkAcceptAndDeliver(b *testing.B) {
	for _, waiting := range []int{0, 100_000} {
		b.Run(fmt.Sprint(waiting, " waiting"), func(b *testing.B) {
			s, err := Open(Options{Path: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			body := randomText(1000)
			fill(b, s, waiting, body)
			var settled atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			jobs := make(chan queue.Job, 64)
			wg.Go(func() {
				defer close(jobs)
				for n := 0; n < b.N; {
					claimed, _, err := s.Claim(b.Context(), queue.Claim{Now: time.Now(), Max: 64, Lease: time.Minute})
					if err != nil {
						b.Error(err)
						return
					}
					if len(claimed) == 0 {
						time.Sleep(100 * time.Microsecond)
					}
					for _, j := range claimed {
						n++
						jobs <- j
					}
				}
			})
			for range 64 {
				wg.Go(func() {
					for j := range jobs {
						_, release, err := s.Load(b.Context(), j.Message)
						if err != nil {
							b.Error(err)
							return
						}
						release()
						j.Status, j.Updated = queue.Delivered, time.Now()
						if err := s.Settle(b.Context(), &queue.Settlement{Job: &j}); err != nil {
							b.Error(err)
						}
						settled.Add(1)
					}
				})
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			for range 64 {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := s.Accept(b.Context(), 1<<40, newEntry(body, "json://host")); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// fill stores n messages that are due in an hour.
func fill(tb testing.TB, s *Store, n int, body []byte) {
	tb.Helper()
	for n > 0 {
		entries := make([]*queue.Entry, min(n, 5000))
		for i := range entries {
			entries[i] = newEntry(body, fmt.Sprint("json://host", i%100))
			entries[i].Jobs[0].Due = time.Now().Add(time.Hour)
		}
		if err := s.Accept(tb.Context(), 1<<40, entries...); err != nil {
			tb.Fatal(err)
		}
		n -= len(entries)
	}
}

// BenchmarkOpen opens a store with 100,000 jobs that wait.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(Options{Path: dir})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, s, 100_000, randomText(1000))
	s.Close()
	b.ResetTimer()
	for range b.N {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Open(Options{Path: dir})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		s.Close()
		b.StartTimer()
	}
}

// BenchmarkList lists 100,000 waiting deliveries in pages.
func BenchmarkList(b *testing.B) {
	s, err := Open(Options{Path: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	fill(b, s, 100_000, randomText(100))
	b.ResetTimer()
	for b.Loop() {
		after := queue.JobID{}
		for {
			page, err := s.List(b.Context(), after, 1000, queue.Queued, queue.Sending)
			if err != nil {
				b.Fatal(err)
			}
			if len(page) < 1000 {
				break
			}
			after = page[len(page)-1].JobID
			if _, err := s.Stats(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkClaimBesideHanging claims and ends a delivery to a known destination
// while 100,000 other destinations have a due job and no slot, and 2,000 known
// ones hang.
func BenchmarkClaimBesideHanging(b *testing.B) {
	x := newIndex()
	now := time.Now()
	times := jobTimes{due: now.UnixMicro(), updated: now.UnixMicro()}
	add := func(n int, host byte) place {
		to := place{destination: seal.Hash{1, byte(n), byte(n >> 8), byte(n >> 16)}, host: seal.Hash{host}}
		j := job{message: queue.NewID()}
		j.setTimes(times)
		x.add(large{}, newJob{j, to, queue.Queued})
		return to
	}
	var known []queue.Health
	for i := range 2001 {
		known = append(known, queue.Health{Destination: seal.Hash{1, byte(i), byte(i >> 8)}, Known: true, Changed: now})
	}
	slots := queue.NewSlots(256, known...)
	for i := range 2000 {
		add(i, byte(i))
		add(i, byte(i))
	}
	for i := range 100_000 {
		add(2001+i, byte(i))
	}
	for {
		if jobs, _ := x.claim(queue.Claim{Now: now, Max: 64, Slots: slots}); len(jobs) == 0 {
			break
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		add(2000, 0)
		jobs, _ := x.claim(queue.Claim{Now: now, Max: 64, Slots: slots})
		if len(jobs) != 1 {
			b.Fatalf("%d jobs", len(jobs))
		}
		slots.Release(jobs[0].id())
		x.beginSettling(jobs[0])
		x.set(jobs[0], queue.Delivered)
	}
}

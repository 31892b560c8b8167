package bolt

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestSettlingLeavesRoom checks that a destination has room for another
// delivery while the outcome of the last one is being written.
func TestSettlingLeavesRoom(t *testing.T) {
	x := newIndex()
	now := time.Now()
	down := queue.Health{DownSince: now, Changed: now} // it has one delivery at once
	slots := queue.NewSlots(10, down)
	times := jobTimes{due: now.UnixMicro(), updated: now.UnixMicro()}
	for range 3 {
		j := job{message: queue.NewID()}
		j.setTimes(times)
		x.add(large{}, newJob{j, place{}, queue.Queued})
	}
	claim := func(want int) []*job {
		t.Helper()
		jobs, _ := x.claim(queue.Claim{Now: now, Max: 10, Slots: slots})
		if len(jobs) != want {
			t.Fatalf("%d jobs claimed, want %d", len(jobs), want)
		}
		return jobs
	}
	first := claim(1)[0]
	claim(0)
	slots.Release(first.id())
	if !x.beginSettling(first) {
		t.Error("no room for another delivery")
	}
	second := claim(1)[0]
	claim(0)
	first.writing = nothing // the store has failed
	slots.Release(second.id())
	x.beginSettling(second)
	x.set(second, queue.Delivered)
	x.beginSettling(first)
	x.set(first, queue.Delivered)
	third := claim(1)[0]
	slots.Release(third.id())
	x.beginSettling(third)
	x.set(third, queue.Queued)
	x.set(claim(1)[0], queue.Delivered)
	if len(x.destinations) != 0 || len(x.jobs) != 0 {
		t.Errorf("the index is not empty: %v, %v", x.destinations, x.jobs)
	}
}

// TestRecent checks that the number of recent messages is bounded, that messages for slow
// destinations make room, and that a job is read from the database after its record has changed.
func TestRecent(t *testing.T) {
	var r recent
	now := time.Now()
	add := func(size int, at time.Time) queue.JobID {
		e := newEntry(make([]byte, size), "a")
		e.Jobs[0].Due = now
		r.add(e, at)
		return e.Jobs[0].JobID
	}
	const third = maxRecent/3 - 4096
	first, second := add(third, now), add(third, now)
	add(third, now)
	if late := add(third, now.Add(recentAge/2)); r.job(late) != nil || r.job(first) == nil {
		t.Error("the oldest message has not kept its room")
	}
	r.changed(second)
	if r.job(second) != nil || r.message(second.Message) != nil {
		t.Error("a job that has changed is still recent")
	}
	r.forget(now) // it is not older
	if r.job(first) == nil {
		t.Error("a message that was just added is forgotten")
	}
	for range 1000 { // for a fast destination, while the first message waits
		id := add(1000, now)
		if j, m := r.job(id), r.message(id.Message); j == nil || m == nil || j.JobID != id || len(m.Body) != 1000 {
			t.Fatalf("%v, %v", j, m)
		}
		r.changed(id)
	}
	if len(r.order) > 100 || len(r.messages) != 2 {
		t.Errorf("%d messages are recent, %d in order", len(r.messages), len(r.order))
	}
	if late := add(2*third, now.Add(recentAge)); r.job(late) == nil || r.job(first) != nil || r.size > maxRecent {
		t.Error("old messages have not made room")
	}
	if id := add(10, now.Add(-time.Hour)); r.job(id) != nil {
		t.Error("a message that is not due is recent")
	}
	if r.forget(now.Add(2 * recentAge)); r.size > 0 || len(r.messages)+len(r.order) > 0 {
		t.Errorf("%d old messages are not forgotten", len(r.messages))
	}
}

// TestDeferredSettlement checks that a settlement that can wait does not wait
// long, and that another change takes it along.
func TestDeferredSettlement(t *testing.T) {
	s, err := Open(Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	for _, others := range []int{0, 1} {
		if err := s.Accept(ctx, 1<<30, newEntry(nil, "a")); err != nil {
			t.Fatal(err)
		}
		jobs, _, err := s.Claim(ctx, queue.Claim{Now: time.Now(), Max: 1, Lease: time.Minute})
		if err != nil || len(jobs) != 1 {
			t.Fatal(jobs, err)
		}
		settled := make(chan error)
		go func() {
			j := jobs[0]
			j.Status, j.Updated = queue.Delivered, time.Now()
			settled <- s.Settle(ctx, &queue.Settlement{Job: &j, Deferrable: true})
		}()
		for range others {
			if err := s.Accept(ctx, 1<<30, newEntry(nil, "b")); err != nil {
				t.Error(err)
			}
		}
		if err := <-settled; err != nil {
			t.Error(err)
		}
		if e, err := s.Get(ctx, jobs[0].Message); err != nil || e.Jobs[0].Status != queue.Delivered {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

package queuetest

import (
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// turns is a store with one known destination and others that are down. Three jobs are due for each
// that is down. The only clock is the time of the claims, which stays behind the time of a server:
// what is written ahead of it is made due.
type turns struct {
	claimer
	down int // destinations
}

func (s *suite) newTurns(down int) turns {
	s.Helper()
	s.now = s.now.Add(-6 * time.Hour)
	states := []queue.Health{{Destination: s.Hash("known"), Known: true, LastSuccess: s.now, Changed: s.now}}
	for i := range down {
		states = append(states, queue.Health{
			Destination: s.Hash(fmt.Sprint("down ", i)), Failures: 3, DownSince: s.now.Add(-time.Minute),
			Changed: s.now,
		})
	}
	s.must(s.SaveHealth(s.Context(), states...))
	for range 3 {
		s.addTo(down, "down", func(*queue.Job) {})
	}
	return turns{claimer{s, queue.NewSlots(1000, states...)}, down}
}

// some claims at most n jobs.
func (t turns) some(n int) []queue.Job {
	t.Helper()
	jobs, _, err := t.Claim(t.Context(), queue.Claim{Now: t.now, Max: n, Slots: t.slots, Lease: lease})
	t.must(err)
	return jobs
}

// fail ends the delivery of a job, whose destination has its next turn at a time.
func (t turns) fail(j queue.Job, until time.Time) {
	t.Helper()
	t.slots.Release(j.JobID)
	j.Status, j.Updated, j.Due = queue.Queued, t.now, t.now.Add(time.Hour)
	j.Attempts++
	t.must(t.Settle(t.Context(), &queue.Settlement{Job: &j, Failure: &queue.SharedFailure{Began: t.now, Until: until}}))
}

// once claims n jobs at a time, until each destination that is down has been asked. It fails
// the test if one is asked twice, or if another one is asked.
func (t turns) once(n int) (all []queue.Job) {
	t.Helper()
	seen := map[string]bool{}
	for {
		jobs := t.some(n)
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			if seen[j.Destination] {
				t.Errorf("%s is asked twice at once", j.Destination)
			}
			seen[j.Destination] = true
		}
		all = append(all, jobs...)
		// It reads again what is due, and goes on with the turns.
		_, err := t.Wake(t.Context(), queue.Wake{Now: t.now, Destinations: []queue.Hash{t.Hash("other")}})
		t.must(err)
	}
	if len(all) != t.down {
		t.Errorf("asked %d of %d destinations", len(all), t.down)
	}
	return all
}

// ownSlotFirst checks that what has a slot of its own is claimed before what many others
// have waited for longer.
func (s *suite) ownSlotFirst() {
	t := s.newTurns(20)
	s.add("known", "known")
	jobs := t.some(1)
	if len(jobs) != 1 || jobs[0].Destination != "known" {
		s.Fatalf("claimed %v, want the job of the known destination", jobs)
	}
	t.end(jobs[0], queue.Delivered)
	all := t.claim()
	if len(all["known"]) != 1 || len(all) != 21 {
		s.Errorf("claimed %d of the known destination, of %d destinations", len(all["known"]), len(all))
	}
}

// turnsGoRound checks that each destination that is down has one attempt at a time, that the
// attempt counts for the jobs that waited before, and that all destinations have one before any has
// another.
func (s *suite) turnsGoRound() {
	t := s.newTurns(20)
	until := s.now.Add(10 * time.Minute)
	for _, j := range t.once(3) {
		t.fail(j, until)
	}
	if jobs := t.some(100); len(jobs) > 0 {
		s.Errorf("claimed %d jobs of destinations that have no turn", len(jobs))
	}
	later := s.entry("down 7") // the attempt does not count for a job that came later
	s.now = s.now.Add(time.Minute)
	later.Jobs[0].Due = s.now
	s.must(s.Accept(s.Context(), noLimit, later))
	jobs := t.some(100)
	if len(jobs) != 1 || jobs[0].JobID != later.Jobs[0].JobID {
		s.Fatalf("claimed %v, want the new job", jobs)
	}
	t.fail(jobs[0], until)
	s.now = until
	for _, j := range t.once(3) {
		t.fail(j, until.Add(time.Hour))
	}
}

// lastTurn checks that a job for which an attempt counts is due when it expires, and that an
// attempt that began later does not postpone it.
func (s *suite) lastTurn() {
	e := s.entry("down", "down", "down")
	for i := range e.Jobs {
		e.Jobs[i].Expires = s.now.Add(30 * time.Minute)
	}
	s.must(s.Accept(s.Context(), noLimit, e))
	down := queue.Health{Destination: s.Hash("down"), Failures: 3, DownSince: s.now, Changed: s.now}
	t := turns{claimer{s, queue.NewSlots(1000, down)}, 1}
	t.fail(t.once(10)[0], s.now.Add(time.Hour))
	s.now = s.now.Add(31 * time.Minute)
	for n := range 2 {
		jobs := t.some(10)
		if len(jobs) != 1 || jobs[0].Due.After(s.now) {
			s.Fatalf("claimed %v, want job %d that has expired", jobs, n)
		}
		j := jobs[0]
		t.slots.Release(j.JobID)
		j.Status, j.Updated = queue.Dead, s.now
		s.must(s.Settle(s.Context(), &queue.Settlement{Job: &j, Failure: &queue.SharedFailure{Began: s.now, Until: s.now.Add(time.Hour)}}))
	}
	if jobs := t.some(10); len(jobs) > 0 {
		s.Errorf("claimed %v", jobs)
	}
}

// wakeWaiting checks that a success makes due some of the jobs that wait for the turn of their
// destination, and that a person can make each of them due.
func (s *suite) wakeWaiting() {
	t := s.newTurns(1)
	for range 10 {
		s.add("down 0")
	}
	t.fail(t.once(10)[0], s.now.Add(time.Hour))
	wake := queue.Wake{Now: s.now, Destinations: []queue.Hash{s.Hash("down 0")}, Max: 8}
	for _, want := range []struct{ more, jobs int }{{1, 8}, {0, 5}} { // one of them has a time of its own
		more, err := s.Wake(s.Context(), wake)
		s.must(err)
		jobs := s.claim(s.now)
		if len(more) != want.more || len(jobs) != want.jobs {
			s.Errorf("claimed %d, and %d destinations have more; want %+v", len(jobs), len(more), want)
		}
		for _, j := range jobs {
			s.settle(j, queue.Delivered)
		}
	}
	var waiting []*queue.Entry
	for range 3 {
		waiting = append(waiting, s.add("down 0"))
	}
	t.fail(t.once(10)[0], s.now.Add(time.Hour))
	_, err := Retry(s.Context(), s, waiting[2].Message.ID, s.now, s.now.Add(week))
	s.must(err)
	if jobs := t.some(10); len(jobs) != 1 || jobs[0].JobID != waiting[2].Jobs[0].JobID {
		s.Errorf("claimed %v, want the one that was retried", jobs)
	}
	wake.Force, wake.Max = true, 0
	_, err = s.Wake(s.Context(), wake)
	s.must(err)
	if jobs := s.claim(s.now); len(jobs) != 2 {
		s.Errorf("claimed %d of two that a person has made due", len(jobs))
	}
}

// sharedTurns checks that a destination has one turn at a time at all handles, and that
// turns outlive handles.
func (s *suite) sharedTurns() {
	t := s.newTurns(20)
	until := s.now.Add(10 * time.Minute)
	for _, j := range t.once(7) {
		t.fail(j, until)
	}
	other := turns{claimer{t.suite.with(s.handle()), queue.NewSlots(1000)}, 10}
	if jobs := other.some(100); len(jobs) > 0 {
		s.Errorf("another handle claimed %d jobs of destinations that have no turn", len(jobs))
	}
	s.now = until
	other.now = until
	if jobs := t.some(10); len(jobs) != 10 {
		s.Errorf("claimed %d of 10", len(jobs))
	}
	for _, j := range other.once(100) {
		other.fail(j, until.Add(time.Hour))
	}
	s.must(s.Close())
	s.Store = s.handle()
	if jobs := t.claim(); len(jobs) != 10 {
		s.Errorf("claimed jobs of %d destinations, want those of the handle that was closed", len(jobs))
	}
}

// with returns the test with another handle.
func (s *suite) with(h queue.Store) *suite {
	other := *s
	other.Store = h
	return &other
}

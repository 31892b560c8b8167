package queuetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// claimer claims jobs with slots, as a queue does.
type claimer struct {
	*suite
	slots *queue.Slots
}

// claim claims what has room, and returns the jobs by destination.
func (c claimer) claim() map[string][]queue.Job {
	c.Helper()
	all := map[string][]queue.Job{}
	for {
		jobs, _, err := c.Claim(c.Context(), queue.Claim{Now: c.now, Max: 64, Slots: c.slots, Lease: lease})
		c.must(err)
		if len(jobs) == 0 {
			return all
		}
		for _, j := range jobs {
			all[j.Destination] = append(all[j.Destination], j)
		}
	}
}

// end ends a delivery.
func (c claimer) end(j queue.Job, status queue.Status, change ...func(j *queue.Job)) {
	c.Helper()
	c.slots.Release(j.JobID)
	c.settle(j, status, change...)
}

// prefetch checks that a claim takes jobs of a quick destination before they have slots, in the order
// in which they are due, and that those which go back keep their places.
func (s *suite) prefetch() {
	var ids []queue.JobID // of the quick destination
	add := func() {
		s.now = s.now.Add(time.Millisecond)
		ids = append(ids, s.add("quick", "other").Jobs[0].JobID)
	}
	for range 50 {
		add()
	}
	s.reopenStore()
	slots := queue.NewSlots(100)
	claim := func(want []queue.JobID, others int) (quick []queue.Job) {
		s.Helper()
		prefetch := queue.NewPrefetch(slots, s.Hash("quick"))
		for more := true; more; {
			jobs, _, err := s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 64, Slots: slots, Lease: lease, Prefetch: prefetch})
			s.must(err)
			for _, j := range jobs {
				if j.Destination == "quick" {
					quick = append(quick, j)
				} else {
					others--
				}
			}
			more = len(jobs) > 0
		}
		if got := idsOf(quick); !slices.Equal(got, want) || others != 0 {
			s.Fatalf("claimed %v, want %v; %d of another destination are missing", got, want, others)
		}
		return quick
	}
	claimed := claim(ids, queue.PerDestination)
	add()
	for i := range claimed {
		j := &claimed[len(claimed)-1-i]
		slots.Release(j.JobID)
		due := j.Due
		if len(claimed)-1-i < 20 {
			s.settle(*j, queue.Delivered)
		} else {
			s.settle(*j, queue.Queued, func(j *queue.Job) { j.Due = due })
		}
	}
	claim(ids[20:], 0)
}

func idsOf(jobs []queue.Job) (ids []queue.JobID) {
	for i := range jobs {
		ids = append(ids, jobs[i].JobID)
	}
	return ids
}

// claimed returns the number of claimed jobs.
func claimed(jobs map[string][]queue.Job) (n int) {
	for _, all := range jobs {
		n += len(all)
	}
	return n
}

func (s *suite) destinationLimit() {
	down := queue.Health{Destination: s.Hash("down"), Failures: 3, DownSince: s.now, Changed: s.now}
	c := claimer{s, queue.NewSlots(100, down)}
	for range 6 {
		s.add("a", "b", "down")
	}
	jobs := c.claim()
	if len(jobs["a"]) != 4 || len(jobs["b"]) != 4 || len(jobs["down"]) != 1 {
		s.Fatalf("claimed %d, %d, and %d of the destination that is down", len(jobs["a"]), len(jobs["b"]), len(jobs["down"]))
	}
	c.end(jobs["a"][0], queue.Delivered)
	c.end(jobs["down"][0], queue.Queued, func(j *queue.Job) { j.Due = s.now.Add(time.Hour) })
	jobs = c.claim()
	if len(jobs["a"]) != 1 || len(jobs["b"]) != 0 || len(jobs["down"]) != 1 {
		s.Errorf("claimed %d, %d, and %d of the destination that is down, after one of each had ended", len(jobs["a"]), len(jobs["b"]),
			len(jobs["down"]))
	}
	s.add("c", "d")
	if more, _, err := s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 1, Slots: c.slots, Lease: lease}); err != nil || len(more) != 1 {
		s.Errorf("claimed %d, %v, with a maximum of 1", len(more), err)
	}
}

// addTo adds a message with a job for each of n destinations, after change has changed the jobs.
func (s *suite) addTo(n int, name string, change func(j *queue.Job)) {
	s.Helper()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint(name, " ", i))
	}
	e := s.entry(names...)
	for i := range e.Jobs {
		change(&e.Jobs[i])
	}
	s.must(s.Accept(s.Context(), noLimit, e))
}

// hostLimit checks that many destinations at one host leave room for others.
func (s *suite) hostLimit() {
	c := claimer{s, queue.NewSlots(100, slices.Concat(s.failing(40, "at one host"), s.failing(10, "other"))...)}
	s.addTo(40, "at one host", func(j *queue.Job) { j.Host = "push.example.org:443" })
	s.addTo(10, "other", func(*queue.Job) {})
	jobs := c.claim()
	if n := claimed(jobs); n != 16+10 {
		s.Fatalf("claimed %d", n)
	}
	for d, all := range jobs {
		if all[0].Host == "push.example.org:443" {
			c.end(jobs[d][0], queue.Delivered)
		}
	}
	if n := claimed(c.claim()); n != 16 {
		s.Errorf("claimed %d after 16 had ended", n)
	}
}

// clientLimit checks that clients get half of the slots, and the operator's
// destinations all of them.
func (s *suite) clientLimit() {
	c := claimer{s, queue.NewSlots(20, s.failing(30, "of the operator")...)}
	s.addTo(30, "of a client", func(j *queue.Job) { j.Client = true })
	jobs := c.claim()
	if len(jobs) != 10 {
		s.Fatalf("claimed %d of clients", len(jobs))
	}
	s.addTo(30, "of the operator", func(*queue.Job) {})
	operator := c.claim()
	if len(operator) != 10 {
		s.Fatalf("claimed %d of the operator", len(operator))
	}
	for _, all := range operator {
		c.end(all[0], queue.Delivered)
	}
	for d := range c.claim() {
		if operator[d] != nil || jobs[d] != nil {
			s.Errorf("claimed another job of %s", d)
		}
	}
}

// textLimit checks that large texts do not take much memory together.
func (s *suite) textLimit() {
	c := claimer{s, queue.NewSlots(100)}
	s.addTo(5, "large", func(j *queue.Job) { j.Text = 20 << 20 })
	s.addTo(5, "small", func(j *queue.Job) { j.Text = 1000 })
	jobs := c.claim()
	if n := claimed(jobs); n != 3+5 {
		s.Fatalf("claimed %d", n)
	}
	for _, all := range jobs {
		if all[0].Text == 20<<20 {
			c.end(all[0], queue.Delivered)
			break
		}
	}
	if n := claimed(c.claim()); n != 1 {
		s.Errorf("claimed %d after one had ended", n)
	}
	s.claim(s.now)
	huge := s.entry("huge")
	huge.Jobs[0].Text = 100 << 20
	s.must(s.Accept(s.Context(), noLimit, huge))
	c.slots = queue.NewSlots(100)
	if jobs := c.claim(); len(jobs["huge"]) != 1 {
		s.Error("a text larger than the limit has to be sent alone")
	}
}

// ownSlot checks that known destinations have slots when all shared ones are
// taken, however many others wait.
func (s *suite) ownSlot() {
	var known []queue.Health
	for i := range 10 {
		known = append(known, queue.Health{Destination: s.Hash(fmt.Sprint("known ", i)), Known: true, LastSuccess: s.now, Changed: s.now})
	}
	s.must(s.SaveHealth(s.Context(), known...))
	c := claimer{s, queue.NewSlots(20, slices.Concat(known, s.failing(300, "hangs"), s.failing(300, "other hangs"))...)}
	s.addTo(300, "hangs", func(j *queue.Job) { j.Host = "push.example.org:443" })
	s.addTo(300, "other hangs", func(*queue.Job) {})
	if n := claimed(c.claim()); n != 20 {
		s.Fatalf("claimed %d", n)
	}
	s.addTo(10, "known", func(j *queue.Job) { j.Host, j.Text = "push.example.org:443", 100<<20 })
	s.addTo(10, "known", func(*queue.Job) {})
	jobs := c.claim()
	for i := range 10 {
		if d := fmt.Sprint("known ", i); len(jobs[d]) != 1 {
			s.Errorf("claimed %d of %s", len(jobs[d]), d)
		}
	}
	if n := claimed(jobs); n != 10 {
		s.Errorf("claimed %d", n)
	}
	for _, all := range jobs {
		c.end(all[0], queue.Delivered)
	}
	if n := claimed(c.claim()); n != 10 {
		s.Errorf("claimed %d after they had ended", n)
	}
}

// failing returns the states of destinations that have failed once.
func (s *suite) failing(n int, name string) (states []queue.Health) {
	for i := range n {
		states = append(states, queue.Health{
			Destination: s.Hash(fmt.Sprint(name, " ", i)), Failures: 1, LastError: "timeout", Changed: s.now,
		})
	}
	return states
}

// untriedSlot returns the test that destinations that have not been tried have slots, however many
// others hang: n on their first message, as many on a later one, and as many of clients.
func untriedSlot(n int) func(s *suite) {
	return func(s *suite) {
		c := claimer{s, queue.NewSlots(queue.SharedSlots, s.failing(n, "fails")...)}
		for range 4 {
			s.addTo(n, "hangs", func(j *queue.Job) { j.Host = j.Destination })
		}
		s.addTo(n, "fails", func(j *queue.Job) { j.Host = j.Destination })
		s.addTo(n, "of a client", func(j *queue.Job) { j.Client, j.Host = true, j.Destination })
		hang := c.claim()
		for i := range n {
			if d := fmt.Sprint("hangs ", i); len(hang[d]) == 0 {
				s.Fatalf("claimed no job of %s", d)
			}
		}
		if got := claimed(hang); got > n+queue.SharedSlots {
			s.Errorf("claimed %d", got)
		}
		s.addTo(40, "new", func(j *queue.Job) { j.Host = "push.example.org:443" })
		if got := c.claim(); len(got) != 40 {
			s.Errorf("claimed jobs of %d of 40 destinations that have not been tried", len(got))
		}
	}
}

// untriedLimit checks that untried destinations take turns when there are more than slots, that large
// texts do not get these slots, and that one host leaves some to others.
func (s *suite) untriedLimit() {
	c := claimer{s, queue.NewSlots(2)}
	s.addTo(50, "untried", func(j *queue.Job) { j.Host = j.Destination })
	seen, atOnce := map[string]bool{}, []int{}
	for jobs := c.claim(); len(jobs) > 0; jobs = c.claim() {
		atOnce = append(atOnce, claimed(jobs))
		for d, all := range jobs {
			seen[d] = true
			c.end(all[0], queue.Delivered)
		}
	}
	if len(seen) != 50 || !slices.Equal(atOnce, []int{16, 16, 16, 2}) {
		s.Errorf("claimed jobs of %d of 50 destinations, %d at once", len(seen), atOnce)
	}
	s.addTo(10, "large", func(j *queue.Job) { j.Host, j.Text = j.Destination, queue.SmallText+1 })
	if n := claimed(c.claim()); n != 2 {
		s.Errorf("claimed %d with large texts", n)
	}
	s.claim(s.now)
	c.slots = queue.NewSlots(100)
	s.addTo(400, "at one host", func(j *queue.Job) { j.Host = "push.example.org:443" })
	if n := claimed(c.claim()); n != 256+16 {
		s.Errorf("claimed %d at one host", n)
	}
	s.addTo(10, "elsewhere", func(j *queue.Job) { j.Host = j.Destination })
	if n := claimed(c.claim()); n != 10 {
		s.Errorf("claimed %d of 10 at other hosts", n)
	}
}

// clockSetBack checks jobs that were written when the clock was ahead.
func (s *suite) clockSetBack() {
	s.now = s.now.Add(5 * time.Hour)
	ahead := s.entry("a")
	ahead.Jobs[0].Due = s.now.Add(5 * time.Second)
	s.must(s.Accept(s.Context(), noLimit, ahead))
	s.now = s.now.Add(-5 * time.Hour)
	e := s.entry("b")
	e.Jobs[0].Due = s.now.Add(time.Hour)
	s.must(s.Accept(s.Context(), noLimit, e))
	s.reopenStore()
	var jobs []queue.Job
	eventually(s.T, "the job that was written when the clock was ahead is due", func() bool {
		jobs = append(jobs, s.claim(s.now.Add(time.Minute))...)
		return len(jobs) > 0
	})
	if len(jobs) != 1 || jobs[0].Message != ahead.Message.ID {
		s.Errorf("claimed %v", jobs)
	}
}

// wake checks that a success makes due some of the jobs that wait for its destination, and no
// others.
func (s *suite) wake() {
	later := func(i int) time.Time { return s.now.Add(time.Duration(i+1) * time.Minute) }
	for i := range 20 {
		e := s.entry("a", "b")
		e.Jobs[0].Due, e.Jobs[1].Due = later(i), later(i)
		s.must(s.Accept(s.Context(), noLimit, e))
	}
	for range 2 { // what is due already counts
		more, err := s.Wake(s.Context(), queue.Wake{Now: s.now, Destinations: []queue.Hash{s.Hash("a"), s.Hash("c")}, Max: 8})
		s.must(err)
		if len(more) != 1 || more[0] != s.Hash("a") {
			s.Errorf("more wait for %v", more)
		}
	}
	jobs := s.claim(s.now)
	for _, j := range jobs {
		if j.Destination != "a" || j.Due.After(later(7)) {
			s.Errorf("claimed %+v", j)
		}
	}
	if len(jobs) != 8 {
		s.Errorf("claimed %d", len(jobs))
	}
	if more, err := s.Wake(s.Context(), queue.Wake{Now: s.now, Destinations: []queue.Hash{s.Hash("b")}}); err != nil || len(more) != 0 {
		s.Errorf("more wait for %v, %v", more, err)
	}
	if jobs := s.claim(s.now); len(jobs) != 20 {
		s.Errorf("claimed %d after all were woken", len(jobs))
	}
}

// wakeNotBefore checks that a success does not override what the destination has
// asked for, and that a person can.
func (s *suite) wakeNotBefore() {
	hour := s.now.Add(time.Hour)
	firm, soon := s.entry("a"), s.entry("a")
	firm.Jobs[0].Due, firm.Jobs[0].NotBefore = hour, hour
	soon.Jobs[0].Due, soon.Jobs[0].NotBefore = hour, s.now.Add(time.Minute)
	s.must(s.Accept(s.Context(), noLimit, firm, soon))
	wake := queue.Wake{Now: s.now, Destinations: []queue.Hash{s.Hash("a")}, Max: 8}
	_, err := s.Wake(s.Context(), wake)
	s.must(err)
	if jobs := s.claim(s.now); len(jobs) > 0 {
		s.Errorf("claimed %v", jobs)
	}
	if jobs := s.claim(s.now.Add(time.Minute)); len(jobs) != 1 || jobs[0].Message != soon.Message.ID {
		s.Errorf("claimed %v, want the one that may be sent", jobs)
	}
	wake.Max, wake.Force = 0, true
	_, err = s.Wake(s.Context(), wake)
	s.must(err)
	if jobs := s.claim(s.now); len(jobs) != 1 || jobs[0].Message != firm.Message.ID {
		s.Errorf("claimed %v", jobs)
	}
}

// retryQueued checks that a retry makes a waiting job due.
func (s *suite) retryQueued() {
	e := s.entry("a", "b", "c", "d")
	hour := s.now.Add(time.Hour)
	e.Jobs[0].Status = queue.Dead
	e.Jobs[1].Due, e.Jobs[1].NotBefore, e.Jobs[1].Attempts, e.Jobs[1].UnknownSince, e.Jobs[1].Spared = hour, hour, 3, s.now, true
	e.Jobs[2].Status = queue.Sending
	e.Jobs[3].Status = queue.Delivered
	s.must(s.Accept(s.Context(), noLimit, e))
	r, err := Retry(s.Context(), s, e.Message.ID, s.now, s.now.Add(week))
	s.must(err)
	if r != (queue.Retried{Dead: 1, Queued: 1}) {
		s.Errorf("retried: %+v", r)
	}
	s.statuses(e.Message.ID, queue.Queued, queue.Queued, queue.Sending, queue.Delivered)
	jobs := s.claim(s.now)
	slices.SortFunc(jobs, func(a, b queue.Job) int { return a.Compare(b.JobID) })
	if len(jobs) != 2 || jobs[0].Index != 0 || jobs[1].Index != 1 {
		s.Fatalf("claimed %v", jobs)
	}
	j := jobs[1]
	if j.Attempts != 3 || !j.NotBefore.IsZero() || !j.UnknownSince.IsZero() || j.Spared || !j.Expires.Equal(e.Jobs[1].Expires) {
		s.Errorf("hurried: %+v", j)
	}
}

// wantHealth compares the stored states.
func (s *suite) wantHealth(want ...queue.Health) {
	s.Helper()
	got, err := s.Health(s.Context(), 0)
	s.must(err)
	if len(got) != len(want) {
		s.Errorf("%d states, want %d", len(got), len(want))
	}
	for _, w := range want {
		found := false
		for _, g := range got {
			found = found || g.Destination == w.Destination && g.Host == w.Host && g.Client == w.Client && g.Known == w.Known &&
				g.Failures == w.Failures &&
				g.DownSince.Equal(w.DownSince) && g.LastSuccess.Equal(w.LastSuccess) && g.LastError == w.LastError && g.About == w.About &&
				g.Changed.Equal(w.Changed)
		}
		if !found {
			s.Errorf("states %+v, want %+v", got, w)
		}
	}
}

func (s *suite) health() {
	known := queue.Health{Destination: s.Hash("a"), Host: "a:443", Known: true, LastSuccess: s.now.Add(-time.Hour), Changed: s.now}
	down := queue.Health{
		Destination: s.Hash("b"), Host: "b:443", Client: true, Failures: 3, DownSince: s.now, LastSuccess: s.now.Add(-time.Hour),
		LastError: "connection refused", About: "ops", Changed: s.now,
	}
	s.must(s.SaveHealth(s.Context(), known, down))
	for range 2 {
		s.wantHealth(known, down)
		s.reopenStore()
	}
	down.Known, down.DownSince, down.Failures, down.LastError, down.Changed = true, time.Time{}, 0, "", s.now.Add(time.Second)
	s.must(s.SaveHealth(s.Context(), down, queue.Health{Destination: known.Destination}))
	s.wantHealth(down)
	s.must(s.Accept(s.Context(), 0)) // reports whether the store can be written
	if s.Hash("a") == s.Hash("b") || bytes.Contains([]byte(fmt.Sprint(s.Hash("a"))), []byte("a:443")) {
		s.Error("the hashes are wrong")
	}
}

// healthOfSettlement checks that a state is stored only together with the
// outcome that it comes from.
func (s *suite) healthOfSettlement() {
	s.add("a")
	j := s.claim(s.now)[0]
	j.Status, j.Updated = queue.Delivered, s.now
	known := queue.Health{Destination: s.Hash("a"), Known: true, LastSuccess: s.now, Changed: s.now}
	s.must(s.Settle(s.Context(), &queue.Settlement{Job: &j, Health: []queue.Health{known}}))
	other := known
	other.Destination = s.Hash("b")
	s.wantErr(s.Settle(s.Context(), &queue.Settlement{Job: &j, Health: []queue.Health{other}}), queue.ErrNotClaimed)
	s.reopenStore()
	s.wantHealth(known)
}

func (s *suite) waiting() {
	first := s.now
	s.add("a", "b")
	s.now = s.now.Add(time.Second)
	s.add("a")
	// The numbers may be old.
	want := func(destinations []queue.Hash, want ...queue.Waiting) {
		s.Helper()
		eventually(s.T, fmt.Sprintf("%+v wait", want), func() bool {
			got, err := s.Waiting(s.Context(), destinations...)
			s.must(err)
			return slices.EqualFunc(sorted(got), sorted(want), func(g, w queue.Waiting) bool {
				// The time can be precise to a second.
				return g.Destination == w.Destination && g.Jobs == w.Jobs && g.Client == w.Client && g.Since.Sub(w.Since).Abs() <= time.Second/2
			})
		})
	}
	a, b := queue.Waiting{Destination: s.Hash("a"), Jobs: 2, Since: first}, queue.Waiting{Destination: s.Hash("b"), Jobs: 1, Since: first}
	want(nil, a, b)
	want([]queue.Hash{s.Hash("a"), s.Hash("c")}, a)
	for _, j := range s.claim(s.now) {
		s.settle(j, queue.Delivered)
	}
	want(nil)
}

func sorted(all []queue.Waiting) []queue.Waiting {
	return slices.SortedFunc(slices.Values(all), func(a, b queue.Waiting) int { return bytes.Compare(a.Destination[:], b.Destination[:]) })
}

// sharedHealth checks that gateways see each other's states.
func (s *suite) sharedHealth() {
	other := s.handle()
	known := queue.Health{Destination: s.Hash("a"), Known: true, LastSuccess: s.now, Changed: s.now}
	s.must(other.SaveHealth(s.Context(), known))
	got, err := s.Health(s.Context(), time.Minute)
	s.must(err)
	if len(got) != 1 || got[0].Destination != known.Destination || !got[0].Known {
		s.Errorf("states: %+v", got)
	}
	if s.Hash("a") != other.Hash("a") {
		s.Error("the hashes differ")
	}
}

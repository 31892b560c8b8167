package rules

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// escalationModel drives one incident, and keeps the jobs as a queue does.
type escalationModel struct {
	t     *testing.T
	rule  *Escalate
	x     *Incident
	now   time.Time
	jobs  map[queue.JobID]queue.Status
	step  map[queue.JobID]StepJob
	paged int // attempts of steps

	told        map[int]bool // steps whose message a destination has
	unconfirmed []StepJob    // that a device has to confirm
}

// message is a failure to three destinations with numbers.
func (m *escalationModel) message() {
	id := queue.NewID()
	var jobs []StepJob
	for step := 1; step <= 3; step++ {
		for round := 1; round <= m.rule.Repeat; round++ {
			j := StepJob{Job: queue.JobID{Message: id, Index: len(jobs)}, Round: round, Step: step, Target: string(rune('a' + step))}
			jobs = append(jobs, j)
			m.step[j.Job] = j
		}
	}
	p := m.rule.Arrive(m.now, m.x, jobs, false, false)
	if n := len(p.Send) + len(p.Hold) + len(p.Drop); n != len(jobs) {
		m.t.Fatalf("%d of %d jobs are decided about", n, len(jobs))
	}
	if m.x.IsAcknowledged() && len(p.Send)+len(p.Hold) > 0 {
		m.t.Fatal("a message pages somebody although the incident is acknowledged")
	}
	m.set(p.Send, queue.Queued)
	m.set(p.Hold, queue.Held)
	m.set(p.Replaced, queue.Superseded)
}

func (m *escalationModel) set(jobs []StepJob, s queue.Status) {
	for _, j := range jobs {
		m.jobs[j.Job] = s
	}
}

// advance does what is due.
func (m *escalationModel) advance() {
	for range 100 {
		before := m.x.Escalation
		c := m.rule.Advance(m.now, m.x, 0, func(id queue.JobID) queue.Status { return m.jobs[id] })
		if !m.x.Sends() && len(c.Release) > 0 {
			m.t.Fatal("a step begins although nobody has to be told")
		}
		if c.Round > 0 && before.Next.After(m.now) && !before.Next.After(m.now.Add(m.rule.longest())) {
			m.t.Fatalf("a step begins at %s, and not at %s", m.now, before.Next)
		}
		m.set(c.Release, queue.Queued)
		m.set(c.Drop, queue.Superseded)
		if c.Again {
			m.x.Acknowledged, m.x.Escalation = Acknowledgement{}, Escalation{}
			m.message()
			continue
		}
		if c.Round == 0 {
			return
		}
	}
	m.t.Fatal("the escalation never rests")
}

// attempts makes the attempts that are due. Each reads the incident first.
func (m *escalationModel) attempts(r *rand.Rand) {
	for id, s := range m.jobs {
		if s != queue.Queued || r.IntN(3) == 0 { // a gateway was killed, or the job waits for another attempt
			continue
		}
		if !m.x.Sends() {
			m.jobs[id] = queue.Superseded
			m.x.Ended(m.now, id, false)
			continue
		}
		m.paged++
		delivered := r.IntN(4) > 0
		if m.jobs[id] = queue.Delivered; !delivered {
			m.jobs[id] = queue.Dead
		}
		if delivered && r.IntN(2) == 0 { // to a device
			next := m.x.Escalation.Next
			m.x.EndedUnconfirmed(m.now, m.step[id])
			m.unconfirmed = append(m.unconfirmed, m.step[id])
			if !m.x.Escalation.Next.Equal(next) {
				m.t.Fatal("the next step does not wait until a device confirms")
			}
			continue
		}
		m.told[m.step[id].Step] = m.told[m.step[id].Step] || delivered
		m.x.NoteOutcome(id, m.step[id].Step, delivered)
		m.x.Ended(m.now, id, delivered)
	}
}

// confirm lets devices confirm what they got, or the time for it be over.
func (m *escalationModel) confirm(r *rand.Rand) {
	m.unconfirmed = slices.DeleteFunc(m.unconfirmed, func(j StepJob) bool {
		if r.IntN(3) == 0 {
			return false
		}
		received := r.IntN(2) == 0
		m.told[j.Step] = m.told[j.Step] || received
		before := m.x.Escalation
		waited := slices.ContainsFunc(m.x.Unconfirmed, func(u StepJob) bool { return u.Job.Message == j.Job.Message && u.Target == j.Target })
		m.x.Confirmed(m.now, j.Job.Message, j.Target, j.Step, received)
		i := len(m.x.Begun) - 1
		for i >= 0 && m.x.Begun[i].Step != j.Step {
			i--
		}
		if got := m.x.Begun[i].Outcome; got == StepSending && waited || received && got != StepTold {
			m.t.Fatalf("confirmed %t, and the outcome of the step is %q", received, got)
		}
		s := &m.x.Escalation
		others := slices.ContainsFunc(slices.Concat(s.Sent, m.x.Unconfirmed), func(o StepJob) bool { return o.Step == s.Step })
		if round, _ := s.following(); waited && !received && j.Step == s.Step && round == s.Round &&
			m.x.Escalating() && !before.Reached && !others && !s.Next.Equal(m.now) {
			m.t.Fatalf("no device of step %d has confirmed, and the next one waits until %s", s.Step, s.Next)
		}
		return true
	})
}

// check checks what holds at any time.
func (m *escalationModel) check() {
	s := &m.x.Escalation
	for _, j := range s.Waiting {
		if m.x.Escalating() && m.jobs[j.Job] == queue.Held && (j.Round < s.Round || j.Round == s.Round && j.Step <= s.Step) {
			m.t.Fatalf("step %d of round %d is over, and its job waits", j.Step, j.Round)
		}
	}
	for id, status := range m.jobs {
		if status == queue.Held && !slices.ContainsFunc(s.Waiting, func(j StepJob) bool { return j.Job == id }) {
			m.t.Fatalf("a job of step %d of round %d is held by nobody", m.step[id].Step, m.step[id].Round)
		}
	}
	if !m.x.Sends() && (len(s.Waiting) > 0 || !s.Next.IsZero()) {
		m.t.Fatal("steps wait although nobody has to be told")
	}
	if m.x.Escalating() && (s.Next.IsZero() || s.Round > m.rule.Repeat) {
		m.t.Fatalf("the escalation stands still in round %d", s.Round)
	}
	for _, b := range m.x.Begun {
		if b.Outcome == StepTold && !m.told[b.Step] {
			m.t.Fatalf("step %d was told, and nobody has the message", b.Step)
		}
	}
	if got, err := decode(wire.Append(nil, m.x, (*Incident).Fields), (*Incident).Fields); err != nil ||
		len(got.Unconfirmed) != len(m.x.Unconfirmed) || len(got.Escalation.Waiting) != len(s.Waiting) {
		m.t.Fatal("the record does not keep the steps", err)
	}
}

// TestEscalationModel drives incidents through random failures, acknowledgements,
// resolutions, outages, kills and jumps of the clock.
func TestEscalationModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	paged := 0
	for range 400 {
		m := &escalationModel{
			t: t, rule: &Escalate{After: []time.Duration{5 * time.Minute, 15 * time.Minute}, Repeat: 1 + r.IntN(3), Ack: 4 * time.Hour},
			x:   &Incident{State: notifier.Open, Type: notifier.Failure},
			now: time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC), jobs: map[queue.JobID]queue.Status{},
			step: map[queue.JobID]StepJob{}, told: map[int]bool{},
		}
		m.message()
		for range 150 {
			switch r.IntN(14) {
			case 0:
				if m.x.IsOpen() {
					m.message()
				}
			case 1:
				cancelled, _ := m.x.Acknowledge(m.now, "Ann", m.rule.Ack)
				for _, j := range cancelled {
					if m.jobs[j.Job] == queue.Held {
						m.jobs[j.Job] = queue.Superseded
					}
				}
			case 2:
				if r.IntN(4) == 0 && m.x.IsOpen() {
					for _, j := range m.x.Close(m.now, "") {
						if m.jobs[j.Job] == queue.Held {
							m.jobs[j.Job] = queue.Superseded
						}
					}
				}
			case 3:
				m.now = m.now.Add(-time.Duration(r.IntN(3)) * time.Hour) // the clock is set back
			case 4, 5:
				m.attempts(r)
			case 6, 7:
				m.confirm(r)
			default:
				m.now = m.now.Add(time.Duration(r.IntN(600)) * time.Second)
			}
			m.advance()
			m.check()
		}
		paged += m.paged
	}
	if paged < 400 {
		t.Errorf("only %d pages", paged)
	}
}

// TestEscalationTimes checks when each step begins if nobody acknowledges, and what At
// promises.
func TestEscalationTimes(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &escalationModel{
		t: t, rule: &Escalate{After: []time.Duration{5 * time.Minute, 15 * time.Minute}, Repeat: 2, Ack: time.Hour},
		x:   &Incident{State: notifier.Open},
		now: start, jobs: map[queue.JobID]queue.Status{}, step: map[queue.JobID]StepJob{},
	}
	m.message()
	promised := map[[2]int]time.Duration{}
	for round := 1; round <= 2; round++ {
		for step := 1; step <= 3; step++ {
			promised[[2]int{round, step}] = m.rule.At(m.x, round, step).Sub(start)
		}
	}
	got := map[[2]int]time.Duration{{1, 1}: 0}
	for m.x.Escalating() {
		m.set(m.x.Escalation.Sent, queue.Delivered)
		m.now = m.now.Add(time.Minute)
		before := [2]int{m.x.Escalation.Round, m.x.Escalation.Step}
		m.advance()
		if at := [2]int{m.x.Escalation.Round, m.x.Escalation.Step}; at != before {
			got[at] = m.now.Sub(start)
		}
	}
	for at, minutes := range map[[2]int]int{{1, 1}: 0, {1, 2}: 5, {1, 3}: 20, {2, 1}: 35, {2, 2}: 40, {2, 3}: 55} {
		want := time.Duration(minutes) * time.Minute
		if got[at] != want || at != [2]int{1, 1} && promised[at] != want {
			t.Errorf("round %d, step %d: at %s, promised for %s, want %s", at[0], at[1], got[at], promised[at], want)
		}
	}
	if end := m.now.Sub(start); end != 70*time.Minute {
		t.Errorf("the rounds end after %s", end)
	}
}

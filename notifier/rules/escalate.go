package rules

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Escalate tells one person after the other about an incident, until somebody acknowledges
// it. The numbers of the tags of URLs are its steps: the lowest begins at once. URLs
// without a number are told at once, too.
type Escalate struct {
	// After are the times from each step to the next. The last one also is the time from
	// the last step to the first one of the next round.
	After []time.Duration

	Repeat int           // how many rounds there are
	Ack    time.Duration // how long an acknowledgement of an incident lasts that stays open

	Scope
}

// The bounds of an escalation.
const (
	maxSteps  = 20
	maxRounds = 20
)

// escalated are the types of messages that escalate by default.
var escalated = []notifier.Type{notifier.Failure}

// Check returns an error if the rule is malformed.
func (e *Escalate) Check() error {
	if len(e.After) == 0 || len(e.After) > maxSteps {
		return fmt.Errorf("it needs from 1 to %d durations, such as after 5m 15m: "+
			"from each step to the next, and from the last one to the first one", maxSteps)
	}
	for _, d := range e.After {
		if err := checkTime(d); err != nil {
			return fmt.Errorf("after: %w", err)
		}
	}
	if e.Repeat < 1 || e.Repeat > maxRounds {
		return fmt.Errorf("repeat: the number of rounds must be from 1 to %d", maxRounds)
	}
	if err := checkTime(e.Ack); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	for _, t := range e.Types {
		if t != notifier.Failure && t != notifier.Warning {
			return fmt.Errorf("types: %s does not open an incident; write failure, or failure warning", t)
		}
	}
	return e.Scope.Check()
}

// CheckSteps returns an error if the numbers of the URLs of a key do not fit the durations.
func (e *Escalate) CheckSteps(numbers []int) error {
	n := len(numbers)
	want := max(n-1, 1)
	switch {
	case n == 0:
		return errors.New("no URL of the key has a number in a tag, so that there are no steps; " +
			"give the URLs of whom to wake first the tag 1:oncall, and of whom next 2:oncall")
	case len(e.After) != want && n == 1:
		return fmt.Errorf("there is one step, so that one duration follows after; "+
			"there are %d: remove %d, or give further URLs the next numbers",
			len(e.After), len(e.After)-1)
	case len(e.After) != want:
		return fmt.Errorf("the number of durations of after is %d; for the steps %v it must be %d, the time from each step to the next",
			len(e.After), numbers, want)
	}
	return nil
}

// Covers reports whether a message that opens an incident, or tells that it is worse,
// escalates.
func (e *Escalate) Covers(t notifier.Type, state notifier.IncidentState) bool {
	return e != nil && state == notifier.Open && e.covers(t, escalated)
}

// MaxStepJobs is the maximum number of deliveries in all rounds of a message that
// escalates.
const MaxStepJobs = 500

// StepOf returns the number of the step that a destination with tags belongs to: the
// lowest of its numbers, or 0 for none.
func StepOf(tags []string) (step int) {
	for _, tag := range tags {
		if n, _ := notifier.SplitTag(tag); n != 0 && (step == 0 || n < step) {
			step = n
		}
	}
	return step
}

// IsStep reports whether a destination with these rules can be one of a step. r may be nil.
func (r *Rules) IsStep() bool { return r != nil && r.Escalate != nil }

// wait returns how long a step lasts.
func (e *Escalate) wait(x *Escalation) time.Duration {
	at := slices.Index(x.Steps(), x.Step)
	return e.After[min(max(at, 0), len(e.After)-1)]
}

// longest returns the longest time that a step lasts.
func (e *Escalate) longest() time.Duration { return slices.Max(e.After) }

// Steps returns the numbers of the steps, the lowest first.
func (x *Escalation) Steps() (steps []int) {
	for _, t := range x.Targets {
		if t.Step != 0 {
			steps = append(steps, t.Step)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// AddTarget adds a destination, unless it is known.
func (x *Escalation) AddTarget(t StepTarget) {
	if i := slices.IndexFunc(x.Targets, func(o StepTarget) bool { return o.Hash == t.Hash }); i >= 0 {
		x.Targets[i] = t
		return
	}
	x.Targets = append(x.Targets, t)
}

// StepPlan is what an escalation does with the jobs of a message.
type StepPlan struct {
	Send []StepJob // now
	Hold []StepJob // until their step

	// Drop are jobs of the message that no step needs. Replaced are jobs of older messages that
	// jobs of this one replace.
	Drop, Replaced []StepJob

	// Acknowledged means that nobody is told, because somebody takes care of it, and
	// Silenced that a silence keeps the steps from beginning.
	Acknowledged, Silenced bool
}

// Arrive decides about a message that escalates. jobs are its jobs for destinations with a number,
// one for each round. silenced means that a silence keeps the message from all of them. Then the
// steps begin when the silence ends (see Silence): with a message of the gateway, or with the
// message itself if it opened its own incident. held means that the rule that holds openings covers
// the message.
func (e *Escalate) Arrive(now time.Time, x *Incident, jobs []StepJob, silenced, held bool) (p StepPlan) {
	s := &x.Escalation
	if x.IsAcknowledged() && (x.Own || x.Acknowledged.lasts(now)) {
		s.addTargets(jobs) // they may be told of its end
		p.Acknowledged, p.Drop = true, jobs
		return p
	}
	x.restart(silenced)
	s.addTargets(jobs)
	if len(s.Steps()) == 0 {
		return p
	}
	switch {
	case s.Round != 0 || silenced:
	case held && x.HeldUntil.After(now):
		s.Round, s.Next, s.Held = 1, x.HeldUntil, true
	default:
		s.begin(now, 1, s.Steps()[0], e)
		x.Begun.add(now, s)
	}
	p.Replaced = s.replace(jobs)
	if silenced {
		s.planSilenced(now, x, jobs, &p)
	} else {
		s.plan(jobs, &p)
	}
	return p
}

// lasts reports whether the time of an acknowledgement is not over.
func (a *Acknowledgement) lasts(now time.Time) bool { return a.Until.IsZero() || a.Until.After(now) }

// restart clears, when a message escalates, an acknowledgement that is over, rounds that have
// ended, and a silence that has ended.
func (x *Incident) restart(silenced bool) {
	s := &x.Escalation
	if x.IsAcknowledged() {
		x.Acknowledged, *s = Acknowledgement{}, Escalation{}
	}
	if s.Exhausted {
		*s = Escalation{Sent: s.Sent}
	}
	if s.Silenced && !silenced && !x.Own { // the silence has ended, and this message tells what is open
		*s = Escalation{Targets: s.Targets, Waiting: s.Waiting, Sent: s.Sent}
	}
}

// addTargets adds the destinations of jobs.
func (x *Escalation) addTargets(jobs []StepJob) {
	for _, j := range jobs {
		x.AddTarget(StepTarget{j.Step, j.Target})
	}
}

// replace removes the waiting jobs for the destinations of jobs, and returns them.
func (x *Escalation) replace(jobs []StepJob) (replaced []StepJob) {
	x.Waiting = slices.DeleteFunc(x.Waiting, func(old StepJob) bool {
		found := slices.ContainsFunc(jobs, func(j StepJob) bool { return j.Target == old.Target })
		if found {
			replaced = append(replaced, old)
		}
		return found
	})
	return replaced
}

// planSilenced plans a message that a silence keeps from every step. Only a message that opened its
// own incident waits for the end of the silence, because nothing else can tell it.
func (s *Escalation) planSilenced(now time.Time, x *Incident, jobs []StepJob, p *StepPlan) {
	s.Round, s.Next = max(s.Round, 1), now.Add(silenceCheck)
	s.silence(x.Title)
	p.Silenced = true
	if x.Own {
		p.Hold, s.Waiting = jobs, slices.Clone(jobs)
		return
	}
	p.Replaced, s.Waiting = slices.Concat(p.Replaced, s.Waiting), nil
	p.Drop = jobs
}

// plan plans a message while the steps run: destinations that were told before are told now, once,
// and the jobs of later steps wait.
func (x *Escalation) plan(jobs []StepJob, p *StepPlan) {
	for _, j := range jobs {
		begun := x.Round > 1 || j.Step <= x.Step
		later := j.Round > x.Round || j.Round == x.Round && j.Step > x.Step
		switch {
		case begun && j.Round == 1:
			p.Send = append(p.Send, j)
			x.Sent = slices.DeleteFunc(x.Sent, func(old StepJob) bool { return old.Target == j.Target }) // j replaces it
			x.Sent = append(x.Sent, j)
		case later:
			p.Hold = append(p.Hold, j)
			x.Waiting = append(x.Waiting, j)
		default:
			p.Drop = append(p.Drop, j)
		}
	}
}

// begin begins a step.
func (x *Escalation) begin(now time.Time, round, step int, e *Escalate) {
	x.Round, x.Step, x.Reached, x.Held = round, step, false, false
	x.Next = now.Add(e.wait(x))
}

// StepChange is the change of an escalation when its time has come.
type StepChange struct {
	Release   []StepJob // are sent now
	Drop      []StepJob // are not sent, because the destination still waits for an earlier round, or no round follows
	Round     int       // that has begun with Step; 0 for none
	Step      int
	Exhausted bool // all rounds have ended
	Again     bool // the acknowledgement has ended, and the caller sends a message that escalates anew
}

// Advance does the work that is due in an escalation. hold is how long the key holds openings, 0
// for not at all, and status returns the status of a job. If the clock was set back or a rule has a
// shorter time now, Advance limits the wait to the time of the step or the hold.
func (e *Escalate) Advance(now time.Time, x *Incident, hold time.Duration, status func(queue.JobID) queue.Status) (c StepChange) {
	if a := &x.Acknowledged; x.IsAcknowledged() {
		if latest := now.Add(e.Ack); !a.Until.IsZero() && a.Until.After(latest) { // the rule or the clock has changed
			a.Until = latest
		}
		c.Again = x.IsOpen() && !a.Until.IsZero() && !a.Until.After(now)
		return c
	}
	s := &x.Escalation
	if !x.Escalating() || s.Silenced {
		return c
	}
	s.Waiting = slices.DeleteFunc(s.Waiting, func(j StepJob) bool { return status(j.Job) != queue.Held })
	s.Sent = slices.DeleteFunc(s.Sent, func(j StepJob) bool { return !status(j.Job).Waits() })
	longest := e.longest()
	if s.Held {
		longest = hold
	}
	if s.Next.After(now) && !s.Next.After(now.Add(longest)) {
		return c
	}
	for {
		round, step := s.following()
		if round > e.Repeat || len(s.Waiting) == 0 {
			c.Exhausted, c.Drop = true, s.Waiting
			s.Exhausted, s.EndedAt, s.Next, s.Waiting = true, now, time.Time{}, nil
			return c
		}
		s.begin(now, round, step, e)
		s.Waiting = slices.DeleteFunc(s.Waiting, func(j StepJob) bool {
			begins := j.Round < round || j.Round == round && j.Step <= step
			waits := slices.ContainsFunc(s.Sent, func(o StepJob) bool { return o.Target == j.Target })
			switch {
			case begins && waits:
				c.Drop = append(c.Drop, j)
			case begins:
				c.Release = append(c.Release, j)
			}
			return begins
		})
		if len(c.Release)+len(c.Drop) > 0 {
			s.Sent = append(s.Sent, c.Release...)
			c.Round, c.Step = round, step
			x.Begun.add(now, s)
			return c
		}
	}
}

// following returns the step after the present one.
func (x *Escalation) following() (round, step int) {
	steps := x.Steps()
	for _, n := range steps {
		if n > x.Step {
			return x.Round, n
		}
	}
	if len(steps) == 0 {
		return x.Round + 1, 0
	}
	return x.Round + 1, steps[0]
}

// Ended notes the outcome of a job of a step. If no destination of the present step gets the
// message, the next step begins at once.
func (x *Incident) Ended(now time.Time, job queue.JobID, delivered bool) {
	s := &x.Escalation
	i := slices.IndexFunc(s.Sent, func(j StepJob) bool { return j.Job == job })
	if i < 0 {
		return
	}
	j := s.Sent[i]
	s.Sent = slices.Delete(s.Sent, i, i+1)
	if j.Step != s.Step {
		return
	}
	if delivered {
		s.Reached = true
	}
	x.hurry(now)
}

// maxUnconfirmed is the maximum number of unconfirmed jobs in a record; it has the latest.
const maxUnconfirmed = 50

// EndedUnconfirmed replaces NoteOutcome and Ended for a job that a push service has taken for a
// device. The device is reached only when it confirms the message (see Confirmed).
func (x *Incident) EndedUnconfirmed(now time.Time, j StepJob) {
	if x.Sends() && !x.Escalation.hasSent(j.Job) {
		return // the job belongs to an earlier opening
	}
	j.Round = x.Escalation.Round
	x.Unconfirmed = append(x.Unconfirmed, j)
	x.Unconfirmed = x.Unconfirmed[max(len(x.Unconfirmed)-maxUnconfirmed, 0):]
	x.Ended(now, j.Job, false)
}

// Confirmed notes whether the device with the hash target has confirmed the message of a step. A
// device that has not confirmed in time counts as not reached.
func (x *Incident) Confirmed(now time.Time, message uuid.UUID, target string, step int, received bool) {
	s := &x.Escalation
	of := func(j StepJob) bool { return j.Job.Message == message && j.Target == target }
	i := slices.IndexFunc(x.Unconfirmed, of)
	if i < 0 && !received {
		return
	}
	x.Begun.note(step, outcomeOf(received))
	if i < 0 {
		return // it is late; the next step has begun
	}
	if j := x.Unconfirmed[i]; j.Step == s.Step && j.Round == s.Round {
		s.Reached = s.Reached || received
	}
	x.Unconfirmed = slices.DeleteFunc(x.Unconfirmed, of)
	x.hurry(now)
}

// hurry lets the next step of the round begin at once if no destination of the present one
// gets the message.
func (x *Incident) hurry(now time.Time) {
	s := &x.Escalation
	if s.Held {
		return
	}
	pending := slices.ContainsFunc(s.Sent, func(j StepJob) bool { return j.Step == s.Step }) ||
		slices.ContainsFunc(x.Unconfirmed, func(j StepJob) bool { return j.Step == s.Step && j.Round == s.Round })
	if round, _ := s.following(); x.Escalating() && !s.Reached && !pending && round == s.Round {
		s.Next = now
	}
}

// Skip notes that silences keep jobs of the present step from being sent. If no others are sent,
// the next step begins at once.
func (x *Incident) Skip(now time.Time, jobs []StepJob) {
	s := &x.Escalation
	s.Sent = slices.DeleteFunc(s.Sent, func(j StepJob) bool { return slices.Contains(jobs, j) })
	if !slices.ContainsFunc(s.Sent, func(j StepJob) bool { return j.Step == s.Step }) && !s.Next.IsZero() {
		s.Next = now
		x.Begun.note(s.Step, StepSilenced)
	}
}

// Acknowledge notes that somebody takes care of the incident, for ack; 0 for until it is resolved.
// It returns the jobs of the steps, which must not be sent any more. ok is false if the incident is
// resolved, or acknowledged already.
func (x *Incident) Acknowledge(now time.Time, by string, ack time.Duration) (cancelled []StepJob, ok bool) {
	if !x.IsOpen() || x.IsAcknowledged() {
		return nil, false
	}
	cancelled = x.Escalation.stop()
	x.Acknowledged = Acknowledgement{By: by, At: now}
	if x.Own {
		x.resolve(now, by)
	} else if ack > 0 {
		x.Acknowledged.Until = now.Add(ack)
	}
	return cancelled, true
}

// silence notes that a silence stops the steps of an incident with a title.
func (x *Escalation) silence(title string) {
	if !x.Silenced {
		x.Silenced, x.SilencedAs = true, title
	}
}

// hasSent reports whether a job belongs to a step that has begun and has not ended.
func (x *Escalation) hasSent(job queue.JobID) bool {
	return slices.ContainsFunc(x.Sent, func(j StepJob) bool { return j.Job == job })
}

// Again ends the steps and an acknowledgement of the incident, before a message of the gateway
// begins the steps again. It returns the jobs that wait for a step.
func (x *Incident) Again() (waiting []StepJob) {
	waiting = x.Escalation.Waiting
	unnumbered := slices.DeleteFunc(x.Escalation.Targets, func(t StepTarget) bool { return t.Step != 0 })
	x.Acknowledged, x.Escalation = Acknowledgement{}, Escalation{Targets: unnumbered}
	return waiting
}

// stop ends the steps, and returns the jobs of the unfinished ones.
func (x *Escalation) stop() []StepJob {
	jobs := slices.Concat(x.Sent, x.Waiting)
	x.Sent, x.Waiting, x.Next = nil, nil, time.Time{}
	return jobs
}

// silenceCheck is how often a silence is looked at, because it may be ended early.
const silenceCheck = time.Minute

// Silence is called when a step is due. It stops the steps while a silence matches the incident,
// and returns the jobs that must not be sent any more. again reports whether the silence has ended,
// so that the steps begin again. If the message opened its own incident, its jobs wait for the end
// of the silence instead.
func (x *Incident) Silence(now time.Time, silenced bool) (stopped []StepJob, again bool) {
	s := &x.Escalation
	if !x.Escalating() || s.Next.After(now) || !silenced && !s.Silenced {
		return nil, false
	}
	if !silenced {
		s.Silenced = s.Silenced && !x.Own
		return nil, s.Silenced
	}
	if s.Next = now.Add(silenceCheck); x.Own { // only its own message can tell it
		return nil, false
	}
	stopped, s.Waiting = s.Waiting, nil
	s.silence(x.Title)
	return stopped, false
}

// Calm ends the steps of an incident whose newest state does not escalate. It returns the jobs that
// must not be sent any more.
func (x *Incident) Calm() []StepJob {
	jobs := x.Escalation.Waiting
	x.Escalation = Escalation{Sent: x.Escalation.Sent}
	return jobs
}

// Close notes that the problem is over, and returns the jobs of the steps, which must not be sent
// any more. by is who said so; empty for a message.
func (x *Incident) Close(now time.Time, by string) []StepJob {
	jobs := x.Escalation.stop()
	x.resolve(now, by)
	return jobs
}

// Sends reports whether jobs of steps may be sent: the incident is open, and nobody has
// acknowledged it.
func (x *Incident) Sends() bool { return x.IsOpen() && !x.IsAcknowledged() }

// At returns the latest time at which a step begins.
func (e *Escalate) At(x *Incident, round, step int) time.Time {
	at := x.Escalation
	when := at.Next
	for range maxSteps * maxRounds {
		at.Round, at.Step = at.following()
		if at.Round > round || at.Round == round && at.Step >= step {
			return when
		}
		when = when.Add(e.wait(&at))
	}
	return when
}

// Abandon ends the steps of an incident whose key no longer has a rule for them. It returns one job
// for each destination that was not told yet, to release, and the other jobs, to drop.
func (x *Incident) Abandon() (release, drop []StepJob) {
	s := &x.Escalation
	for _, j := range s.Waiting {
		told := s.Round > 1 || j.Step <= s.Step || slices.ContainsFunc(release, func(o StepJob) bool { return o.Target == j.Target })
		if told || x.IsAcknowledged() || !x.IsOpen() {
			drop = append(drop, j)
		} else {
			release = append(release, j)
		}
	}
	*s = Escalation{Sent: slices.Concat(s.Sent, release)}
	return release, drop
}

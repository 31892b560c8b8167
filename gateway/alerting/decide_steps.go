package alerting

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// stepPlan is what the escalation decides about the destinations with numbers.
type stepPlan struct {
	d *decision
	rules.StepPlan
	jobs    []rules.StepJob        // of all rounds
	targets map[int]*decidedTarget // by the indexes of their jobs
}

// planSteps lets the escalation decide about the destinations with numbers that nothing else
// has decided about.
func (d *decision) planSteps() error {
	if !d.escalates || d.incident.known == nil {
		return nil
	}
	p := d.newStepPlan()
	p.StepPlan = d.escalate.Arrive(d.now, d.incident.known, p.jobs, d.allSteps != nil, d.holdsSteps())
	p.sendNow()
	p.endOlder()
	p.holdLater()
	p.dropOthers()
	p.replaceWaiting()
	p.storeIncident()
	return nil
}

// holdsSteps reports whether hold concerns all destinations of the steps. Otherwise they
// are told in their order.
func (d *decision) holdsSteps() bool {
	return !slices.ContainsFunc(d.steps, func(t *decidedTarget) bool { return t.rules == nil || t.rules.Hold == nil })
}

// newStepPlan returns the jobs that the escalation decides about.
func (d *decision) newStepPlan() *stepPlan {
	for _, t := range d.targets {
		if t.rules.IsStep() && t.step == 0 {
			d.incident.known.Escalation.AddTarget(rules.StepTarget{Hash: t.hash})
		}
	}
	p := &stepPlan{d: d, targets: map[int]*decidedTarget{}}
	for _, t := range d.steps {
		for round, at := range append([]int{t.job}, t.rounds...) {
			j := rules.StepJob{Job: queue.JobID{Message: d.entry.Message.ID, Index: at}, Round: round + 1, Step: t.step, Target: t.hash}
			p.jobs, p.targets[at] = append(p.jobs, j), t
		}
	}
	return p
}

// sendNow notes that destinations are told now. What other rules hold for them of older
// states is replaced.
func (p *stepPlan) sendNow() {
	for _, j := range p.Send {
		t := p.targets[j.Job.Index]
		if t.at.lane != none {
			p.d.replaceHeld(&p.d.entry.Jobs[t.job], t.lane.Replace(t.item))
			p.d.storeLane(t)
		}
		p.note(t, func(s *rules.Subject, m rules.Mark) {
			s.Paged(m, func(id queue.JobID) bool { return p.d.statuses[id].Waits() })
		})
	}
}

// endOlder ends what other rules hold of older states of the incident, which nobody tells
// after a step, an acknowledgement or a silence.
func (p *stepPlan) endOlder() {
	for _, j := range slices.Concat(p.Hold, p.Drop) {
		t := p.targets[j.Job.Index]
		if j.Round != 1 || t.at.lane == none {
			continue
		}
		for _, x := range t.lane.Replace(t.item) {
			if p.d.statuses[x.Job] == queue.Held {
				p.d.end(x.Job, j.Job, "")
			}
		}
		p.d.storeLane(t)
	}
}

// holdLater holds the jobs of later steps and rounds.
func (p *stepPlan) holdLater() {
	x := p.d.incident.known
	for _, j := range p.Hold {
		t, job := p.targets[j.Job.Index], &p.d.entry.Jobs[j.Job.Index]
		job.Status, job.Rule, job.Due = queue.Held, string(notifier.RuleEscalating), p.d.escalate.At(x, j.Round, j.Step)
		if p.Silenced {
			job.Due = job.Due.Add(p.d.allSteps.Until.Sub(x.Escalation.Next))
		}
		job.Ruled = p.d.entry.Jobs[t.job].Ruled
		if j.Job.Index == t.job {
			p.note(t, func(s *rules.Subject, m rules.Mark) { s.Next = m })
		}
	}
}

// dropOthers ends the jobs of the message that no step needs.
func (p *stepPlan) dropOthers() {
	rule, by := notifier.RuleEscalating, queue.JobID{}
	switch {
	case p.Acknowledged:
		rule = notifier.RuleAcknowledged
	case p.Silenced:
		rule, by.Message = notifier.RuleSilenced, p.d.allSteps.ID
	}
	for _, j := range p.Drop {
		dropStep(&p.d.entry.Jobs[j.Job.Index], by, rule, p.d.now)
	}
}

// replaceWaiting ends the jobs of older messages that those of this one replace.
func (p *stepPlan) replaceWaiting() {
	for _, old := range p.Replaced {
		i := slices.IndexFunc(p.jobs, func(j rules.StepJob) bool { return j.Target == old.Target })
		if i >= 0 && p.d.statuses[old.Job] == queue.Held {
			p.d.end(old.Job, p.jobs[i].Job, "")
		}
	}
}

// storeIncident stores the incident with its steps. A message of its own that only repeats
// others opens none.
func (p *stepPlan) storeIncident() {
	x := p.d.incident.known
	p.d.records.putIncident(p.d.tx, p.d.incident.name, x)
	if x.Own && !slices.ContainsFunc(p.d.entry.Jobs, func(j queue.Job) bool { return j.Status.Waits() }) {
		p.d.incident.forget(p.d.tx)
	}
}

// note changes what a destination knows.
func (p *stepPlan) note(t *decidedTarget, change func(s *rules.Subject, m rules.Mark)) {
	if t.at.subject != none {
		change(t.known, t.item.Mark())
		putSubject(p.d.tx, t.at.subject, t.known)
	}
}

// dropRounds ends the jobs of a target for the rounds after the first.
func (d *decision) dropRounds(x *decidedTarget, by queue.JobID, rule notifier.Rule) {
	for _, at := range x.rounds {
		dropStep(&d.entry.Jobs[at], by, rule, d.now)
	}
}

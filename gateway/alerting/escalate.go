package alerting

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// addRounds adds the jobs of the rounds after the first to an entry that escalates.
func (s *messagePlan) addRounds() {
	s.rounds, s.escalates = nil, false
	if s.Steps == nil || s.Rules == nil || s.Bypasses || !s.Rules.Escalate.Covers(s.Message.Type, dispatch.StateOf(s.Message)) {
		return
	}
	s.escalates = true
	s.rounds = map[int][]int{}
	for i, at := range s.To.Positions() {
		j := s.Entry.Jobs[at]
		if s.Steps[i] == 0 || !j.Status.Waits() {
			continue
		}
		j.Status = queue.Queued
		for range min(s.Rules.Escalate.Repeat-1, rules.MaxStepJobs/len(s.To.Targets)) {
			s.rounds[at] = append(s.rounds[at], len(s.Entry.Jobs))
			s.Entry.Jobs = append(s.Entry.Jobs, j)
		}
	}
}

// keepSubject returns the record of a subject that does not change.
func keepSubject(old []byte) queue.Record {
	if len(old) == 0 {
		return queue.Record{}
	}
	return subjectRecord(decodeSubject(old))
}

// steppedTarget is a destination with a number, and what it knows.
type steppedTarget struct {
	entryTarget
	state *rules.Subject
	held  *rules.Lane // what other rules hold for it
}

// appendWaiting appends the jobs that wait for the steps of an incident, which may be nil.
func appendWaiting(ids []queue.JobID, x *rules.Incident) []queue.JobID {
	if x == nil {
		return ids
	}
	for _, j := range x.Escalation.Waiting {
		if !slices.Contains(ids, j.Job) {
			ids = append(ids, j.Job)
		}
	}
	return ids
}

// reaches reports whether a message that does not escalate is for a destination with a
// number: it knows the incident as open, or rules hold a state of it, or it has the lowest
// number and the message is not the end or a part of an incident that others were told of.
func (u *entryRules) reaches(t *entryTarget, old [][]byte, held *rules.Lane) bool {
	if t.told >= 0 && decodeSubject(old[t.told]).Passed != "" {
		return true
	}
	if t.item.State != "" && held.Has(t.item.Subject) {
		return true
	}
	state := dispatch.StateOf(u.message)
	if u.incident != nil && u.incident.known != nil && state != notifier.Open {
		return false
	}
	for _, o := range u.targets {
		if o.step != 0 && o.step < t.step {
			return false
		}
	}
	return true
}

// dropStep ends a job that is not sent.
func dropStep(j *queue.Job, by queue.JobID, rule notifier.Rule, now time.Time) {
	j.Status, j.Rule, j.By, j.Updated = queue.Superseded, string(rule), by, now
}

// dropRounds ends the jobs of a destination for the rounds after the first.
func (u *entryRules) dropRounds(t *entryTarget, by queue.JobID, rule notifier.Rule, now time.Time) {
	for _, at := range t.rounds {
		dropStep(&u.entry.Jobs[at], by, rule, now)
	}
}

// planSteps lets the escalation decide about the destinations with numbers.
// A silence keeps the message from all of them if silence is not nil.
func (u *entryRules) planSteps(now time.Time, targets []steppedTarget, silence *rules.Silence, statuses map[queue.JobID]queue.Status, c *queue.RuledChange) {
	if !u.escalates || u.incident.known == nil {
		return
	}
	x := u.incident.known
	for _, t := range u.targets {
		if t.rules.IsStep() && t.step == 0 {
			x.Escalation.AddTarget(rules.StepTarget{Hash: t.hash})
		}
	}
	var jobs []rules.StepJob
	byJob := map[int]*steppedTarget{}
	for i := range targets {
		t := &targets[i]
		for round, at := range append([]int{t.job}, t.rounds...) {
			j := rules.StepJob{Job: queue.JobID{Message: u.entry.Message.ID, Index: at}, Round: round + 1, Step: t.step, Target: t.hash}
			jobs, byJob[at] = append(jobs, j), t
		}
	}
	plan := u.escalate.Arrive(now, x, jobs, silence != nil)
	for _, j := range plan.Send {
		t := byJob[j.Job.Index]
		if t.lane >= 0 {
			replaceHeld(c, &u.entry.Jobs[t.job], t.held.Replace(t.item), statuses)
			c.Records[t.lane] = laneRecord(t.held, now)
		}
		t.told(u, c, func(s *rules.Subject, m rules.Mark) {
			s.Paged(m, func(id queue.JobID) bool { return statuses[id].Waits() })
		})
	}
	for _, j := range slices.Concat(plan.Hold, plan.Drop) {
		if j.Round == 1 {
			byJob[j.Job.Index].dropOlder(u, c, statuses, j.Job, now)
		}
	}
	for _, j := range plan.Hold {
		job := &u.entry.Jobs[j.Job.Index]
		job.Status, job.Rule, job.Due = queue.Held, string(notifier.RuleEscalating), u.escalate.At(x, j.Round, j.Step)
		if plan.Silenced {
			job.Due = job.Due.Add(silence.Until.Sub(x.Escalation.Next))
		}
		t := byJob[j.Job.Index]
		job.Ruled = u.entry.Jobs[t.job].Ruled
		if j.Job.Index == t.job {
			t.told(u, c, func(s *rules.Subject, m rules.Mark) { s.Next = m })
		}
	}
	rule, by := notifier.RuleEscalating, queue.JobID{}
	switch {
	case plan.Acknowledged:
		rule = notifier.RuleAcknowledged
	case plan.Silenced:
		rule, by.Message = notifier.RuleSilenced, silence.ID
	}
	for _, j := range plan.Drop {
		dropStep(&u.entry.Jobs[j.Job.Index], by, rule, now)
	}
	for _, old := range plan.Replaced {
		i := slices.IndexFunc(jobs, func(j rules.StepJob) bool { return j.Target == old.Target })
		if i >= 0 && statuses[old.Job] == queue.Held {
			c.Jobs = append(c.Jobs, queue.JobChange{ID: old.Job, Apply: func(j *queue.Job) { dropStep(j, jobs[i].Job, "", now) }})
		}
	}
	c.Records[u.incident.name] = u.q.incidentRecord(x)
	if x.Own && !slices.ContainsFunc(u.entry.Jobs, func(j queue.Job) bool { return j.Status.Waits() }) {
		u.incident.forget(c) // it only repeats others
	}
}

// dropOlder ends what other rules hold of older states of the incident, which nobody tells
// after a step, an acknowledgement or a silence.
func (t *steppedTarget) dropOlder(u *entryRules, c *queue.RuledChange, statuses map[queue.JobID]queue.Status, by queue.JobID, now time.Time) {
	if t.lane < 0 {
		return
	}
	for _, x := range t.held.Replace(t.item) {
		if statuses[x.Job] == queue.Held {
			c.Jobs = append(c.Jobs, queue.JobChange{ID: x.Job, Apply: func(j *queue.Job) { dropStep(j, by, "", now) }})
		}
	}
	c.Records[t.lane] = laneRecord(t.held, now)
}

// stepsSilenced returns a silence that keeps a message which escalates from every
// destination with a number, or nil.
func (u *entryRules) stepsSilenced(now time.Time, silences *rules.KeySilences) (found *rules.Silence) {
	if silences == nil || !u.escalates || u.incident.known == nil {
		return nil
	}
	for _, t := range u.targets {
		if t.step == 0 {
			continue
		}
		if found = silences.All.MatchIncident(now, u.incident.known, t.tags); found == nil {
			return nil
		}
	}
	return found
}

// told changes what a destination knows.
func (t *steppedTarget) told(u *entryRules, c *queue.RuledChange, change func(s *rules.Subject, m rules.Mark)) {
	if t.subject >= 0 {
		change(t.state, t.item.Mark())
		c.Records[t.subject] = subjectRecord(t.state)
	}
}

// concludeIncident tells what the stored message has changed about its incident, and adds
// the link to its page.
func (s *messagePlan) concludeIncident(d *dispatch.Delivery) {
	if s.incident == nil || s.incident.known == nil {
		return
	}
	d.IncidentID = s.incident.known.ID
	if s.escalates {
		d.Message.AcknowledgeURL = d.Settings.AcknowledgeURL(s.incident.known)
	}
	for _, what := range s.incident.events {
		s.q.tellIncident(what, s.incident.known, d.By)
	}
}

// StepTurn reads the incident of a job of a message that escalates, if there is one. The
// outcome is not nil if the job belongs to a step and is not sent, because somebody takes
// care of the incident, or it is resolved.
func (q *Engine) StepTurn(ctx context.Context, j *queue.Job) (*rules.Incident, *queue.Outcome) {
	r, err := queued.DecodeRuled(j.Ruled)
	if err != nil || r.Incident == (queue.Hash{}) {
		return nil, nil
	}
	b, err := q.CallersRecord(ctx, r.Incident)
	if err != nil {
		return nil, &queue.Outcome{Postponed: true, RetryAfter: outbox.PostponeChain}
	}
	x := decodeIncident(b)
	over := x != nil && r.Opening != "" && r.Opening != x.ID // it has opened again
	if x == nil || r.Step == 0 && !over || x.Sends() && !over {
		return x, nil // a damaged record stops no alert
	}
	if r.Step == 0 {
		return nil, nil // the link would be that of another opening
	}
	o := &queue.Outcome{Status: queue.Superseded, Result: j.Result, NotSent: true}
	if !over && x.IsOpen() && x.IsAcknowledged() {
		o.Rule = string(notifier.RuleAcknowledged)
		q.App.Load().Shared.Metrics.Ruled(metrics.RuleEscalate, metrics.RuleOutcomeAcknowledged, 1)
	}
	return x, o
}

// tellIncident emits the event for a change of an incident. by is who made it, or "".
func (q *Engine) tellIncident(what string, x *rules.Incident, by string) {
	app := q.App.Load()
	if x.Source == site.SourceOwnEvent {
		return // a message about an event causes no other
	}
	app.Emit(event.Incident, func() map[string]any {
		return map[string]any{
			"change": what, "key": x.Key, "source": x.Source, "incident": x.Name, "type": string(x.Type),
			"round": x.Escalation.Round, "step": x.Escalation.Step, "by": by,
		}
	})
	if what == event.IncidentExhausted {
		q.Log.Warn("nobody has acknowledged an incident, and no further step follows; what is told of it from now on begins with the first step",
			zap.String("key", x.Key), zap.String("incident", x.Name), zap.Int("rounds", x.Escalation.Round))
	}
}

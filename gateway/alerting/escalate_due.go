package alerting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// errIncidentChanged is returned when an incident has changed since it was read.
var errIncidentChanged = errors.New("the incident has changed meanwhile")

// IncidentChange is a change of the record of an incident and of the jobs of its steps.
type IncidentChange struct {
	q    *Engine
	name queue.Hash
	jobs map[queue.JobID]*queue.Job // that wait for a step, as they were before

	// silenced are jobs that silences hold of a message which is an incident of its own.
	silenced []rules.StepJob

	X *rules.Incident // after the change; nil for none
}

// ChangeIncident changes the record of an incident, and jobs of its steps, in one
// transaction. change gets nil if there is no incident, and reports whether the record
// stays. It may be called several times.
func (q *Engine) ChangeIncident(ctx context.Context, name queue.Hash, change func(c *IncidentChange, r *queue.RuledChange, status func(queue.JobID) queue.Status) bool) (*rules.Incident, error) {
	for range maxReleases {
		b, err := q.Queue.CallersRecord(ctx, name)
		if err != nil {
			return nil, err
		}
		p := &IncidentChange{q: q, name: name}
		if p.jobs, err = q.stepJobs(ctx, decodeIncident(b)); err != nil {
			return nil, err
		}
		if p.silenced, err = q.silencedJobs(ctx, decodeIncident(b)); err != nil {
			return nil, err
		}
		names := []queue.Hash{name}
		var held []queue.Job
		for _, j := range p.jobs {
			held = append(held, *j)
			if r, err := queued.DecodeRuled(j.Ruled); err == nil {
				for _, s := range r.Subjects {
					if !slices.Contains(names, s.Name) {
						names = append(names, s.Name)
					}
				}
			}
		}
		err = q.Queue.Apply(ctx, &queue.Ruled{Names: names, Held: held, Decide: func(old [][]byte, status func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
			return p.decide(names, old, status, change)
		}})
		if !errors.Is(err, errIncidentChanged) {
			return p.X, err
		}
	}
	return nil, errIncidentChanged
}

// stepJobs returns the jobs that wait for steps of an incident, which may be nil.
func (q *Engine) stepJobs(ctx context.Context, x *rules.Incident) (map[queue.JobID]*queue.Job, error) {
	jobs := map[queue.JobID]*queue.Job{}
	if x == nil {
		return jobs, nil
	}
	entries := map[uuid.UUID]*queue.Entry{}
	for _, s := range x.Escalation.Waiting {
		e, ok := entries[s.Job.Message]
		if !ok {
			var err error
			if e, err = q.Queue.Get(ctx, s.Job.Message); err != nil && !errors.Is(err, queue.ErrNotFound) {
				return nil, err
			}
			entries[s.Job.Message] = e
		}
		if e != nil && s.Job.Index < len(e.Jobs) {
			jobs[s.Job] = &e.Jobs[s.Job.Index]
		}
	}
	return jobs, nil
}

// silencedJobs returns the jobs that silences hold of a message which is an incident of its
// own. x may be nil.
func (q *Engine) silencedJobs(ctx context.Context, x *rules.Incident) (jobs []rules.StepJob, err error) {
	if x == nil || !x.Own || !x.IsOpen() {
		return nil, nil
	}
	id, err := uuid.Parse(x.Name)
	if err != nil {
		return nil, nil // the record is damaged
	}
	e, err := q.Queue.Get(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Status == queue.Held && j.Rule == string(notifier.RuleSilenced) {
			jobs = append(jobs, rules.StepJob{Job: j.JobID})
		}
	}
	return jobs, nil
}

// decide is that of [queue.Ruled].
func (p *IncidentChange) decide(names []queue.Hash, old [][]byte, status func([]queue.JobID) ([]queue.Status, error), change func(*IncidentChange, *queue.RuledChange, func(queue.JobID) queue.Status) bool) (*queue.RuledChange, error) {
	now := p.q.Queue.Now()
	p.X = decodeIncident(old[0])
	var ids []queue.JobID
	if p.X != nil {
		for _, s := range slices.Concat(p.X.Escalation.Waiting, p.X.Escalation.Sent, p.silenced) {
			ids = append(ids, s.Job)
		}
	}
	for _, b := range old[1:] {
		if way := decodeSubject(b).Way; way.IsDigest() {
			ids = append(ids, way.Job)
		}
	}
	statuses := map[queue.JobID]queue.Status{}
	if len(ids) > 0 {
		all, err := status(ids)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			statuses[id] = all[i]
		}
	}
	if p.X != nil {
		for _, s := range p.X.Escalation.Waiting {
			if statuses[s.Job] == queue.Held && p.jobs[s.Job] == nil {
				return nil, errIncidentChanged
			}
		}
	}
	c := &queue.RuledChange{Records: make([]queue.Record, len(names))}
	for i := range names[1:] {
		c.Records[i+1] = keepSubject(old[i+1])
	}
	if change(p, c, func(id queue.JobID) queue.Status { return statuses[id] }) && p.X != nil {
		c.Records[0] = p.q.incidentRecord(p.X)
	}
	for _, j := range c.Release { // which its destination knows from now on
		r, err := queued.DecodeRuled(j.Ruled)
		if err != nil {
			continue
		}
		for _, s := range r.Subjects {
			subject := decodeSubject(old[slices.Index(names, s.Name)])
			mark := s.Mark
			mark.Job = j.JobID
			subject.Paged(mark, func(id queue.JobID) bool { return statuses[id].Waits() })
			if forget := now.Add(time.Hour); subject.Forget.Before(forget) {
				subject.Forget = forget
			}
			c.Records[slices.Index(names, s.Name)] = subjectRecord(subject)
		}
	}
	return c, nil
}

// release makes jobs of steps due.
func (p *IncidentChange) release(c *queue.RuledChange, jobs []rules.StepJob, status func(queue.JobID) queue.Status) {
	for _, s := range jobs {
		if j := p.jobs[s.Job]; j != nil && status(s.Job) == queue.Held {
			c.Release = append(c.Release, *j)
		}
	}
}

// drop ends jobs of steps. Those that wait for another attempt are due now: it finds that
// it is not needed.
func (p *IncidentChange) drop(c *queue.RuledChange, jobs []rules.StepJob, rule notifier.Rule, status func(queue.JobID) queue.Status) {
	now := p.q.Queue.Now()
	for _, s := range jobs {
		switch status(s.Job) {
		case queue.Held:
			c.Jobs = append(c.Jobs, queue.JobChange{ID: s.Job, Apply: func(j *queue.Job) { dropStep(j, queue.JobID{}, rule, now) }})
		case queue.Queued:
			c.Jobs = append(c.Jobs, queue.JobChange{ID: s.Job, Apply: func(j *queue.Job) { j.Due, j.NotBefore, j.Updated = now, time.Time{}, now }})
		}
	}
}

// dueIncident does what is due about an incident: the next step, the end of an
// acknowledgement, and the end of the record.
func (q *Engine) dueIncident(ctx context.Context, name queue.Hash, crowded bool) error {
	b, err := q.Queue.CallersRecord(ctx, name)
	if err != nil {
		return err
	}
	app := q.App.Load()
	var rule *rules.Escalate
	var k *site.Key
	var settings *site.Site
	if x := decodeIncident(b); x != nil {
		if k, settings, err = app.KeyOf(ctx, x); err != nil {
			return err
		}
		if k != nil && k.Rules != nil {
			rule = k.Rules.Escalate
		}
	}
	var silent map[string]bool
	silenced := false
	if x := decodeIncident(b); x != nil && x.Escalating() {
		if silent, silenced, err = q.silentSteps(ctx, k, x); err != nil {
			return err
		}
	}
	kept := false
	if x := decodeIncident(b); x != nil && !x.Forget.After(q.Queue.Now()) {
		if kept, err = q.waitsAbout(ctx, x, k); err != nil {
			return err
		}
	}
	keep := app.QueueSettings.Keep
	var step rules.StepChange
	var forgotten *rules.Incident
	untold := false // a silence has kept steps from beginning that the configuration does not have any more
	x, err := q.ChangeIncident(ctx, name, func(p *IncidentChange, c *queue.RuledChange, status func(queue.JobID) queue.Status) bool {
		now := q.Queue.Now()
		step, forgotten, untold = rules.StepChange{}, nil, false
		x := p.X
		if x == nil {
			return false
		}
		// What is open stays, and so does what people may still look at.
		surplus := crowded && !x.IsOpen() && now.Sub(x.Changed) > time.Hour
		switch {
		case rule == nil && silenced && x.Own:
			x.Silence(now, true)
		case rule == nil && len(x.Escalation.Waiting) > 0:
			release, drop := x.Abandon()
			p.release(c, release, status)
			p.drop(c, drop, notifier.RuleEscalating, status)
		case rule == nil:
			untold = x.Escalation.Silenced && x.Escalating()
			x.Escalation.Next, x.Acknowledged.Until, x.Escalation.Silenced = time.Time{}, time.Time{}, false
		default:
			var stopped []rules.StepJob
			if stopped, step.Again = x.Silence(now, silenced); len(stopped) > 0 {
				p.drop(c, stopped, notifier.RuleSilenced, status)
			}
			if step.Again {
				break
			}
			step = rule.Advance(now, x, status)
			var skipped []rules.StepJob
			if step.Release, skipped = splitSteps(step.Release, silent); len(skipped) > 0 {
				x.Skip(now, skipped)
				p.drop(c, skipped, notifier.RuleSilenced, status)
			}
			p.release(c, step.Release, status)
			p.drop(c, step.Drop, notifier.RuleEscalating, status)
		}
		if x.Lasts() || kept {
			x.Forget = now.Add(keep)
		}
		if surplus || !x.Forget.After(now) {
			if !x.Lasts() && len(x.Escalation.Sent) == 0 {
				forgotten = x
				return false
			}
			x.Forget = now.Add(keep)
		}
		return true
	})
	if err != nil {
		return err
	}
	if untold {
		q.Log.Warn("the steps of an incident that a silence has stopped are told by nobody, because the key has no escalate any more", zap.String("key", x.Key), zap.String("incident", x.Name))
	}
	switch {
	case forgotten == nil:
	case forgotten.IsOpen():
		q.Log.Info("an incident that is still open is forgotten, because nothing was heard of it", zap.String("key", forgotten.Key), zap.String("incident", forgotten.Name))
	default:
		q.Log.Debug("an incident that is resolved is forgotten", zap.String("key", forgotten.Key), zap.String("incident", forgotten.Name))
	}
	if n := len(step.Release); n > 0 {
		app.Shared.Metrics.Ruled(metrics.RuleEscalate, metrics.RuleOutcomeEscalated, n)
	}
	if step.Round > 0 {
		q.tellIncident(event.IncidentEscalated, x, "")
	}
	if step.Exhausted {
		q.tellIncident(event.IncidentExhausted, x, "")
	}
	if step.Again {
		return q.escalateAgain(ctx, x, k, settings)
	}
	return nil
}

// silentSteps returns which destinations of the steps of an incident silences match, by
// their hashes, and whether they are all. k is the key, or nil if it is gone.
func (q *Engine) silentSteps(ctx context.Context, k *site.Key, x *rules.Incident) (silent map[string]bool, all bool, err error) {
	silences, err := q.SilencesAt(ctx, PlaceOfIncident(x))
	if err != nil || len(silences) == 0 || k == nil {
		return nil, false, err
	}
	silent = map[string]bool{}
	for _, t := range k.Targets {
		if silences.MatchIncident(q.Queue.Now(), x, t.Tags) != nil {
			silent[t.Hash()] = true
		}
	}
	loud := func(t rules.StepTarget) bool { return t.Step != 0 && !silent[t.Hash] }
	return silent, !slices.ContainsFunc(x.Escalation.Targets, loud), nil
}

// splitSteps returns the jobs whose destinations are not silent, and the others.
func splitSteps(jobs []rules.StepJob, silent map[string]bool) (send, skipped []rules.StepJob) {
	for _, j := range jobs {
		if silent[j.Target] {
			skipped = append(skipped, j)
		} else {
			send = append(send, j)
		}
	}
	return send, skipped
}

// stillNeeded reports whether a message that the gateway makes about an incident is still
// needed: the incident is open and, if the message begins its steps again, the
// acknowledgement has ended.
func stillNeeded(d *dispatch.Delivery, now time.Time, x *rules.Incident) bool {
	if dispatch.StateOf(d.Message) == notifier.Resolved {
		return x.IsOpen()
	}
	until := x.Acknowledged.Until
	if x.Escalation.Silenced {
		return x.Escalating()
	}
	return x.IsOpen() && x.IsAcknowledged() && !until.IsZero() && !until.After(now)
}

// escalateAgain sends a message about an incident that is still open when its
// acknowledgement ends. Its steps begin again.
func (q *Engine) escalateAgain(ctx context.Context, x *rules.Incident, k *site.Key, settings *site.Site) error {
	body := fmt.Sprintf("This is open since %s. A silence has ended.", FormatDay(x.Opened))
	if x.IsAcknowledged() {
		body = fmt.Sprintf("This is open since %s. %s acknowledged it at %s.", FormatDay(x.Opened), Person(x.Acknowledged.By), FormatDay(x.Acknowledged.At))
	}
	m := &notifier.Message{Title: "Still open: " + strings.TrimPrefix(x.Title, "Still open: "), Body: body, Type: x.Type}
	to := x.Escalation.Targets
	if x.Escalation.Silenced && x.Escalation.Step == 0 { // those without a number are told what the silence has held
		to = slices.DeleteFunc(slices.Clone(to), func(t rules.StepTarget) bool { return t.Step == 0 })
	}
	err := q.acceptAbout(ctx, x, to, k, settings, m, "")
	if errors.Is(err, errIncidentChanged) {
		return nil // another gateway has sent it, or it is resolved
	}
	return err
}

// toldOf returns the destinations of a key that were told of an incident, or will be.
func (q *Engine) toldOf(ctx context.Context, x *rules.Incident, k *site.Key) (to []rules.StepTarget, err error) {
	for _, t := range k.Targets {
		b, err := q.Queue.CallersRecord(ctx, q.subjectName(PlaceOfIncident(x)+t.Policy().Key(), incidentSubject(x.Derived), site.DestinationOf(t, k.Limits)))
		if err != nil {
			return nil, err
		}
		if s := decodeSubject(b); s.Passed != "" || s.Next.Job != (queue.JobID{}) {
			to = append(to, rules.StepTarget{Hash: t.Hash()})
		}
	}
	return to, nil
}

// waitsAbout reports whether rules hold a message about an incident, or a silence matches
// it. k is its key, or nil if that is gone.
func (q *Engine) waitsAbout(ctx context.Context, x *rules.Incident, k *site.Key) (bool, error) {
	if k == nil {
		return false, nil
	}
	if x.IsOpen() {
		silences, err := q.SilencesAt(ctx, PlaceOfIncident(x))
		if err != nil || silences.MatchIncident(q.Queue.Now(), x, x.Tags) != nil {
			return true, err
		}
	}
	for _, t := range k.Targets {
		b, err := q.Queue.CallersRecord(ctx, q.subjectName(PlaceOfIncident(x)+t.Policy().Key(), incidentSubject(x.Derived), site.DestinationOf(t, k.Limits)))
		if err != nil {
			return false, err
		}
		next := decodeSubject(b).Next.Job
		if next == (queue.JobID{}) {
			continue
		}
		e, err := q.Queue.Get(ctx, next.Message)
		if err == nil && next.Index < len(e.Jobs) && e.Jobs[next.Index].Status == queue.Held {
			return true, nil
		}
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// acceptAbout stores a message of the gateway about an incident, for some of the
// destinations that messages about it have escalated to. by is who has made it, or "".
func (q *Engine) acceptAbout(ctx context.Context, x *rules.Incident, to []rules.StepTarget, k *site.Key, settings *site.Site, m *notifier.Message, by string) error {
	m.Format, m.Time = markup.Text, time.Now()
	m.Foreign = true // the title is that of another message, and may be a stranger's
	m.Incident = notifier.Incident{Name: x.Name, ID: x.Derived}
	targets := slices.Clone(k.Targets)
	targets = slices.DeleteFunc(targets, func(t notifier.Target) bool {
		return !slices.ContainsFunc(to, func(o rules.StepTarget) bool { return o.Hash == t.Hash() })
	})
	if len(targets) == 0 {
		targets = slices.Clone(k.DefaultTargets)
	}
	d := dispatch.NewDelivery(settings, site.SourceEscalation, x.Site, m, &api.Selection{Targets: targets}).ToKey(k)
	d.Format, d.By = x.Source, by
	e, stored := q.Entry(&d)
	e.Unlimited = true
	if err := q.Queue.Accept(ctx, e); err != nil {
		return err
	}
	stored()
	return nil
}

// recheckSteps looks at the incidents of jobs that wait for a step. Jobs that no incident
// knows are released, because a damaged record must not lose an alert.
func (q *Engine) recheckSteps(ctx context.Context, steps map[queue.Hash][]queue.Job) {
	for name, jobs := range steps {
		b, err := q.Queue.CallersRecord(ctx, name)
		if err != nil {
			return
		}
		x := decodeIncident(b)
		lost := slices.DeleteFunc(jobs, func(j queue.Job) bool {
			return x != nil && slices.ContainsFunc(x.Escalation.Waiting, func(s rules.StepJob) bool { return s.Job == j.JobID })
		})
		if len(lost) > 0 {
			q.releaseLost(ctx, lost)
		}
		if err := q.dueIncident(ctx, name, false); err != nil {
			q.Log.Error("the steps of an incident cannot be looked at", zap.Error(err))
		}
	}
}

// Person returns how messages name who did something on the page of an incident.
func Person(name string) string {
	if name == "" {
		return "Somebody"
	}
	return name
}

// FormatDay returns a time for people far away from the server.
func FormatDay(t time.Time) string { return t.UTC().Format("2 January 15:04 UTC") }

// Acknowledge notes that somebody takes care of an incident, whose steps end. by is who.
// ok is false if it is resolved or acknowledged already. x is nil if it is gone.
func (q *Engine) Acknowledge(ctx context.Context, at *StoredIncident, by string) (x *rules.Incident, ok bool, err error) {
	k, _, err := q.App.Load().KeyOf(ctx, at.Incident)
	if err != nil {
		return nil, false, err
	}
	ack := time.Duration(0)
	if k != nil && k.Rules.IsStep() {
		ack = k.Rules.Escalate.Ack
	}
	x, err = q.changeOpening(ctx, at, func(p *IncidentChange, c *queue.RuledChange, status func(queue.JobID) queue.Status) {
		var cancelled []rules.StepJob
		if cancelled, ok = p.X.Acknowledge(q.Queue.Now(), by, ack); ok {
			p.drop(c, slices.Concat(cancelled, p.silenced), notifier.RuleAcknowledged, status)
		}
	})
	if ok = ok && err == nil && x != nil; ok {
		q.App.Load().Shared.Metrics.Ruled(metrics.RuleEscalate, metrics.RuleOutcomeAcknowledged, 1)
		q.tellIncident(event.IncidentAcknowledged, x, by)
	}
	return x, ok, err
}

// changeOpening changes an incident with its public ID, unless it is gone or was opened
// anew; then it returns nil.
func (q *Engine) changeOpening(ctx context.Context, at *StoredIncident, change func(*IncidentChange, *queue.RuledChange, func(queue.JobID) queue.Status)) (*rules.Incident, error) {
	same := false
	x, err := q.ChangeIncident(ctx, at.name, func(p *IncidentChange, c *queue.RuledChange, status func(queue.JobID) queue.Status) bool {
		if same = p.X != nil && p.X.ID == at.ID; same {
			change(p, c, status)
		}
		return p.X != nil
	})
	if !same {
		return nil, err
	}
	return x, err
}

// Resolve notes on behalf of a person that an incident is over, and tells those who were
// told of it. ok is false if it is resolved already. x is nil if it is gone.
func (q *Engine) Resolve(ctx context.Context, at *StoredIncident, by string) (x *rules.Incident, ok bool, err error) {
	k, settings, err := q.App.Load().KeyOf(ctx, at.Incident)
	if err != nil {
		return nil, false, err
	}
	var to []rules.StepTarget
	if k != nil && !at.Own && at.IsOpen() {
		told, err := q.toldOf(ctx, at.Incident, k)
		if err != nil {
			return nil, false, err
		}
		to = slices.Concat(at.Escalation.Targets, told)
	}
	if len(to) > 0 {
		m := &notifier.Message{Title: "Resolved: " + at.Title, Body: Person(by) + " says that this is over.", Type: notifier.Success}
		err := q.acceptAbout(ctx, at.Incident, to, k, settings, m, by)
		if err != nil && !errors.Is(err, errIncidentChanged) {
			return nil, false, err
		}
		found, lookup := q.IncidentByID(ctx, at.ID)
		if lookup != nil || found == nil {
			return nil, false, lookup
		}
		return found.Incident, err == nil, nil
	}
	x, err = q.changeOpening(ctx, at, func(p *IncidentChange, c *queue.RuledChange, status func(queue.JobID) queue.Status) {
		if ok = p.X.IsOpen(); ok {
			p.drop(c, slices.Concat(p.X.Close(q.Queue.Now(), by), p.silenced), notifier.RuleAcknowledged, status)
		}
	})
	if ok = ok && err == nil && x != nil; ok {
		q.tellIncident(event.IncidentResolved, x, by)
	}
	return x, ok, err
}

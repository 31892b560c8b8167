package alerting

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// planner plans what happens to a new message.
type planner struct {
	outbox    *outbox.Outbox
	records   records
	incidents *Incidents
	silences  *Silences
}

// itemState returns the state of the incident that a message tells, or "".
func itemState(m *notifier.Message) notifier.IncidentState {
	if state := dispatch.StateOf(m); m.Incident.ID != "" && (state == notifier.Open || state == notifier.Resolved) {
		return state
	}
	return ""
}

// entryRules applies the rules of a key to the jobs of a message.
type entryRules struct {
	q       *planner
	entry   *queue.Entry
	message *notifier.Message
	key     string
	names   []queue.Hash
	targets []entryTarget

	incident *entryIncident  // nil if the message names none
	silences int             // the index of the name of the key's silences; -1 if none matters
	group    queue.Hash      // of the lanes in which silences hold something
	subjects queue.Hash      // the group of what destinations know
	decided  []rules.Verdict // of the targets, when decide has returned

	escalate  *rules.Escalate // of the key; nil for none
	escalates bool            // the message does
}

// entryTarget is a job that rules decide about.
type entryTarget struct {
	job                  int          // its index
	rules                *rules.Rules // without silences; nil for none
	tags                 []string
	origin               []byte
	item                 rules.Item
	lane, subject, about int // indexes of names; -1 for none

	step   int    // its number; 0 for none
	hash   string // of the destination
	rounds []int  // the jobs for the rounds after the first
	told   int    // the index of the name of what it knows of the incident; -1 for none
}

// messagePlan is what alerts plan for a message.
type messagePlan struct {
	*outbox.Draft
	q         *planner
	escalates bool           // the message does, if it can be stored
	incident  *entryIncident // of a key with rules; nil for none
	rounds    map[int][]int  // of a message that escalates: the jobs for the rounds after the first, by that of the first
	silences  rules.Silences // that may keep the message from a destination
	ruled     *entryRules    // what the rules decide; nil without rules
}

// plan is [Engine.Plan].
func (q *planner) plan(d *dispatch.Delivery, asked bool) *outbox.Plan {
	var silences rules.Silences
	if asked {
		silences = q.silences.of(d)
	}
	if d.Rules.Empty() && len(silences) == 0 {
		return nil
	}
	p := &messagePlan{q: q, silences: silences}
	return &outbox.Plan{Decide: p.decide, Stored: p.stored, Tells: p.tells}
}

// decide adds jobs and decisions to the entry.
func (s *messagePlan) decide(d *outbox.Draft) {
	s.Draft, s.ruled, s.incident = d, nil, nil
	s.addRounds()
	s.applyRules()
}

// stored counts and tells what was decided.
func (s *messagePlan) stored(d *dispatch.Delivery) {
	s.countRuled()
	s.concludeIncident(d)
}

// tells reports whether the message has to be told although it cannot be stored: it
// escalates. It reports false if nobody has to be told now: all are silent, or steps of the
// incident are under way, or somebody takes care of it.
func (s *messagePlan) tells(ctx context.Context) (silent []bool, ok bool) {
	if !s.escalates {
		return nil, false
	}
	if s.Message.Incident.ID != "" {
		b, err := s.q.outbox.Queue.CallersRecord(ctx, s.q.records.incidentName(s.Place(), s.Message.Incident.ID))
		if x := decodeIncident(b); err == nil && x != nil && x.Lasts() {
			return nil, false
		}
	}
	silent = make([]bool, len(s.To.Targets))
	for i, t := range s.To.Targets {
		silent[i] = s.silences.Match(s.q.outbox.Queue.Now(), s.Message.Incident, s.Message.Title, t.Tags) != nil
	}
	return silent, slices.Contains(silent, false)
}

// applyRules lets the rules of the key decide about the jobs of the entry when it is
// stored.
func (s *messagePlan) applyRules() {
	silenced := len(s.silences) > 0
	if s.Rules.Empty() && !silenced || s.Bypasses || s.Source == site.SourceTest {
		return
	}
	u := &entryRules{q: s.q, entry: s.Entry, message: s.Message, key: s.Key, silences: -1, escalates: s.escalates, subjects: s.q.records.subjectGroup(s.Place())}
	if silenced {
		u.silences, u.group = u.name(s.q.records.silencesName(s.Place())), s.q.records.silencedLanes(s.Place())
	}
	if !s.Rules.Empty() {
		u.escalate = s.Rules.Escalate
		s.recordIncident(u)
	}
	s.incident = u.incident
	for i, at := range s.To.Positions() {
		t := s.To.Targets[i]
		r := s.Rules.For(t.Tags)
		if site.Numbered(t.Tags) && !r.IsStep() {
			r = nil
		}
		if r == nil && !silenced || !s.Entry.Jobs[at].Status.Waits() {
			continue
		}
		holds := r != nil && r.Holds()
		if r.IsStep() && s.escalates {
			r = r.Passing() // but it replaces what the others hold
		}
		if s.Source == site.SourceEscalation && r != nil { // it repeats what was told
			r = &rules.Rules{Escalate: r.Escalate, Silences: r.Silences}
		}
		destination := s.Entry.Jobs[at].Destination
		x := entryTarget{
			job: at, rules: r, tags: t.Tags, lane: -1, subject: -1, about: -1, told: -1,
			item: rules.Item{
				Job: queue.JobID{Message: s.ID, Index: at}, Type: s.Message.Type, State: itemState(s.Message), Time: s.Message.Time,
				Alerts: s.Message.Incident.Alerts, Incident: s.Message.Incident, Title: s.Message.Title,
				Own: s.escalates && s.Message.Incident.ID == "",
			},
		}
		if silenced || holds {
			x.origin = s.States[i].Encode()
		}
		// What one policy forbids must neither hold up nor suppress what another one lets
		// pass.
		place := s.Place() + t.Policy().Key()
		if silenced || holds || s.Message.Incident.ID != "" { // a message that the rules of before have sent may be on its way
			x.lane = u.name(s.q.records.laneName(place, destination))
		}
		if r != nil && r.Dedupe != nil || x.item.State != "" {
			x.subject = u.name(s.q.records.subjectName(place, subjectOf(s.Draft.Delivery), destination))
			x.item.Subject = string(u.names[x.subject][:])
		}
		if x.lane >= 0 && x.item.State == "" && s.Message.Incident.ID != "" {
			x.about = u.name(s.q.records.subjectName(place, incidentSubject(s.Message.Incident.ID), destination))
			x.item.About = string(u.names[x.about][:])
		}
		if r.IsStep() {
			x.hash, x.step, x.rounds = t.Hash(), s.Steps[i], s.rounds[at]
			if x.step != 0 && s.Message.Incident.ID != "" {
				x.told = u.name(s.q.records.subjectName(place, incidentSubject(s.Message.Incident.ID), destination))
			}
		}
		if x.lane >= 0 || x.subject >= 0 || x.step != 0 || r.IsStep() && s.escalates {
			u.targets = append(u.targets, x)
		}
	}
	if len(u.names)+len(u.targets) > 0 {
		s.ruled, s.Entry.Rules = u, &queue.Ruled{Names: u.names, Decide: u.decide}
	}
}

// name returns the index of a name, which it adds if it is new.
func (u *entryRules) name(name queue.Hash) int {
	if i := slices.Index(u.names, name); i >= 0 {
		return i
	}
	u.names = append(u.names, name)
	return len(u.names) - 1
}

// decide is that of a [queue.Ruled].
func (u *entryRules) decide(old [][]byte, status statusFunc) (*queue.RuledChange, error) {
	now := u.q.outbox.Queue.Now()
	lanes, subjects := make([]*rules.Lane, len(old)), make([]*rules.Subject, len(old))
	var ids []queue.JobID // that the rules ask about
	for _, t := range u.targets {
		if t.lane >= 0 && lanes[t.lane] == nil {
			lanes[t.lane] = decodeLane(old[t.lane])
			for _, x := range lanes[t.lane].Items {
				if x.Subject != "" && x.Subject == t.item.Subject {
					ids = append(ids, x.Job)
				}
			}
		}
		if t.subject >= 0 && subjects[t.subject] == nil {
			subjects[t.subject] = decodeSubject(old[t.subject])
			for _, m := range []rules.Mark{subjects[t.subject].Next, subjects[t.subject].Way} {
				if m.Job != (queue.JobID{}) && !slices.Contains(ids, m.Job) {
					ids = append(ids, m.Job)
				}
			}
		}
		if t.about >= 0 && subjects[t.about] == nil {
			subjects[t.about] = decodeSubject(old[t.about])
			if way := subjects[t.about].Way.Job; way != (queue.JobID{}) {
				ids = append(ids, way)
			}
		}
	}
	if u.incident != nil {
		ids = appendWaiting(ids, decodeIncident(old[u.incident.name]))
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
	waits := func(id queue.JobID) bool { return id.Message == u.entry.Message.ID || statuses[id].Waits() }
	c := &queue.RuledChange{Records: make([]queue.Record, len(u.names))}
	if u.incident != nil {
		if err := u.incident.update(u, now, old, statuses, c); err != nil {
			return nil, err
		}
	}
	u.decided = u.decided[:0]
	var silences *rules.KeySilences
	var kept []uuid.UUID // the silences that keep the message from a destination
	if u.silences >= 0 {
		silences = decodeSilences(old[u.silences])
	}
	for _, t := range u.targets {
		if t.told >= 0 { // what is only read stays
			c.Records[t.told] = keepSubject(old[t.told])
		}
	}
	var steps []steppedTarget // that the escalation decides about
	stopped := u.stepsSilenced(now, silences)
	for _, t := range u.targets {
		j := &u.entry.Jobs[t.job]
		lane, subject := new(rules.Lane), new(rules.Subject)
		job := queued.Ruled{}
		if t.lane >= 0 {
			lane, job.Lane = lanes[t.lane], u.names[t.lane]
		}
		if t.subject >= 0 {
			subject = subjects[t.subject]
			subject.Group = u.subjects
			job.Subjects = []queued.Subject{{Name: u.names[t.subject], Mark: t.item.Mark()}}
		}
		if t.about >= 0 {
			t.item.After = subjects[t.about].Before(waits)
			if len(old[t.about]) > 0 {
				c.Records[t.about] = subjectRecord(subjects[t.about]) // as it was
			}
		}
		r := t.rules
		if silences != nil {
			r = r.WithSilences(silences.All.For(now, t.tags))
			lane.Group = u.group
		}
		lane.Origin = t.origin
		if r == nil { // the silence has ended
			r = new(rules.Rules)
		}
		var v rules.Verdict
		switch {
		case t.step != 0 && u.escalates && stopped != nil && !t.item.Own:
			steps = append(steps, steppedTarget{t, subject, lane})
		case t.step != 0 && u.escalates:
			if stopped != nil {
				r = t.rules // its steps wait for the end of the silence, unless it repeats others
			}
			var done bool
			if v, done = r.Repeats(now, lane, subject, t.item, waits, queue.NewID); done {
				u.dropRounds(&t, v.By, notifier.RuleSuppressed, now)
			} else {
				steps = append(steps, steppedTarget{t, subject, lane})
			}
		case t.step != 0 && !u.reaches(&t, old, lane):
			dropStep(j, queue.JobID{}, notifier.RuleEscalating, now)
			if t.subject >= 0 {
				c.Records[t.subject] = keepSubject(old[t.subject])
			}
			if t.lane >= 0 {
				c.Records[t.lane] = laneRecord(lane, now)
			}
			continue
		default:
			if u.incident != nil && u.incident.escalated {
				r = r.Passing() // what the alert has passed, its resolution passes, too
			}
			v = r.Arrive(now, lane, subject, t.item, waits, queue.NewID)
		}
		job.Repeats, job.Since = v.Repeats, v.Since
		if u.escalates && t.rules.IsStep() {
			job.Incident, job.Step, job.Opening = u.names[u.incident.name], t.step, u.incident.known.ID
		}
		j.Ruled = job.Encode()
		applyVerdict(j, v, now)
		u.decided = append(u.decided, v)
		if v.Silence != (uuid.UUID{}) && !slices.Contains(kept, v.Silence) {
			kept = append(kept, v.Silence)
		}
		replaceHeld(c, j, v.Replaced, statuses)
		if err := evict(c, v.Evicted, status, now); err != nil {
			return nil, err
		}
		if t.lane >= 0 {
			c.Records[t.lane] = laneRecord(lane, now)
		}
		if t.subject >= 0 {
			subject.Key = u.key
			c.Records[t.subject] = subjectRecord(subject)
		}
	}
	if stopped != nil && !slices.Contains(kept, stopped.ID) {
		kept = append(kept, stopped.ID)
	}
	if silences != nil && len(old[u.silences]) > 0 {
		silences.CountKept(kept)
		c.Records[u.silences] = u.q.records.silences(silences, now)
	}
	u.planSteps(now, steps, stopped, statuses, c)
	return c, nil
}

// replaceHeld releases held jobs that tell an older state than j, which replaces them.
func replaceHeld(c *queue.RuledChange, j *queue.Job, replaced []rules.Item, statuses map[queue.JobID]queue.Status) {
	for _, x := range replaced {
		if statuses[x.Job] == queue.Held {
			c.Release = append(c.Release, queue.Job{
				JobID: x.Job, Incident: j.Incident, Destination: j.Destination, NewState: true, Note: queued.Note(x.State, x.Time, false),
			})
		}
	}
}

// evict ends the jobs that are held no more because there is no room.
func evict(c *queue.RuledChange, evicted []rules.Evicted, status statusFunc, now time.Time) error {
	for _, x := range evicted {
		statuses, err := status([]queue.JobID{x.Job})
		if err != nil {
			return err
		}
		if statuses[0] != queue.Held {
			continue
		}
		rule, by := string(notifier.RuleDigested), x.By
		switch {
		case x.Newer:
			rule = ""
		case by == queue.JobID{}: // its problem was over before the silence
			rule, by.Message = string(notifier.RuleSilenced), x.Silence
		}
		c.Jobs = append(c.Jobs, queue.JobChange{ID: x.Job, Apply: func(j *queue.Job) {
			j.Status, j.Rule, j.By, j.Updated = queue.Superseded, rule, by, now
		}})
	}
	return nil
}

// applyVerdict changes a job by what the rules have decided.
func applyVerdict(j *queue.Job, v rules.Verdict, now time.Time) {
	switch v.Outcome {
	case rules.Send:
	case rules.Held:
		j.Status, j.Rule, j.Due = queue.Held, string(outbox.HoldRule(v.Hold)), v.Until
	case rules.Silenced:
		j.Status, j.Rule, j.By, j.Updated = queue.Superseded, string(notifier.RuleSilenced), queue.JobID{Message: v.Silence}, now
	case rules.Suppress:
		j.Status, j.Rule, j.By, j.Updated = queue.Superseded, string(notifier.RuleSuppressed), v.By, now
	case rules.Counted:
		j.Status, j.Rule, j.By, j.Updated = queue.Superseded, string(notifier.RuleDigested), v.By, now
	}
}

// countRuled counts what the rules have decided about the message.
func (s *messagePlan) countRuled() {
	if s.ruled == nil {
		return
	}
	counters := s.q.outbox.App.Load().Shared.Metrics
	for _, v := range s.ruled.decided {
		switch v.Outcome {
		case rules.Held, rules.Counted:
			counters.Ruled(v.Hold.Rule(), metrics.RuleOutcomeHeld, 1)
		case rules.Suppress:
			counters.Ruled(metrics.RuleDedupe, metrics.RuleOutcomeSuppressed, 1)
		case rules.Silenced:
			counters.Ruled(rules.BySilence.Rule(), metrics.RuleOutcomeSilenced, 1)
		case rules.Send:
		}
	}
}

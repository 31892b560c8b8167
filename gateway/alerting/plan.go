package alerting

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// planner plans what happens to a new message.
type planner struct {
	outbox    *outbox.Outbox
	records   records
	incidents *Incidents
	silences  *Silences
	shares    *shares
}

// messagePlan is what rules and silences plan for a message.
type messagePlan struct {
	draft    *outbox.Draft
	planner  *planner
	silences rules.Silences // that may keep the message from a destination

	escalates bool           // the message does, if it can be stored
	rounds    map[int][]int  // the jobs for later rounds of a message that escalates, by the job for the first
	ruled     *entryRules    // what the rules decide; nil without rules
	incident  *entryIncident // of a key with rules; nil for none
}

// plan does what [Engine.Plan] says.
func (p *planner) plan(d *dispatch.Delivery, asked bool) *outbox.Plan {
	var silences rules.Silences
	if asked && d.Question == nil { // a question says itself which destinations are silent
		silences = p.silences.Concerning(d)
	}
	if d.Rules.Empty() && len(silences) == 0 {
		return nil
	}
	m := &messagePlan{planner: p, silences: silences}
	silent := func() []bool { return p.silences.matching(d, silences) }
	return &outbox.Plan{Decide: m.decide, Stored: m.stored, Tells: m.tells, Silent: silent}
}

// decide adds jobs to the entry of the message, and what is decided about them when it is
// stored.
func (s *messagePlan) decide(d *outbox.Draft) {
	s.draft, s.ruled, s.incident = d, nil, nil
	s.addRounds()
	s.applyRules()
}

// stored counts and tells what was decided.
func (s *messagePlan) stored(d *dispatch.Delivery) {
	s.countRuled()
	s.concludeIncident(d)
}

// tells reports whether the message has to be told although it cannot be stored. That is so if it
// escalates, unless steps of the incident are under way or somebody takes care of it.
func (s *messagePlan) tells(ctx context.Context) bool {
	if !s.escalates {
		return false
	}
	if s.draft.Message.Incident.ID != "" {
		x, err := incidentRecords.Read(ctx, s.planner.outbox, s.planner.records.incidentName(s.draft.Place(), s.draft.Message.Incident.ID))
		if err == nil && x != nil && x.Lasts() {
			return false
		}
	}
	return true
}

// addRounds adds the jobs of the rounds after the first to an entry that escalates.
func (s *messagePlan) addRounds() {
	s.rounds, s.escalates = nil, false
	if s.draft.Steps == nil || s.draft.Rules == nil || s.draft.Bypasses || s.draft.Question == nil &&
		!s.draft.Rules.Escalate.Covers(s.draft.Message.Type, dispatch.StateOf(s.draft.Message)) {
		return
	}
	s.escalates = true
	s.rounds = map[int][]int{}
	for i, at := range s.draft.To.Positions() {
		j := s.draft.Entry.Jobs[at]
		if s.draft.Steps[i] == 0 || !j.Status.Waits() {
			continue
		}
		j.Status = queue.Queued
		for range min(s.draft.Rules.Escalate.Repeat-1, maxStepJobs/len(s.draft.To.Targets)) {
			s.rounds[at] = append(s.rounds[at], len(s.draft.Entry.Jobs))
			s.draft.Entry.Jobs = append(s.draft.Entry.Jobs, j)
		}
	}
}

// applyRules makes the rules of the key and its silences decide about the jobs of the entry
// when it is stored.
func (s *messagePlan) applyRules() {
	if s.draft.Rules.Empty() && len(s.silences) == 0 || s.draft.Bypasses || s.draft.Source == site.SourceTest {
		return
	}
	u := s.newEntryRules()
	s.incident = u.incident
	for i, at := range s.draft.To.Positions() {
		if x, ok := s.entryTarget(u, i, at); ok {
			u.targets = append(u.targets, x)
		}
	}
	if len(u.names)+len(u.targets) > 0 {
		s.ruled, s.draft.Entry.Rules = u, &queue.Ruled{Names: u.names, Decide: u.decide}
	}
}

// newEntryRules returns what decides about the entry, without targets.
func (s *messagePlan) newEntryRules() *entryRules {
	u := &entryRules{
		records: s.planner.records, clock: s.planner.outbox.Queue.Now, entry: s.draft.Entry, message: s.draft.Message, key: s.draft.Key,
		at: silencedKey{s.draft.At(), s.draft.Site}, windows: s.draft.Rules.SilenceWindows(), escalates: s.escalates,
		subjects: s.planner.records.subjectGroup(s.draft.Place()),
	}
	if len(s.silences) > 0 {
		u.silences, u.group = u.uses(s.planner.records.silencesName(s.draft.Place())), s.planner.records.silencedLanes(s.draft.Place())
	}
	if !s.draft.Rules.Empty() {
		u.hold, u.escalate = s.draft.Rules.Hold, s.draft.Rules.Escalate
		s.recordIncident(u)
	}
	return u
}

// entryTarget returns what decides about the i-th target of the message, whose job has the
// index at. ok is false if nothing does.
func (s *messagePlan) entryTarget(u *entryRules, i, at int) (x entryTarget, ok bool) {
	t, silenced := s.draft.To.Targets[i], len(s.silences)+len(u.windows) > 0
	r := targetRules(s.draft.Rules, t.Tags)
	if r == nil && !silenced || !s.draft.Entry.Jobs[at].Status.Waits() {
		return x, false
	}
	x = entryTarget{job: at, rules: s.messageRules(r), tags: t.Tags, item: s.item(at)}
	holds := silenced || r != nil && r.Holds()
	if holds {
		x.origin = s.draft.States[i].Encode()
	}
	incident := s.draft.Message.Incident.ID
	// What one policy forbids must not hold up or suppress what another one lets pass.
	place, destination := s.draft.Place()+t.Policy().Key(), s.draft.Entry.Jobs[at].Destination
	subject := func(of string) queue.Hash { return u.uses(s.planner.records.subjectName(place, of, destination)) }
	if holds || incident != "" { // a message that the rules of before have sent may be on its way
		x.at.lane = u.uses(s.planner.records.laneName(place, destination))
	}
	if r != nil && r.Dedupe != nil || x.item.State != "" {
		x.at.subject = subject(subjectOf(s.draft.Delivery))
		x.item.Subject = string(x.at.subject[:])
	}
	if x.at.lane != none && x.item.State == "" && incident != "" {
		x.at.about = subject(incidentSubject(incident))
		x.item.About = string(x.at.about[:])
	}
	if r.IsStep() {
		x.hash, x.step, x.rounds = t.Hash(), s.draft.Steps[i], s.rounds[at]
		if x.step != 0 && incident != "" {
			x.at.incident = subject(incidentSubject(incident))
		}
	}
	return x, x.at.lane != none || x.at.subject != none || x.step != 0 || r.IsStep() && s.escalates
}

// targetRules returns the rules of a key that decide about a destination with tags. It returns nil
// if the tags have a number that is no step: each message is then sent in the order of the numbers.
func targetRules(r *rules.Rules, tags []string) *rules.Rules {
	if r = r.For(tags); rules.StepOf(tags) != 0 && !r.IsStep() {
		return nil
	}
	return r
}

// messageRules returns the rules of a destination that decide about the message. r may be nil.
func (s *messagePlan) messageRules(r *rules.Rules) *rules.Rules {
	if r.IsStep() && s.escalates {
		r = r.Passing() // but it replaces what the others hold
	}
	if s.draft.Source == site.SourceEscalation && r != nil { // it repeats what was told
		r = &rules.Rules{Escalate: r.Escalate, Silences: r.Silences}
	}
	return r
}

// item returns the message as the rules see it, for the job with the index at.
func (s *messagePlan) item(at int) rules.Item {
	m := s.draft.Message
	return rules.Item{
		Job: queue.JobID{Message: s.draft.ID, Index: at}, Type: m.Type, State: itemState(m), Time: m.Time,
		Alerts: m.Incident.Alerts, Incident: m.Incident, Title: m.Title,
		Own: s.escalates && m.Incident.ID == "",
	}
}

// itemState returns the state of the incident that a message tells, or "".
func itemState(m *notifier.Message) notifier.IncidentState {
	if state := dispatch.StateOf(m); m.Incident.ID != "" && (state == notifier.Open || state == notifier.Resolved) {
		return state
	}
	return ""
}

// countRuled counts what the rules have decided about the message.
func (s *messagePlan) countRuled() {
	if s.ruled == nil {
		return
	}
	counters := s.planner.outbox.Dispatcher.Metrics
	for _, v := range s.ruled.decided {
		switch v.Outcome {
		case rules.Held, rules.Counted:
			counters.Ruled(v.Hold.Rule(), metrics.RuleOutcomeHeld, 1)
		case rules.Suppress:
			counters.Ruled(metrics.RuleDedupe, metrics.RuleOutcomeSuppressed, 1)
		case rules.Over:
			counters.Ruled(v.Hold.Rule(), metrics.RuleOutcomeSuppressed, 1)
		case rules.Silenced:
			counters.Ruled(rules.BySilence.Rule(), metrics.RuleOutcomeSilenced, 1)
		case rules.Send:
		}
	}
}

// concludeIncident tells what the stored message has changed about its incident, and adds
// the link to its page.
func (s *messagePlan) concludeIncident(d *dispatch.Delivery) {
	if s.incident == nil || s.incident.known == nil {
		return
	}
	d.IncidentID = s.incident.known.ID
	d.Message.Incident.OpenFor = s.incident.openFor
	if s.escalates {
		d.Message.Link = d.Settings.IncidentLink(s.incident.known)
	}
	for _, what := range s.incident.events {
		s.planner.incidents.tell(s.planner.outbox.Current(), what, s.incident.known, d.By)
	}
}

// entryIncident is what an entry does with the record of its incident.
type entryIncident struct {
	d        *dispatch.Delivery
	name, id queue.Hash // the names of the records of the incident, and of fresh
	fresh    string     // the public ID if the entry opens the incident
	keep     time.Duration
	own      bool        // the message names no incident
	full     func() bool // the key has no room for an incident that begins steps

	known  *rules.Incident // after the transaction; nil for none
	events []string        // what has happened

	openFor   time.Duration // how long the incident was open that the message resolves
	escalated bool          // the message resolves an incident whose steps have begun
}

// recordIncident adds the records of the incident of a message to the records that its entry
// changes. A message that escalates without naming an incident is an incident of its own.
func (s *messagePlan) recordIncident(u *entryRules) {
	incident, own := s.draft.Message.Incident.ID, s.draft.Message.Incident.ID == ""
	if own && !s.escalates {
		return
	}
	if own {
		incident = dispatch.OwnIncident(s.draft.ID)
	}
	fresh, place := rules.NewIncidentID(), s.draft.Place()
	u.incident = &entryIncident{
		d: s.draft.Delivery, name: u.uses(s.planner.records.incidentName(place, incident)), id: u.uses(s.planner.records.incidentIDName(fresh)),
		fresh: fresh, keep: s.planner.outbox.Queue.Keep(), own: own,
		full: func() bool { return s.planner.shares.isFull(place) },
	}
}

// update changes the records of the incident by its message, as part of decide.
func (i *entryIncident) update(d *decision) error {
	x, m, now := incidentRecords.Get(d.tx, i.name), i.d.Message, d.now
	i.known, i.events, i.escalated, i.openFor = nil, nil, false, 0
	state := dispatch.StateOf(m)
	var dropped []rules.StepJob
	if i.d.Source == site.SourceEscalation {
		if x == nil || !stillNeeded(i.d, now, x) {
			return errIncidentChanged
		}
		if state == notifier.Open {
			dropped = x.Again()
		}
	}
	rule := notifier.Rule("")
	switch {
	case state == notifier.Open && (x == nil || !x.IsOpen()):
		if d.escalates && i.full() {
			return errShareFull
		}
		before := x
		if x = i.open(); !i.own {
			x.Open(now, m.Type, before, d.hold)
		}
		d.tx.Put(i.id, incidentIDRecord(i.name, d.subjects, now.Add(i.keep)))
		i.events = append(i.events, event.IncidentOpened)
	case x == nil:
		return nil // it is resolved, or was never told
	case state == notifier.Resolved && x.IsOpen():
		i.openFor = max(now.Sub(x.Opened), 0)
		i.escalated = len(x.Escalation.Targets) > 0
		dropped = x.Close(now, i.d.By)
		i.events = append(i.events, event.IncidentResolved)
	case state == notifier.Acknowledged:
		ack := time.Duration(0)
		if d.escalate != nil {
			ack = d.escalate.Ack
		}
		var ok bool
		if dropped, ok = x.Acknowledge(now, cmp.Or(i.d.Format, i.d.Source), ack); ok {
			i.events = append(i.events, event.IncidentAcknowledged)
		}
		rule = notifier.RuleAcknowledged
	case state == notifier.Open && !d.escalates:
		dropped = append(dropped, x.Calm()...)
	}
	if state == notifier.Open || state == notifier.Resolved {
		x.Type, x.Tags = m.Type, tagNames(i.d.To.Targets)
		if i.d.Source != site.SourceEscalation {
			x.Title = incidentTitle(m)
		}
	}
	x.Site, x.Changed, x.Forget = i.d.Site, now, now.Add(i.keep)
	i.known = x
	for _, j := range dropped {
		if d.statuses[j.Job] == queue.Held {
			d.end(j.Job, queue.JobID{Message: d.entry.Message.ID}, rule)
		}
	}
	d.records.putIncident(d.tx, i.name, x)
	return nil
}

// forget takes back that the message opens an incident.
func (i *entryIncident) forget(tx *queue.Tx) {
	i.known, i.events = nil, nil
	tx.Delete(i.name)
	tx.Delete(i.id)
}

// open returns the incident that the message opens.
func (i *entryIncident) open() *rules.Incident {
	m, at := i.d.Message, i.d.At()
	x := &rules.Incident{
		ID: i.fresh, Home: at.Home, Key: at.Key, Source: cmp.Or(i.d.Format, i.d.Source), Name: m.Incident.Name, Derived: m.Incident.ID,
		State: notifier.Open, Opened: m.Time,
	}
	if i.own {
		x.Own, x.Name = true, i.d.ID.String()
	}
	return x
}

// incidentTitle returns the title by which people recognise an incident: never the text,
// which may be confidential.
func incidentTitle(m *notifier.Message) string {
	title := strings.TrimSpace(m.Title)
	if m.Format != markup.Text && title != "" {
		title = strings.Join(strings.Fields(markup.Convert(title, m.Format, markup.Text)), " ")
	}
	return markup.TruncateBytes(cmp.Or(title, m.Incident.Name, "An alert without a title"), rules.MaxIncidentTitle)
}

// maxIncidentTags is the maximum number of tags in the record of an incident.
const maxIncidentTags = 20

// tagNames returns the names of the tags of destinations.
func tagNames(targets []notifier.Target) (names []string) {
	for _, t := range targets {
		for _, tag := range t.Tags {
			if _, name := notifier.SplitTag(tag); !slices.Contains(names, name) && len(names) < maxIncidentTags {
				names = append(names, name)
			}
		}
	}
	return names
}

// stillNeeded reports whether a message that the gateway makes about an incident is still needed:
// the incident is open and, if the message begins its steps again, its acknowledgement has ended.
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

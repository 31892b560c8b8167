package alerting

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// entryRules decides about the jobs of a message when it is stored.
type entryRules struct {
	records records
	clock   func() time.Time
	entry   *queue.Entry
	message *notifier.Message
	key     string
	at      silencedKey  // the key
	names   []queue.Hash // of the records that it reads and changes
	targets []entryTarget

	incident *entryIncident        // nil if the message is about none
	silences queue.Hash            // the name of the key's silences; zero if none matters
	windows  []rules.SilenceWindow // of silences of the key
	group    queue.Hash            // of the lanes in which silences hold something
	subjects queue.Hash            // the group of what destinations know

	hold      *rules.Lasting  // of the key; nil for none
	escalate  *rules.Escalate // of the key; nil for none
	escalates bool            // the message does

	decided []rules.Verdict // of the targets, when decide has returned
}

// entryTarget is a job that rules decide about.
type entryTarget struct {
	job    int          // its index
	rules  *rules.Rules // without silences; nil for none
	tags   []string
	origin []byte // where the message goes, while a lane may hold it
	item   rules.Item

	at targetRecords

	opened bool   // the destination of a step knows the incident as open
	step   int    // its number; 0 for none
	hash   string // of the destination
	rounds []int  // the jobs for the rounds after the first
}

// targetRecords are the names of the records of a destination; zero for none.
type targetRecords struct {
	lane     queue.Hash // what is held for it
	subject  queue.Hash // what it knows of the message
	about    queue.Hash // what it knows of the incident that the message adds something to
	incident queue.Hash // what a destination of a step knows of the incident
}

var none queue.Hash // no record

// uses notes that the rules use the record with a name, and returns the name.
func (u *entryRules) uses(name queue.Hash) queue.Hash {
	if !slices.Contains(u.names, name) {
		u.names = append(u.names, name)
	}
	return name
}

// decide runs in the transaction that stores the message. It may run several times.
func (u *entryRules) decide(tx *queue.Tx) error {
	u.decided = u.decided[:0]
	d := &decision{entryRules: u, now: u.clock(), tx: tx, lanes: map[queue.Hash]*rules.Lane{}, known: map[queue.Hash]*rules.Subject{}}
	for _, stage := range []func() error{
		d.readRecords,
		d.updateIncident,
		d.readSilences,
		d.decideTargets,
		d.countSilenced,
		d.planSteps,
	} {
		if err := stage(); err != nil {
			return err
		}
	}
	return nil
}

// decision is one run of decide. Each stage reads what those before it have set.
type decision struct {
	*entryRules
	now time.Time
	tx  *queue.Tx

	lanes    map[queue.Hash]*rules.Lane    // by the names of their records
	known    map[queue.Hash]*rules.Subject // what destinations know
	statuses map[queue.JobID]queue.Status  // of the jobs that these mention

	keySilences *rules.KeySilences // as their record has them; nil if none matters
	holding     rules.Silences     // all that hold, also by windows
	allSteps    *rules.Silence     // keeps the message from every step; nil for none
	kept        []uuid.UUID        // the silences that keep it from a destination

	steps []*decidedTarget // that the escalation decides about
}

// readRecords reads what is held for the destinations and what they know, and the statuses
// of the jobs in it.
func (d *decision) readRecords() (err error) {
	var ids []queue.JobID
	for i := range d.targets {
		ids = d.readTarget(&d.targets[i], ids)
	}
	if d.incident != nil {
		ids = appendWaiting(ids, incidentRecords.Get(d.tx, d.incident.name))
	}
	d.statuses, err = statusesOf(ids, d.tx)
	return err
}

// readTarget reads the records of a target, and appends the jobs that the rules ask about.
func (d *decision) readTarget(t *entryTarget, ids []queue.JobID) []queue.JobID {
	if t.at.lane != none && d.lanes[t.at.lane] == nil {
		d.lanes[t.at.lane] = laneRecords.GetOrNew(d.tx, t.at.lane)
		for _, x := range d.lanes[t.at.lane].Items {
			if x.Subject != "" && x.Subject == t.item.Subject {
				ids = appendJob(ids, x.Job)
			}
		}
	}
	if t.at.subject != none && d.known[t.at.subject] == nil {
		s := subjectRecords.GetOrNew(d.tx, t.at.subject)
		d.known[t.at.subject] = s
		ids = appendJob(appendJob(ids, s.Next.Job), s.Way.Job)
	}
	if t.at.about != none && d.known[t.at.about] == nil {
		d.known[t.at.about] = subjectRecords.GetOrNew(d.tx, t.at.about)
		ids = appendJob(ids, d.known[t.at.about].Way.Job)
	}
	t.opened = t.at.incident != none && subjectRecords.GetOrNew(d.tx, t.at.incident).Passed != ""
	return ids
}

// appendJob appends a job, unless it is there or the zero value.
func appendJob(ids []queue.JobID, id queue.JobID) []queue.JobID {
	if id == (queue.JobID{}) || slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// appendWaiting appends the jobs that wait for the steps of an incident, which may be nil.
func appendWaiting(ids []queue.JobID, x *rules.Incident) []queue.JobID {
	if x == nil {
		return ids
	}
	for _, j := range x.Escalation.Waiting {
		ids = appendJob(ids, j.Job)
	}
	return ids
}

// waits reports whether a job is not final.
func (d *decision) waits(id queue.JobID) bool {
	return id.Message == d.entry.Message.ID || d.statuses[id].Waits()
}

// updateIncident changes the record of the incident by the message.
func (d *decision) updateIncident() error {
	if d.incident == nil {
		return nil
	}
	return d.incident.update(d)
}

// readSilences reads the silences of the key, and finds out whether one keeps the message
// from every step.
func (d *decision) readSilences() error {
	if d.silences != none {
		d.keySilences = silencesRecords.GetOrNew(d.tx, d.silences)
		d.holding = d.keySilences.All.WithWindows(d.now, d.windows)
		d.allSteps = d.silenceOfSteps()
	}
	return nil
}

// silenceOfSteps returns a silence that keeps a message which escalates from every
// destination with a number, or nil.
func (d *decision) silenceOfSteps() (found *rules.Silence) {
	if !d.escalates || d.incident.known == nil {
		return nil
	}
	for _, t := range d.targets {
		if t.step == 0 {
			continue
		}
		if found = d.holding.MatchIncident(d.now, d.incident.known, t.tags); found == nil {
			return nil
		}
	}
	return found
}

// decidedTarget is a target while it is decided about.
type decidedTarget struct {
	entryTarget
	applied *rules.Rules   // the rules that decide, with silences
	lane    *rules.Lane    // what is held for the destination; an empty one if nothing can be
	known   *rules.Subject // what it knows; an empty one if that does not matter
	ruled   queued.Ruled   // what its job stores for later
}

// decideTargets decides about each target except steps, which planSteps decides about.
func (d *decision) decideTargets() error {
	for _, t := range d.targets {
		x := d.target(t)
		v, ok := d.verdict(x)
		if !ok {
			d.dropUnreached(x)
			continue
		}
		if err := d.applyVerdict(x, v); err != nil {
			return err
		}
	}
	return nil
}

// target prepares a target.
func (d *decision) target(t entryTarget) *decidedTarget {
	x := &decidedTarget{entryTarget: t, applied: t.rules, lane: new(rules.Lane), known: new(rules.Subject)}
	if t.at.lane != none {
		x.lane, x.ruled.Lane = d.lanes[t.at.lane], t.at.lane
	}
	if t.at.subject != none {
		x.known = d.known[t.at.subject]
		x.known.Group = d.subjects
		x.ruled.Subjects = []queued.Subject{{Name: t.at.subject, Mark: t.item.Mark()}}
	}
	if t.at.about != none {
		x.item.After = d.known[t.at.about].Before(d.waits)
	}
	if d.keySilences != nil {
		x.applied = x.applied.WithSilences(d.holding.For(d.now, t.tags))
		x.lane.Group = d.group
	}
	x.lane.Origin = t.origin
	if x.applied == nil { // the silence has ended
		x.applied = new(rules.Rules)
	}
	return x
}

// verdict lets the rules decide about a target. It leaves a target of the escalation to planSteps.
// ok is false if the message is not for the target.
func (d *decision) verdict(x *decidedTarget) (v rules.Verdict, ok bool) {
	switch {
	case x.step != 0 && d.escalates && d.allSteps != nil && !x.item.Own:
		d.steps = append(d.steps, x)
	case x.step != 0 && d.escalates:
		r := x.applied
		if d.allSteps != nil {
			r = x.rules // its steps wait for the end of the silence, unless it repeats others
		}
		var done bool
		if v, done = r.Repeats(d.arrival(x)); done {
			d.dropRounds(x, v.By, notifier.RuleSuppressed)
		} else {
			d.steps = append(d.steps, x)
		}
	case x.step != 0 && !d.reaches(x):
		return v, false
	default:
		r := x.applied
		if d.incident != nil && d.incident.escalated {
			r = r.Passing() // what the alert has passed, its resolution passes, too
		}
		v = r.Arrive(d.arrival(x))
	}
	return v, true
}

// arrival returns the message as it comes in for a target.
func (d *decision) arrival(x *decidedTarget) rules.Arrival {
	a := rules.Arrival{Now: d.now, Lane: x.lane, Subject: x.known, Item: x.item, Waits: d.waits, NewID: queue.NewID}
	if d.incident != nil && d.incident.known != nil {
		a.Held = d.incident.known.HeldUntil
	}
	return a
}

// reaches reports whether a message that does not escalate is for a destination with a number. It
// is if the destination knows the incident as open, or rules hold a state of it. It also is if the
// number is the lowest, unless the message ends or adds to an incident that others were told of.
func (d *decision) reaches(x *decidedTarget) bool {
	if x.opened {
		return true
	}
	if x.item.State != "" && x.lane.Has(x.item.Subject) {
		return true
	}
	if d.incident != nil && d.incident.known != nil && dispatch.StateOf(d.message) != notifier.Open {
		return false
	}
	return !slices.ContainsFunc(d.targets, func(o entryTarget) bool { return o.step != 0 && o.step < x.step })
}

// dropUnreached ends the job of a target that the message is not for.
func (d *decision) dropUnreached(x *decidedTarget) {
	dropStep(&d.entry.Jobs[x.job], queue.JobID{}, notifier.RuleEscalating, d.now)
	d.storeLane(x)
}

// storeLane stores what is held for a target.
func (d *decision) storeLane(x *decidedTarget) {
	if x.at.lane != none {
		putLane(d.tx, x.at.lane, x.lane, d.now, d.subjects) // one that only counts may be forgotten
	}
}

// applyVerdict changes the job and the records of a target by what the rules have decided.
func (d *decision) applyVerdict(x *decidedTarget, v rules.Verdict) error {
	j := &d.entry.Jobs[x.job]
	x.ruled.Repeats, x.ruled.Since = v.Repeats, v.Since
	if d.incident != nil {
		x.ruled.OpenFor = d.incident.openFor
	}
	if d.escalates && x.rules.IsStep() {
		x.ruled.Incident, x.ruled.Step, x.ruled.Opening = d.incident.name, x.step, d.incident.known.ID
	}
	j.Ruled = x.ruled.Encode()
	setVerdict(j, v, d.now)
	d.decided = append(d.decided, v)
	if v.Silence != (uuid.UUID{}) && !slices.Contains(d.kept, v.Silence) {
		d.kept = append(d.kept, v.Silence)
	}
	d.replaceHeld(j, v.Replaced)
	if err := d.evict(v.Evicted); err != nil {
		return err
	}
	d.storeLane(x)
	if x.at.subject != none {
		x.known.Key = d.key
		putSubject(d.tx, x.at.subject, x.known)
	}
	return nil
}

// setVerdict changes a job by what the rules have decided.
func setVerdict(j *queue.Job, v rules.Verdict, now time.Time) {
	switch v.Outcome {
	case rules.Send:
	case rules.Held:
		j.Status, j.Rule, j.Due = queue.Held, string(outbox.HoldRule(v.Hold)), v.Until
	case rules.Silenced:
		dropStep(j, queue.JobID{Message: v.Silence}, notifier.RuleSilenced, now)
	case rules.Suppress:
		dropStep(j, v.By, notifier.RuleSuppressed, now)
	case rules.Counted:
		dropStep(j, v.By, notifier.RuleDigested, now)
	case rules.Over:
		dropStep(j, v.By, notifier.RuleHeld, now)
	}
}

// replaceHeld releases held jobs that tell an older state than j, which replaces them.
func (d *decision) replaceHeld(j *queue.Job, replaced []rules.Item) {
	for _, x := range replaced {
		if d.statuses[x.Job] == queue.Held {
			d.tx.Release(queue.Job{
				JobID: x.Job, Incident: j.Incident, Destination: j.Destination, NewState: true, Note: queued.Note(x.State, x.Time, false),
			})
		}
	}
}

// evict ends held jobs for which there is no room any more.
func (d *decision) evict(evicted []rules.Evicted) error {
	for _, x := range evicted {
		status, err := d.tx.StatusOf(x.Job)
		if err != nil {
			return err
		}
		if status != queue.Held {
			continue
		}
		rule, by := notifier.RuleDigested, x.By
		switch {
		case x.Newer:
			rule = ""
		case by == queue.JobID{}: // its problem was over before the silence
			rule, by.Message = notifier.RuleSilenced, x.Silence
		}
		d.end(x.Job, by, rule)
	}
	return nil
}

// end ends a job of another message that is not sent.
func (d *decision) end(id, by queue.JobID, rule notifier.Rule) {
	now := d.now
	d.tx.Change(id, func(j *queue.Job) { dropStep(j, by, rule, now) })
}

// dropStep ends a job that is not sent. by is the job that tells it instead.
func dropStep(j *queue.Job, by queue.JobID, rule notifier.Rule, now time.Time) {
	j.Status, j.Rule, j.By, j.Updated = queue.Superseded, string(rule), by, now
}

// countSilenced counts the message in the silences that have kept it from a destination.
func (d *decision) countSilenced() error {
	if d.keySilences == nil {
		return nil
	}
	if d.allSteps != nil && !slices.Contains(d.kept, d.allSteps.ID) {
		d.kept = append(d.kept, d.allSteps.ID)
	}
	d.keySilences.CountKept(d.kept, d.holding)
	if dispatch.StateOf(d.message) == notifier.Resolved {
		d.keySilences.Resolve(d.now, d.message.Incident)
	}
	d.keySilences.Home, d.keySilences.Key, d.keySilences.Site = d.at.Home, d.at.Key, d.at.site
	d.records.putSilences(d.tx, d.silences, d.keySilences, d.now)
	return nil
}

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

// holdsSteps reports whether hold concerns all destinations of the steps. If it does not, they are
// told in their order.
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

// sendNow notes that destinations are told now, and replaces older states that other rules hold for
// them.
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

// endOlder ends jobs of older states of the incident that other rules hold. Nobody is told them
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

// replaceWaiting ends jobs of older messages that jobs of this message replace.
func (p *stepPlan) replaceWaiting() {
	for _, old := range p.Replaced {
		i := slices.IndexFunc(p.jobs, func(j rules.StepJob) bool { return j.Target == old.Target })
		if i >= 0 && p.d.statuses[old.Job] == queue.Held {
			p.d.end(old.Job, p.jobs[i].Job, "")
		}
	}
}

// storeIncident stores the incident with its steps. A message that names no incident and only
// repeats others opens none.
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

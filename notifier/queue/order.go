package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// The jobs of one incident to one destination keep an order. A record has the jobs that are not
// final. It changes in the transaction that changes one of the jobs:
//
//   - At most one is due or being sent. The others are Held.
//   - A job that tells a new state replaces those before it that are not being sent,
//     which become Superseded. It gets their notes, so that it can tell what the
//     destination has missed.
//   - A job that is being sent is waited for. If it is not delivered, and a new state
//     waits, it is Superseded, too.
//   - A job that adds something to the incident waits for all jobs before it.
//   - A job that is dead holds up nothing. A new state replaces it as well.

// The bounds of a record.
const (
	maxHeld   = 50 // jobs that add something; a further one replaces the oldest
	maxMissed = 20 // notes; the oldest are counted
)

// order keeps the order of the jobs of incidents.
type order struct{ *core }

// line is the record of the jobs of one incident to one destination, in the order
// in which they were accepted.
type line struct {
	jobs    []linedJob
	missed  []missedJob
	omitted int // how many were left out of missed
}

// linedJob is a job that is not final.
type linedJob struct {
	id       JobID
	newState bool
	note     []byte
	status   Status // of now; not stored
}

// missedJob is a job that was not delivered.
type missedJob struct {
	id   JobID
	by   JobID // the job that tells it; zero for the next one
	note []byte
}

func (l *line) fields(c *wire.Codec) {
	wire.Records(c, 1, &l.jobs, (*linedJob).fields)
	wire.Records(c, 2, &l.missed, (*missedJob).fields)
	wire.Number(c, 3, &l.omitted)
}

func (j *linedJob) fields(c *wire.Codec) {
	idFields(c, 1, 2, &j.id)
	wire.True(c, 3, &j.newState)
	wire.Bytes(c, 4, &j.note)
}

func (m *missedJob) fields(c *wire.Codec) {
	idFields(c, 1, 2, &m.id)
	wire.Bytes(c, 4, &m.note)
	idFields(c, 5, 6, &m.by)
}

// idFields names the fields of an ID.
func idFields(c *wire.Codec, message, index wire.Field, id *JobID) {
	wire.Array(c, message, id.Message[:])
	wire.Number(c, index, &id.Index)
}

func (l *line) encode() []byte { return wire.Append(nil, l, (*line).fields) }

func decodeLine(b []byte) (*line, error) {
	l := new(line)
	err := wire.Decode(b, l, (*line).fields)
	return l, err
}

// empty reports whether there is nothing to remember.
func (l *line) empty() bool { return len(l.jobs)+len(l.missed)+l.omitted == 0 }

func (l *line) find(id JobID) *linedJob {
	for i := range l.jobs {
		if l.jobs[i].id == id {
			return &l.jobs[i]
		}
	}
	return nil
}

// arranged is what has to change so that a line is in order.
type arranged struct {
	superseded map[JobID]JobID // with the job that replaces each
	released   JobID           // was held and is due; zero for none
}

// arrange brings the line in order after a job was added or its status has
// changed. It drops final jobs.
func (l *line) arrange() arranged {
	a := arranged{superseded: map[JobID]JobID{}}
	l.jobs = slices.DeleteFunc(l.jobs, func(j linedJob) bool { return !j.status.Waits() && j.status != Dead })
	last := -1 // the newest state that waits
	adds := 0
	for i, j := range l.jobs {
		if j.newState && j.status.Waits() {
			last = i
		}
		if !j.newState && j.status == Held {
			adds++
		}
	}
	l.jobs = slices.DeleteFunc(slices.Clone(l.jobs), func(j linedJob) bool {
		i := slices.IndexFunc(l.jobs, func(o linedJob) bool { return o.id == j.id })
		var by JobID
		switch {
		case i < last && j.status != Sending && j.id.Message != l.jobs[last].id.Message:
			by = l.jobs[last].id
		case adds > maxHeld && !j.newState && j.status == Held:
			adds--
			by = l.jobs[len(l.jobs)-1].id
		default:
			return false
		}
		a.superseded[j.id] = by
		l.miss(j, by)
		return true
	})
	if !slices.ContainsFunc(l.jobs, func(j linedJob) bool { return j.status == Queued || j.status == Sending }) {
		if i := slices.IndexFunc(l.jobs, func(j linedJob) bool { return j.status == Held }); i >= 0 {
			l.jobs[i].status = Queued
			a.released = l.jobs[i].id
		}
	}
	return a
}

// miss notes that a job was not delivered. by is the job that tells it; zero for the next one.
func (l *line) miss(j linedJob, by JobID) {
	for i := range l.missed { // what j should have told
		if l.missed[i].by == j.id {
			l.missed[i].by = by
		}
	}
	if i := slices.IndexFunc(l.missed, func(m missedJob) bool { return m.id == j.id }); i >= 0 {
		l.missed[i].by = by
		return
	}
	l.missed = append(l.missed, missedJob{j.id, by, j.note})
	if n := len(l.missed) - maxMissed; n > 0 {
		l.missed, l.omitted = slices.Delete(l.missed, 0, n), l.omitted+n
	}
}

// tells reports whether a job tells m.
func (j *Job) tells(m missedJob) bool {
	return m.id != j.JobID && (m.by == j.JobID || m.by == JobID{})
}

// missedBy returns the notes that a job tells.
func (l *line) missedBy(j *Job) (m Missed) {
	for _, x := range l.missed {
		if j.tells(x) {
			m.Notes = append(m.Notes, x.note)
		}
	}
	m.Omitted = l.omitted
	return m
}

// delivered notes that a job was delivered, and with it what it tells.
func (l *line) delivered(j *Job) {
	l.missed = slices.DeleteFunc(l.missed, func(m missedJob) bool { return m.id == j.JobID || j.tells(m) })
	l.omitted = 0
}

// Missed is what a destination did not get before a message of the same incident.
type Missed struct {
	Notes   [][]byte // of the jobs, the oldest first
	Omitted int      // the number of earlier jobs
}

// lineName returns the name of the record of a job's line.
func (q *order) lineName(j *Job) Hash {
	return q.store.Hash("line\x00" + j.Incident + "\x00" + j.Destination)
}

// readLines reads lines and the statuses of their jobs, except the jobs in known. A damaged line is
// read as empty: [Queue.tidyOrder] then releases its jobs.
func (q *order) readLines(tx *Tx, names []Hash, known ...JobID) ([]*line, error) {
	lines := make([]*line, len(names))
	var ids []JobID
	for i, name := range names {
		l, err := decodeLine(tx.Get(name))
		if err != nil {
			q.options.Load().Logger.Error(fmt.Sprintf("the order of the messages of an incident is lost: %v", err))
			l = new(line)
		}
		lines[i] = l
		for _, j := range l.jobs {
			if !slices.Contains(known, j.id) {
				ids = append(ids, j.id)
			}
		}
	}
	statuses, err := tx.Status(ids...)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		for i := range l.jobs {
			if j := &l.jobs[i]; !slices.Contains(known, j.id) {
				j.status, statuses = statuses[0], statuses[1:]
			}
		}
	}
	return lines, nil
}

// putLines stores lines.
func (q *order) putLines(tx *Tx, names []Hash, lines []*line, now time.Time) {
	for i, l := range lines {
		if l.empty() {
			tx.Delete(names[i])
		} else {
			tx.Put(names[i], Record{Data: l.encode(), Due: now.Add(q.options.Load().Keep)})
		}
	}
}

// change changes the jobs for which own returns false; the caller changes the others.
func (a arranged) change(tx *Tx, now time.Time, own func(JobID) bool) {
	for id, by := range a.superseded {
		if !own(id) {
			tx.Change(id, func(j *Job) { j.supersede(by, now) })
		}
	}
	if a.released != (JobID{}) && !own(a.released) {
		tx.Change(a.released, func(j *Job) { j.release(now) })
	}
}

func (j *Job) supersede(by JobID, now time.Time) {
	j.Status, j.By, j.Updated = Superseded, by, now
}

// release makes a held job due.
func (j *Job) release(now time.Time) {
	j.Status, j.Due, j.Updated = Queued, now, now
}

// orderEntry makes the acceptance of a message keep the order of its incident.
// Jobs that have to wait are Held, also those that the caller wants to send.
func (q *order) orderEntry(e *Entry, now time.Time) {
	o := &entryOrder{q: q, entry: e, now: now, wanted: make([]Status, len(e.Jobs)), lineOf: make([]int, len(e.Jobs))}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		o.wanted[i], o.lineOf[i] = j.Status, -1
		if j.Incident != "" && j.Destination != "" {
			o.lineOf[i] = indexOrAdd(&o.lines, q.lineName(j))
		}
	}
	if len(o.lines) > 0 || e.Rules != nil {
		e.Update = &Update{Names: slices.Concat(e.Rules.names(), o.lines), Size: e.Rules.size(), Decide: o.decide}
	}
}

// entryOrder decides about the jobs of a message that is accepted: first by its rules, then
// by the lines of its incident.
type entryOrder struct {
	q      *order
	entry  *Entry
	now    time.Time
	wanted []Status // of the jobs, as the caller wants them
	lineOf []int    // the index of a job's line in lines; -1 for none
	lines  []Hash   // the names of the lines
}

// decide is the Decide of an [Update]. A store may call it more than once.
func (o *entryOrder) decide(tx *Tx) error {
	e := o.entry
	for i := range e.Jobs {
		j := &e.Jobs[i]
		j.Status, j.Rule, j.By = o.wanted[i], "", JobID{}
	}
	if err := e.Rules.run(tx); err != nil {
		return err
	}
	lines, err := o.q.readLines(tx, o.lines)
	if err != nil {
		return err
	}
	released := o.release(tx.release, lines)
	for i := range e.Jobs {
		j := &e.Jobs[i]
		if o.lineOf[i] < 0 || j.Rule != "" {
			continue
		}
		l := lines[o.lineOf[i]]
		if !l.enter(j, o.wanted[i]) {
			continue
		}
		a := l.arrange()
		a.change(tx, o.now, func(id JobID) bool { return id.Message == e.Message.ID || released[id] })
		for id := range a.superseded {
			if released[id] {
				o.q.unhold(tx, id, l, a, o.now)
			}
		}
		if x := l.find(j.JobID); x != nil && x.status == Held {
			j.Status = Held
		}
		j.Missed = l.missedBy(j)
	}
	o.q.putLines(tx, o.lines, lines, o.now)
	return nil
}

// release adds jobs that the rules release to the lines of the incident, and returns the added
// ones.
func (o *entryOrder) release(jobs []Job, lines []*line) map[JobID]bool {
	released := map[JobID]bool{}
	for i := range jobs {
		j := &jobs[i]
		if at := slices.Index(o.lines, o.q.lineName(j)); at >= 0 {
			lines[at].joinLine(j)
			released[j.JobID] = true
		}
	}
	return released
}

// enter adds a new job to its line, and reports whether the line has changed.
func (l *line) enter(j *Job, wanted Status) bool {
	x := linedJob{j.JobID, j.NewState, j.Note, Held}
	switch {
	case wanted == Dead:
		x.status = Dead
		l.jobs = append(l.jobs, x)
		l.miss(x, JobID{})
	case wanted.Waits():
		l.jobs = append(l.jobs, x)
	case wanted == Failed:
		l.miss(x, JobID{})
	default:
		return false
	}
	return true
}

// orderOutcome makes the settlement of a job keep the order of its incident, and adds the changes
// of rules when the job ends. The rules of a next message make changes, too.
func (q *order) orderOutcome(s *Settlement, rules *Ruled, now time.Time) {
	r := s.Job
	var nextRules *Ruled
	if s.Next != nil {
		nextRules = s.Next.Rules
	}
	if r.Incident == "" && rules == nil && nextRules == nil {
		return
	}
	outcome := *r
	next := s.Next
	names := joinNames(rules.names(), nextRules.names())
	var line []Hash
	if r.Incident != "" {
		line = []Hash{q.lineName(r)}
	}
	s.Update = &Update{Names: slices.Concat(names, line), Size: rules.size() + nextRules.size(), Decide: func(tx *Tx) error {
		*r, s.Next = outcome, next
		if err := q.settleLine(tx, line, s, now); err != nil {
			return err
		}
		if err := rules.run(tx); err != nil {
			return err
		}
		if tx.quiet {
			s.Next = nil
		}
		if s.Next == nil {
			return nil
		}
		return nextRules.run(tx)
	}}
}

// settleLine changes the line of a job that is settled. names is its name, or empty without an
// incident.
func (q *order) settleLine(tx *Tx, names []Hash, s *Settlement, now time.Time) error {
	r := s.Job
	lines, err := q.readLines(tx, names, r.JobID)
	if err != nil || len(lines) == 0 {
		return err
	}
	l := lines[0]
	j := l.find(r.JobID)
	if j == nil { // the record was lost
		l.jobs = slices.Insert(l.jobs, 0, linedJob{id: r.JobID, newState: r.NewState})
		j = &l.jobs[0]
	}
	j.note = r.Note
	switch r.Status {
	case Delivered:
		l.delivered(r)
		j.status = Delivered
	case Dead, Failed:
		l.miss(*j, JobID{})
		j.status = Dead
	default:
		j.status = r.Status
	}
	a := l.arrange()
	if by, ok := a.superseded[r.JobID]; ok {
		r.supersede(by, now)
		s.Next = nil
	} else if r.Status == Failed {
		l.jobs = slices.DeleteFunc(l.jobs, func(j linedJob) bool { return j.id == r.JobID })
	}
	a.change(tx, now, func(id JobID) bool { return id == r.JobID })
	q.putLines(tx, names, lines, now)
	return nil
}

// orderJobs changes jobs of one message that have an incident and are not held by rules, and
// keeps the order of the incident. It returns the earlier statuses of the changed jobs.
func (q *order) orderJobs(ctx context.Context, jobs []Job, now time.Time, f statusChange) (before []Status, err error) {
	var names []Hash
	byName := map[Hash][]*Job{}
	for i := range jobs {
		j := &jobs[i]
		if j.Incident == "" || !j.Status.Waits() && j.Status != Dead || j.heldByRule() {
			continue
		}
		name := q.lineName(j)
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], j)
	}
	if len(names) == 0 {
		return nil, nil
	}
	err = q.store.Update(ctx, &Update{Names: names, Decide: func(tx *Tx) error {
		lines, err := q.readLines(tx, names)
		if err != nil {
			return err
		}
		before = nil
		for i, l := range lines {
			statuses, own, err := l.change(tx, byName[names[i]], f)
			if err != nil {
				return err
			}
			before = append(before, statuses...)
			a := l.arrange()
			for id, change := range own {
				tx.Change(id, l.changeOf(id, a, change, now))
			}
			a.change(tx, now, func(id JobID) bool { return own[id] != nil })
		}
		q.putLines(tx, names, lines, now)
		return nil
	}})
	return before, err
}

// change gives jobs of the line the statuses of f, and returns their earlier statuses and the
// change of each job.
func (l *line) change(tx *Tx, jobs []*Job, f statusChange) (before []Status, own map[JobID]func(*Job), err error) {
	own = map[JobID]func(*Job){}
	for _, j := range jobs {
		x := l.find(j.JobID)
		if x == nil { // the record was lost
			now, err := tx.StatusOf(j.JobID)
			if err != nil {
				return nil, nil, err
			}
			l.jobs = append(l.jobs, linedJob{j.JobID, j.NewState, j.Note, now})
			x = &l.jobs[len(l.jobs)-1]
		}
		to, change := f(x.status)
		if to == 0 {
			continue
		}
		before = append(before, x.status)
		x.status, own[j.JobID] = to, change
		if to == Cancelled {
			l.missed = slices.DeleteFunc(l.missed, func(m missedJob) bool { return m.id == j.JobID })
		}
	}
	return before, own, nil
}

// changeOf returns the change of a job of the line, after a has arranged it.
func (l *line) changeOf(id JobID, a arranged, change func(*Job), now time.Time) func(*Job) {
	by, superseded := a.superseded[id]
	x := l.find(id)
	return func(j *Job) {
		j.Updated = now
		change(j)
		switch {
		case superseded:
			j.supersede(by, now)
		case x != nil:
			j.Status = x.status
		}
	}
}

// The bounds of what tidyOrder does at once.
const (
	maxLines = 500_000 // records without waiting jobs that are kept: for 100,000 open incidents, and more
	tidyJobs = 1000
	heldTime = 5 * time.Minute // until a held job is looked at
)

// tidyOrder releases jobs that are held although nothing is before them. That happens if a record
// was damaged. If there are too many records, it removes the records of incidents without waiting
// jobs, and lets the caller remove some of its own records.
func (w *dueWork) tidyOrder(now time.Time) {
	surplus, err := w.store.SurplusRecords(w.ctx, maxLines, tidyJobs)
	w.check(err)
	for _, name := range surplus {
		if !w.tidyCallers(name) {
			w.tidyRecord(name, now)
		}
	}
	w.eachHeld(func(held []Job) {
		for _, j := range held {
			if j.heldByRule() || now.Sub(j.Updated) < heldTime && !j.Updated.After(now) {
				continue
			}
			_, err := w.orderJobs(w.ctx, []Job{j}, now, func(Status) (Status, func(*Job)) { return 0, nil })
			w.check(err)
		}
	})
}

// tidyRecord removes the record of an incident without waiting jobs, or a damaged record.
func (q *order) tidyRecord(name Hash, now time.Time) {
	names := []Hash{name}
	q.check(q.store.Update(q.ctx, &Update{Names: names, Decide: func(tx *Tx) error {
		lines, err := q.readLines(tx, names)
		if err != nil {
			return err
		}
		l := lines[0]
		l.arrange().change(tx, now, func(JobID) bool { return false })
		if len(l.jobs) == 0 {
			lines[0] = new(line)
		}
		q.putLines(tx, names, lines, now)
		return nil
	}}))
}

// eachHeld calls f with all jobs that are Held, some at a time. It reports whether the
// store could list them.
func (q *order) eachHeld(f func(held []Job)) bool {
	var after JobID
	for {
		held, err := q.store.List(q.ctx, after, tidyJobs, Held)
		if err != nil {
			q.check(err)
			return false
		}
		f(held)
		if len(held) < tidyJobs {
			return true
		}
		after = held[len(held)-1].JobID
	}
}

// Idle reports whether the store knows nothing of an incident at any of the
// destinations. Then a message about it need not be stored to keep the order, if it
// is delivered at once and no other process uses the store.
func (q *order) Idle(ctx context.Context, incident string, destinations ...string) (bool, error) {
	for _, d := range destinations {
		r, err := q.store.Record(ctx, q.lineName(&Job{Incident: incident, Destination: d}))
		if _, damaged := errors.AsType[*DamagedError](err); err != nil && !damaged {
			return false, err
		}
		if r != nil || err != nil {
			return false, nil
		}
	}
	return true, nil
}

// followed reports whether another job of the incident waits for the outcome of j.
// One that begins to wait at this moment may be overlooked; then [Queue.tidyOrder]
// releases it.
func (q *order) followed(j *Job) bool {
	if j.Incident == "" {
		return false
	}
	b, err := q.store.Record(q.ctx, q.lineName(j))
	if err != nil {
		return true
	}
	l, err := decodeLine(b)
	return err != nil || len(l.jobs) == 0 || l.jobs[len(l.jobs)-1].id != j.JobID
}

// missed returns what a job of an incident has to tell about earlier jobs.
func (q *order) missed(ctx context.Context, j *Job) (Missed, error) {
	if j.Incident == "" {
		return Missed{}, nil
	}
	b, err := q.store.Record(ctx, q.lineName(j))
	if err != nil {
		if _, damaged := errors.AsType[*DamagedError](err); damaged {
			return Missed{}, nil
		}
		return Missed{}, err
	}
	l, err := decodeLine(b)
	if err != nil {
		return Missed{}, nil //nolint:nilerr // readLines reports it
	}
	return l.missedBy(j), nil
}

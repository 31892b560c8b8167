package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A model of a gateway with one destination: it keeps records as a store does, and all
// messages that ever came in. The rules see only the records. What they decide is
// compared with what follows from the messages.

// modelJob is a message to the destination.
type modelJob struct {
	item    Item
	status  queue.Status
	outcome Outcome // when it came in
	by      queue.JobID
	digest  []queue.JobID // the messages that it tells, if it is a digest
	more    int
	began   time.Time // when its delivery began
	silent  bool      // a silence has kept it from the destination, and nobody tells it
}

// start is the begin of the delivery of a message that rates count.
type start struct {
	at               time.Time
	alerts, ordinary bool // whether it tells any
}

type model struct {
	t        *testing.T
	rand     *rand.Rand
	now      time.Time
	zone     Zone
	rules    *Rules
	silences Silences
	lane     []byte
	subjects map[string][]byte

	incidents map[string]*Incident
	openings  map[string][]time.Time // of incidents; empty after the clock or the rules were changed

	jobs     map[queue.JobID]*modelJob
	order    []queue.JobID // in which messages came in
	told     []queue.JobID // in which the destination got them
	starts   []start       // of messages that rates count
	roomFrom time.Time     // when starts has all that counts; zero after the clock was changed
	next     uint32
	log      []string
}

func (m *model) logf(format string, args ...any) {
	m.log = append(m.log, m.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nrules %+v\n%s", fmt.Sprintf(format, args...), m.rules, strings.Join(m.log[max(0, len(m.log)-200):], "\n"))
}

func (m *model) id() uuid.UUID {
	m.next++
	return uuid.UUID{0: 1, 12: byte(m.next >> 24), 13: byte(m.next >> 16), 14: byte(m.next >> 8), 15: byte(m.next)}
}

func (m *model) waits(id queue.JobID) bool { return m.jobs[id] != nil && m.jobs[id].status.Waits() }

func (m *model) loadLane() *Lane {
	l, err := decode(m.lane, (*Lane).Fields)
	if err != nil {
		m.fail("%v", err)
	}
	return l
}

func (m *model) saveLane(l *Lane) {
	if m.lane = l.encode(); l.Empty(m.now) {
		m.lane = nil
	}
}

func (m *model) loadSubject(name string) *Subject {
	s, err := decode(m.subjects[name], (*Subject).Fields)
	if err != nil {
		m.fail("%v", err)
	}
	return s
}

// arrive lets a message come in.
func (m *model) arrive() {
	x := Item{Job: queue.JobID{Message: m.id()}, Type: Types[m.rand.IntN(len(Types))], Time: m.now}
	if n := m.rand.IntN(5); n < 3 {
		switch x.Type {
		case notifier.Failure, notifier.Warning:
			x.State = notifier.Open
		case notifier.Success:
			x.State = notifier.Resolved
		}
		if x.State != "" {
			x.Subject = fmt.Sprint("incident ", n)
		} else {
			x.About = fmt.Sprint("incident ", n)
			x.After = m.loadSubject(x.About).Before(m.waits)
		}
	}
	if x.Subject == "" && m.rules.Dedupe != nil {
		x.Subject = fmt.Sprint("text ", m.rand.IntN(4), x.Type)
	}
	x.Title = modelTitles[m.rand.IntN(len(modelTitles))]
	if x.State != "" {
		x.Incident.Name = x.Subject
	} else {
		x.Incident.Name = x.About
	}
	want, certain := m.repeats(&x)
	held := m.openOrResolve(&x)
	silent, alert := m.mustBeSilent(&x), m.isAlert(&x)
	l, s := m.loadLane(), new(Subject)
	if x.Subject != "" {
		s = m.loadSubject(x.Subject)
	}
	if x.State == notifier.Resolved {
		x.Passed = s.Passed
	}
	opens := x.State == notifier.Open && s.Passed == "" && !m.waitsAsOpen(x.Subject)
	v := m.rules.WithSilences(m.holding().For(m.now, nil)).Arrive(Arrival{
		Now: m.now, Lane: l, Subject: s, Item: x, Waits: m.waits, NewID: m.id, Held: held,
	})
	if x.Subject != "" {
		m.subjects[x.Subject] = s.encode()
	}
	m.saveLane(l)
	j := &modelJob{item: x, outcome: v.Outcome, by: v.By}
	m.jobs[x.Job] = j
	m.order = append(m.order, x.Job)
	m.logf("%s %s %s %q: %v until %s silence %s title %q passed %q", x.Job.Message.String()[30:], x.Type,
		x.State, x.Subject, v.Outcome, v.Until.Format("15:04:05"), v.Silence.String()[30:], x.Title, s.Passed)
	bySilence := v.Silence != uuid.UUID{}
	if (v.Outcome == Suppress) != want && (want == false || certain) && !bySilence {
		m.fail("suppressed %v, want %v", v.Outcome == Suppress, want)
	}
	if silent && v.Outcome != Silenced {
		m.fail("%s is not silent, although all of it was silenced", x.Subject)
	}
	m.checkHold(&x, v, held, opens)
	for _, o := range v.Evicted {
		if o.By == (queue.JobID{}) {
			m.jobs[o.Job].status, m.jobs[o.Job].silent = queue.Superseded, true
		} else {
			m.replace(o.Job, o.By)
		}
	}
	switch v.Outcome {
	case Send:
		m.checkQuiet(&x)
		m.checkSilent(&x)
		for _, o := range v.Replaced {
			m.replace(o.Job, x.Job)
		}
		m.send(j, []Item{x})
	case Held:
		j.status = queue.Held
		if v.Until.IsZero() != (v.Hold == NotHeld) {
			m.fail("held by %d until %s", v.Hold, v.Until)
		}
		if v.Hold == ByRate && alert {
			m.checkRoom(&x)
		}
	case Suppress, Counted:
		j.status = queue.Superseded
	case Over:
		j.status, j.silent, j.by = queue.Superseded, true, queue.JobID{}
		if v.By == (queue.JobID{}) || x.State != notifier.Resolved {
			m.fail("%s is over, but resolves nothing that was held", x.Job.Message)
		}
	case Silenced:
		j.status, j.silent = queue.Superseded, true
		if x.State == notifier.Open {
			m.fail("an open incident is not held")
		}
	}
}

// openOrResolve keeps the record of the incident of an item, and returns until when its
// opening is held.
func (m *model) openOrResolve(x *Item) time.Time {
	before := m.incidents[x.Subject]
	switch {
	case x.State == notifier.Open && (before == nil || !before.IsOpen()):
		now := &Incident{State: notifier.Open, Opened: m.now}
		now.Open(m.now, x.Type, before, m.rules.Hold)
		m.incidents[x.Subject] = now
		m.openings[x.Subject] = append(m.openings[x.Subject], m.now)
	case x.State == notifier.Resolved && before != nil:
		before.State = notifier.Resolved
	}
	if now := m.incidents[x.Subject]; x.State != "" && now != nil {
		return now.HeldUntil
	}
	return time.Time{}
}

// waitsAsOpen reports whether a message waits, for another reason than the hold, that tells
// that an incident is open.
func (m *model) waitsAsOpen(subject string) bool {
	l := m.loadLane()
	return slices.ContainsFunc(m.order, func(id queue.JobID) bool {
		j := m.jobs[id]
		i := slices.IndexFunc(l.Items, func(o Item) bool { return o.Job == id })
		return j.status.Waits() && j.item.Subject == subject && j.item.State == notifier.Open && (i < 0 || l.Items[i].Hold != ByHold)
	})
}

// checkHold checks what the hold does with an item. opens means that the destination neither
// knows its incident as open nor will.
func (m *model) checkHold(x *Item, v Verdict, held time.Time, opens bool) {
	hold := m.rules.Hold
	if v.Hold == ByHold && (v.Outcome == Held || v.Outcome == Over) && (hold == nil && v.Outcome == Held || v.Until.Sub(m.now) > maxHold) {
		m.fail("%s is held until %s", x.Job.Message, v.Until)
	}
	if !opens || hold == nil || !hold.covers(x.Type, opening) {
		return
	}
	if v.Outcome == Send && held.After(m.now) {
		m.fail("the opening of %s is told before %s", x.Subject, held)
	}
	recent := 0
	for _, at := range m.openings[x.Subject] {
		if m.now.Sub(at) < 3*hold.For {
			recent++
		}
	}
	if recent > 2 && m.openings[x.Subject][len(m.openings[x.Subject])-1].Equal(m.now) && v.Outcome == Held && v.Hold == ByHold {
		m.fail("the opening %d of %s in %s is held", recent, x.Subject, 3*hold.For)
	}
}

// modelTitles are titles of messages. A silence matches some of them.
var modelTitles = []string{"disk is full", "OK: disk", "DISK", "", "backup"}

// mustBeSilent reports whether an item resolves a problem that silences have kept from
// the destination from its beginning.
func (m *model) mustBeSilent(x *Item) bool {
	if x.State != notifier.Resolved {
		return false
	}
	held := false
	for _, id := range slices.Backward(m.order) {
		j := m.jobs[id]
		if len(j.digest) > 0 || j.item.Subject != x.Subject || !j.item.tellsState() {
			continue
		}
		if j.item.State == notifier.Resolved {
			return held && (j.silent || j.status == queue.Delivered)
		}
		by := m.final(j)
		i := slices.IndexFunc(m.loadLane().Items, func(o Item) bool { return o.Job == by.item.Job })
		if by.status != queue.Held || i < 0 || m.holding().Find(m.now, m.loadLane().Items[i].Silence) == nil ||
			j.outcome != Held || !j.began.IsZero() {
			return false
		}
		held = true
	}
	return held
}

// checkSilent checks that no silence matches an item that is sent.
func (m *model) checkSilent(x *Item) {
	if by := m.holding().Match(m.now, x.Incident, x.Title, nil); by != nil && x.State != notifier.Resolved {
		m.fail("%s %s is sent during the silence %+v", x.Type, x.Job.Message, by)
	}
}

// holding returns the silences that were made, and the silences of windows that hold now.
func (m *model) holding() Silences { return m.silences.WithWindows(m.now, m.rules.Windows) }

// changeSilences makes a silence that may begin later, or ends one.
func (m *model) changeSilences() {
	if n := len(m.silences); n > 0 && m.rand.IntN(3) == 0 {
		i := m.rand.IntN(n)
		m.logf("the silence %s ends", m.silences[i].ID.String()[30:])
		m.silences = slices.Delete(m.silences, i, i+1)
		m.release(true)
		return
	}
	s := Silence{ID: m.id(), Made: m.now, From: m.now}
	if m.rand.IntN(2) == 0 {
		s.From = m.now.Add(time.Duration(m.rand.IntN(200)) * time.Minute)
	}
	s.Until = s.From.Add(time.Duration(1+m.rand.IntN(300)) * time.Minute)
	switch m.rand.IntN(3) {
	case 0:
		s.Incident = fmt.Sprint("incident ", m.rand.IntN(3))
	case 1:
		s.Title = "disk"
	default:
		s.Tag = AllTags
	}
	m.silences = append(m.silences, s)
	m.logf("the silence %s is made, from %s until %s: %q %q %q", s.ID.String()[30:],
		s.From.Format("15:04:05"), s.Until.Format("15:04:05"), s.Incident, s.Title, s.Tag)
}

// repeats reports whether the destination has what a message tells, or will get it. It
// is not certain that the rules know, after a newer message was cancelled or is dead.
func (m *model) repeats(x *Item) (same, certain bool) {
	certain = true
	if m.rules.Dedupe == nil || !m.rules.Dedupe.covers(x.Type, nil) {
		return false, true
	}
	for _, id := range slices.Backward(m.order) {
		j := m.jobs[id]
		if j.item.Subject != x.Subject || j.outcome == Suppress || j.outcome == Counted || j.silent && j.outcome == Silenced {
			continue
		}
		same = j.item.Type == x.Type && j.item.State == x.State
		last := m.final(j)
		switch {
		case last.status.Waits():
			return same, certain
		case last.status == queue.Delivered:
			if m.waitsOlder(x) { // it was held for longer, and tells the same
				return true, false
			}
			return same && within(j.item.Time, m.now, m.rules.Dedupe.Window), certain
		}
		certain = false
	}
	return false, certain
}

// waitsOlder reports whether the same text waits as an earlier message.
func (m *model) waitsOlder(x *Item) bool {
	return x.State == "" && slices.ContainsFunc(m.order, func(id queue.JobID) bool {
		return m.jobs[id].item.Subject == x.Subject && m.final(m.jobs[id]).status.Waits()
	})
}

// final returns the job that tells what j does.
func (m *model) final(j *modelJob) *modelJob {
	for j.status == queue.Superseded && m.jobs[j.by] != nil {
		j = m.jobs[j.by]
	}
	return j
}

// checkQuiet checks that an item may be sent now.
func (m *model) checkQuiet(x *Item) {
	for _, q := range m.rules.Quiet {
		if !q.covers(x.Type, notFailures) || !q.Has(m.now) {
			continue
		}
		if x.Passed == "" || q.covers(x.Passed, notFailures) {
			m.fail("%s is sent in a quiet time", x.Type)
		}
	}
}

func (m *model) replace(id, by queue.JobID) {
	m.jobs[id].status, m.jobs[id].by = queue.Superseded, by
}

// send begins the delivery of a message about items, when it is its turn.
func (m *model) send(j *modelJob, items []Item) {
	m.checkAdds(j)
	j.status, j.began = queue.Queued, m.now
	m.checkRate(items)
	// The queue replaces an older state that waits.
	if j.item.tellsState() {
		for _, id := range m.order {
			if o := m.jobs[id]; o != j && o.status == queue.Queued && len(o.digest) == 0 && o.item.Subject == j.item.Subject {
				m.replace(id, j.item.Job)
			}
		}
	}
}

// isAlert reports whether an item is a failure, or certainly opens its incident.
func (m *model) isAlert(x *Item) bool {
	return x.Type == notifier.Failure || x.State == notifier.Open && !slices.ContainsFunc(m.order, func(id queue.JobID) bool {
		o := m.jobs[id]
		return slices.ContainsFunc(m.tells(o), func(y Item) bool { return y.Job != x.Job && y.Subject == x.Subject })
	})
}

// checkRate notes that the delivery of a message about items begins, and checks that each budget of the
// rate allows it. Two times of a rate can touch.
func (m *model) checkRate(items []Item) {
	if len(m.rules.Rate) == 0 {
		return
	}
	now := start{at: m.now}
	for _, x := range items {
		if x.Type == notifier.Failure || x.State == notifier.Open {
			now.alerts = true // at least it may be one
		} else {
			now.ordinary = true
		}
	}
	m.starts = append(m.starts, now)
	rate := m.rules.Rate[0]
	all, without := 0, 0
	for _, s := range m.starts {
		if m.now.Sub(s.at) < rate.Per {
			all++
			if !s.alerts {
				without++
			}
		}
	}
	if all > 4*rate.Count || without > 2*rate.Count {
		m.fail("%d messages in %s, %d of them without a failure or an opening", all, rate.Per, without)
	}
}

// checkRoom checks that a rate holds an alert only if others have used up what alerts have
// for themselves.
func (m *model) checkRoom(x *Item) {
	if m.roomFrom.IsZero() || m.now.Before(m.roomFrom) {
		return
	}
	rate, used := m.rules.Rate[0], 0
	for _, s := range m.starts {
		if s.alerts && m.now.Sub(s.at) <= rate.Per {
			used++
		}
	}
	if used < rate.Count {
		m.fail("%s is held by the rate, after %d of %d alerts", x.Job.Message, used, rate.Count)
	}
}

// checkAdds checks that what adds something to an incident does not overtake its states.
// The queue keeps the order of messages that are not digests.
func (m *model) checkAdds(j *modelJob) {
	for _, x := range m.tells(j) {
		for _, id := range m.order {
			o := m.jobs[id]
			waits := m.waitsForRate(o) && o.item.Job.Compare(x.Job) < 0
			if o == j || !waits && (o.status != queue.Queued || len(o.digest)+len(j.digest) == 0) {
				continue
			}
			if slices.ContainsFunc(m.tells(o), func(state Item) bool { return state.tellsState() && state.Subject == x.About }) {
				m.fail("%s is sent while %s is tried", x.Job.Message, id.Message)
			}
		}
	}
}

// waitsForRate reports whether a rate holds a message.
func (m *model) waitsForRate(j *modelJob) bool {
	return j.status == queue.Held && slices.ContainsFunc(m.loadLane().Items, func(x Item) bool {
		return x.Job == j.item.Job && x.Hold == ByRate
	})
}

// release does what is due.
func (m *model) release(all bool) {
	for {
		l := m.loadLane()
		if m.lane == nil || !all && l.Due(m.now).After(m.now) {
			return
		}
		for i := range l.Items { // which are not stored with them
			x := m.jobs[l.Items[i].Job].item
			l.Items[i].Incident, l.Items[i].Title = x.Incident, x.Title
		}
		g := m.rules.WithSilences(m.holding().For(m.now, nil)).Release(m.now, l, Lookup{
			Held:  func(id queue.JobID) bool { return m.jobs[id].status == queue.Held },
			Waits: m.waits,
			OnWay: func(subject string) bool { return m.waits(m.loadSubject(subject).Way.Job) },
		})
		if g == nil {
			m.saveLane(l)
			return
		}
		for i, x := range g.Items {
			if !slices.ContainsFunc(g.Items[i+1:], func(o Item) bool { return o.Subject == x.Subject && o.tellsState() }) {
				m.checkQuiet(&x)
				m.checkSilent(&x)
			}
		}
		newest := map[string]Mark{}
		for _, x := range g.Items {
			if x.Subject != "" {
				newest[x.Subject] = x.Mark()
			}
		}
		single := g.Single()
		d := &modelJob{item: Item{Job: queue.JobID{Message: g.More.ID}, Time: m.now}, more: g.More.Counts.Total()}
		if d.more == 0 {
			d.item.Job.Message = m.id()
		}
		m.logf("releases %d, single %v, more %d", len(g.Items), single, d.more)
		for i, x := range g.Items {
			if single && i == len(g.Items)-1 {
				m.send(m.jobs[x.Job], g.Items)
				continue
			}
			if single { // the queue replaces it
				m.replace(x.Job, g.Items[len(g.Items)-1].Job)
				continue
			}
			d.digest = append(d.digest, x.Job)
			m.replace(x.Job, d.item.Job)
		}
		if !single {
			m.jobs[d.item.Job] = d
			m.order = append(m.order, d.item.Job)
			m.send(d, g.Items)
		}
		if !single {
			l.Follow(g, d.item.Job)
		}
		m.saveLane(l)
		for name, mark := range newest {
			if !single {
				mark = mark.In(d.item.Job)
			}
			s := m.loadSubject(name)
			s.Sent(mark)
			m.subjects[name] = s.encode()
		}
	}
}

// deliver makes an attempt for a message that is sent.
func (m *model) deliver() {
	var queued []queue.JobID
	for _, id := range m.order {
		if m.jobs[id].status == queue.Queued {
			queued = append(queued, id)
		}
	}
	if len(queued) == 0 {
		return
	}
	j := m.jobs[queued[m.rand.IntN(len(queued))]]
	switch m.rand.IntN(8) {
	case 0, 1: // it is tried again later
		return
	case 2:
		j.status = queue.Dead
	default:
		j.status = queue.Delivered
		m.told = append(m.told, j.item.Job)
	}
	m.logf("%s is %s", j.item.Job.Message.String()[30:], j.status)
	m.ended(j)
}

// ended notes the outcome of a job in the records.
func (m *model) ended(j *modelJob) {
	marks := map[string]Mark{}
	if len(j.digest) == 0 && j.item.Subject != "" {
		marks[j.item.Subject] = j.item.Mark()
	}
	for _, id := range j.digest {
		if x := m.jobs[id].item; x.Subject != "" {
			mark := x.Mark()
			marks[x.Subject] = mark.In(j.item.Job)
		}
	}
	for name, mark := range marks {
		s := m.loadSubject(name)
		s.Ended(mark, j.status == queue.Delivered)
		m.subjects[name] = s.encode()
	}
	if len(j.digest) > 0 {
		l := m.loadLane()
		l.Ended(j.item.Job, m.now)
		m.saveLane(l)
	}
}

// changeClock sets the clock forward or back. A rate may begin anew then.
func (m *model) changeClock() {
	by := time.Duration(m.rand.IntN(2*3*60)-3*60) * time.Minute
	m.logf("the clock is set by %s", by)
	m.now, m.starts, m.roomFrom = m.now.Add(by), nil, time.Time{}
	clear(m.openings)
}

// cancel cancels a message that waits.
func (m *model) cancel() {
	if len(m.order) == 0 {
		return
	}
	j := m.jobs[m.order[max(0, len(m.order)-1-m.rand.IntN(8))]]
	if (j.status == queue.Held || j.status == queue.Queued) && len(j.digest) == 0 {
		j.status = queue.Cancelled
		m.logf("%s is cancelled", j.item.Job.Message.String()[30:])
	}
}

// tells returns the items that a job tells.
func (m *model) tells(j *modelJob) (items []Item) {
	if len(j.digest) == 0 {
		return []Item{j.item}
	}
	for _, id := range j.digest {
		items = append(items, m.jobs[id].item)
	}
	return items
}

// check checks the invariants at the end, when nothing waits.
func (m *model) check() {
	latest := map[string]*modelJob{} // by incident
	for _, id := range m.order {
		j := m.jobs[id]
		if j.status.Waits() {
			m.fail("%s is %s at the end", id.Message, j.status)
		}
		if j.silent {
			if j.item.State == notifier.Open && m.openAfter(j) {
				m.fail("%s is told by nobody, although its incident is open", id.Message)
			}
			if j.item.tellsState() {
				latest[j.item.Subject] = j
			}
			continue
		}
		if len(j.digest) == 0 && j.item.tellsState() && j.outcome != Suppress && j.outcome != Counted && j.status != queue.Cancelled {
			latest[j.item.Subject] = j
		}
		// Nothing is left out without standing somewhere.
		if j.status == queue.Superseded {
			f := m.final(j)
			if f.status == 0 || f == j && j.outcome != Counted {
				m.fail("%s is told by nobody", id.Message)
			}
		}
	}
	// What was told of an incident came in its order, and what was told last is the
	// present state, unless that is dead.
	last := map[string]Item{}
	for _, id := range m.told {
		for _, x := range m.tells(m.jobs[id]) {
			if !x.tellsState() {
				continue
			}
			if before, ok := last[x.Subject]; ok && x.Job.Compare(before.Job) < 0 {
				m.fail("%s: %s of %s was told after %s of %s", x.Subject, x.State, x.Time, before.State, before.Time)
			}
			last[x.Subject] = x
		}
	}
	for name, j := range latest {
		if j.silent {
			if last[name].State == notifier.Open && !m.anyDead(name) {
				m.fail("%s was told as open, and its resolution is silent", name)
			}
			continue
		}
		f := m.final(j)
		if f.status != queue.Delivered {
			continue // it is reported dead
		}
		if got := last[name]; got.Type != j.item.Type || got.State != j.item.State {
			m.fail("%s: told last %s %s, but it is %s %s", name, got.Type, got.State, j.item.Type, j.item.State)
		}
	}
}

// openAfter reports whether no later message resolves the incident of a message.
func (m *model) openAfter(j *modelJob) bool {
	after := false
	for _, id := range m.order {
		o := m.jobs[id]
		if after && len(o.digest) == 0 && o.item.Subject == j.item.Subject && o.item.State == notifier.Resolved {
			return false
		}
		after = after || o == j
	}
	return true
}

// anyDead reports whether a resolution of an incident was not delivered.
func (m *model) anyDead(subject string) bool {
	for _, id := range m.order {
		j := m.jobs[id]
		tells := slices.ContainsFunc(m.tells(j), func(x Item) bool { return x.Subject == subject && x.State == notifier.Resolved })
		if tells && (j.status == queue.Dead || j.status == queue.Cancelled ||
			m.final(j).status == queue.Dead || m.final(j).status == queue.Cancelled) {
			return true
		}
	}
	return false
}

func (m *model) randomRules() *Rules {
	r := new(Rules)
	types := func() Scope {
		if m.rand.IntN(3) > 0 {
			return Scope{}
		}
		return Scope{Types: []notifier.Type{Types[m.rand.IntN(4)], Types[m.rand.IntN(4)]}}
	}
	if m.rand.IntN(2) == 0 {
		r.Dedupe = &Dedupe{Window: time.Duration(1+m.rand.IntN(120)) * time.Minute, Scope: types()}
	}
	if m.rand.IntN(3) == 0 {
		r.Hold = &Lasting{For: time.Duration(1+m.rand.IntN(60)) * time.Minute}
	}
	if m.rand.IntN(2) == 0 {
		start := TimeOfDay(m.rand.IntN(48) * 30)
		w := SilenceWindow{Window: Window{Start: start, End: (start + 30 + TimeOfDay(m.rand.IntN(10)*30)) % dayMinutes, Zone: m.zone}}
		if m.rand.IntN(2) == 0 {
			w.Title = "disk"
		}
		r.Windows = []SilenceWindow{w}
	}
	for range m.rand.IntN(3) {
		start := TimeOfDay(m.rand.IntN(24) * 60)
		w := Window{Start: start, End: (start + 60 + TimeOfDay(m.rand.IntN(10)*60)) % dayMinutes}
		if m.rand.IntN(2) == 0 { // where daylight saving begins
			w.Zone = m.zone
		}
		r.Quiet = append(r.Quiet, Quiet{Window: w, Scope: types()})
	}
	switch m.rand.IntN(4) {
	case 0:
		r.Digest = &Digest{Every: time.Duration(1+m.rand.IntN(60)) * time.Minute, Scope: types()}
	case 1:
		r.Digest = &Digest{Moment: &Moment{At: TimeOfDay(m.rand.IntN(24) * 60)}, Scope: types()}
	}
	if m.rand.IntN(3) == 0 {
		r.Rate = []Rate{{Count: 1 + m.rand.IntN(4), Per: time.Duration(1+m.rand.IntN(60)) * time.Minute}}
	}
	return r
}

// TestModel holds the rules to their invariants: random messages, outages, cancelled
// deliveries, silences, reloads with other rules, clocks that are set, and the begin and the
// end of daylight saving.
func TestModel(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	days := []time.Time{time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)}
	steps, worlds := 0, uint64(2000)
	if !racetest.All() {
		worlds /= 10
	}
	for seed := range worlds {
		m := &model{
			t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: days[seed%2], zone: Zone{berlin}, //nolint:gosec // it is repeatable
			subjects: map[string][]byte{}, jobs: map[queue.JobID]*modelJob{},
			incidents: map[string]*Incident{}, openings: map[string][]time.Time{},
		}
		m.rules, m.roomFrom = m.randomRules(), m.now
		m.logf("seed %d", seed)
		for range 100 {
			steps++
			m.now = m.now.Add(time.Duration(m.rand.IntN(3000)) * time.Millisecond)
			switch n := m.rand.IntN(20); {
			case n < 9:
				m.arrive()
			case n < 14:
				m.deliver()
			case n < 15 && seed%2 == 0:
				m.changeSilences()
			case n < 18:
				m.now = m.now.Add(time.Duration(m.rand.IntN(90)) * time.Minute)
			case n == 18:
				m.cancel()
			case m.rand.IntN(4) == 0 && seed%3 == 0:
				m.changeClock()
			case m.rand.IntN(4) == 0:
				m.rules, m.starts = m.randomRules(), nil
				clear(m.openings)
				if !m.roomFrom.IsZero() {
					m.roomFrom = m.now.Add(time.Hour) // the longest rate
				}
				m.logf("other rules %+v", m.rules)
				m.release(true)
			}
			m.release(false)
		}
		for n := 0; n < 100_000 && slices.ContainsFunc(m.order, func(id queue.JobID) bool { return m.jobs[id].status.Waits() }); n++ {
			m.deliver()
			m.now = m.now.Add(10 * time.Minute)
			m.release(false)
		}
		m.check()
	}
	t.Logf("%d steps", steps)
}

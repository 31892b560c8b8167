package rules

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Outcome is what the rules do with a message.
type Outcome uint8

// The outcomes.
const (
	Send     Outcome = iota
	Held             // it waits
	Suppress         // the destination has the same message, or will get it
	Counted          // too many messages wait, so that a later digest only counts it
	Silenced         // a silence keeps it from the destination
	Over             // it resolves a held problem, so that neither is told
)

// Verdict is what the rules decide about a message to one destination.
type Verdict struct {
	Outcome

	Hold  Hold      // of Held and Counted; NotHeld if it waits for a digest to end
	Until time.Time // of Held; zero if it is not known

	Silence uuid.UUID // of Silenced, and of what a silence holds

	// By is the job that tells the message, for Suppress and Counted; for Counted, it does not
	// exist yet. For Over, it is the job that was held.
	By queue.JobID

	// Replaced are items with older states of the same incident, which are no longer held.
	Replaced []Item

	// Evicted are items that are no longer held, and that this message does not tell.
	Evicted []Evicted

	// Repeats is the number of messages that were suppressed before this one, and Since is when the
	// first of them came in. The message tells both.
	Repeats int
	Since   time.Time
}

// Evicted is an item that is no longer held, because another one needs the room or tells a newer
// state.
type Evicted struct {
	Item
	Newer bool // the other one tells a newer state of its incident

	// By is the job that tells the item, or that will count it, and then does not exist yet. It is
	// zero for a problem that was over before its silence ended.
	By queue.JobID
}

// Arrival is a message that comes in for one destination.
type Arrival struct {
	Now     time.Time
	Lane    *Lane    // what is held for the destination; the rules change it
	Subject *Subject // what the destination knows; the rules change it

	// Item is the message. If it adds something to an incident, Item.After is the result of
	// [Subject.Before] of the incident.
	Item Item

	// Held is until when the opening of the incident is held; zero for not at all (see
	// [Incident.HeldUntil]).
	Held time.Time

	Waits func(queue.JobID) bool // reports whether a job is not final
	NewID func() uuid.UUID       // makes the ID of a message
}

// Arrive decides about a message that comes in.
func (r *Rules) Arrive(a Arrival) Verdict {
	v, done := r.Repeats(a)
	if done {
		return v
	}
	now, l, s, x := a.Now, a.Lane, a.Subject, &a.Item
	if x.State == notifier.Resolved {
		x.Passed = s.Passed
	}
	x.Opens = x.State == notifier.Open && s.Passed == ""
	switch held, done := r.holdOpening(&a, &v); {
	case done:
		return v
	case held:
		return a.hold(v)
	}
	if s.Way.IsDigest() && x.tellsState() { // it tells an older state
		x.After = s.Way.Job
	}
	if x.After != (queue.JobID{}) {
		return a.hold(v)
	}
	x.Until = r.quietUntil(now, x)
	x.Hold = ByQuiet
	if x.Until.IsZero() && r.Digest.applies(x) {
		x.Hold, x.Until = ByDigest, r.joinDigest(now, l)
	}
	if x.Until.IsZero() {
		x.Hold, x.Until, x.Past = ByRate, r.queued(l, x), true
	}
	if x.Until.IsZero() {
		x.Until = r.spend(now, l, []Item{*x})
	}
	if !x.Until.IsZero() {
		return a.hold(v)
	}
	v.Replaced = l.Replace(*x)
	if x.tellsState() {
		l.uncount(s)
	}
	s.Sent(x.Mark())
	return v
}

// Has reports whether a state of the incident with a subject is held.
func (l *Lane) Has(subject string) bool {
	return slices.ContainsFunc(l.Items, func(x Item) bool { return x.Subject == subject && x.tellsState() })
}

// Replace removes the items that tell an older state of the incident of an item that is
// sent, and returns them.
func (l *Lane) Replace(x Item) (older []Item) {
	if !x.tellsState() || x.Subject == "" {
		return nil
	}
	l.Items = slices.DeleteFunc(l.Items, func(o Item) bool {
		replaced := o.Subject == x.Subject
		if replaced {
			older = append(older, o)
		}
		return replaced
	})
	return older
}

// Repeats applies silences and dedupe alone, for messages that no other rule holds. done reports
// whether the message is not sent: a silence keeps it from its destination, or it repeats a message
// that the destination has or will get.
func (r *Rules) Repeats(a Arrival) (v Verdict, done bool) {
	a.forgetEnded()
	now, s, x := a.Now, a.Subject, &a.Item
	s.Forget = now.Add(forgetAfter)
	if r.silence(&a, &v) {
		return v, true
	}
	if r.Dedupe.suppresses(now, s, x) {
		if s.Repeats == 0 {
			s.Since = x.Time
		}
		s.Repeats++
		v.Outcome, v.By = Suppress, s.Told.Job
		switch {
		case !s.Next.none():
			v.By = s.Next.Job
		case !s.Way.none():
			v.By = s.Way.Job
		}
		return v, true
	}
	if x.State == "" && r.Dedupe != nil { // it matters only while others are suppressed
		s.Forget = x.Time.Add(r.Dedupe.Window)
	}
	v.Repeats, v.Since = s.Repeats, s.Since
	s.Repeats, s.Since = 0, time.Time{}
	return v, false
}

// forgetEnded forgets jobs of the subject that have ended.
func (a *Arrival) forgetEnded() {
	s := a.Subject
	if !s.Next.none() && !a.Waits(s.Next.Job) {
		s.Next = Mark{}
		for _, o := range a.Lane.Items { // it was cancelled, and an older one is held
			if o.Subject == a.Item.Subject && a.Waits(o.Job) {
				s.Next = o.Mark()
			}
		}
	}
	if !s.Way.none() && !a.Waits(s.Way.Job) {
		s.Way = Mark{}
	}
}

// hold adds the item to the lane. If there is no room, it takes the place of an older
// state of its incident or, if it matters more, of another item.
func (a *Arrival) hold(v Verdict) Verdict {
	l, s, x := a.Lane, a.Subject, a.Item
	l.endSilencedOlder(s, &x, &v)
	if len(l.Items) >= MaxItems {
		older := -1
		if x.tellsState() {
			older = slices.IndexFunc(l.Items, func(o Item) bool { return o.tellsState() && o.Subject == x.Subject })
		}
		switch least := slices.IndexFunc(l.Items, func(o Item) bool { return !o.tellsState() && o.Type != notifier.Failure }); {
		case older >= 0:
			v.Evicted = append(v.Evicted, Evicted{l.Items[older], true, x.Job})
			l.Items = slices.Delete(l.Items, older, older+1)
		case least >= 0 && (x.tellsState() || x.Type == notifier.Failure):
			v.Evicted = append(v.Evicted, Evicted{l.Items[least], false, l.count(l.Items[least].Type, a.NewID)})
			l.Items = slices.Delete(l.Items, least, least+1)
		default:
			v.Outcome, v.Hold, v.By = Counted, x.Hold, l.count(x.Type, a.NewID)
			return v
		}
	}
	l.Items = append(l.Items, x)
	s.Next = x.Mark()
	v.Outcome, v.Hold, v.Until = Held, x.Hold, x.Until
	return v
}

// count counts an item that there is no room for, and returns the message that will tell the
// number.
func (l *Lane) count(t notifier.Type, id func() uuid.UUID) queue.JobID {
	more := &l.More[kindOf(t)]
	if more.Counts.Total() == 0 {
		more.ID = id()
	}
	more.Counts[max(slices.Index(Types, t), 0)]++
	return queue.JobID{Message: more.ID}
}

// kindOf returns the kind of digest that counts a type.
func kindOf(t notifier.Type) int {
	if t == notifier.Failure {
		return 1
	}
	return 0
}

// joinDigest returns the time of the digest that a message joins.
func (r *Rules) joinDigest(now time.Time, l *Lane) time.Time {
	for _, x := range l.Items {
		if x.Hold == ByDigest && x.Until.After(now) && x.After == (queue.JobID{}) {
			return x.Until
		}
	}
	return r.Digest.until(now)
}

// queued returns when the items that wait for a rate are released, if item x has to wait behind
// them. Otherwise new messages could use up the rate each time. An alert waits only behind alerts,
// and an item that adds to an incident waits behind the states of the incident.
func (r *Rules) queued(l *Lane, x *Item) time.Time {
	if !slices.ContainsFunc(r.Rate, func(rate Rate) bool { return rate.covers(x.Type, nil) }) {
		return time.Time{}
	}
	for _, o := range l.Items {
		if o.Hold == ByRate && (o.budget() == x.budget() || x.budget() == ordinary && o.tellsState() && x.concerns(o.Subject)) {
			return o.Until
		}
	}
	return time.Time{}
}

// Group is what is sent as one message.
type Group struct {
	Items []Item // in the order in which they came in
	More  More   // ID names the message, if a number is told
}

// Single reports whether all items are about one subject, so that the newest of its
// messages can be sent itself.
func (g *Group) Single() bool {
	if g.More.Counts.Total() > 0 {
		return false
	}
	for _, x := range g.Items[1:] {
		if x.Subject == "" || x.Subject != g.Items[0].Subject {
			return false
		}
	}
	return true
}

// Lookup has the questions of Release about jobs.
type Lookup struct {
	// Held reports whether a job is held. Items whose job is not, for example because it
	// was cancelled, are dropped.
	Held func(queue.JobID) bool

	// Waits reports whether a job is not final.
	Waits func(queue.JobID) bool

	// OnWay reports whether an older message about a subject is on its way. Then the items
	// of the subject are not part of a digest, but follow that message.
	OnWay func(subject string) bool
}

// Release looks at all held items, when a time has come or the rules have changed. It removes from
// the lane the items that are sent now as one message, and returns them. The caller calls Release
// again until it returns nil. r may be nil if the destination no longer has rules.
func (r *Rules) Release(now time.Time, l *Lane, jobs Lookup) *Group {
	if r == nil {
		r = new(Rules)
	}
	r.tellCounts(now, l)
	l.Items = slices.DeleteFunc(l.Items, func(x Item) bool { return !jobs.Held(x.Job) })
	free := r.takeFree(now, l, jobs.Waits)
	p := &releasing{rules: r, now: now, lane: l, onWay: jobs.OnWay, keeps: len(l.Items) > 0}
	items := byKind(free)
	for _, kind := range []int{1, 0} { // failures first
		p.release(kind, items[kind])
	}
	slices.SortStableFunc(l.Items, func(a, b Item) int { return a.Job.Compare(b.Job) })
	return p.released
}

// takeFree removes the items that only a rate still holds from the lane, and returns them.
func (r *Rules) takeFree(now time.Time, l *Lane, waits func(queue.JobID) bool) (free []Item) {
	var kept []Item
	for _, x := range l.Items {
		if x.After != (queue.JobID{}) && waits(x.After) || r.keeps(now, l, &x) {
			kept = append(kept, x)
		} else {
			free = append(free, x)
		}
	}
	l.Items, free = withOlder(kept, free)
	return free
}

// byKind groups items by the kind of digest that tells them: items of subjects with a failure are
// told together.
func byKind(all []Item) (items [2][]Item) {
	failing := map[string]bool{}
	for _, x := range all {
		if x.Type == notifier.Failure && x.Subject != "" {
			failing[x.Subject] = true
		}
	}
	for _, x := range all {
		kind := kindOf(x.Type)
		if failing[x.Subject] {
			kind = 1
		}
		items[kind] = append(items[kind], x)
	}
	return items
}

// releasing is one run of Release.
type releasing struct {
	rules    *Rules
	now      time.Time
	lane     *Lane
	onWay    func(subject string) bool
	keeps    bool   // rules still hold other items
	released *Group // nil for none yet
}

// release releases items of a kind as one message, unless a rate is used up. The other items go
// back to the lane.
func (p *releasing) release(kind int, items []Item) {
	l, g := p.lane, Group{Items: items}
	if i := slices.IndexFunc(items, p.follows); i >= 0 && p.released == nil {
		first := items[i]
		joins := func(x Item) bool { return x.Job == first.Job || first.About == "" && x.Subject == first.Subject }
		g.Items = slices.DeleteFunc(slices.Clone(items), func(x Item) bool { return !joins(x) })
		l.Items = append(l.Items, slices.DeleteFunc(items, joins)...)
	} else if !p.keeps || len(items) > 0 {
		g.More = l.More[kind]
	}
	g.Items = l.addsLater(g.Items)
	if len(g.Items)+g.More.Counts.Total() == 0 {
		return
	}
	if p.released != nil { // the next call releases it
		l.Items = append(l.Items, g.Items...)
		return
	}
	if until := p.rules.spend(p.now, l, g.Items); !until.IsZero() {
		for _, x := range g.Items {
			x.Hold, x.Until, x.After = ByRate, until, queue.JobID{}
			l.Items = append(l.Items, x)
		}
		return
	}
	if g.More.Counts.Total() > 0 {
		l.More[kind] = More{}
	}
	p.released = &g
}

// follows reports whether an older message about the subject of an item is on its way.
func (p *releasing) follows(x Item) bool {
	return x.tellsState() && p.onWay(x.Subject) || x.About != "" && p.onWay(x.About)
}

// addsLater returns the items to send now. Items that add something to an incident whose states
// wait for a rate go back to the lane.
func (l *Lane) addsLater(items []Item) (now []Item) {
	for _, x := range items {
		waiting := func(o Item) bool {
			return x.About != "" && o.Hold == ByRate && o.tellsState() && x.concerns(o.Subject)
		}
		if i := slices.IndexFunc(l.Items, waiting); i >= 0 {
			x.Hold, x.Until = ByRate, l.Items[i].Until
			l.Items = append(l.Items, x)
		} else {
			now = append(now, x)
		}
	}
	return now
}

// withOlder moves items with older states of the incidents in free from kept to free, because an
// older state must not be told after a newer one.
func withOlder(kept, free []Item) (left, all []Item) {
	newest := map[string]queue.JobID{}
	for _, x := range free {
		if x.tellsState() && x.Subject != "" {
			newest[x.Subject] = x.Job
		}
	}
	all = free
	for _, x := range kept {
		if id, ok := newest[x.Subject]; ok && x.Job.Compare(id) < 0 {
			all = append(all, x)
		} else {
			left = append(left, x)
		}
	}
	slices.SortStableFunc(all, func(a, b Item) int { return a.Job.Compare(b.Job) })
	return left, all
}

// Follow makes the items of the incidents in a digest wait until it has ended.
func (l *Lane) Follow(g *Group, digest queue.JobID) {
	for i := range l.Items {
		x := &l.Items[i]
		if slices.ContainsFunc(g.Items, func(o Item) bool { return o.tellsState() && x.concerns(o.Subject) }) {
			if x.After = digest; x.Hold != ByHold {
				x.Until = time.Time{}
			}
		}
	}
}

// keeps reports whether silences, quiet or the digest still hold an item, and sets why and until
// when. Quiet also holds items that the digest or a rate releases.
func (r *Rules) keeps(now time.Time, l *Lane, x *Item) bool {
	x.After = queue.JobID{}
	collected := x.Hold == ByDigest
	if collected {
		if x.Past = !r.Digest.applies(x); !x.Past {
			if latest := r.Digest.until(now); x.Until.After(latest) { // the rule or the clock has changed
				x.Until = latest
			}
			x.Past = !x.Until.After(now)
		}
	}
	due := x.Until
	if r.keepsSilent(now, x) {
		// A window of silence may have each moment of the digest.
		x.Past = x.Past || collected && !x.Until.Before(due)
		return true
	}
	if r.keepsOpening(now, x) || collected && !x.Past {
		return true
	}
	if until := r.quietUntil(now, x); !until.IsZero() {
		x.Hold, x.Until = ByQuiet, until
		return true
	}
	if !x.Past && r.Digest.applies(x) {
		x.Hold, x.Until = ByDigest, r.joinDigest(now, l)
		return true
	}
	x.Past = true
	return false
}

// Ended notes that a job has ended. It reports whether items waited for it; they are due now,
// except the ones that the rule hold holds.
func (l *Lane) Ended(job queue.JobID, now time.Time) (any bool) {
	for i := range l.Items {
		if x := &l.Items[i]; x.After == job {
			if x.After = (queue.JobID{}); x.Hold != ByHold {
				x.Hold, x.Until = NotHeld, now
			}
			any = true
		}
	}
	return any
}

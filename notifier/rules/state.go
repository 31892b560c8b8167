package rules

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Item is a message to one destination, as the rules see it.
type Item struct {
	Job   queue.JobID
	Type  notifier.Type
	State notifier.IncidentState // the state of its incident; "" without one
	Time  time.Time              // when it came in

	// Alerts are what is open in the incident (see [notifier.Incident]).
	Alerts string

	// Incident and Title are what silences match. They are not stored: the caller sets
	// them where there are silences.
	Incident notifier.Incident
	Title    string

	// Own means that it escalates and names no incident, so that it opens one of its own
	// (see [Incident]). It is not stored either.
	Own bool

	// Subject names the [Subject]: all items with the same one tell states of the same
	// incident or, without a state, are the same message. It is empty if the rules need
	// no Subject for the item.
	Subject string

	// About names the Subject of the incident that the item adds something to, without
	// telling a state; empty for none. It is told after the states before it.
	About string

	// Set by the rules for an item that is held.
	Hold    Hold
	Until   time.Time   // when it is looked at again; zero if After is set, except for ByHold
	After   queue.JobID // the digest that has to end before it
	Silence uuid.UUID   // that holds it; zero for none

	// Passed is the type of the problem that the item resolves, if the destination was told of it.
	// Rules that the problem has passed do not hold its resolution.
	Passed notifier.Type
	Past   bool // it was in a digest that was due, or none has collected it

	// Opens means that the item opens its incident: when it came in, the destination knew of no
	// open problem of the incident.
	Opens bool
}

// Hold is why an item is held.
type Hold uint8

// The reasons. An item with NotHeld passes all rules again.
const (
	NotHeld   Hold = iota
	ByQuiet        // a window of quiet
	ByDigest       // it will be part of a digest
	ByRate         // a rate is used up
	BySilence      // a silence matches
	ByHold         // the opening of its incident is held
)

// Rule returns the name of the rule. An item that waits for a digest that is being sent is held by
// digest, too.
func (h Hold) Rule() string {
	switch h {
	case ByQuiet:
		return "quiet"
	case ByRate:
		return "rate"
	case BySilence:
		return "silence"
	case ByHold:
		return "hold"
	}
	return "digest"
}

// tellsState reports whether the item tells a new state of its incident.
func (x *Item) tellsState() bool {
	return x.State == notifier.Open || x.State == notifier.Resolved
}

// concerns reports whether the item tells a state of the incident with a subject, or adds
// something to it.
func (x *Item) concerns(subject string) bool {
	return subject != "" && (x.tellsState() && x.Subject == subject || x.About == subject)
}

// Mark returns what a [Subject] remembers of the item.
func (x *Item) Mark() Mark {
	return Mark{Job: x.Job, Type: x.Type, State: x.State, Time: x.Time, Alerts: x.Alerts}
}

// Mark is a message about a subject.
type Mark struct {
	Job    queue.JobID
	Type   notifier.Type
	State  notifier.IncidentState
	Time   time.Time
	Alerts string // what is open in the incident (see [notifier.Incident])

	// Of is the message, if Job is a digest's job; zero otherwise.
	Of uuid.UUID
}

func (m *Mark) none() bool { return m.Job == queue.JobID{} }

// IsDigest reports whether Job is a digest's job.
func (m *Mark) IsDigest() bool { return m.Of != uuid.UUID{} }

// In returns the mark of the same message as a line of a digest.
func (m Mark) In(digest queue.JobID) Mark {
	m.Job, m.Of = digest, m.Job.Message
	return m
}

// newer reports whether m is about a newer message than o. IDs decide, because the clock may
// have been set back between the two.
func (m *Mark) newer(o *Mark) bool {
	a, b := m.Of, o.Of
	if !m.IsDigest() {
		a = m.Job.Message
	}
	if !o.IsDigest() {
		b = o.Job.Message
	}
	return bytes.Compare(a[:], b[:]) > 0
}

// same reports whether an item with the same subject tells the same. An alert that joins its
// incident is a new state.
func (m *Mark) same(x *Item) bool {
	now := notifier.Incident{Alerts: x.Alerts}
	return !m.none() && m.Type == x.Type && m.State == x.State && !now.Joined(m.Alerts)
}

// Subject is what a destination knows of an incident, or of equal messages. The zero value knows
// nothing.
type Subject struct {
	Told Mark // what it has
	Next Mark // the newest that it will get, if the job still waits
	Way  Mark // the newest that is on its way and not held, if the job still waits

	// Passed is the type of the problem that the destination was told, or that is on its way and
	// not held; empty for none.
	Passed notifier.Type

	// Silenced is the silence that keeps the present state from the destination, and
	// Counted is its type if the lane has no room for it.
	Silenced uuid.UUID
	Counted  notifier.Type

	Repeats int       // that were suppressed since the last message
	Since   time.Time // the first of them
	Key     string    // whose messages they are; the caller's, stored while there are some

	Group queue.Hash // of the record; the caller's

	Forget time.Time // when it matters no more, unless Next waits
}

// forgetAfter is how long a subject is remembered after its last message.
const forgetAfter = 7 * 24 * time.Hour

// Sent notes that a message that tells an item is on its way.
func (s *Subject) Sent(m Mark) {
	if s.Next.none() || !s.Next.newer(&m) { // otherwise a newer one is held
		s.Next = m
	}
	s.Way = m
	if m.State != "" {
		s.Silenced = uuid.UUID{}
	}
	switch m.State {
	case notifier.Open:
		s.Passed = m.Type
	case notifier.Resolved:
		s.Passed = ""
	}
}

// Paged notes that a step tells a state of the incident. The step does not wait for a digest on its
// way, but later messages do, so that the digest is not told last. waits is as in [Rules.Arrive].
func (s *Subject) Paged(m Mark, waits func(queue.JobID) bool) {
	before := s.Way
	if s.Sent(m); before.IsDigest() && waits(before.Job) {
		s.Way = before
	}
}

// LastTime returns the time of the newest state that the destination has or will get; zero for
// none.
func (s *Subject) LastTime() time.Time {
	last := s.Told.Time
	for _, m := range []Mark{s.Next, s.Way} {
		if m.Time.After(last) {
			last = m.Time
		}
	}
	return last
}

// Before returns the digest that has to end before a message that adds something to the
// incident; zero for none. waits is as in [Rules.Arrive].
func (s *Subject) Before(waits func(queue.JobID) bool) queue.JobID {
	if s.Way.IsDigest() && waits(s.Way.Job) {
		return s.Way.Job
	}
	return queue.JobID{}
}

// Ended notes the outcome of a message about the subject.
func (s *Subject) Ended(m Mark, delivered bool) {
	if delivered && !s.Told.newer(&m) {
		s.Told = m
	}
	if s.Next.Job == m.Job {
		s.Next = Mark{}
	}
	if s.Way.Job == m.Job {
		s.Way = Mark{}
	}
}

// Fields names the fields of a stored mark.
func (m *Mark) Fields(c *wire.Codec) {
	tellsFields(c, &m.Job, &m.Type, &m.State, &m.Time, &m.Alerts)
	wire.Array(c, 6, m.Of[:])
}

// tellsFields names the fields of a mark that an [Item] has, too.
func tellsFields(c *wire.Codec, job *queue.JobID, t *notifier.Type, state *notifier.IncidentState, at *time.Time, alerts *string) {
	wire.Array(c, 1, job.Message[:])
	wire.Number(c, 2, &job.Index)
	wire.Word(c, 3, t, Types)
	wire.Word(c, 4, state, Stages)
	wire.Time(c, 5, at)
	wire.Text(c, 7, alerts)
}

// Fields names the fields of a record.
func (s *Subject) Fields(c *wire.Codec) {
	wire.Record(c, 1, &s.Told, (*Mark).Fields)
	wire.Record(c, 2, &s.Next, (*Mark).Fields)
	wire.Record(c, 7, &s.Way, (*Mark).Fields)
	wire.Word(c, 3, &s.Passed, Types)
	wire.Array(c, 8, s.Silenced[:])
	if c.If(s.Silenced != uuid.UUID{}) {
		wire.Word(c, 9, &s.Counted, Types)
	}
	wire.Number(c, 4, &s.Repeats)
	if c.If(s.Repeats > 0) {
		wire.Text(c, 10, &s.Key)
	}
	wire.Time(c, 5, &s.Since)
	wire.Time(c, 6, &s.Forget)
	wire.Array(c, 11, s.Group[:])
}

// MaxItems is the maximum number of items that a lane holds. Further ones are counted
// in the digest.
const MaxItems = 200

// Lane is what is held for one destination of a key, and what was sent of its rates.
// The zero value is empty.
type Lane struct {
	Items []Item // held, in the order in which they came in
	Spent []Spent
	More  [2]More // by the kind of the digest: others, and failures
	Over  []SilencedCounts

	// Group and Origin are the caller's: the group of the record while a silence holds
	// something in it, and where its messages go. Origin is stored while no item may have it.
	Group  queue.Hash
	Origin []byte
}

// Silenced reports whether a silence holds something.
func (l *Lane) Silenced() bool {
	return len(l.Over) > 0 || slices.ContainsFunc(l.Items, func(x Item) bool { return x.Silence != uuid.UUID{} })
}

// More counts the items for which a lane had no room.
type More struct {
	ID     uuid.UUID // of the message that will tell their number
	Counts Counts
}

// Counts are numbers of items by the index of their type in [Types].
type Counts [4]int

// Total returns the sum.
func (c Counts) Total() (n int) {
	for _, x := range c {
		n += x
	}
	return n
}

// Empty reports whether nothing has to be remembered at a time.
func (l *Lane) Empty(now time.Time) bool {
	for _, s := range l.Spent {
		if within(s.Since, now, s.per()) {
			return false
		}
	}
	return l.OnlySpent()
}

// OnlySpent reports whether the lane holds and counts nothing, so that it has only what was sent
// of its rates.
func (l *Lane) OnlySpent() bool {
	return len(l.Items)+len(l.Over) == 0 && l.More[0].Counts.Total()+l.More[1].Counts.Total() == 0
}

// LastSpent returns when the latest time of a rate began.
func (l *Lane) LastSpent() (last time.Time) {
	for _, s := range l.Spent {
		if s.Since.After(last) {
			last = s.Since
		}
	}
	return last
}

// afterCheck is when a lane is looked at again whose items wait for a digest.
const afterCheck = time.Hour

// Due returns when the lane has to be looked at again.
func (l *Lane) Due(now time.Time) time.Time {
	due := now.Add(afterCheck)
	for i, x := range l.Items {
		if x.After == (queue.JobID{}) && (i == 0 || x.Until.Before(due)) {
			due = x.Until
		}
	}
	for _, o := range l.Over {
		if o.Until.Before(due) {
			due = o.Until
		}
	}
	for _, s := range l.Spent {
		if end := s.Since.Add(s.per()); len(l.Items)+len(l.Over) == 0 && end.After(now) {
			due = end
		}
	}
	return due
}

// Fields names the fields of a record.
func (l *Lane) Fields(c *wire.Codec) {
	wire.Records(c, 1, &l.Items, (*Item).fields)
	wire.Records(c, 2, &l.Spent, (*Spent).fields)
	for kind, f := range []wire.Field{3, 4} {
		if more := &l.More[kind]; c.If(more.Counts.Total() > 0) {
			wire.Record(c, f, more, (*More).fields)
		}
	}
	wire.Records(c, 5, &l.Over, (*SilencedCounts).fields)
	silenced := l.Silenced()
	if c.If(silenced) {
		wire.Array(c, 6, l.Group[:])
	}
	if c.If(silenced || l.More[0].Counts.Total()+l.More[1].Counts.Total() > 0) {
		wire.Bytes(c, 7, &l.Origin)
	}
}

func (x *Item) fields(c *wire.Codec) {
	wire.Record(c, 1, x, func(x *Item, c *wire.Codec) { tellsFields(c, &x.Job, &x.Type, &x.State, &x.Time, &x.Alerts) })
	wire.Text(c, 2, &x.Subject)
	wire.Number(c, 3, &x.Hold)
	wire.Time(c, 4, &x.Until)
	wire.Word(c, 7, &x.Passed, Types)
	wire.True(c, 8, &x.Past)
	wire.Text(c, 9, &x.About)
	wire.Array(c, 6, x.After.Message[:])
	wire.Number(c, 5, &x.After.Index)
	wire.Array(c, 10, x.Silence[:])
	wire.True(c, 11, &x.Opens)
}

func (m *More) fields(c *wire.Codec) {
	wire.Array(c, 1, m.ID[:])
	wire.NumberArray(c, 2, m.Counts[:])
}

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
	State notifier.IncidentState // what it says about its incident; "" without one
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
	Until   time.Time   // when it is looked at again; zero if After is set
	After   queue.JobID // the digest that has to end before it
	Silence uuid.UUID   // that holds it; zero for none

	// Passed is the type of the problem that the item resolves, if the destination was told
	// of it. What the problem has passed, its resolution passes, too.
	Passed notifier.Type
	Past   bool // it was in a digest that was due, or none has collected it
}

// Hold is why an item is held.
type Hold uint8

// The reasons. An item that is held by none of them is looked at from the first rule
// on.
const (
	NotHeld   Hold = iota
	ByQuiet        // a window of quiet
	ByDigest       // it will be part of a digest
	ByRate         // a rate is used up
	BySilence      // a silence matches
)

// Rule returns the name of the rule. What waits for a digest that is being sent is held
// by digest, too.
func (h Hold) Rule() string {
	switch h {
	case ByQuiet:
		return "quiet"
	case ByRate:
		return "rate"
	case BySilence:
		return "silence"
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

	// Of is the message, if Job is that of a digest; zero otherwise.
	Of uuid.UUID
}

func (m *Mark) none() bool { return m.Job == queue.JobID{} }

// IsDigest reports whether Job is that of a digest.
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

// same reports whether an item with the same subject says the same. An alert that joins
// its incident is a new state.
func (m *Mark) same(x *Item) bool {
	now := notifier.Incident{Alerts: x.Alerts}
	return !m.none() && m.Type == x.Type && m.State == x.State && !now.Joined(m.Alerts)
}

// Subject is what a destination knows of an incident, or of messages that are the
// same. The zero value knows nothing.
type Subject struct {
	Told Mark // what it has
	Next Mark // the newest that it will get, if the job still waits
	Way  Mark // the newest that is on its way and not held, if the job still waits

	// Passed is the type of the problem that it was told, or that is on its way to it
	// and is not held; empty for none.
	Passed notifier.Type

	// Silenced is the silence that keeps the present state from the destination, and
	// Counted is its type if the lane has no room for it.
	Silenced uuid.UUID
	Counted  notifier.Type

	Repeats int       // that were suppressed since the last message
	Since   time.Time // the first of them
	Key     string    // whose messages they are; the caller's, stored while there are some

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

// Paged notes that a step tells a state of the incident. It does not wait for a digest that
// is on its way, but what comes after it does, so that the digest is not told last. waits
// is that of [Rules.Arrive].
func (s *Subject) Paged(m Mark, waits func(queue.JobID) bool) {
	before := s.Way
	if s.Sent(m); before.IsDigest() && waits(before.Job) {
		s.Way = before
	}
}

// LastTime returns the time of the newest state that the subject has or will get; zero for
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
// incident; zero for none. waits is that of [Rules.Arrive].
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

// The fields of a subject.
const (
	subjectTold wire.Field = iota + 1
	subjectNext
	subjectPassed
	subjectRepeats
	subjectSince
	subjectForget
	subjectWay
	subjectSilenced
	subjectCounted
	subjectKey
)

// Fields names the fields of a mark in a record.
func (m *Mark) Fields(c *wire.Codec) {
	wire.Array(c, 1, m.Job.Message[:])
	wire.Number(c, 2, &m.Job.Index)
	wire.Text(c, 3, &m.Type)
	wire.Text(c, 4, &m.State)
	wire.Time(c, 5, &m.Time)
	wire.Text(c, 7, &m.Alerts)
	wire.Array(c, 6, m.Of[:])
}

// AppendMark appends a mark as the value of a field.
func AppendMark(b []byte, f wire.Field, m *Mark) []byte {
	if m.none() {
		return b
	}
	return wire.AppendItem(b, f, wire.Append(nil, m, (*Mark).Fields))
}

// DecodeMark decodes the value of a field.
func DecodeMark(b []byte) (m Mark, err error) {
	err = wire.Decode(b, &m, (*Mark).Fields)
	return m, err
}

// Encode returns the subject as bytes, which are never empty.
func (s *Subject) Encode() (b []byte) {
	b = AppendMark(b, subjectTold, &s.Told)
	b = AppendMark(b, subjectNext, &s.Next)
	b = AppendMark(b, subjectWay, &s.Way)
	b = wire.AppendText(b, subjectPassed, s.Passed)
	if s.Silenced != (uuid.UUID{}) {
		b = wire.AppendText(wire.AppendText(b, subjectSilenced, s.Silenced[:]), subjectCounted, s.Counted)
	}
	if s.Repeats > 0 {
		b = wire.AppendText(wire.AppendNumber(b, subjectRepeats, s.Repeats), subjectKey, s.Key)
	}
	b = wire.AppendTime(b, subjectSince, s.Since)
	return wire.AppendTime(b, subjectForget, s.Forget)
}

// DecodeSubject is the inverse of Encode.
func DecodeSubject(b []byte) (*Subject, error) {
	s := new(Subject)
	r := wire.NewReader(b)
	for r.Next() {
		var err error
		switch r.Field {
		case subjectTold:
			s.Told, err = DecodeMark(r.Bytes())
		case subjectNext:
			s.Next, err = DecodeMark(r.Bytes())
		case subjectWay:
			s.Way, err = DecodeMark(r.Bytes())
		case subjectPassed:
			s.Passed = notifier.Type(r.Text())
		case subjectSilenced:
			copy(s.Silenced[:], r.Bytes())
		case subjectCounted:
			s.Counted = notifier.Type(r.Text())
		case subjectRepeats:
			s.Repeats = r.Int()
		case subjectKey:
			s.Key = r.Text()
		case subjectSince:
			s.Since = r.Time()
		case subjectForget:
			s.Forget = r.Time()
		}
		if err != nil {
			return nil, err
		}
	}
	return s, r.Err()
}

// MaxItems is the maximum number of items that a lane holds. Further ones are counted
// in the digest.
const MaxItems = 200

// Lane is what is held for one destination of a key, and what was sent of its rates.
// The zero value is empty.
type Lane struct {
	Items []Item // held, in the order in which they came in
	Spent []*Spent
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
	return len(l.Items)+len(l.Over) == 0 && l.More[0].Counts.Total()+l.More[1].Counts.Total() == 0
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

// The fields of a lane.
const (
	laneItem  wire.Field = 1 // one for each
	laneSpent wire.Field = 2 // one for each
	laneMore  wire.Field = 3 // of others
	laneFails wire.Field = 4 // of failures
	laneOver  wire.Field = 5 // one for each
	laneGroup wire.Field = 6
	laneFrom  wire.Field = 7

	itemMark         wire.Field = 1
	itemSubject      wire.Field = 2
	itemHold         wire.Field = 3
	itemUntil        wire.Field = 4
	itemAfter        wire.Field = 5
	itemAfterMessage wire.Field = 6
	itemPassed       wire.Field = 7
	itemPast         wire.Field = 8
	itemAbout        wire.Field = 9
	itemSilence      wire.Field = 10

	spentID    wire.Field = 1
	spentCount wire.Field = 2
	spentSince wire.Field = 3

	moreID    wire.Field = 1
	moreCount wire.Field = 2 // one for each type

	overSilence wire.Field = 1
	overUntil   wire.Field = 2
	overMore    wire.Field = 3
)

// maxSpent is the maximum number of rates that a lane remembers, some of which the
// configuration may not have any more.
const maxSpent = 16

// Encode returns the lane as bytes.
func (l *Lane) Encode() (b []byte) {
	for i := range l.Items {
		x := &l.Items[i]
		m := x.Mark()
		item := wire.AppendText(AppendMark(nil, itemMark, &m), itemSubject, x.Subject)
		item = wire.AppendTime(wire.AppendNumber(item, itemHold, x.Hold), itemUntil, x.Until)
		item = wire.AppendTrue(wire.AppendText(item, itemPassed, x.Passed), itemPast, x.Past)
		item = wire.AppendText(item, itemAbout, x.About)
		if x.After != (queue.JobID{}) {
			item = wire.AppendNumber(wire.AppendText(item, itemAfterMessage, x.After.Message[:]), itemAfter, x.After.Index)
		}
		if x.Silence != (uuid.UUID{}) {
			item = wire.AppendText(item, itemSilence, x.Silence[:])
		}
		b = wire.AppendItem(b, laneItem, item)
	}
	for _, s := range l.Spent[max(0, len(l.Spent)-maxSpent):] {
		b = wire.AppendItem(b, laneSpent, wire.AppendTime(wire.AppendNumber(wire.AppendText(nil, spentID, s.id), spentCount, s.Count), spentSince, s.Since))
	}
	for i, f := range []wire.Field{laneMore, laneFails} {
		if more := &l.More[i]; more.Counts.Total() > 0 {
			b = wire.AppendItem(b, f, more.encode())
		}
	}
	for _, o := range l.Over {
		more := More{o.ID, o.Counts}
		x := wire.AppendTime(wire.AppendText(nil, overSilence, o.Silence[:]), overUntil, o.Until)
		b = wire.AppendItem(b, laneOver, wire.AppendItem(x, overMore, more.encode()))
	}
	silenced := l.Silenced()
	if silenced {
		b = wire.AppendText(b, laneGroup, l.Group[:])
	}
	if silenced || l.More[0].Counts.Total()+l.More[1].Counts.Total() > 0 {
		b = wire.AppendText(b, laneFrom, l.Origin)
	}
	return b
}

func (m *More) encode() []byte {
	b := wire.AppendText(nil, moreID, m.ID[:])
	for _, n := range m.Counts {
		b = wire.AppendNumberItem(b, moreCount, n)
	}
	return b
}

// DecodeLane is the inverse of Encode.
func DecodeLane(b []byte) (*Lane, error) {
	l := new(Lane)
	r := wire.NewReader(b)
	for r.Next() {
		var err error
		switch r.Field {
		case laneItem:
			var x Item
			x, err = decodeItem(r.Bytes())
			l.Items = append(l.Items, x)
		case laneSpent:
			s := new(Spent)
			x := wire.NewReader(r.Bytes())
			for x.Next() {
				switch x.Field {
				case spentID:
					s.id = x.Text()
				case spentCount:
					s.Count = x.Int()
				case spentSince:
					s.Since = x.Time()
				}
			}
			l.Spent, err = append(l.Spent, s), x.Err()
		case laneMore:
			l.More[0], err = decodeMore(r.Bytes())
		case laneFails:
			l.More[1], err = decodeMore(r.Bytes())
		case laneGroup:
			copy(l.Group[:], r.Bytes())
		case laneFrom:
			l.Origin = slices.Clone(r.Bytes())
		case laneOver:
			var o SilencedCounts
			o, err = decodeOver(r.Bytes())
			l.Over = append(l.Over, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, r.Err()
}

func decodeItem(b []byte) (out Item, err error) {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case itemMark:
			m, err := DecodeMark(r.Bytes())
			if err != nil {
				return out, err
			}
			out.Job, out.Type, out.State, out.Time, out.Alerts = m.Job, m.Type, m.State, m.Time, m.Alerts
		case itemSubject:
			out.Subject = r.Text()
		case itemHold:
			out.Hold = Hold(r.Int())
		case itemUntil:
			out.Until = r.Time()
		case itemAfter:
			out.After.Index = r.Int()
		case itemPassed:
			out.Passed = notifier.Type(r.Text())
		case itemSilence:
			copy(out.Silence[:], r.Bytes())
		case itemPast:
			out.Past = r.Bool()
		case itemAbout:
			out.About = r.Text()
		case itemAfterMessage:
			copy(out.After.Message[:], r.Bytes())
		}
	}
	return out, r.Err()
}

func decodeOver(b []byte) (o SilencedCounts, err error) {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case overSilence:
			copy(o.Silence[:], r.Bytes())
		case overUntil:
			o.Until = r.Time()
		case overMore:
			more, err := decodeMore(r.Bytes())
			if err != nil {
				return o, err
			}
			o.ID, o.Counts = more.ID, more.Counts
		}
	}
	return o, r.Err()
}

func decodeMore(b []byte) (m More, err error) {
	r := wire.NewReader(b)
	for n := 0; r.Next(); {
		switch r.Field {
		case moreID:
			copy(m.ID[:], r.Bytes())
		case moreCount:
			if n < len(m.Counts) {
				m.Counts[n] = r.Int()
			}
			n++
		}
	}
	return m, r.Err()
}

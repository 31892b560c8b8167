package rules

import (
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Incident is what is known of an incident of a key, from its opening until a while after
// its last message. It has the title of the message that told its state, never the text.
type Incident struct {
	// ID is the public ID, which nobody can guess. Each opening has a new one.
	ID string

	// Home and Key name the key, and Source and Name the incident in it. Home is where the
	// key is defined. Name is that of the message which opened the incident, if Own.
	Home, Key    string
	Source, Name string

	// Derived is the ID that destinations know the incident by; empty if Own.
	Derived string

	// Own means that the incident is a failure that names none. No message can resolve it.
	Own bool

	Site  string // that the last message came to
	Title string
	Type  notifier.Type
	State notifier.IncidentState // Open or Resolved
	Tags  []string               // names of the tags of the destinations of the last message

	Opened, Changed time.Time
	Resolved        time.Time // zero while it is open
	ResolvedBy      string    // who did so on its page; empty for a message

	Acknowledged Acknowledgement
	Escalation   Escalation
	Begun        []BegunStep // the steps that have begun, the latest last, also those of ended escalations

	// Unconfirmed are jobs of steps that a push service has taken, and that no device has
	// confirmed yet (see EndedUnconfirmed), also of ended escalations.
	Unconfirmed []StepJob

	Forget time.Time // when the record may be removed
}

// Acknowledgement says that somebody takes care of an incident. The zero value is none.
type Acknowledgement struct {
	By    string
	At    time.Time
	Until time.Time // when the escalation begins again if the incident is still open; zero for never
}

// Escalation is how far the steps of an incident have come. The zero value is none.
type Escalation struct {
	Round     int       // from 1; 0 while nothing escalates
	Step      int       // the number of the step that was begun last
	Next      time.Time // when the next step begins
	Reached   bool      // a destination of the step has the message
	Exhausted bool      // all rounds have ended, and nobody has acknowledged the incident
	Silenced  bool      // a silence has stopped it; it begins again when that ends

	// SilencedAs is the title that the silence has matched. Later states follow it, whatever
	// their titles are.
	SilencedAs string

	Targets []StepTarget // the destinations of messages that escalate
	Waiting []StepJob    // that the next steps send
	Sent    []StepJob    // of steps that have begun, and that have not ended
}

// StepTarget is a destination of a message that escalates.
type StepTarget struct {
	Step int    // its number; 0 for one that is told at once
	Hash string // see [notifier.Destination.Hash]
}

// StepJob is a job that a step sends.
type StepJob struct {
	Job         queue.JobID
	Round, Step int
	Target      string     // the hash of the destination
	Subject     queue.Hash // the name of the record of what the destination knows; zero for none
}

// BegunStep is a step that has begun.
type BegunStep struct {
	Round, Step int
	At          time.Time
	Outcome     StepOutcome
}

// StepOutcome is what is known of the destinations of a step.
type StepOutcome string

// The outcomes of a step.
const (
	StepSending  StepOutcome = ""         // none of them has the message yet
	StepTold     StepOutcome = "told"     // at least one of them has it
	StepFailed   StepOutcome = "failed"   // one did not get it, and none has it
	StepSilenced StepOutcome = "silenced" // a silence kept it from all of them
)

// maxBegun is the maximum number of steps that a record has; it has the latest.
const maxBegun = 50

// note adds a step that has begun.
func (x *Incident) note(now time.Time) {
	x.Begun = append(x.Begun, BegunStep{Round: x.Escalation.Round, Step: x.Escalation.Step, At: now})
	x.Begun = x.Begun[max(len(x.Begun)-maxBegun, 0):]
}

// NoteOutcome notes the outcome of a job of a step, also of one that was under way when the
// steps ended. The caller calls it before Ended.
func (x *Incident) NoteOutcome(job queue.JobID, step int, delivered bool) {
	if x.Sends() && !x.sent(job) {
		return // it is one of an earlier opening
	}
	x.reached(step, delivered)
}

// sent reports whether a job belongs to a step that has begun.
func (x *Incident) sent(job queue.JobID) bool {
	return slices.ContainsFunc(x.Escalation.Sent, func(j StepJob) bool { return j.Job == job })
}

// reached notes whether a destination of a step has the message.
func (x *Incident) reached(step int, delivered bool) {
	if delivered {
		x.outcome(step, StepTold)
	} else {
		x.outcome(step, StepFailed)
	}
}

// outcome sets the outcome of the latest step with a number, unless it was told.
func (x *Incident) outcome(step int, outcome StepOutcome) {
	for i := len(x.Begun) - 1; i >= 0; i-- {
		if b := &x.Begun[i]; b.Step == step {
			if b.Outcome != StepTold {
				b.Outcome = outcome
			}
			return
		}
	}
}

// idEncoding encodes public IDs.
var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewIncidentID returns a new public ID: 128 random bits as 26 characters of a to z and 2
// to 7.
func NewIncidentID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return idEncoding.EncodeToString(b[:])
}

// IsIncidentID reports whether s has the form of a public ID.
func IsIncidentID(s string) bool {
	b, err := idEncoding.DecodeString(s)
	return err == nil && len(b) == 16 && len(s) == 26 && !strings.ContainsAny(s, "\r\n")
}

// IsOpen reports whether the incident is open.
func (x *Incident) IsOpen() bool { return x.State == notifier.Open }

// IsAcknowledged reports whether somebody takes care of the incident.
func (x *Incident) IsAcknowledged() bool { return !x.Acknowledged.At.IsZero() }

// Stages are the stages of incidents, the worst first.
var Stages = []notifier.IncidentState{notifier.Open, notifier.Acknowledged, notifier.Resolved}

// Stage returns Open, Acknowledged or Resolved.
func (x *Incident) Stage() notifier.IncidentState {
	switch {
	case !x.IsOpen():
		return notifier.Resolved
	case x.IsAcknowledged():
		return notifier.Acknowledged
	}
	return notifier.Open
}

// Escalating reports whether further steps follow.
func (x *Incident) Escalating() bool {
	return x.IsOpen() && x.Escalation.Round > 0 && !x.Escalation.Exhausted && !x.IsAcknowledged()
}

// Resolve notes that the problem is over. by is who said so; empty for a message.
func (x *Incident) Resolve(now time.Time, by string) {
	x.State, x.Resolved, x.ResolvedBy = notifier.Resolved, now, by
	x.Escalation = Escalation{}
}

// Due returns when something has to be done about the incident.
func (x *Incident) Due() time.Time {
	due := x.Forget
	for _, at := range []time.Time{x.Escalation.Next, x.Acknowledged.Until} {
		if x.IsOpen() && !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}

// Lasts reports whether the incident is remembered although nothing was heard of it for
// long.
func (x *Incident) Lasts() bool { return x.Escalating() || x.IsOpen() && x.IsAcknowledged() }

// MaxIncidentTitle is the maximum length of the title in a record, in bytes.
const MaxIncidentTitle = 250

// The fields of an incident.
const (
	incidentID wire.Field = iota + 1
	incidentHome
	incidentKey
	incidentSource
	incidentName
	incidentDerived
	incidentOwn
	incidentSite
	incidentTitle
	incidentType
	incidentState
	incidentTag // one for each
	incidentOpened
	incidentChanged
	incidentResolved
	incidentResolvedBy
	incidentAckBy
	incidentAckAt
	incidentAckUntil
	incidentRound
	incidentStep
	incidentNext
	incidentReached
	incidentExhausted
	incidentTarget  // one for each
	incidentWaiting // one for each
	incidentSent    // one for each
	incidentForget
	incidentSilenced
	incidentBegun       // one for each
	incidentUnconfirmed // one for each
	incidentSilencedAs

	begunRound   wire.Field = 1
	begunStep    wire.Field = 2
	begunAt      wire.Field = 3
	begunOutcome wire.Field = 4

	stepTargetStep wire.Field = 1
	stepTargetHash wire.Field = 2

	stepMessage wire.Field = 1
	stepIndex   wire.Field = 2
	stepRound   wire.Field = 3
	stepStep    wire.Field = 4
	stepTarget  wire.Field = 5
	stepSubject wire.Field = 6
)

// Encode returns the incident as bytes, which are never empty.
func (x *Incident) Encode() (b []byte) {
	b = wire.AppendItem(b, incidentID, x.ID)
	b = wire.AppendText(b, incidentHome, x.Home)
	b = wire.AppendText(b, incidentKey, x.Key)
	b = wire.AppendText(b, incidentSource, x.Source)
	b = wire.AppendText(b, incidentName, x.Name)
	b = wire.AppendText(b, incidentDerived, x.Derived)
	b = wire.AppendTrue(b, incidentOwn, x.Own)
	b = wire.AppendText(b, incidentSite, x.Site)
	b = wire.AppendText(b, incidentTitle, x.Title)
	b = wire.AppendText(b, incidentType, x.Type)
	b = wire.AppendText(b, incidentState, x.State)
	for _, tag := range x.Tags {
		b = wire.AppendItem(b, incidentTag, tag)
	}
	b = wire.AppendTime(b, incidentOpened, x.Opened)
	b = wire.AppendTime(b, incidentChanged, x.Changed)
	b = wire.AppendTime(b, incidentResolved, x.Resolved)
	b = wire.AppendText(b, incidentResolvedBy, x.ResolvedBy)
	b = wire.AppendText(b, incidentAckBy, x.Acknowledged.By)
	b = wire.AppendTime(b, incidentAckAt, x.Acknowledged.At)
	b = wire.AppendTime(b, incidentAckUntil, x.Acknowledged.Until)
	e := &x.Escalation
	b = wire.AppendNumber(b, incidentRound, e.Round)
	b = wire.AppendNumber(b, incidentStep, e.Step)
	b = wire.AppendTime(b, incidentNext, e.Next)
	b = wire.AppendTrue(b, incidentReached, e.Reached)
	b = wire.AppendTrue(b, incidentExhausted, e.Exhausted)
	b = wire.AppendText(wire.AppendTrue(b, incidentSilenced, e.Silenced), incidentSilencedAs, e.SilencedAs)
	for _, t := range e.Targets {
		b = wire.AppendItem(b, incidentTarget, wire.AppendText(wire.AppendNumber(nil, stepTargetStep, t.Step), stepTargetHash, t.Hash))
	}
	for i := range e.Waiting {
		b = wire.AppendItem(b, incidentWaiting, e.Waiting[i].encode())
	}
	for i := range e.Sent {
		b = wire.AppendItem(b, incidentSent, e.Sent[i].encode())
	}
	for _, s := range x.Begun {
		item := wire.AppendNumber(wire.AppendNumber(nil, begunRound, s.Round), begunStep, s.Step)
		b = wire.AppendItem(b, incidentBegun, wire.AppendText(wire.AppendTime(item, begunAt, s.At), begunOutcome, s.Outcome))
	}
	for i := range x.Unconfirmed {
		b = wire.AppendItem(b, incidentUnconfirmed, x.Unconfirmed[i].encode())
	}
	return wire.AppendTime(b, incidentForget, x.Forget)
}

func (j *StepJob) encode() []byte {
	b := wire.AppendNumber(wire.AppendText(nil, stepMessage, j.Job.Message[:]), stepIndex, j.Job.Index)
	b = wire.AppendNumber(wire.AppendNumber(b, stepRound, j.Round), stepStep, j.Step)
	b = wire.AppendText(b, stepTarget, j.Target)
	if j.Subject != (queue.Hash{}) {
		b = wire.AppendText(b, stepSubject, j.Subject[:])
	}
	return b
}

func decodeStepJob(b []byte) (j StepJob, err error) {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case stepMessage:
			copy(j.Job.Message[:], r.Bytes())
		case stepIndex:
			j.Job.Index = r.Int()
		case stepRound:
			j.Round = r.Int()
		case stepStep:
			j.Step = r.Int()
		case stepTarget:
			j.Target = r.Text()
		case stepSubject:
			copy(j.Subject[:], r.Bytes())
		}
	}
	return j, r.Err()
}

func decodeStepTarget(b []byte) (t StepTarget, err error) {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case stepTargetStep:
			t.Step = r.Int()
		case stepTargetHash:
			t.Hash = r.Text()
		}
	}
	return t, r.Err()
}

func decodeBegunStep(b []byte) (s BegunStep, err error) {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case begunRound:
			s.Round = r.Int()
		case begunStep:
			s.Step = r.Int()
		case begunAt:
			s.At = r.Time()
		case begunOutcome:
			s.Outcome = StepOutcome(r.Text())
		}
	}
	return s, r.Err()
}

// DecodeIncident is the inverse of Encode.
func DecodeIncident(b []byte) (*Incident, error) {
	x := new(Incident)
	e := &x.Escalation
	r := wire.NewReader(b)
	for r.Next() {
		var err error
		switch r.Field {
		case incidentID:
			x.ID = r.Text()
		case incidentHome:
			x.Home = r.Text()
		case incidentKey:
			x.Key = r.Text()
		case incidentSource:
			x.Source = r.Text()
		case incidentName:
			x.Name = r.Text()
		case incidentDerived:
			x.Derived = r.Text()
		case incidentOwn:
			x.Own = r.Bool()
		case incidentSite:
			x.Site = r.Text()
		case incidentTitle:
			x.Title = r.Text()
		case incidentType:
			x.Type = notifier.Type(r.Text())
		case incidentState:
			x.State = notifier.IncidentState(r.Text())
		case incidentTag:
			x.Tags = append(x.Tags, r.Text())
		case incidentOpened:
			x.Opened = r.Time()
		case incidentChanged:
			x.Changed = r.Time()
		case incidentResolved:
			x.Resolved = r.Time()
		case incidentResolvedBy:
			x.ResolvedBy = r.Text()
		case incidentAckBy:
			x.Acknowledged.By = r.Text()
		case incidentAckAt:
			x.Acknowledged.At = r.Time()
		case incidentAckUntil:
			x.Acknowledged.Until = r.Time()
		case incidentRound:
			e.Round = r.Int()
		case incidentStep:
			e.Step = r.Int()
		case incidentNext:
			e.Next = r.Time()
		case incidentReached:
			e.Reached = r.Bool()
		case incidentSilenced:
			e.Silenced = r.Bool()
		case incidentSilencedAs:
			e.SilencedAs = r.Text()
		case incidentExhausted:
			e.Exhausted = r.Bool()
		case incidentTarget:
			var t StepTarget
			t, err = decodeStepTarget(r.Bytes())
			e.Targets = append(e.Targets, t)
		case incidentWaiting:
			var j StepJob
			j, err = decodeStepJob(r.Bytes())
			e.Waiting = append(e.Waiting, j)
		case incidentSent:
			var j StepJob
			j, err = decodeStepJob(r.Bytes())
			e.Sent = append(e.Sent, j)
		case incidentBegun:
			var s BegunStep
			s, err = decodeBegunStep(r.Bytes())
			x.Begun = append(x.Begun, s)
		case incidentUnconfirmed:
			var j StepJob
			j, err = decodeStepJob(r.Bytes())
			x.Unconfirmed = append(x.Unconfirmed, j)
		case incidentForget:
			x.Forget = r.Time()
		}
		if err != nil {
			return nil, err
		}
	}
	return x, r.Err()
}

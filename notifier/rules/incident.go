package rules

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Incident is the state of a key's incident, from its opening until a while after its last message.
// It has the title of the message that told its state, never the text.
type Incident struct {
	// ID is the public ID, which nobody can guess. Each opening has a new one.
	ID string

	// Home and Key name the key, and Source and Name the incident in it. Home is where the
	// key is defined. If Own, Name is the ID of the message that opened the incident.
	Home, Key    string
	Source, Name string

	// Derived is the ID that destinations know the incident by; empty if Own.
	Derived string

	// Own means that the incident is a failure that names none. No message can resolve it.
	Own bool

	Site  string // of the last message
	Title string
	Type  notifier.Type
	State notifier.IncidentState // Open or Resolved
	Tags  []string               // names of the tags of the destinations of the last message

	Opened, Changed time.Time
	Resolved        time.Time // zero while it is open
	ResolvedBy      string    // who did so on its page; empty for a message

	HeldUntil time.Time    // until when the opening is held; zero for not at all
	Before    [2]time.Time // when it opened before, the latest last; only a key with hold needs them

	Acknowledged Acknowledgement
	Escalation   Escalation
	Begun        BegunSteps // also of ended escalations

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
	Step      int       // the number of the last step that has begun
	Next      time.Time // when the next step begins
	Reached   bool      // a destination of the step has the message
	Exhausted bool      // all rounds have ended, and nobody has acknowledged the incident
	EndedAt   time.Time // when they have; zero in a record of an early version
	Silenced  bool      // a silence has stopped it; it begins again when that ends
	Held      bool      // the first step begins at Next, when the hold ends

	// SilencedAs is the title that the silence has matched. Later states follow it, whatever
	// their titles are.
	SilencedAs string

	Targets []StepTarget // the destinations of messages that escalate
	Waiting []StepJob    // jobs of the next steps
	Sent    []StepJob    // jobs of steps that have begun and not ended
}

// NextStep returns the number of the step that begins next, and when it does. It returns 0 if
// none follows: then Next is when the rounds end.
func (e *Escalation) NextStep() (step int, at time.Time) {
	switch steps := e.Steps(); {
	case e.Silenced && len(steps) > 0:
		return steps[0], e.Next
	case e.Exhausted || len(e.Waiting) == 0:
		return 0, time.Time{}
	}
	next := slices.MinFunc(e.Waiting, func(a, b StepJob) int { return cmp.Or(a.Round-b.Round, a.Step-b.Step) })
	return next.Step, e.Next
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

// StepOutcome is the outcome of a step.
type StepOutcome string

// The outcomes of a step.
const (
	StepSending  StepOutcome = ""         // none of them has the message yet
	StepTold     StepOutcome = "told"     // at least one of them has it
	StepFailed   StepOutcome = "failed"   // one did not get it, and none has it
	StepSilenced StepOutcome = "silenced" // a silence kept it from all of them
)

// BegunSteps are the steps of an incident that have begun, the latest last.
type BegunSteps []BegunStep

// maxBegun is the maximum number of steps that a record has; it has the latest.
const maxBegun = 50

// add adds the step that an escalation has begun.
func (b *BegunSteps) add(now time.Time, e *Escalation) {
	*b = append(*b, BegunStep{Round: e.Round, Step: e.Step, At: now})
	*b = (*b)[max(len(*b)-maxBegun, 0):]
}

// note notes the outcome of the latest step with a number, unless a destination was told.
func (b BegunSteps) note(step int, outcome StepOutcome) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i].Step == step {
			if b[i].Outcome != StepTold {
				b[i].Outcome = outcome
			}
			return
		}
	}
}

// outcomeOf returns the outcome of a step one of whose destinations has the message, or
// does not get it.
func outcomeOf(delivered bool) StepOutcome {
	if delivered {
		return StepTold
	}
	return StepFailed
}

// NoteOutcome notes the outcome of a job of a step, also of one that was under way when the
// steps ended. The caller calls it before Ended.
func (x *Incident) NoteOutcome(job queue.JobID, step int, delivered bool) {
	if x.Sends() && !x.Escalation.hasSent(job) {
		return // it is one of an earlier opening
	}
	x.Begun.note(step, outcomeOf(delivered))
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

// resolve notes that the problem is over. by is who said so; empty for a message.
func (x *Incident) resolve(now time.Time, by string) {
	x.State, x.Resolved, x.ResolvedBy = notifier.Resolved, now, by
	x.Escalation = Escalation{}
}

// Due returns when the incident has to be looked at.
func (x *Incident) Due() time.Time {
	due := x.Forget
	for _, at := range []time.Time{x.Escalation.Next, x.Acknowledged.Until} {
		if x.IsOpen() && !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}

// Lasts reports whether the incident is kept even without messages for a long time.
func (x *Incident) Lasts() bool { return x.Escalating() || x.IsOpen() && x.IsAcknowledged() }

// MaxIncidentTitle is the maximum length of the title in a record, in bytes.
const MaxIncidentTitle = 250

// Fields names the fields of a record.
func (x *Incident) Fields(c *wire.Codec) {
	wire.Text(c, 1, &x.ID)
	wire.Text(c, 2, &x.Home)
	wire.Text(c, 3, &x.Key)
	wire.Text(c, 4, &x.Source)
	wire.Text(c, 5, &x.Name)
	wire.Text(c, 6, &x.Derived)
	wire.True(c, 7, &x.Own)
	wire.Text(c, 8, &x.Site)
	wire.Text(c, 9, &x.Title)
	wire.Word(c, 10, &x.Type, Types)
	wire.Word(c, 11, &x.State, Stages)
	wire.Texts(c, 12, &x.Tags)
	wire.Time(c, 13, &x.Opened)
	wire.Time(c, 14, &x.Changed)
	wire.Time(c, 15, &x.Resolved)
	wire.Text(c, 16, &x.ResolvedBy)
	wire.Text(c, 17, &x.Acknowledged.By)
	wire.Time(c, 18, &x.Acknowledged.At)
	wire.Time(c, 19, &x.Acknowledged.Until)
	wire.Time(c, 34, &x.HeldUntil)
	wire.Time(c, 35, &x.Before[0])
	wire.Time(c, 36, &x.Before[1])
	x.Escalation.fields(c)
	wire.Records(c, 30, &x.Begun, (*BegunStep).fields)
	wire.Records(c, 31, &x.Unconfirmed, (*StepJob).fields)
	wire.Time(c, 28, &x.Forget)
}

// fields names fields of the incident.
func (e *Escalation) fields(c *wire.Codec) {
	wire.Number(c, 20, &e.Round)
	wire.Number(c, 21, &e.Step)
	wire.Time(c, 22, &e.Next)
	wire.True(c, 23, &e.Reached)
	wire.True(c, 24, &e.Exhausted)
	wire.Time(c, 37, &e.EndedAt)
	wire.True(c, 29, &e.Silenced)
	wire.Text(c, 32, &e.SilencedAs)
	wire.True(c, 33, &e.Held)
	wire.Records(c, 25, &e.Targets, (*StepTarget).fields)
	wire.Records(c, 26, &e.Waiting, (*StepJob).fields)
	wire.Records(c, 27, &e.Sent, (*StepJob).fields)
}

func (t *StepTarget) fields(c *wire.Codec) {
	wire.Number(c, 1, &t.Step)
	wire.Text(c, 2, &t.Hash)
}

func (j *StepJob) fields(c *wire.Codec) {
	wire.Array(c, 1, j.Job.Message[:])
	wire.Number(c, 2, &j.Job.Index)
	wire.Number(c, 3, &j.Round)
	wire.Number(c, 4, &j.Step)
	wire.Text(c, 5, &j.Target)
	wire.Array(c, 6, j.Subject[:])
}

func (s *BegunStep) fields(c *wire.Codec) {
	wire.Number(c, 1, &s.Round)
	wire.Number(c, 2, &s.Step)
	wire.Time(c, 3, &s.At)
	wire.Text(c, 4, &s.Outcome)
}

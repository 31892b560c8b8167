package message

import (
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/timetext"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// StatusQueued is the status of a delivery that the queue makes or repeats later.
const StatusQueued notifier.Status = "queued"

// RuleDecided means that a question was not sent because it is answered, withdrawn or too old.
const RuleDecided notifier.Rule = "decided"

// Failed reports whether a required destination does not have the message and
// will not get it.
func Failed(r notifier.Result) bool { return r.Status != StatusQueued && !r.OK() }

// QueuedRecord returns the log line for a delivery that is queued.
func QueuedRecord(r notifier.Result) notifier.Record {
	text := "Queued for " + NameOf(r) + "."
	switch {
	case r.Rule == notifier.RulePlanned:
		text := "The message is planned for " + timetext.FormatSeconds(r.Until) + "."
		return notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: text}
	case r.Rule != "":
		text = "Held for " + NameOf(r) + ": " + RuleText(r.Rule, "", r.Until) + "."
		return notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: text}
	case r.Err != nil:
		text = "Queued for another attempt at " + NameOf(r) + "."
	}
	return notifier.Record{Time: time.Now(), Level: notifier.LevelWarning, Text: text}
}

// ResultRecord returns the log line for a delivery that is final.
func ResultRecord(r notifier.Result) notifier.Record {
	out := notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: "Sent to " + NameOf(r) + "."}
	switch {
	case r.Err != nil:
		out.Level, out.Text = notifier.LevelError, "Failed to send to "+NameOf(r)+": "+r.Err.Error()
	case r.Rule == notifier.RuleSuperseded:
		out.Text = "Not sent to " + NameOf(r) + ": a newer message about the incident replaces it."
	case r.Rule != "":
		out.Text = "Not sent to " + NameOf(r) + ": " + RuleText(r.Rule, r.By, time.Time{}) + "."
	case r.Status == notifier.Skipped:
		out.Text = "Nothing to send to " + NameOf(r) + "."
	}
	return out
}

// RuleText says what a rule does with a message.
func RuleText(rule notifier.Rule, by string, until time.Time) (text string) {
	switch {
	case rule == notifier.RuleSuppressed:
		text = "the destination has this message already, or will get it"
	case rule == notifier.RuleSilenced:
		text = "a silence matches it"
	case rule == notifier.RulePlanned && until.IsZero():
		text = "it was planned, and is sent as the message"
	case rule == notifier.RulePlanned:
		text = "it is planned"
	case rule == notifier.RuleHeld && until.IsZero():
		text = "nobody is told of a problem that was over before the hold ended"
	case rule == notifier.RuleEscalating && until.IsZero():
		text = "its step of the escalation has not begun, so that the destination knows nothing of the incident"
	case rule == notifier.RuleEscalating:
		text = "its step of the escalation begins"
	case rule == RuleDecided:
		text = "the question is not open any more"
	case rule == notifier.RuleAcknowledged:
		text = "somebody has acknowledged the incident"
	case rule == notifier.RuleDigested && until.IsZero():
		text = "it is part of a message about several"
	case rule == notifier.RuleDigested:
		text = "it will be part of a message about several"
	default:
		text = "a rule of the key holds it"
	}
	if by != "" {
		text += " (" + by + ")"
	}
	switch {
	case until.IsZero():
	case rule == notifier.RulePlanned:
		text += " for " + timetext.FormatSeconds(until)
	case rule == notifier.RuleEscalating:
		text += " at " + timetext.FormatSeconds(until) + ", unless somebody acknowledges the incident"
	case rule == notifier.RuleHeld, rule == notifier.RuleSilenced:
		text += " until " + timetext.FormatSeconds(until)
	default:
		text += ", at " + timetext.FormatSeconds(until)
	}
	return text
}

// MessageState is the state of a message in the queue.
type MessageState string

// The states of a message.
const (
	StateQueued    MessageState = "queued"    // a delivery is not final
	StateDelivered MessageState = "delivered" // every required destination has it
	StateFailed    MessageState = "failed"    // a required destination does not have it
	StateCancelled MessageState = "cancelled" // deliveries were cancelled, silenced or replaced by other messages, and none has failed
)

// StatusCancelled is the status of a delivery that was cancelled.
const StatusCancelled notifier.Status = "cancelled"

// QueuedMessage is a queued message as clients see it, without its text.
type QueuedMessage struct {
	ID      string         `json:"id"`
	State   MessageState   `json:"state"`
	Created time.Time      `json:"created"` // when the message came in
	Results []QueuedResult `json:"results"`

	// Incident is the name of the message's incident.
	Incident string `json:"incident,omitempty"`

	// IncidentID is the ID of the incident, if the gateway stores it. It does so for keys with
	// rules.
	IncidentID string `json:"incident_id,omitempty"`

	// Ask is the state of the message's question; nil if it has none.
	Ask *AskState `json:"ask,omitempty"`
}

// QueuedResult is the state of one delivery.
type QueuedResult struct {
	Result

	// NextAttempt is when the next attempt is due. It is past during an attempt, and nil if the
	// delivery is final.
	NextAttempt *time.Time `json:"next_attempt,omitempty"`

	// Received is when the device has confirmed the message; nil if it has not, or if the
	// destination is no device.
	Received *time.Time `json:"received,omitempty"`
}

// SetState derives the state from the results.
func (m *QueuedMessage) SetState() {
	has := map[notifier.Status]bool{}
	for _, r := range m.Results {
		switch {
		case r.Rule == notifier.RuleSuperseded, r.Status == notifier.Skipped &&
			(r.Rule == notifier.RuleHeld || r.Rule == notifier.RuleDigested || r.Rule == notifier.RuleSilenced ||
				r.Rule == notifier.RuleEscalating || r.Rule == notifier.RuleAcknowledged || r.Rule == RuleDecided):
			has[StatusCancelled] = true
		case r.Status != notifier.Failed || !r.Optional:
			has[r.Status] = true
		}
		if r.Status == notifier.Skipped && r.Error != nil { // a URL that cannot be used
			has[notifier.Failed] = true
		}
	}
	switch {
	case has[StatusQueued]:
		m.State = StateQueued
	case has[notifier.Failed]:
		m.State = StateFailed
	case has[StatusCancelled]:
		m.State = StateCancelled
	default:
		m.State = StateDelivered
	}
}

// Records returns a line for each delivery, and for the question.
func (m *QueuedMessage) Records() (out []notifier.Record) {
	for _, d := range m.Results {
		out = append(out, d.record(m.Created))
	}
	if m.Ask != nil {
		out = append(out, notifier.Record{Time: m.Created, Level: notifier.LevelInfo, Text: m.Ask.text()})
	}
	return out
}

// record returns the log line for a delivery.
func (r *QueuedResult) record(created time.Time) notifier.Record {
	level, text := notifier.LevelInfo, string(r.Status)
	switch r.Status {
	case StatusQueued:
		level = notifier.LevelWarning
		if r.NextAttempt != nil {
			text += ", next attempt at " + timetext.FormatSeconds(*r.NextAttempt)
		}
	case notifier.Failed:
		level = notifier.LevelError
	}
	switch {
	case r.Rule != "" && r.Rule != notifier.RuleSuperseded:
		level = notifier.LevelInfo
		until := time.Time{}
		if r.Until != nil {
			until = *r.Until
		} else if r.Next != nil {
			until = *r.Next
		}
		text = string(r.Status) + ", " + RuleText(r.Rule, r.By, until)
	case r.Rule == notifier.RuleSuperseded:
		text = "replaced by a newer message about the incident"
		if r.By != "" {
			text += ": " + r.By
		}
	}
	text = r.Name + ": " + text
	switch r.Attempts {
	case 0:
	case 1:
		text += " (1 attempt)"
	default:
		text += fmt.Sprintf(" (%d attempts)", r.Attempts)
	}
	if r.Received != nil {
		text += ", received at " + timetext.FormatSeconds(*r.Received)
	}
	if r.Error != nil {
		text += ": " + *r.Error
	}
	return notifier.Record{Time: created, Level: level, Text: text}
}

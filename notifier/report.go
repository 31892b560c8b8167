package notifier

import (
	"slices"
	"time"
)

// Report is the outcome of a message.
type Report struct {
	Results []Result // one for each target, in the order of the targets
	Records []Record // in the order of time
}

// OK reports whether all results are OK.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Results, func(x Result) bool { return !x.OK() })
}

// Result is the outcome of a message at one destination.
type Result struct {
	Service     string
	Destination string   // the URL with its secrets masked
	Name        string   // of the destination, see [Destination.Name]; "" if it is not known
	Tags        []string // of the target
	Status      Status
	Optional    bool // a failure does not count
	Attempts    int
	Elapsed     time.Duration
	Err         error // has no secrets in its text; nil if Status is Delivered, or Skipped by the service

	// Rule says why nothing was sent, if it was not for the destination. By is the ID
	// of the message that is sent instead, if it is known.
	Rule Rule
	By   string

	// Until is when a rule sends a message that it holds, if that is known.
	Until time.Time

	// Step is the number of the step that the message waits for, if Rule is
	// [RuleEscalating].
	Step int

	// The other fields are for a caller that tries again later. They are zero
	// unless Status is Failed.

	// Temporary means that another attempt can succeed. The failure is permanent if the destination
	// answers 400, 401, 403, 404 or 410, refuses the message for its content (see [ErrRefused]) or
	// must not be reached, and if the URL is unusable. If a message has several targets, one
	// temporary failure is enough.
	Temporary bool
	// RetryAfter is the time that the destination asked to wait before the next
	// attempt, in the header Retry-After of an answer 429 or 503. It is 0 if
	// the destination did not ask.
	RetryAfter time.Duration
	// Progress records which parts of the message the destination has. It is the Progress of the
	// target, if that has one. Pass it in [Target] of the next attempt.
	Progress *Progress
	// Unclear means that the destination may have the message, in whole or in part:
	// some of it has arrived, or there was no answer.
	Unclear bool
}

// Rule is a rule by which a delivery is not made, or made later.
type Rule string

// RuleSuperseded is the rule that a message with a new state of an incident replaces earlier
// waiting ones. The message reports that they were not delivered.
const RuleSuperseded Rule = "superseded"

// The rules of keys over time.
const (
	RuleHeld       Rule = "held"       // it waits until a time
	RuleDigested   Rule = "digested"   // it is, or will be, part of a message about several
	RuleSuppressed Rule = "suppressed" // the destination has it, or will get it
	RuleSilenced   Rule = "silenced"   // a silence matches it; it waits if it reports a problem
	RulePlanned    Rule = "planned"    // its sender wants it to be sent at a later time

	RuleEscalating   Rule = "escalating"   // it waits for its step; skipped if the step does not begin
	RuleAcknowledged Rule = "acknowledged" // somebody takes care of the incident
)

// OK reports whether the destination has the message, there was nothing to send
// to it, or its failure does not count.
func (r *Result) OK() bool { return r.Err == nil || r.Optional }

// Status is the outcome of a message at one destination in a word.
type Status string

// The statuses of a delivery.
const (
	Delivered Status = "delivered"
	Failed    Status = "failed"
	Skipped   Status = "skipped" // nothing was sent, because the URL cannot be used or there was nothing to send
)

// Record is one line about a delivery, for the answer to the client.
type Record struct {
	Time  time.Time
	Level Level
	Text  string // without secrets

	// Optional means that the destination is optional, so that an error does
	// not count.
	Optional bool
}

// Level is the severity of a [Record], named as in Apprise's log.
type Level string

// The levels of records.
const (
	LevelInfo    Level = "INFO"
	LevelWarning Level = "WARNING"
	LevelError   Level = "ERROR"
)

// DeliveryError is the error of a failed delivery. Its text is for clients: it
// has no secrets, no addresses of connections and no paths of files. The errors
// that it wraps have them.
// errors.AsType finds the [*StatusError], [*egress.BlockedError] or
// [*PanicError] that it wraps.
type DeliveryError struct {
	text string
	err  error
}

func (e *DeliveryError) Error() string { return e.text }
func (e *DeliveryError) Unwrap() error { return e.err }

// maxErrorText is the length of the text of a delivery's error in bytes.
const maxErrorText = 4 << 10

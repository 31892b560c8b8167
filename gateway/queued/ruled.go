package queued

import (
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Ruled is a job's state for the rules until it ends.
type Ruled struct {
	Lane     queue.Hash // zero for none
	Subjects []Subject
	Digest   bool // other jobs may wait for it

	// Repeats is the number of messages suppressed before it, and Since is when the first of them
	// arrived.
	Repeats int
	Since   time.Time

	// Incident names the incident's record for a message that escalates, and Step is the number of
	// the destination; 0 for one that is told at once. Opening is the public ID of the incident,
	// which changes when it opens again.
	Incident queue.Hash
	Step     int
	Opening  string

	// OpenFor is how long the incident that the message resolves was open; 0 if unknown.
	OpenFor time.Duration
}

// Subject is a subject that a job reports.
type Subject struct {
	Name queue.Hash // name of its record
	Mark rules.Mark
}

func (r *Ruled) fields(c *wire.Codec) {
	wire.Array(c, 1, r.Lane[:])
	wire.Records(c, 2, &r.Subjects, (*Subject).fields)
	wire.True(c, 3, &r.Digest)
	wire.Array(c, 6, r.Incident[:])
	if c.If(r.Incident != queue.Hash{}) {
		wire.Number(c, 7, &r.Step)
		wire.Text(c, 8, &r.Opening)
	}
	wire.Number(c, 9, &r.OpenFor)
	wire.Number(c, 4, &r.Repeats)
	wire.Time(c, 5, &r.Since)
}

func (s *Subject) fields(c *wire.Codec) {
	wire.Array(c, 1, s.Name[:])
	wire.Record(c, 2, &s.Mark, (*rules.Mark).Fields)
}

// Encode is the inverse of [DecodeRuled].
func (r *Ruled) Encode() []byte { return wire.Append(nil, r, (*Ruled).fields) }

// DecodeRuled decodes a job's state for the rules.
func DecodeRuled(b []byte) (r Ruled, err error) {
	err = wire.Decode(b, &r, (*Ruled).fields)
	return r, err
}

// Step returns the number of the step that a job waits for, or 0.
func Step(j *queue.Job) int {
	r, err := DecodeRuled(j.Ruled)
	if err != nil {
		return 0
	}
	return r.Step
}

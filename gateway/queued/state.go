package queued

import (
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// State is what the next attempt of a delivery needs.
type State struct {
	// Key, Source and Site belong to the message. Incident is the name of its incident.
	Key      string
	Source   string
	Site     string
	Incident string
	// Reported means that events and the history report a failure as part of the message's outcome.
	Reported bool
	// Hash identifies the destination in the configuration.
	Hash string
	// URL is a client's URL, if the destination is not in the configuration.
	URL      string
	Tags     []string
	Progress []byte // see [notifier.Progress]
	// Values are the message's values for the variables in the configured URL (see
	// [notifier.Target]).
	Values []string
	// Text identifies the text of a message to a key, so that an unchanged repeat of a dead message
	// replaces the one before.
	Text []byte
}

func (s *State) fields(c *wire.Codec) {
	wire.Text(c, 1, &s.Key)
	wire.Text(c, 2, &s.Source)
	wire.True(c, 3, &s.Reported)
	wire.Text(c, 4, &s.Hash)
	wire.Text(c, 5, &s.URL)
	wire.Texts(c, 6, &s.Tags)
	wire.Bytes(c, 7, &s.Progress)
	wire.Text(c, 8, &s.Site)
	wire.Text(c, 9, &s.Incident)
	wire.Bytes(c, 10, &s.Text)
	wire.Texts(c, 11, &s.Values)
}

// Planned reports whether the job belongs to a planned message, which has no destination yet.
func (s *State) Planned() bool { return s.Hash == "" && s.URL == "" }

// Encode is the inverse of Decode.
func (s *State) Encode() []byte {
	return wire.Append(make([]byte, 0, 64+len(s.Key)+len(s.Source)+len(s.Hash)+len(s.URL)+32*len(s.Tags)+len(s.Progress)), s, (*State).fields)
}

// Decode decodes the state of a job.
func (s *State) Decode(b []byte) error { return wire.Decode(b, s, (*State).fields) }

// With returns the encoded state with the progress p.
func (s State) With(p *notifier.Progress) []byte {
	if p != nil {
		if b, err := p.MarshalJSON(); err == nil { // without progress, everything is sent again
			s.Progress = b
		}
	}
	return s.Encode()
}

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

// DecodeRuled decodes a job's state for the rules. Most jobs have none.
func DecodeRuled(b []byte) (Ruled, error) {
	if len(b) == 0 {
		return Ruled{}, nil
	}
	var r Ruled
	err := wire.Decode(b, &r, (*Ruled).fields)
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

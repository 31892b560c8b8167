package queued

import (
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// noteFields names the fields of a note, which describes a message for the message that reports it
// as missed.
func noteFields(m *notifier.MissedMessage, c *wire.Codec) {
	wire.Text(c, 1, &m.State)
	wire.Time(c, 2, &m.Time)
	wire.True(c, 3, &m.Unclear)
}

// Note returns the note of a message that arrived at t with a state of its incident. unclear means
// that its destination may have it.
func Note(state notifier.IncidentState, t time.Time, unclear bool) []byte {
	return wire.Append(nil, &notifier.MissedMessage{State: state, Time: t, Unclear: unclear}, noteFields)
}

// OpenFor returns how long the incident that a job resolves was open; 0 if unknown.
func OpenFor(j *queue.Job) time.Duration {
	r, _ := DecodeRuled(j.Ruled) // if it is damaged, the part before the damage
	return r.OpenFor
}

// Missed returns what a destination missed before a job.
func Missed(j *queue.Job) (m notifier.Missed) {
	m.Omitted = j.Missed.Omitted
	if r, err := DecodeRuled(j.Ruled); err == nil {
		m.Repeats, m.Since = r.Repeats, r.Since
	}
	for _, note := range j.Missed.Notes {
		var x notifier.MissedMessage
		_ = wire.Decode(note, &x, noteFields) // if it is damaged, the part before the damage
		m.Messages = append(m.Messages, x)
	}
	return m
}

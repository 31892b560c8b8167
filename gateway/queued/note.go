package queued

import (
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// noteFields names the fields of a note, which describes a message to the one that tells
// it.
func noteFields(m *notifier.MissedMessage, c *wire.Codec) {
	wire.Text(c, 1, &m.State)
	wire.Time(c, 2, &m.Time)
	wire.True(c, 3, &m.Unclear)
}

// Note returns the note of a message that came in at t and tells a state of its incident.
// unclear means that its destination may have it.
func Note(state notifier.IncidentState, t time.Time, unclear bool) []byte {
	return wire.Append(nil, &notifier.MissedMessage{State: state, Time: t, Unclear: unclear}, noteFields)
}

// OpenFor returns how long the incident was open that a job resolves; 0 if it is not known.
func OpenFor(j *queue.Job) time.Duration {
	r, _ := DecodeRuled(j.Ruled) // if it is damaged, what comes before the damage
	return r.OpenFor
}

// Missed returns what a destination did not get before a job.
func Missed(j *queue.Job) (m notifier.Missed) {
	m.Omitted = j.Missed.Omitted
	if r, err := DecodeRuled(j.Ruled); err == nil {
		m.Repeats, m.Since = r.Repeats, r.Since
	}
	for _, note := range j.Missed.Notes {
		var x notifier.MissedMessage
		_ = wire.Decode(note, &x, noteFields) // if it is damaged, what comes before the damage
		m.Messages = append(m.Messages, x)
	}
	return m
}

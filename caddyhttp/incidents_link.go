package caddyhttp

import (
	"context"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// knownIncident returns what the record of the incident of a message is named by, or "" if
// it has none.
func (d *delivery) knownIncident() string {
	switch {
	case d.rules.Empty():
		return ""
	case d.message.Incident.ID == "" && d.rules.Escalate != nil && d.message.Type != notifier.Info:
		return d.place() + "\x00" + ownIncident(d.id) // if it escalates, it is an incident of its own
	}
	return d.incidentOf()
}

// ownIncident returns what stands for the name of the incident of a message that names
// none.
func ownIncident(message uuid.UUID) string { return "message " + message.String() }

// incidentOfMessage returns the incident that a message of the queue is about, or nil if
// there is none, if it is forgotten, or if it was opened anew later.
func (q *alerts) incidentOfMessage(ctx context.Context, m *queue.Message) *rules.Incident {
	var s queued.Summary
	if s.Decode(m.Summary) != nil || s.Known == "" {
		return nil
	}
	b, err := q.CallersRecord(ctx, q.Hash("incident\x00"+s.Known))
	if err != nil {
		return nil // the message can be shown without it
	}
	if x := decodeIncident(b); x != nil && !m.Created.Before(x.Opened) {
		return x
	}
	return nil
}

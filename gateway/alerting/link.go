package alerting

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// IncidentOfMessage returns the incident that a message of the queue is about, or nil if
// there is none, if it is forgotten, or if it was opened anew later.
func (q *Engine) IncidentOfMessage(ctx context.Context, m *queue.Message) *rules.Incident {
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

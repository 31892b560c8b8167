package outbox

import (
	"context"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Later returns the message of d, which is planned, for the queue, and what its client sees of
// it. The message has one job, which the caller holds. It sets d.ID if it is zero.
func (q *Outbox) Later(d *dispatch.Delivery) (*queue.Entry, notifier.Result) {
	q.prepare(d)
	one := *d
	one.To, one.Rules = &message.Selection{}, nil // they are read from the configuration when it is due
	m := MessageOf(&one)
	m.Key, m.EarlierKey, m.Request = d.Idempotency.Key, d.Idempotency.EarlierKey, d.Idempotency.Request
	r := notifier.Result{Service: "Key", Destination: d.Key, Status: message.StatusQueued}
	if d.Later.Tags != "" {
		r.Tags = []string{d.Later.Tags}
	}
	state := queued.State{Key: d.Key, Source: d.Source, Site: d.Site, Incident: d.Message.Incident.Name}
	j := queue.Job{
		Status: queue.Queued, Due: d.Later.At, Expires: d.Later.At.Add(q.Queue.MaxAge()),
		Destination: "planned\x00" + d.Place(), Host: "planned", OwnAttempts: true,
		State: state.Encode(), Result: queued.AppendResult(nil, r),
	}
	r.Rule, r.Until = notifier.RulePlanned, d.Later.At
	return &queue.Entry{Message: m, Jobs: []queue.Job{j}}, r
}

// IsPlanned reports whether e is a planned message, which waits, was sent or was cancelled.
func IsPlanned(e *queue.Entry) bool {
	return len(e.Jobs) == 1 && e.Jobs[0].Rule == string(notifier.RulePlanned)
}

// SentAs returns the ID of the message that a planned one was sent as; the zero ID if e is not
// planned, or was not sent.
func SentAs(e *queue.Entry) uuid.UUID {
	if !IsPlanned(e) || e.Jobs[0].Status != queue.Superseded {
		return uuid.UUID{}
	}
	return e.Jobs[0].By.Message
}

// followSent replaces what e has of a planned message that was sent by what the queue has of
// it since then.
func (q *Outbox) followSent(ctx context.Context, e *queue.Entry) error {
	id := SentAs(e)
	if id == (uuid.UUID{}) {
		return nil
	}
	sent, err := q.Queue.Get(ctx, id)
	if err != nil {
		return IgnoreNotFound(err) // it was sent, and is forgotten
	}
	m := *sent.Message
	m.ID, m.Created = e.Message.ID, e.Message.Created
	*e = queue.Entry{Message: &m, Jobs: sent.Jobs}
	return nil
}

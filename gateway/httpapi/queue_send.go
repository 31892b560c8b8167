package httpapi

import (
	"context"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// setQueued makes resp the response to a request whose message has an ID.
func setQueued(resp *api.Response, r *http.Request, id string, p api.Preference) {
	resp.SetQueued(id, func() string { return messageAddress(r, id) }, p)
}

// repeated returns the response to the request of d, whose idempotency key is known.
func (h *API) repeated(r *http.Request, q *outbox.Outbox, e *queue.DuplicateError, p api.Preference, d *dispatch.Delivery) (*api.Response, error) {
	if !e.SameRequest {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "the header %s was used for a different request; send another key with each message", api.IdempotencyHeader)
	}
	stored, err := q.Get(context.WithoutCancel(r.Context()), e.ID)
	if err != nil {
		return nil, outbox.QueueError(err)
	}
	if err := q.Follow(context.WithoutCancel(r.Context()), stored); err != nil {
		return nil, outbox.QueueError(err)
	}
	m := queued.Message(stored)
	report := &notifier.Report{Results: queued.Results(m), Records: m.Response().Records}
	resp := responseOf(d, report)
	setQueued(resp, r, m.ID, p)
	return resp, nil
}

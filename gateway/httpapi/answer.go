package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// answer sends the message of a request to a key, which may be nil, and returns the response. With a
// queue, deliveries that are not final in time are stored and made later. answer calls d.Release when no delivery of the
// request is in progress any more, possibly after it returns.
//
// Nothing is stored before the response if there is no queue or all destinations are fast.
func (h *Sender) answer(w http.ResponseWriter, r *http.Request, k *site.Key, d dispatch.Delivery) (*api.Response, error) {
	if d.Question != nil {
		return h.ask(r, k, d)
	}
	prefer := api.ParsePrefer(r.Header)
	if d.Later != nil {
		return h.plan(r, &d, prefer)
	}
	var stream *api.Stream
	o := outbox.Options{Begun: func([]notifier.Target) func(int, notifier.Result) {
		stream = streamOf(&d, w, r)
		return d.Done
	}}
	if prefer.Async {
		if q := h.App.Engine.QueueSettings; q != nil && prefer.Wait > q.Wait {
			leave, err := h.Shared.Waiting.Enter(d.At.String(), ClientAddress(r))
			if err != nil {
				prefer.Wait = q.Wait // it is a preference, and the client can ask for the results
			} else {
				defer leave()
			}
		}
		o.Wait = &prefer.Wait
	}
	report, id, err := h.App.Submit(r.Context(), k, d, o)
	if report == nil {
		d.Release()
		if e, ok := errors.AsType[*queue.DuplicateError](err); ok {
			return h.repeated(r, e, prefer, &d)
		}
		return nil, outbox.QueueError(err)
	}
	resp := responseOf(&d, report)
	if err == nil {
		if id != "" {
			setQueued(resp, r, id, prefer)
		}
	} else if failed := h.ErrorResponse(outbox.QueueError(err)); !d.Program || resp.Error != "" {
		failed.Records, failed.Results = report.Records, report.Results
		resp = failed
	}
	resp.Stream = stream
	return resp, nil
}

// responseOf returns the response to a request whose message was sent.
func responseOf(d *dispatch.Delivery, report *notifier.Report) *api.Response {
	if d.Program {
		return api.NewProgramResponse(report)
	}
	return api.NewResponse(report)
}

// streamOf begins a stream of results if the client asks for one.
func streamOf(d *dispatch.Delivery, w http.ResponseWriter, r *http.Request) *api.Stream {
	if d.Single {
		return nil
	}
	stream := api.NewStream(w, r, d.To.Targets)
	if stream != nil {
		d.Done = stream.Result
	}
	return stream
}

// setQueued makes resp the response to a request whose message has an ID.
func setQueued(resp *api.Response, r *http.Request, id string, p api.Preference) {
	resp.SetQueued(id, messageAddress(r, id), p)
}

// repeated returns the response to the request of d, whose idempotency key was used before.
func (h *Sender) repeated(r *http.Request, e *queue.DuplicateError, p api.Preference, d *dispatch.Delivery) (*api.Response, error) {
	q := h.App.Rooms.Outbox
	if !e.SameRequest {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "the header %s was used for a different request; send another key with each message", api.IdempotencyHeader)
	}
	stored, err := q.Queue.Get(context.WithoutCancel(r.Context()), e.ID)
	if err != nil {
		return nil, outbox.QueueError(err)
	}
	if err := q.Follow(context.WithoutCancel(r.Context()), stored); err != nil {
		return nil, outbox.QueueError(err)
	}
	m := queued.Message(stored)
	report := &notifier.Report{Results: queued.Results(m), Records: m.Records()}
	resp := responseOf(d, report)
	setQueued(resp, r, m.ID, p)
	return resp, nil
}

package caddyhttp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/queued"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// messageAddress returns the address of a message for a client that has sent r
// to the address of a key, or to /notify.
func messageAddress(r *http.Request, id string) string {
	return messageRoot(r) + strings.Replace(routeMessage, "{ID}", id, 1)
}

// messageRoot returns what the client of r sees before the path of a route: the prefix
// that handle_path or another handler has removed.
func messageRoot(r *http.Request) string {
	path := r.URL.EscapedPath()
	prefix := ""
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		if before, ok := strings.CutSuffix(original.URL.EscapedPath(), path); ok {
			prefix = before
		}
	}
	return prefix
}

// serveMessage answers a request for a message in the queue.
func (h *Handler) serveMessage(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	resp, err := h.message(w, r, at.id)
	if err != nil {
		return h.errorResponse(err)
	}
	return resp
}

var errNoMessage = api.Errorf(http.StatusNotFound, "there is no such message; results are kept for the time of queue keep")

func (h *Handler) message(w http.ResponseWriter, r *http.Request, text string) (*api.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodDelete:
		if err := h.resolved.checkOrigin(r); err != nil {
			return nil, err
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, DELETE")
		return nil, api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET, or DELETE to cancel the message", r.Method)
	}
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return nil, errNoMessage
	}
	q, err := h.app.durable(nil)
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(r.Context())
	e, err := h.storedMessage(ctx, q, id)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodDelete {
		if err := h.mayCancel(r, e.Message); err != nil {
			return nil, err
		}
		if _, err := q.Cancel(ctx, id); err != nil {
			return nil, messageError(err)
		}
		if e, err = q.Get(ctx, id); err != nil {
			return nil, messageError(err)
		}
	}
	if err := q.follow(ctx, e); err != nil {
		return nil, messageError(err)
	}
	m := queued.Message(e)
	q.setReceipts(ctx, m)
	if x := q.incidentOfMessage(ctx, e.Message); x != nil {
		m.IncidentID = x.ID
	}
	return m.Response(), nil
}

// mayCancel returns an error if the client of r may not cancel a message. The ID alone is
// not enough where the key has a token: devices know the IDs of what they confirm.
func (h *Handler) mayCancel(r *http.Request, m *queue.Message) error {
	var s queued.Summary
	if s.Decode(m.Summary) != nil || s.Key == "" || h.mayManage(r) == nil {
		return nil //nolint:nilerr // what cannot be read has no key
	}
	_, err := h.resolved.keyToSend(r, s.Key)
	if errors.Is(err, errNoKey) {
		return nil // it is gone, with its token
	}
	return err
}

// storedMessage returns a message that came to the site of h. Errors are for the
// client.
func (h *Handler) storedMessage(ctx context.Context, q *openQueue, id uuid.UUID) (*queue.Entry, error) {
	e, err := q.Get(ctx, id)
	if err != nil {
		return nil, messageError(err)
	}
	if queued.SiteOf(e.Message) != h.site() {
		return nil, errNoMessage
	}
	return e, nil
}

// messageError returns the error for a client that asks for a message.
func messageError(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return errNoMessage
	}
	e := api.Errorf(http.StatusServiceUnavailable, "the gateway cannot read the queue at the moment; try again in %s", queueRetryAfter)
	e.Fault, e.RetryAfter = err, queueRetryAfter
	return e
}

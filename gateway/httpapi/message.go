package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Messages shows and cancels the messages in the queue: /notify/messages/{ID}.
type Messages struct {
	*Base
	streams *inbox.Streams
}

// messageAddress returns the address of a message for a client that has sent r to the address of a
// key or to /notify.
func messageAddress(r *http.Request, id string) string {
	return messageRoot(r) + strings.Replace(RouteMessage, "{ID}", id, 1)
}

// messageRoot returns the prefix of a route's path that handle_path or another handler has removed,
// and that the client of r sees.
func messageRoot(r *http.Request) string {
	original := environment.URL(r)
	if original.Path == r.URL.Path {
		return "" // nothing was removed
	}
	prefix, ok := strings.CutSuffix(original.EscapedPath(), r.URL.EscapedPath())
	if !ok {
		return ""
	}
	return prefix
}

// serveMessage answers a request for a message in the queue.
func (h *Messages) serveMessage(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	resp, err := h.message(w, r, at.ID)
	if err != nil {
		return h.ErrorResponse(r, err)
	}
	return resp
}

func (h *Messages) message(w http.ResponseWriter, r *http.Request, text string) (*api.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodDelete:
		if err := CheckOwnOrigin(r); err != nil {
			return nil, err
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, DELETE")
		return nil, api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET, or DELETE to cancel the message",
			r.Method)
	}
	id, err := parseMessageID(text)
	if err != nil {
		return nil, err
	}
	q, err := h.App.Open(nil)
	if err != nil {
		return nil, err
	}
	if _, err := WaitOf(r); err != nil && r.Method != http.MethodDelete {
		return nil, err
	}
	if r.Method == http.MethodGet && acceptsEvents(r) {
		if asks, err := h.streamAnswer(w, r, q.Questions, id); asks {
			return nil, err
		}
	}
	var x *ask.Question
	if r.Method != http.MethodDelete {
		if x, err = h.waitForAnswer(r, q.Questions, id); err != nil {
			return nil, err
		}
	}
	ctx := context.WithoutCancel(r.Context())
	messages := q.Outbox.Messages()
	e, err := h.FindMessage(ctx, q, text)
	if errors.Is(err, outbox.ErrNoMessage) {
		return h.question(r, q.Questions, id)
	}
	if err != nil {
		return nil, Answer(err)
	}
	if r.Method == http.MethodDelete {
		if err := h.mayCancel(r, e); err != nil {
			return nil, err
		}
		if x, err = q.Questions.Withdraw(ctx, id); err != nil && !errors.Is(err, ask.ErrNone) {
			return nil, Answer(err)
		}
		if e, err = messages.Cancel(ctx, id); err != nil {
			return nil, Answer(err)
		}
	}
	if err := messages.Follow(ctx, e); err != nil {
		return nil, Answer(err)
	}
	m := queued.Message(e)
	q.Devices.SetReceived(ctx, e, m)
	if x := q.Alerts.Incidents.OfMessage(ctx, e.Message); x != nil && h.mayActOn(r, h.NameOfIncident(r)(x)) {
		m.IncidentID = x.ID
	}
	if x != nil {
		m.Ask = h.askState(r, x)
	}
	return api.MessageResponse(m), nil
}

// mayCancel returns an error if the client of r may not cancel a message. The ID alone is not
// enough if the key has a token, if others than the sender know the IDs, or if not everybody may
// send to the key.
func (h *Messages) mayCancel(r *http.Request, e *queue.Entry) error {
	var s queued.Summary
	if s.Decode(e.Message.Summary) != nil || s.Key == "" || h.MayManage(r) == nil {
		return nil //nolint:nilerr // what cannot be read has no key
	}
	if err := h.mayCancelAt(r, e, s.Key); err != nil {
		return err
	}
	moved, err := h.Resolved.Moved(r.Context(), s.Key) // the message may belong to one of them
	if err != nil {
		return err
	}
	for _, k := range moved {
		if err := h.mayCancelAt(r, e, k.Name); err != nil {
			return err
		}
	}
	return nil
}

// mayCancelAt returns an error if the client of r may not cancel a message to the key with a
// name.
func (h *Messages) mayCancelAt(r *http.Request, e *queue.Entry, name string) error {
	k, err := h.Lookup(name).toSend(r)
	switch {
	case errors.Is(err, site.ErrNoKey):
		return nil // the key is gone, with its token
	case err != nil:
		return err
	case len(k.Tokens) == 0 && (len(k.Readers) > 0 || k.CheckSource(site.SourceDirect) != nil ||
		slices.ContainsFunc(k.Targets, func(t notifier.Target) bool { return site.IsDevice(t.String()) }) || reachesDevice(e)):
		return errCancelToken
	}
	return nil
}

// errCancelToken is returned if the ID of a message is not enough to cancel it.
var errCancelToken = api.Errorf(http.StatusForbidden,
	"a message to this key can be cancelled only by who may manage, because others know its ID or may not send to the key; the operator "+
		"can give the key a token, with which its senders can cancel")

// reachesDevice reports whether a message goes to a device, which then knows the ID. The device may
// be gone.
func reachesDevice(e *queue.Entry) bool {
	return slices.ContainsFunc(e.Jobs, func(j queue.Job) bool { return site.IsDevice(queued.DecodeResult(j.Result).Destination) })
}

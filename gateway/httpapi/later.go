package httpapi

import (
	"errors"
	"net/http"
	"path"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// sourceNtfy is the only source whose messages can be sent later.
const sourceNtfy = "ntfy"

func errLater(text string) *api.Error {
	return &api.Error{Status: http.StatusBadRequest, Field: "send_at", Err: errors.New(text)}
}

// Errors for messages that cannot be sent later.
var (
	errLaterNoKey   = errLater("the field send_at needs a key: post to /notify/{KEY}, because the destinations are looked up when the message is due")
	errLaterNoQueue = errLater("the field send_at needs a queue, which keeps the message until it is due; the operator can add queue to the global option notify, and the key must not have queue off")
	errLaterSource  = errLater("the field send_at is not read in the format of another program; post to /notify/{KEY}")
)

// later sets when the message of a request is sent, if it is not sent now.
func (h *Sender) later(q *api.Request, at *Route, k *site.Key, d *dispatch.Delivery) error {
	clock := func() time.Time {
		if rooms, err := h.App.Open(nil); err == nil && rooms != nil {
			return rooms.Outbox.Queue.At(d.Message.Time)
		}
		return d.Message.Time
	}
	t, delay, passed, err := q.SendAt(clock, h.ParseDuration)
	if passed {
		d.To.Warn("The time of send_at has passed, so the message is sent now")
	}
	if err != nil || t.IsZero() {
		return err
	}
	switch {
	case at.Key == "":
		return errLaterNoKey
	case at.Source != "" && at.Source != sourceNtfy:
		return errLaterSource
	case h.App.Engine.QueueSettings == nil || k.Unqueued:
		return errLaterNoQueue
	}
	w, err := q.Wish()
	d.Later = planned.Later(t, &w, at.Source)
	d.Later.Delay = delay
	return err
}

// plan answers the request of a message that is sent later.
func (h *Sender) plan(r *http.Request, d *dispatch.Delivery, prefer api.Preference) (*api.Response, error) {
	defer d.Release()
	q, err := h.App.Open(nil)
	if err != nil {
		return nil, err
	}
	if d.Published != nil {
		d.Later.Published, d.Later.FromPublisher = *d.Published, true
	}
	report, id, err := q.Planned.Accept(r.Context(), d)
	if e, ok := errors.AsType[*queue.DuplicateError](err); ok {
		return h.repeated(r, e, prefer, d)
	}
	if err != nil {
		return nil, outbox.QueueError(err)
	}
	resp := responseOf(d, report)
	setQueued(resp, r, id, prefer)
	return resp, nil
}

// cancelSequence cancels the planned messages of a key with a sequence, except the message with the
// ID but. The sequence of a message planned without one is the ID by which its program knows it.
func (h *sources) cancelSequence(r *http.Request, k *sourceKey, sequence, but string) error {
	if sequence == "" {
		return nil
	}
	q, err := h.App.Open(k.Key)
	if q == nil || err != nil {
		return err
	}
	published := path.Base(sequence)
	return Answer(q.Planned.CancelOf(r.Context(), k.Place(h.Site()), func(x *planned.Message) bool {
		id := x.ID.String()
		return id != but && (x.Sequence == sequence || x.Sequence == "" && message.PublishedID(id, message.NtfyIDLength) == published)
	}))
}

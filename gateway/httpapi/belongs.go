package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// What an address names by an ID belongs to a site, and who may manage or is a user at another
// site is a stranger to it. So everything is found by its ID here. What belongs to a key, such as
// a silence or a device, is found by its key, which is one of the site.
//
// Links with a secret in them, of incidents and questions, lead to what they name at every site,
// because the secret is the right. They get no other right there: see rightsTo.

// rights are what the client of a request is to something that was found by its ID.
type rights struct {
	user   string // whom the server's authentication has found; "" for nobody
	manage bool   // it may manage
}

// rightsTo returns the rights of the client of r to something. own reports whether it belongs to
// the site: the users and managers of another site have none.
func (h *Base) rightsTo(r *http.Request, own bool) rights {
	if !own {
		return rights{}
	}
	return rights{userOf(r), h.MayManage(r) == nil}
}

// mayActOn reports whether the client of r may learn more of what belongs to a key of the site than
// who has an ID: the ID of an incident, with which it can be acknowledged and resolved, or the
// destination of an answer. It may manage, or has a token of the key. Readers, devices and others
// know the IDs of messages.
func (h *Base) mayActOn(r *http.Request, name string) bool {
	if h.MayManage(r) == nil {
		return true
	}
	k, err := h.Lookup(name).toSend(r)
	return err == nil && len(k.Tokens) > 0
}

// FindMessage returns the message of the site that an ID names, or [outbox.ErrNoMessage].
func (h *Base) FindMessage(ctx context.Context, q *gateway.Rooms, text string) (*queue.Entry, error) {
	id, err := parseMessageID(text)
	if err != nil {
		return nil, err
	}
	return q.Outbox.Messages().Get(ctx, h.Site(), id)
}

// parseMessageID parses the ID of a message as it stands in an address.
func parseMessageID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return id, outbox.ErrNoMessage
	}
	return id, nil
}

// followQuestion returns the question that a link names. own reports whether it was asked at the
// site. login reports whether the link is for users who are logged in. Such a link leads only to
// questions of its own site with a login.
func (h *Base) followQuestion(ctx context.Context, q *gateway.Rooms, link string, login bool) (x *ask.At, own bool, err error) {
	x, err = q.Questions.ByLink(ctx, link)
	if err != nil {
		return nil, false, Answer(err)
	}
	own = x.Site == h.Site()
	if x.Login && !(login && own) || login && !own {
		return nil, false, ask.ErrNone
	}
	return x, own, nil
}

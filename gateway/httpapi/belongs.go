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

// An ID in an address names something of one site. A user or manager of another site has no rights
// to it. So this file finds everything that has an ID. Parts of a key, such as silences and
// devices, are found through their key, which belongs to the site.
//
// The links of incidents and questions contain a secret and work at every site, because the secret
// is the right. They give no other right there: see rightsTo.

// rights are the rights of a request's client to something found by its ID.
type rights struct {
	user   string // user found by the server's authentication; "" for nobody
	manage bool   // it may manage
}

// rightsTo returns the rights of the client of r to something. own reports whether it belongs to
// the site. Users and managers of another site have none.
func (h *Base) rightsTo(r *http.Request, own bool) rights {
	if !own {
		return rights{}
	}
	return rights{userOf(r), h.MayManage(r) == nil}
}

// mayActOn reports whether the client of r may learn more about something of a key than the holder
// of a message's ID: the ID of an incident, which allows acknowledging and resolving it, or the
// destination of an answer. The client may if it may manage or has a token of the key. Readers,
// devices and others know the IDs of messages.
func (h *Base) mayActOn(r *http.Request, name string) bool {
	if h.MayManage(r) == nil {
		return true
	}
	k, err := h.Lookup(name).toSend(r)
	return err == nil && len(k.Tokens) > 0
}

// FindMessage returns the message of the site with an ID, or [outbox.ErrNoMessage].
func (h *Base) FindMessage(ctx context.Context, q *gateway.Rooms, text string) (*queue.Entry, error) {
	id, err := parseMessageID(text)
	if err != nil {
		return nil, err
	}
	return q.Outbox.Messages().Get(ctx, h.Site(), id)
}

// parseMessageID parses the ID of a message in an address.
func parseMessageID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return id, outbox.ErrNoMessage
	}
	return id, nil
}

// followQuestion returns the question of a link. own reports whether it was asked at the site.
// login reports whether the link is for users who are logged in. Such a link leads only to
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

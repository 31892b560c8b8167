package device

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Invite makes an invitation to a key, and returns its token.
func (q *Registry) Invite(ctx context.Context, to site.Place, tags []string) (token string, x *Invitation, err error) {
	token = NewSecret()
	err = q.Queue.Apply(ctx, &queue.Ruled{Names: []queue.Hash{q.InvitationName(token)}, Adds: true, Decide: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		x = NewInvitation(to, tags, q.Queue.Now())
		return &queue.RuledChange{Records: []queue.Record{{Data: outbox.EncodeRecord(outbox.KindInvitation, x.Encode()), Due: x.Until}}}, nil
	}})
	return token, x, err
}

// Invitation returns the invitation to a key that a token stands for. The error is
// [device.ErrInvitation] if there is none.
func (q *Registry) Invitation(ctx context.Context, to site.Place, token string) (*Invitation, error) {
	if token == "" {
		return nil, ErrInvitation
	}
	b, err := q.Queue.CallersRecord(ctx, q.InvitationName(token))
	if err != nil {
		return nil, err
	}
	x := InvitationOf(b)
	return x, x.Check(to, q.Queue.Now())
}

// InvitationLink returns the address on which a phone uses an invitation.
func InvitationLink(publicURL, key, token string) string {
	return publicURL + site.PathOf(site.RouteNotifyKey, key) + "?invite=" + token
}

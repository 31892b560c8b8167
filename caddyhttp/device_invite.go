package caddyhttp

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// invite makes an invitation to a key, and returns its token.
func (q *registry) invite(ctx context.Context, to site.Place, tags []string) (token string, x *device.Invitation, err error) {
	token = device.NewSecret()
	err = q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{q.invitationName(token)}, Adds: true, Decide: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		x = device.NewInvitation(to, tags, q.Now())
		return &queue.RuledChange{Records: []queue.Record{{Data: outbox.EncodeRecord(outbox.KindInvitation, x.Encode()), Due: x.Until}}}, nil
	}})
	return token, x, err
}

// invitation returns the invitation to a key that a token stands for. The error is
// [device.ErrInvitation] if there is none.
func (q *registry) invitation(ctx context.Context, to site.Place, token string) (*device.Invitation, error) {
	if token == "" {
		return nil, device.ErrInvitation
	}
	b, err := q.CallersRecord(ctx, q.invitationName(token))
	if err != nil {
		return nil, err
	}
	x := decodeInvitation(b)
	return x, x.Check(to, q.Now())
}

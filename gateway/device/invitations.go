package device

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Invitations stores the invitations to keys, each until it is used or expires.
type Invitations struct {
	records Records
	usage   *outbox.Usage
}

func newInvitations(r Records) *Invitations {
	return &Invitations{r, r.outbox.NewUsage(KindInvitation, outbox.Weigh, func(ctx context.Context, place string, f func([]byte)) error {
		return outbox.EachOfGroup(ctx, r.outbox.Queue, r.invitations(place), func(x queue.NamedRecord) bool { f(x.Data); return true })
	})}
}

// Make stores a new invitation to a key, and returns it with its token. A device that uses it gets
// the tags. It is made also if who asks for it goes away. The error is a [*message.Error].
func (q *Invitations) Make(ctx context.Context, to site.Place, tags []string) (token string, x *Invitation, err error) {
	if err := CheckTags(tags, true, site.CheckTag); err != nil {
		return "", nil, err
	}
	token = NewSecret()
	store := q.records.outbox.Queue
	name := q.records.invitation(token)
	err = q.records.outbox.Apply(context.WithoutCancel(ctx), q.usage.Ruled(to.String(), true,
		&queue.Ruled{Names: []queue.Hash{name}, Adds: true, Decide: func(tx *queue.Tx) error {
			x = newInvitation(to, tags, store.Now())
			invitations.Put(tx, name, x, x.Until, q.records.invitations(to.String()))
			return nil
		}}))
	return token, x, outbox.QueueError(err)
}

// Find returns the invitation with a token, which must be for the key. The error is [ErrInvitation]
// if there is none.
func (q *Invitations) Find(ctx context.Context, to site.Place, token string) (*Invitation, error) {
	if token == "" {
		return nil, ErrInvitation
	}
	x, err := q.read(ctx, token)
	if err != nil {
		return nil, err
	}
	return x, x.check(to, q.records.outbox.Queue.Now())
}

// Usable reports whether an invitation with the token can still be used, for any key.
func (q *Invitations) Usable(ctx context.Context, token string) (bool, error) {
	x, err := q.read(ctx, token)
	return x != nil && x.check(x.Place, q.records.outbox.Queue.Now()) == nil, err
}

// read returns the invitation with a token, or nil.
func (q *Invitations) read(ctx context.Context, token string) (*Invitation, error) {
	return invitations.Read(ctx, q.records.outbox, q.records.invitation(token))
}

// InvitationLink returns the address on which a phone uses an invitation.
func InvitationLink(publicURL, key, token string) string {
	return publicURL + site.PathOf(site.RouteNotifyKey, key) + "?invite=" + token
}

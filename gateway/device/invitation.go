package device

import (
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// invitationTime is how long an invitation can be used.
const invitationTime = 24 * time.Hour

// Invitation lets one device subscribe to a key. It is found by its token.
type Invitation struct {
	site.Place

	Tags  []string // that the device gets
	Until time.Time
}

// ErrInvitation is returned for a token without a valid invitation.
var ErrInvitation = message.Errorf(message.Forbidden,
	"the invitation is used up, is older than 24 hours, or is for another key; ask for another one")

// newInvitation returns an invitation to a key, valid from now on.
func newInvitation(to site.Place, tags []string, now time.Time) *Invitation {
	return &Invitation{Place: to, Tags: slices.Clone(tags), Until: now.Add(invitationTime)}
}

// check returns [ErrInvitation] if the invitation is nil, has expired or is for another key.
func (x *Invitation) check(to site.Place, now time.Time) error {
	if x == nil || x.Place != to || !x.Until.After(now) {
		return ErrInvitation
	}
	return nil
}

func (x *Invitation) fields(c *wire.Codec) {
	wire.Text(c, 1, &x.Home)
	wire.Text(c, 2, &x.Key)
	wire.Texts(c, 3, &x.Tags)
	wire.Time(c, 4, &x.Until)
}

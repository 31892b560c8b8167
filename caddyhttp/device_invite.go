package caddyhttp

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// kindInvitation begins the record of an invitation.
const kindInvitation = 'j'

// invitationTime is how long an invitation can be used.
const invitationTime = 24 * time.Hour

// invitation lets one device subscribe to a key. It is found by its token.
type invitation struct {
	Home, Key string
	Tags      []string // that the device gets
	Until     time.Time
}

// The fields of an invitation.
const (
	invitationHome wire.Field = iota + 1
	invitationKey
	invitationTag // one for each
	invitationUntil
)

func (x *invitation) encode() []byte {
	b := wire.AppendText(wire.AppendText(nil, invitationHome, x.Home), invitationKey, x.Key)
	for _, tag := range x.Tags {
		b = wire.AppendItem(b, invitationTag, tag)
	}
	return wire.AppendTime(b, invitationUntil, x.Until)
}

// decodeInvitation returns the invitation in a record, or nil for none and for a damaged
// one.
func decodeInvitation(record []byte) *invitation {
	if len(record) == 0 || record[0] != kindInvitation {
		return nil
	}
	x := new(invitation)
	r := wire.NewReader(record[1:])
	for r.Next() {
		switch r.Field {
		case invitationHome:
			x.Home = r.Text()
		case invitationKey:
			x.Key = r.Text()
		case invitationTag:
			x.Tags = append(x.Tags, r.Text())
		case invitationUntil:
			x.Until = r.Time()
		}
	}
	if r.Err() != nil {
		return nil
	}
	return x
}

// errNoInvitation is returned for a token that opens nothing.
var errNoInvitation = errors.New("the invitation is used up, is older than 24 hours, or is for another key; ask for another one")

// check returns an error if the invitation, which may be nil, does not hold for a key.
func (x *invitation) check(now time.Time, home, key string) error {
	if x == nil || x.Home != home || x.Key != key || !x.Until.After(now) {
		return errNoInvitation
	}
	return nil
}

func (q *openQueue) invitationName(token string) queue.Hash { return q.Hash("invitation\x00" + token) }

// invite makes an invitation to a key, and returns its token.
func (q *openQueue) invite(ctx context.Context, home, key string, tags []string) (token string, x *invitation, err error) {
	token = newSecret()
	err = q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{q.invitationName(token)}, Adds: true, Decide: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		x = &invitation{Home: home, Key: key, Tags: slices.Clone(tags), Until: q.Now().Add(invitationTime)}
		return &queue.RuledChange{Records: []queue.Record{{Data: encodeRecord(kindInvitation, x.encode()), Due: x.Until}}}, nil
	}})
	return token, x, err
}

// invitation returns the invitation to a key that a token stands for. The error is
// errNoInvitation if there is none.
func (q *openQueue) invitation(ctx context.Context, home, key, token string) (*invitation, error) {
	if token == "" {
		return nil, errNoInvitation
	}
	b, err := q.CallersRecord(ctx, q.invitationName(token))
	if err != nil {
		return nil, err
	}
	x := decodeInvitation(b)
	return x, x.check(q.Now(), home, key)
}

package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	megolm "maunium.net/go/mautrix/crypto/goolm/session"
	"maunium.net/go/mautrix/id"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// group is the key for messages to one room, and who has it.
// See https://spec.matrix.org/latest/client-server-api/#mmegolmv1aes-sha2.
type group struct {
	session  *megolm.MegolmOutboundSession
	created  time.Time
	messages int
	shared   map[string]bool // with peers, by their keys
}

// A group is used for this many messages and this long, as clients do.
const (
	maxGroupMessages = 100
	maxGroupAge      = 7 * 24 * time.Hour
)

// sharesAtOnce is the maximum number of devices that get a key in one request.
const sharesAtOnce = 50

// prepare makes a room ready for encrypted events: all devices in the room have
// the key when it returns.
func (s *session) prepare(ctx context.Context, c *notifier.Client, room string) error {
	select {
	case s.crypto <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.crypto }()
	d, err := s.ourDevice(ctx, c)
	if err != nil {
		return err
	}
	g, err := s.share(ctx, c, d, room)
	if err == nil {
		d.groups[room] = g
	}
	return err
}

// encrypt returns the content of an event for a room, encrypted. The room is
// prepared.
func (s *session) encrypt(ctx context.Context, room string, content map[string]any) (map[string]any, error) {
	// One at a time: two events must not use the same position of a key.
	select {
	case s.crypto <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.crypto }()
	d := s.device
	g := d.groups[room]
	plain, err := json.Marshal(map[string]any{"type": "m.room.message", "room_id": room, "content": content})
	if err != nil {
		return nil, err
	}
	text, err := g.session.Encrypt(plain)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	g.messages++
	_, identity, err := d.account.IdentityKeys()
	if err != nil {
		return nil, fmt.Errorf("reading our keys: %w", err)
	}
	return map[string]any{
		"algorithm": algorithmMegolm, "sender_key": identity.String(), "device_id": d.ID,
		"session_id": g.session.ID().String(), "ciphertext": string(text),
	}, nil
}

// share returns the group of a room, after every device in the room that can have its key has got
// it.
func (s *session) share(ctx context.Context, c *notifier.Client, d *device, room string) (*group, error) {
	users, err := s.members(ctx, c, room)
	if err != nil {
		return nil, fmt.Errorf("asking who is in the room: %w", err)
	}
	peers, without, err := s.peersOf(ctx, c, d, users)
	if err != nil {
		return nil, err
	}
	g, err := d.groupOf(room, peers)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(peers), func(p *peer) bool { return g.shared[p.key()] })
	if err := s.claim(ctx, c, d, missing); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(missing, sharesAtOnce) {
		messages := map[string]map[string]any{}
		told := slices.DeleteFunc(slices.Clone(some), func(p *peer) bool { return p.session == nil })
		without += len(some) - len(told)
		err := c.Compute(ctx, func() error {
			for _, p := range told {
				message, err := d.roomKey(p, g, room)
				if err != nil {
					return fmt.Errorf("encrypting the key for a device: %w", err)
				}
				if messages[p.User] == nil {
					messages[p.User] = map[string]any{}
				}
				messages[p.User][p.Device] = message
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(told) == 0 {
			continue
		}
		if err := s.call(ctx, c, "PUT", map[string]any{"messages": messages}, nil,
			"sendToDevice", "m.room.encrypted", uuid.NewString()); err != nil {
			return nil, fmt.Errorf("giving the key to the devices in the room: %w", err)
		}
		for _, p := range told {
			g.shared[p.key()] = true
		}
	}
	switch {
	case len(g.shared) == 0:
		return nil, errors.New("nobody in the encrypted room has a device that can read messages; sign in to the room with one")
	case without > 0:
		c.Warn("Matrix: %d of %d devices in the encrypted room cannot read the message: their keys are used up, changed or not signed",
			without, len(peers)+without)
	}
	return g, nil
}

// groupOf returns the group of a room. It makes a new one if the key is too old, or if a device
// that is no longer in the room has it.
func (d *device) groupOf(room string, peers []*peer) (*group, error) {
	g := d.groups[room]
	left := 0
	if g != nil {
		left = len(g.shared)
		for _, p := range peers {
			if g.shared[p.key()] {
				left--
			}
		}
	}
	if g != nil && left == 0 && g.messages < maxGroupMessages && time.Since(g.created) < maxGroupAge {
		return g, nil
	}
	g = &group{created: time.Now(), shared: map[string]bool{}}
	var err error
	if g.session, err = megolm.NewMegolmOutboundSession(); err != nil {
		return nil, fmt.Errorf("making a key for the room: %w", err)
	}
	return g, nil
}

// members returns the users who are in a room or invited to it.
func (s *session) members(ctx context.Context, c *notifier.Client, room string) (users []string, err error) {
	var answer struct {
		Chunk []struct {
			User    string `json:"state_key"`
			Content struct {
				Membership string `json:"membership"`
			} `json:"content"`
		} `json:"chunk"`
	}
	q := s.request("GET", nil, "rooms", room, "members")
	q.Body = nil
	q.Query = notifier.Fields("not_membership", "leave")
	if err := s.do(ctx, c, q, &answer); err != nil {
		return nil, err
	}
	for _, m := range answer.Chunk {
		if m.Content.Membership == "join" || m.Content.Membership == "invite" {
			users = append(users, m.User)
		}
	}
	return users, nil
}

// claim opens sessions with the devices that we have none with. A device without keys for that
// stays without a session.
func (s *session) claim(ctx context.Context, c *notifier.Client, d *device, peers []*peer) error {
	wanted := map[string]map[string]string{}
	for _, p := range peers {
		if p.session != nil {
			continue
		}
		if wanted[p.User] == nil {
			wanted[p.User] = map[string]string{}
		}
		wanted[p.User][p.Device] = "signed_curve25519"
	}
	if len(wanted) == 0 {
		return nil
	}
	var answer struct {
		Keys map[string]map[string]map[string]json.RawMessage `json:"one_time_keys"`
	}
	if err := s.call(ctx, c, "POST", map[string]any{"one_time_keys": wanted}, &answer, "keys", "claim"); err != nil {
		return fmt.Errorf("asking for keys of the devices in the room: %w", err)
	}
	return c.Compute(ctx, func() error {
		d.open(peers, answer.Keys)
		return nil
	})
}

// open opens sessions with the devices that we have none with, by one-time keys
// that they have signed.
func (d *device) open(peers []*peer, keys map[string]map[string]map[string]json.RawMessage) {
	for _, p := range peers {
		if p.session != nil {
			continue
		}
		for _, text := range keys[p.User][p.Device] {
			var key struct {
				Key id.Curve25519 `json:"key"`
			}
			if json.Unmarshal(text, &key) != nil || !isSigned(text, p.User, p.Device, p.Signing) {
				continue
			}
			opened, err := d.account.NewOutboundSession(id.Curve25519(p.Identity), key.Key)
			if err != nil {
				continue // a key of the wrong length
			}
			p.session = opened
			break
		}
	}
}

// roomKey returns the key of a group, encrypted for a device.
// See https://spec.matrix.org/latest/client-server-api/#molmv1curve25519-aes-sha2.
func (d *device) roomKey(p *peer, g *group, room string) (map[string]any, error) {
	signing, identity, err := d.account.IdentityKeys()
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(map[string]any{
		"type": "m.room_key", "sender": d.User, "sender_device": d.ID, "recipient": p.User,
		"keys": map[string]string{"ed25519": signing.String()}, "recipient_keys": map[string]string{"ed25519": p.Signing},
		"content": map[string]string{
			"algorithm": algorithmMegolm, "room_id": room,
			"session_id": g.session.ID().String(), "session_key": g.session.Key(),
		},
	})
	if err != nil {
		return nil, err
	}
	kind, text, err := p.session.Encrypt(plain)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"algorithm": algorithmOlm, "sender_key": identity.String(),
		"ciphertext": map[string]any{p.Identity: map[string]any{"type": kind, "body": string(text)}},
	}, nil
}

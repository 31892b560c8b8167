package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// send sends to all rooms, even if some of them fail.
func (s *session) send(ctx context.Context, c *notifier.Client, x *service, m *notifier.Message) error {
	targets := x.targets
	if len(targets) == 0 {
		var err error
		if targets, err = s.joined(ctx, c); err != nil {
			return err
		}
	}
	var errs []error
	for _, target := range usersLast(targets) {
		errs = append(errs, c.Steps.Once("room "+target, func() error { return s.sendRoom(ctx, c, x, m, target) }))
	}
	return errors.Join(errs...)
}

// sendRoom sends to one room.
func (s *session) sendRoom(ctx context.Context, c *notifier.Client, x *service, m *notifier.Message, target string) error {
	room, known, err := s.room(ctx, c, target, x.homeOnIDs, m.Identity.Description)
	if err != nil {
		return err
	}
	err = s.sendJoined(ctx, c, x, m, target, room)
	if !known || !hasStatus(err, 403) {
		return err
	}
	// The user may have been removed and invited again: join once more.
	s.forget(target)
	if room, _, err = s.room(ctx, c, target, x.homeOnIDs, m.Identity.Description); err != nil {
		return err
	}
	return s.sendJoined(ctx, c, x, m, target, room)
}

// sendJoined sends to a room that the user is in.
func (s *session) sendJoined(ctx context.Context, c *notifier.Client, x *service, m *notifier.Message, target, room string) error {
	encrypted := false
	if x.protects() && (x.Secure || x.e2ee == e2eeYes || !s.isStandIn()) {
		var err error
		if encrypted, err = s.isEncrypted(ctx, c, room); err != nil {
			return fmt.Errorf("asking whether %s is encrypted: %w", target, err)
		}
	}
	if encrypted {
		if err := s.prepare(ctx, c, room); err != nil {
			return fmt.Errorf("encrypting for %s: %w", target, err)
		}
	}
	events, err := s.contents(ctx, c, x, m, encrypted)
	if err != nil {
		return err
	}
	return s.put(ctx, c, room, target, events, encrypted)
}

// usersLast returns the targets with rooms before users.
func usersLast(targets []string) []string {
	targets = slices.Clone(targets)
	slices.SortStableFunc(targets, func(a, b string) int {
		return strings.Compare(strings.TrimLeft(a[:1], "#!"), strings.TrimLeft(b[:1], "#!"))
	})
	return targets
}

// namedEvent is an event with a name that is unique in its message.
type namedEvent struct {
	name    string
	content map[string]any
}

// put sends the events that the room does not have yet. A retry uses the same
// transaction id. The text, which is the last event, is sent even if the server
// refuses a file.
func (s *session) put(ctx context.Context, c *notifier.Client, room, target string, events []namedEvent, encrypted bool) error {
	var errs []error
	for _, e := range events {
		key := e.name + " in " + target
		err := c.Steps.Once(key, func() error {
			number, _ := notifier.OnceValue(c.Steps, "number of "+key, func() (string, error) { return s.nextNumber(), nil })
			if encrypted {
				content, err := s.encrypt(ctx, room, e.content)
				if err != nil {
					return err
				}
				return s.call(ctx, c, "PUT", content, nil, "rooms", room, "send", "m.room.encrypted", number)
			}
			if e.content["info"] != nil {
				e.content["room_id"], e.content["type"] = room, "m.room.message"
			}
			return s.call(ctx, c, "PUT", e.content, nil, "rooms", room, "send", "m.room.message", number)
		})
		if err != nil {
			s.forget(target)
			if !hasStatus(err, 400, 413) {
				return err
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// room finds the id of the room that a target stands for, and joins it unless
// that is known from an earlier message.
func (s *session) room(ctx context.Context, c *notifier.Client, target string, homeOnIDs bool, description string) (id string, known bool, err error) {
	s.mu.Lock()
	id = s.rooms[target]
	s.mu.Unlock()
	if id != "" {
		return id, true, nil
	}
	full := target
	if !strings.Contains(target, ":") && (homeOnIDs || target[0] != '!') {
		full += ":" + s.home
	}
	switch target[0] {
	case '@':
		if id, err = s.talk(ctx, c, full); err == nil {
			id, err = s.join(ctx, c, id)
		}
	case '!':
		id, err = s.join(ctx, c, full)
	default:
		if id, err = s.join(ctx, c, full); isNotFound(err) {
			id, err = s.create(ctx, c, full, description)
		}
	}
	if err != nil {
		return "", false, fmt.Errorf("joining %s: %w", target, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rooms[target] = id
	return id, false, nil
}

// forget makes the next message join the room again, which the user may have
// left.
func (s *session) forget(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rooms, target)
}

// roomAnswer is an answer that names a room.
type roomAnswer struct {
	ID string `json:"room_id"`
}

func (r roomAnswer) id(err error) (string, error) {
	if err == nil && r.ID == "" {
		err = errors.New("the server names no room")
	}
	return r.ID, err
}

// join enters a room, which does no harm where the user is in it.
func (s *session) join(ctx context.Context, c *notifier.Client, room string) (string, error) {
	var answer roomAnswer
	err := s.call(ctx, c, "POST", struct{}{}, &answer, "join", room)
	if err == nil && answer.ID == "" && room[0] == '!' {
		return room, nil
	}
	return answer.id(err)
}

// create makes a private room of an alias that nobody has yet.
func (s *session) create(ctx context.Context, c *notifier.Client, alias, description string) (string, error) {
	name, _, _ := strings.Cut(alias[1:], ":")
	var answer roomAnswer
	err := s.call(ctx, c, "POST", map[string]string{
		"room_alias_name": name, "name": "#" + name + " - " + description,
		"visibility": "private", "preset": "trusted_private_chat",
	}, &answer, "createRoom")
	if status, ok := errors.AsType[*notifier.StatusError](err); ok && strings.Contains(status.Body, `"M_ROOM_IN_USE"`) {
		err = s.call(ctx, c, "GET", nil, &answer, "directory", "room", alias)
	}
	return answer.id(err)
}

// talk finds the room for direct messages with a user, or makes one and notes
// it for the user's other programs.
func (s *session) talk(ctx context.Context, c *notifier.Client, user string) (string, error) {
	// What programs have written there is theirs: only this user's part is read.
	var direct map[string]json.RawMessage
	list := []string{"user", s.user, "account_data", "m.direct"}
	if s.user != "" {
		if err := s.call(ctx, c, "GET", nil, &direct, list...); err != nil && !isNotFound(err) {
			return "", err
		}
	}
	var rooms []string
	if json.Unmarshal(direct[user], &rooms) == nil && len(rooms) > 0 {
		return rooms[0], nil
	}
	var answer roomAnswer
	id, err := answer.id(s.call(ctx, c, "POST", map[string]any{
		"is_direct": true, "preset": "trusted_private_chat", "invite": []string{user},
	}, &answer, "createRoom"))
	if err != nil || s.user == "" {
		return id, err
	}
	if direct == nil {
		direct = map[string]json.RawMessage{}
	}
	direct[user], _ = json.Marshal([]string{id}) // texts always can
	if err := s.call(ctx, c, "PUT", direct, nil, list...); err != nil {
		c.Warn("Matrix: the room with a user was not noted as a direct chat: %v", err)
	}
	return id, nil
}

// joined lists the rooms that the user is in.
func (s *session) joined(ctx context.Context, c *notifier.Client) ([]string, error) {
	var answer struct {
		Rooms []string `json:"joined_rooms"`
	}
	err := s.call(ctx, c, "GET", nil, &answer, "joined_rooms")
	if err == nil && len(answer.Rooms) == 0 {
		err = errors.New("the user is in no room; name one in the URL")
	}
	if err != nil {
		return nil, fmt.Errorf("looking for rooms: %w", err)
	}
	return answer.Rooms, nil
}

package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// room returns the id of the room of a target, and joins it. known reports
// whether an earlier message joined it.
func (s *session) room(
	ctx context.Context, c *notifier.Client, target string, homeOnIDs bool, description string,
) (id string, known bool, err error) {
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
		if id, err = s.directRoom(ctx, c, full); err == nil {
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

// forget makes the next message join the room again.
func (s *session) forget(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rooms, target)
}

// roomAnswer is an answer with the id of a room.
type roomAnswer struct {
	ID    string `json:"room_id"`
	Token string `json:"access_token"` // only a stand-in sends it
}

// id returns the id, or err, or an error if both are empty.
func (r roomAnswer) id(err error) (string, error) {
	if err == nil && r.ID == "" {
		err = errors.New("the server did not return the id of the room")
	}
	return r.ID, err
}

// join joins a room. The user may be in it already.
func (s *session) join(ctx context.Context, c *notifier.Client, room string) (string, error) {
	var answer roomAnswer
	err := s.call(ctx, c, "POST", struct{}{}, &answer, "join", room)
	s.mu.Lock()
	s.standIn = answer.Token != ""
	s.mu.Unlock()
	if err == nil && answer.ID == "" && room[0] == '!' {
		return room, nil
	}
	return answer.id(err)
}

// create creates a private room with the alias.
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

// directRoom returns the room for direct messages with a user. If there is none,
// it creates one and adds it to our user's list of direct chats.
func (s *session) directRoom(ctx context.Context, c *notifier.Client, user string) (string, error) {
	// Other programs write to the list, so only the entry of this user is decoded.
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
	direct[user], _ = json.Marshal([]string{id}) // never fails
	if err := s.call(ctx, c, "PUT", direct, nil, list...); err != nil {
		c.Warn("Matrix: the new room with a user could not be marked as a direct chat: %v", err)
	}
	return id, nil
}

// isEncrypted reports whether the state of a room says that its messages are
// encrypted. Encryption cannot be turned off, so it asks until they are.
// See https://spec.matrix.org/latest/client-server-api/#mroomencryption.
func (s *session) isEncrypted(ctx context.Context, c *notifier.Client, room string) (bool, error) {
	s.mu.Lock()
	encrypted := s.encrypted[room]
	s.mu.Unlock()
	if encrypted {
		return true, nil
	}
	q := s.request("GET", nil, "rooms", room, "state", "m.room.encryption")
	q.Body = nil
	err := s.do(ctx, c, q, nil)
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.encrypted[room] = true
	return true, nil
}

// isStandIn reports whether the server stands in for a homeserver, in a test,
// and gives the same answer to every request. It has no rooms, and the answer
// would call each of them encrypted. It is recognized by an access token in the
// answer to a join, where no homeserver sends one.
func (s *session) isStandIn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standIn
}

// joined returns the rooms that the user is in.
func (s *session) joined(ctx context.Context, c *notifier.Client) ([]string, error) {
	var answer struct {
		Rooms []string `json:"joined_rooms"`
	}
	err := s.call(ctx, c, "GET", nil, &answer, "joined_rooms")
	if err == nil && len(answer.Rooms) == 0 {
		err = errors.New("the user is in no room; name one in the URL")
	}
	if err != nil {
		return nil, fmt.Errorf("listing rooms: %w", err)
	}
	return answer.Rooms, nil
}

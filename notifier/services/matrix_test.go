package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// matrixServer keeps what it gets: it knows sessions by their tokens, drops an
// event whose number the session has used before, and takes events from those
// only who are in the room.
type matrixServer struct {
	sessions int  // how many there were; the last is valid
	out      bool // the user is in no room
	banned   bool // and cannot join one
	joins    int
	numbers  map[string]bool // used, with their sessions
	events   []string        // texts
	identity int             // status that the identity server answers
}

func (s *matrixServer) answer(q *http.Request, body string) (int, string) {
	token := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	switch path := q.URL.Path; {
	case q.URL.Host == "identity.example.org":
		return s.identity, "{}"
	case path == "/.well-known/matrix/client":
		return 200, `{"m.homeserver": {"base_url": "https://example.org"}, "m.identity_server": {"base_url": "https://identity.example.org"}}`
	case strings.HasSuffix(path, "/versions"):
		return 200, "{}"
	case strings.HasSuffix(path, "/login"):
		s.sessions++
		return 200, fmt.Sprintf(`{"access_token": "token-%d", "user_id": "@ann:example.org"}`, s.sessions)
	case token != fmt.Sprintf("token-%d", s.sessions):
		return 401, `{"errcode": "M_UNKNOWN_TOKEN"}`
	case strings.Contains(path, "/join/"):
		if s.joins++; s.banned {
			return 403, `{"errcode": "M_FORBIDDEN", "error": "You are not invited to this room."}`
		}
		s.out = false
		return 200, `{"room_id": "!room:example.org"}`
	case s.out:
		return 403, `{"errcode": "M_FORBIDDEN", "error": "User not in room."}`
	case !s.numbers[token+path]:
		var event struct{ Body string }
		_ = json.Unmarshal([]byte(body), &event)
		s.events = append(s.events, event.Body)
		s.numbers[token+path] = true
	}
	return 200, `{"event_id": "$1"}`
}

// What is said before each of some messages to the server, and what it has in
// the end.
func TestMatrixServer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server matrixServer
		before func(s *matrixServer, message int)
		lost   []int // messages that fail
		joins  int
	}{
		{"nothing happens", matrixServer{}, func(*matrixServer, int) {}, nil, 1},
		{"the session ends", matrixServer{}, func(s *matrixServer, message int) {
			if message == 2 {
				s.sessions = 10
			}
		}, nil, 2},
		{"put out and invited again", matrixServer{}, func(s *matrixServer, message int) { s.out = s.out || message == 2 }, nil, 2},
		{"banned for a while", matrixServer{}, func(s *matrixServer, message int) {
			s.out, s.banned = s.out || message == 2, message == 2 || message == 3
		}, []int{2, 3}, 4},
		{"a dead identity server", matrixServer{identity: 502}, func(*matrixServer, int) {}, nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.server
			s.numbers = map[string]bool{}
			if s.identity == 0 {
				s.identity = 200
			}
			send := pushService(s.answer).destination(t, "matrixs://ann:pa55word@example.org/!room")
			var want []string
			for i := range 6 {
				tt.before(&s, i)
				m := message(t, "notitle")
				m.Body = fmt.Sprint("message ", i)
				err := send(m)
				if slices.Contains(tt.lost, i) != (err != nil) {
					t.Errorf("message %d: %v", i, err)
				}
				if err == nil {
					want = append(want, m.Body)
				}
			}
			if !slices.Equal(s.events, want) {
				t.Errorf("the room has %q, want %q", s.events, want)
			}
			if s.joins != tt.joins {
				t.Errorf("joined %d times, want %d", s.joins, tt.joins)
			}
		})
	}
}

// What stands in the way of a message before it works is told to the client.
func TestMatrixIdentityWarning(t *testing.T) {
	s := matrixServer{numbers: map[string]bool{}, identity: 502}
	report := pushService(s.answer).report(t, "matrixs://ann:pa55word@example.org/!room", message(t, "plain"))
	if records := fmt.Sprint(report.Records); !report.OK() || !strings.Contains(records, "identity server") {
		t.Errorf("%v: %s", report.Results[0].Err, records)
	}
}

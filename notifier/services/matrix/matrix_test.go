package matrix

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// server is a homeserver with one room. It accepts events from users in the room
// and drops an event whose transaction id the session has used before.
type server struct {
	sessions int  // number of logins; only the last token is valid
	out      bool // the user is not in the room
	banned   bool // the user cannot join
	joins    int
	numbers  map[string]bool // used tokens and transaction ids
	events   []string        // texts
	secret   bool            // the room is encrypted
	identity int             // status of the identity server
}

func (s *server) answer(q *http.Request, body string) (int, string) {
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
	case strings.HasSuffix(path, "/rooms/!room:example.org/state/m.room.encryption"):
		if s.secret {
			return 200, `{"algorithm": "m.megolm.v1.aes-sha2"}`
		}
		return 404, `{"errcode": "M_NOT_FOUND", "error": "Event not found."}`
	case !s.numbers[token+path]:
		var event struct{ Body string }
		_ = json.Unmarshal([]byte(body), &event)
		s.events = append(s.events, event.Body)
		s.numbers[token+path] = true
	}
	return 200, `{"event_id": "$1"}`
}

// TestServer changes the server before some of six messages and checks which of
// them arrive.
func TestServer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server server
		before func(s *server, message int)
		lost   []int // messages that fail
		joins  int
	}{
		{"nothing happens", server{}, func(*server, int) {}, nil, 1},
		{"the session ends", server{}, func(s *server, message int) {
			if message == 2 {
				s.sessions = 10
			}
		}, nil, 2},
		{"removed and invited again", server{}, func(s *server, message int) { s.out = s.out || message == 2 }, nil, 2},
		{"banned for a while", server{}, func(s *server, message int) {
			s.out, s.banned = s.out || message == 2, message == 2 || message == 3
		}, []int{2, 3}, 4},
		{"a dead identity server", server{identity: 502}, func(*server, int) {}, nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.server
			s.numbers = map[string]bool{}
			if s.identity == 0 {
				s.identity = 200
			}
			send := servicetest.API(s.answer).Destination(t, "matrixs://ann:pa55word@example.org/!room")
			var want []string
			for i := range 6 {
				tt.before(&s, i)
				m := servicetest.Message(t, "notitle")
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

// TestEncryptedRoom checks that neither text nor files are sent to an encrypted
// room, even if it became encrypted after earlier messages. With e2ee=no they
// are sent.
func TestEncryptedRoom(t *testing.T) {
	for url, arrives := range map[string]bool{
		"matrixs://ann:pass@example.org/#room":          false,
		"matrixs://ann:pass@example.org/#room?e2ee=yes": false,
		"matrixs://ann:pass@example.org/#room?e2ee=no":  true,
		"matrix://ann:pass@example.org/#room":           false,
		"matrix://ann:pass@example.org/#room?e2ee=on":   false,
		"matrix://ann:pass@example.org/#room?e2ee=off":  true,
	} {
		s := server{numbers: map[string]bool{}, identity: 200}
		uploads := 0
		send := servicetest.API(func(q *http.Request, body string) (int, string) {
			if strings.HasPrefix(q.URL.Path, "/_matrix/media/") {
				uploads++
				return 200, `{"content_uri": "mxc://example.org/1"}`
			}
			return s.answer(q, body)
		}).Destination(t, url)
		if err := send(servicetest.Message(t, "plain")); err != nil || len(s.events) != 1 {
			t.Fatalf("%s: before the room is encrypted: %d events, %v", url, len(s.events), err)
		}
		s.secret = true
		for range 2 {
			err := send(servicetest.Message(t, "attach"))
			if arrives != (err == nil) || !arrives && !strings.Contains(err.Error(), "add e2ee=no to the URL") {
				t.Errorf("%s: the error is %v", url, err)
			}
		}
		if arrives != (len(s.events) > 1) || arrives != (uploads > 0) {
			t.Errorf("%s: %d events and %d files arrive", url, len(s.events), uploads)
		}
	}
}

// TestStandIn checks that a server that gives the same answer to every request
// gets messages: it says of every room that it is encrypted. Over TLS, and with
// e2ee=yes, the gateway believes it.
func TestStandIn(t *testing.T) {
	const answer = `{"access_token":"t","user_id":"@ann:example.org",` +
		`"device_id":"D","room_id":"!r:example.org","joined_rooms":["!r:example.org"]}`
	for _, tt := range []struct {
		url, answer string
		arrives     bool
	}{
		{"matrix://ann:pass@example.org/#room", answer, true},
		{"matrix://token@example.org/!room", answer, true},
		{"matrix://token@example.org?mode=off", answer, true},
		{"matrix://token@example.org/!room?e2ee=yes", answer, false},
		{"matrixs://token@example.org/!room?discovery=no", answer, false},
		// Without a token in the answer to a join it may be a homeserver.
		{"matrix://token@example.org/!room", strings.Replace(answer, "access_token", "token", 1), false},
	} {
		var puts int
		send := servicetest.API(func(q *http.Request, _ string) (int, string) {
			if q.Method == "PUT" {
				puts++
			}
			return 200, tt.answer
		}).Destination(t, tt.url)
		if err := send(servicetest.Message(t, "plain")); tt.arrives != (err == nil) || tt.arrives != (puts == 1) {
			t.Errorf("%s: %d events, %v", tt.url, puts, err)
		}
	}
}

func TestIdentityWarning(t *testing.T) {
	s := server{numbers: map[string]bool{}, identity: 502}
	report := servicetest.API(s.answer).Report(t, "matrixs://ann:pa55word@example.org/!room", servicetest.Message(t, "plain"))
	if records := fmt.Sprint(report.Records); !report.OK() || !strings.Contains(records, "identity server") {
		t.Errorf("%v: %s", report.Results[0].Err, records)
	}
}

// notEncrypted is a Refuse function for a homeserver without encrypted rooms.
func notEncrypted(line string) int {
	if strings.HasSuffix(line, "/state/m.room.encryption") {
		return 404
	}
	return 0
}

// TestEventNumbers checks that a retry of an event has the same transaction id,
// and another event a different one.
func TestEventNumbers(t *testing.T) {
	fails := 1
	a := &servicetest.TokenAPI{Refuse: func(line string) int {
		if strings.HasPrefix(line, "PUT") && fails > 0 {
			fails--
			return 502
		}
		return notEncrypted(line)
	}}
	sender := servicetest.NewSenderOver(t, a)
	for range 2 {
		if err := servicetest.Send(t, sender, "matrix://token@example.org/!room?retry=1&wait=0",
			servicetest.Message(t, "plain"), 10*time.Second).Err; err != nil {
			t.Fatal(err)
		}
	}
	puts := slices.DeleteFunc(slices.Clone(a.Requests), func(s string) bool { return !strings.HasPrefix(s, "PUT") })
	if len(puts) != 3 || puts[0] != puts[1] || puts[1] == puts[2] {
		t.Errorf("want two tries of one event and another event: %s", puts)
	}
}

// TestLongText checks that a text that is too long for an event is cut between
// characters and sent without markup.
func TestLongText(t *testing.T) {
	a := &servicetest.TokenAPI{Refuse: notEncrypted}
	sender := servicetest.NewSenderOver(t, a)
	m := servicetest.Message(t, "notitle")
	m.Body = strings.Repeat("漢字", 20000)
	if err := servicetest.Send(t, sender, "matrix://token@example.org/!room?format=html", m, 10*time.Second).Err; err != nil {
		t.Fatal(err)
	}
	text := a.Bodies[len(a.Bodies)-1]
	if len(text) > 65536 || len(text) < 60000 || strings.Contains(text, "formatted_body") || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("an event of %d bytes: %.60s…", len(text), text)
	}
}

package services

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// states is a [notifier.StateStore] in memory.
type states struct {
	mu     sync.Mutex
	data   map[string][]byte
	broken bool
	before func() // is called once, before something is stored
}

var errBroken = errors.New("the disk is full")

func (s *states) Load(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return nil, errBroken
	}
	return s.data[name], nil
}

func (s *states) Store(_ context.Context, name string, data []byte) error {
	s.mu.Lock()
	if before := s.before; before != nil {
		s.before = nil
		s.mu.Unlock()
		before()
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.broken {
		return errBroken
	}
	if s.data == nil {
		s.data = map[string][]byte{}
	}
	s.data[name] = data
	return nil
}

func (s *states) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.data, name)
	return nil
}

// process is a sender with a store of states. A second one with the same store
// is the process after a restart.
type process struct {
	*testing.T
	sender *notifier.Sender
	policy *egress.Policy
}

func newProcess(t *testing.T, store notifier.StateStore, api servicetest.API) process {
	t.Helper()
	p := process{T: t, sender: servicetest.NewSenderOver(t, api)}
	p.sender.KeepStates(store)
	return p
}

func (p process) send(address string, messageType notifier.Type) (r notifier.Result, warnings string) {
	p.Helper()
	d, err := p.sender.Parse(address, p.policy)
	if err != nil {
		p.Fatal(err)
	}
	m := servicetest.Message(p, "plain")
	m.Type = messageType
	report := p.sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
	for _, record := range report.Records {
		warnings += record.Text + "\n"
	}
	return report.Results[0], warnings
}

// TestAlertsOverRestart checks that an alert that was raised before a restart
// is closed after it, unless the URL has store=no or came from a client.
func TestAlertsOverRestart(t *testing.T) {
	for address, c := range map[string]struct {
		client bool
		want   int
	}{
		"opsgenie://api-key-1234":          {false, 1},
		"jira://api-key-1234":              {false, 1},
		"opsgenie://api-key-1234?store=no": {false, 0},
		"opsgenie://api-key-1235":          {true, 0},
	} {
		closed := 0
		api := servicetest.API(func(q *http.Request, _ string) (int, string) {
			switch {
			case strings.Contains(q.URL.Path, "/requests/"):
				return 200, `{"data": {"alertId": "a1"}}`
			case strings.HasSuffix(q.URL.Path, "/a1/close"):
				closed++
			}
			return 202, `{"requestId": "r1"}`
		})
		store := new(states)
		for _, messageType := range []notifier.Type{notifier.Failure, notifier.Success} {
			p := newProcess(t, store, api)
			if c.client {
				policy, err := egress.NewPolicy(nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				p.policy = policy
			}
			if r, _ := p.send(address, messageType); r.Err != nil {
				t.Errorf("%s: %v", address, r.Err)
			}
		}
		if closed != c.want || (len(store.data) > 0) != (c.want > 0) {
			t.Errorf("%s: %d alerts are closed, want %d; %d states are stored", address, closed, c.want, len(store.data))
		}
	}
}

// tell sends a message, with another incident unless that is "".
func (p process) tell(address, name, incident string) {
	p.Helper()
	d, err := p.sender.Parse(address, nil)
	if err != nil {
		p.Fatal(err)
	}
	m := servicetest.Message(p, name)
	if incident != "" {
		m.Incident = notifier.Incident{Name: incident, State: m.Incident.State}.For("ops", "")
	}
	report := p.sender.Send(p.Context(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
	if err := report.Results[0].Err; err != nil {
		p.Fatal(err)
	}
}

// TestUpdateByTwoProcesses checks that gateways with one storage change each other's messages,
// also messages about incidents that both tell for the first time at once.
func TestUpdateByTwoProcesses(t *testing.T) {
	const address = "discord://123/token?update=yes"
	var requests []string
	api := servicetest.API(func(q *http.Request, _ string) (int, string) {
		requests = append(requests, q.Method+" "+q.URL.Path)
		return 200, fmt.Sprintf(`{"id": "%d"}`, len(requests))
	})
	store := new(states)
	a, b := newProcess(t, store, api), newProcess(t, store, api)
	store.before = func() { b.tell(address, "open", "disk host-8") }
	a.tell(address, "open", "disk host-7")
	requests = nil
	b.tell(address, "updated", "disk host-7")
	a.tell(address, "updated", "disk host-8")
	if want := []string{
		"PATCH /api/webhooks/123/token/messages/1", "PATCH /api/webhooks/123/token/messages/2",
	}; !slices.Equal(requests, want) {
		t.Errorf("got %q, want %q", requests, want)
	}
}

// TestSpikeOverRestart checks that all messages about an incident have the title of the first, also
// after a restart, because Spike resolves incidents by the title. Two incidents with the same title
// differ.
func TestSpikeOverRestart(t *testing.T) {
	const address = "spike://1234567890abcdef1234567890abcdef?mode=webhook"
	var got []string
	api := servicetest.API(func(_ *http.Request, body string) (int, string) {
		var m struct{ Title, Status string }
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Error(err)
		}
		got = append(got, strings.TrimSpace(m.Title+" "+m.Status))
		return 200, "{}"
	})
	store := new(states)
	for _, step := range [][2]string{
		{"open", ""},
		{"open", "disk host-8"},
		{"worse", ""},
		{"updated", ""},
		{"resolved", ""},
		{"resolved", ""},
		{"open", ""},
	} {
		newProcess(t, store, api).tell(address, step[0], step[1])
	}
	first := "Disk almost full #" + servicetest.Message(t, "open").Incident.ID[:6]
	second := "Disk almost full #" + notifier.Incident{Name: "disk host-8"}.For("ops", "").ID[:6]
	want := []string{first, second, first, first, first + " resolve", "Disk has space again resolve", first}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUpdateOverRestart checks that a message changes the one that showed its
// incident before a restart.
func TestUpdateOverRestart(t *testing.T) {
	var requests []string
	api := servicetest.API(func(q *http.Request, _ string) (int, string) {
		requests = append(requests, q.Method+" "+q.URL.Path)
		return 200, `{"id": "77"}`
	})
	store := new(states)
	for _, name := range []string{"open", "acknowledged"} {
		newProcess(t, store, api).tell("discord://123/token?update=yes", name, "")
	}
	if want := []string{"POST /api/webhooks/123/token", "PATCH /api/webhooks/123/token/messages/77"}; !slices.Equal(requests, want) {
		t.Errorf("got %q, want %q", requests, want)
	}
}

// TestOwnerOverRestart checks that the first person who wrote to a bot is looked up once for all starts.
func TestOwnerOverRestart(t *testing.T) {
	lookups := 0
	api := servicetest.API(func(q *http.Request, _ string) (int, string) {
		if strings.HasSuffix(q.URL.Path, "/getUpdates") {
			lookups++
			return 200, `{"ok": true, "result": [{"message": {"from": {"id": 42}}}]}`
		}
		return 200, `{"ok": true}`
	})
	store := new(states)
	for range 2 {
		if r, _ := newProcess(t, store, api).send("tgram://123456789:abcdefg_hijklmnop", notifier.Info); r.Err != nil {
			t.Error(r.Err)
		}
	}
	if lookups != 1 {
		t.Errorf("%d look-ups", lookups)
	}
	for name, data := range store.data {
		if bytes.Contains(data, []byte("42")) || strings.Contains(name, "owner") {
			t.Errorf("the state is not encrypted: %s %q", name, data)
		}
	}

	// Another URL, a damaged state and a broken storage do no harm.
	if newProcess(t, store, api).send("tgram://123456789:another_hijklmnop", notifier.Info); lookups != 2 {
		t.Errorf("another bot has the same owner: %d look-ups", lookups)
	}
	for _, name := range slices.Collect(maps.Keys(store.data)) {
		store.data[name] = []byte("damaged")
	}
	if r, warnings := newProcess(t, store, api).send("tgram://123456789:abcdefg_hijklmnop", notifier.Info); r.Err != nil ||
		lookups != 3 || !strings.Contains(warnings, "damaged") {
		t.Errorf("a damaged state: %v, %d look-ups, %s", r.Err, lookups, warnings)
	}
	store.broken = true
	if r, warnings := newProcess(t, store, api).send("tgram://123456789:abcdefg_hijklmnop", notifier.Info); r.Err != nil ||
		lookups != 4 || !strings.Contains(warnings, "the disk is full") {
		t.Errorf("a broken storage: %v, %d look-ups, %s", r.Err, lookups, warnings)
	}
}

// TestRefreshTokenOverRestart checks that the newest refresh token is used
// after a restart, because the service accepts no other. The token of the URL
// is used if none is stored or the stored one is refused.
func TestRefreshTokenOverRestart(t *testing.T) {
	n, valid := 0, "refresh-0"
	api := servicetest.API(func(q *http.Request, body string) (int, string) {
		if !strings.HasSuffix(q.URL.Path, "/oauth2/v2.0/token") {
			return 202, ""
		}
		if !strings.Contains(body, "refresh_token="+valid+"&") {
			return 400, `{"error": "invalid_grant"}`
		}
		n++
		valid = fmt.Sprintf("refresh-%d", n)
		return 200, fmt.Sprintf(`{"access_token": "t", "expires_in": 3600, "refresh_token": %q}`, valid)
	})
	const address = "o365://ann@outlook.com/client-id/refresh-0/bob@example.net"
	store := new(states)
	for range 3 {
		if r, _ := newProcess(t, store, api).send(address, notifier.Info); r.Err != nil {
			t.Error(r.Err)
		}
	}
	if n != 3 {
		t.Errorf("%d refresh tokens", n)
	}
	valid = "refresh-0"
	if r, _ := newProcess(t, store, api).send(address, notifier.Info); r.Err != nil {
		t.Errorf("the token of the URL is not tried: %v", r.Err)
	}
}

// TestTokenOverRestart checks that services that limit how often they issue an
// access token use it again after a restart, until it is refused, and store
// none with store=no.
func TestTokenOverRestart(t *testing.T) {
	for _, tt := range []struct {
		name, url, signIn string
		token             func(n int) string
		refusal           string // the status and body with which a token is refused
	}{
		{
			"bluesky", "bsky://ann.example.org@pa55word", "createSession",
			func(n int) string { return fmt.Sprintf(`{"accessJwt":"token-%d"}`, n) }, `400 {"error":"ExpiredToken"}`,
		},
		{"ringcentral", "ringc://15551230000:pa55word@client/secret", "oauth/token", servicetest.OAuthToken, ""},
		{"sendpulse", "sendpulse://ann@example.org/client/secret/bob@example.net", "oauth/access_token", servicetest.OAuthToken, ""},
		{"wechat", "wechat://ww1a2b3c:secret@1000002/@all", "gettoken", servicetest.OAuthToken, `200 {"errcode":42001}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			logins, sent, ended := 0, 0, false
			api := servicetest.API(func(q *http.Request, _ string) (int, string) {
				used := q.Header.Get("Authorization") + q.URL.Query().Get("access_token")
				switch {
				case strings.HasSuffix(q.URL.Path, "/revoke"):
					return 200, `{}`
				case strings.Contains(q.URL.Path, tt.signIn):
					logins++
					ended = false
					return 200, tt.token(logins)
				case strings.Contains(q.URL.Path, "resolveHandle"):
					return 200, `{"did":"did:plc:abc"}`
				case q.URL.Host == "plc.directory":
					return 200, `{"service":[{"type":"AtprotoPersonalDataServer","serviceEndpoint":"https://pds.example.org"}]}`
				case ended || !strings.HasSuffix(used, fmt.Sprintf("token-%d", logins)):
					if code, body, ok := strings.Cut(tt.refusal, " "); ok {
						return map[string]int{"200": 200, "400": 400}[code], body
					}
					return 401, `{}`
				}
				sent++
				return 200, `{"result":true,"id":"1"}`
			})
			store := new(states)
			send := func(address string, want int) {
				t.Helper()
				if r, _ := newProcess(t, store, api).send(address, notifier.Info); r.Err != nil {
					t.Error(r.Err)
				}
				if logins != want {
					t.Errorf("%d logins, want %d", logins, want)
				}
			}
			send(tt.url, 1)
			send(tt.url, 1)
			ended = true
			send(tt.url, 2)
			send(tt.url, 2)
			send(tt.url+"?store=no", 3)
			if sent != 5 || len(store.data) != 1 {
				t.Errorf("%d messages and %d states, want 5 and 1", sent, len(store.data))
			}
		})
	}
}

// TestMatrixSessionOverRestart checks that a session at a homeserver is used
// again after a restart, with new transaction ids, until the server ends it.
func TestMatrixSessionOverRestart(t *testing.T) {
	logins, ended := 0, false
	ids := map[string]bool{}
	api := servicetest.API(func(q *http.Request, _ string) (int, string) {
		path := q.URL.Path
		switch {
		case strings.HasSuffix(path, "/login"):
			logins++
			ended = false
			return 200, fmt.Sprintf(`{"access_token": "token-%d", "user_id": "@ann:example.org"}`, logins)
		case ended || q.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", logins):
			return 401, `{"errcode": "M_UNKNOWN_TOKEN"}`
		case strings.Contains(path, "/join/"):
			return 200, `{"room_id": "!1:example.org"}`
		case strings.HasSuffix(path, "/m.room.encryption"):
			return 404, `{"errcode": "M_NOT_FOUND"}`
		case strings.Contains(path, "/send/"):
			if ids[q.Header.Get("Authorization")+path] {
				t.Errorf("the transaction id of %s is used again, so that the server drops the message", path)
			}
			ids[q.Header.Get("Authorization")+path] = true
		}
		return 200, `{}`
	})
	const address = "matrix://ann:pass@example.org/#room"
	store := new(states)
	send := func() {
		t.Helper()
		p := newProcess(t, store, api)
		for range 2 {
			if r, _ := p.send(address, notifier.Info); r.Err != nil {
				t.Error(r.Err)
			}
		}
	}
	send()
	send()
	if logins != 1 {
		t.Errorf("%d logins, want 1", logins)
	}
	ended = true
	send()
	send()
	if logins != 2 || len(ids) != 8 {
		t.Errorf("%d logins and %d messages, want 2 and 8", logins, len(ids))
	}
}

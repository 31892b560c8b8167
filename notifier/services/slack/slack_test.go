package slack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// server replaces Slack's web API. It has one bot and one user, and refuses
// what Slack refuses.
type server struct {
	mu       sync.Mutex
	posted   []string          // channels
	uploads  map[string]string // content by file id; "" until uploaded
	shared   []string          // "file channel"
	failures map[string]int    // how many more times a method fails
}

func (s *server) answer(q *http.Request, body string) (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Header.Get("Authorization") != "Bearer xoxb-1-abc" {
		return 200, `{"ok": false, "error": "invalid_auth"}`
	}
	if q.URL.Host == "files.slack.com" {
		id := strings.TrimPrefix(q.URL.Path, "/upload/")
		if _, ok := s.uploads[id]; !ok {
			return 404, "no such upload"
		}
		s.uploads[id] = body
		return 200, "OK - 1"
	}
	method := strings.TrimPrefix(q.URL.Path, "/api/")
	if s.failures[method] > 0 {
		s.failures[method]--
		return 503, "try later"
	}
	var in struct {
		Channel   string              `json:"channel"`
		ChannelID string              `json:"channel_id"`
		Thread    string              `json:"thread_ts"`
		Files     []map[string]string `json:"files"`
	}
	_ = json.Unmarshal([]byte(body), &in)
	switch method {
	case "users.lookupByEmail":
		if q.URL.Query().Get("email") != "joe@example.com" {
			return 200, `{"ok": false, "error": "users_not_found"}`
		}
		return 200, `{"ok": true, "user": {"id": "U1"}}`
	case "chat.postMessage":
		if in.Channel == "#closed" {
			return 200, `{"ok": false, "error": "not_in_channel"}`
		}
		s.posted = append(s.posted, in.Channel)
		return 200, fmt.Sprintf(`{"ok": true, "channel": "C%s"}`, strings.TrimLeft(in.Channel, "#"))
	case "files.getUploadURLExternal":
		if q.URL.Query().Get("length") == "" || q.URL.Query().Get("filename") == "" {
			return 200, `{"ok": false, "error": "invalid_arguments"}`
		}
		id := fmt.Sprint("F", len(s.uploads))
		s.uploads[id] = ""
		return 200, fmt.Sprintf(`{"ok": true, "upload_url": "https://files.slack.com/upload/%s", "file_id": %q}`, id, id)
	case "files.completeUploadExternal":
		for _, f := range in.Files {
			if s.uploads[f["id"]] == "" {
				return 200, `{"ok": false, "error": "file_not_found"}`
			}
			s.shared = append(s.shared, strings.TrimSpace(f["id"]+" "+in.ChannelID+" "+in.Thread))
		}
		return 200, `{"ok": true, "files": [{}]}`
	}
	return 200, `{"ok": false, "error": "unknown_method"}`
}

func TestBot(t *testing.T) {
	for _, tt := range []struct {
		name, url      string
		fail           string // the method that fails once
		posted, shared []string
		err            string
	}{
		{
			name: "files go to every channel", url: "slack://xoxb-1-abc/#a/joe@example.com",
			posted: []string{"#a", "U1"}, shared: []string{"F0 CU1", "F0 Ca", "F1 CU1", "F1 Ca"},
		},
		{
			name: "files go to the thread of the message", url: "slack://xoxb-1-abc/#a:1234.5",
			posted: []string{"#a"}, shared: []string{"F0 Ca 1234.5", "F1 Ca 1234.5"},
		},
		{
			name: "only the failed step is tried again", url: "slack://xoxb-1-abc/#a/#b?retry=2&wait=0", fail: "files.completeUploadExternal",
			posted: []string{"#a", "#b"}, shared: []string{"F0 Ca", "F0 Cb", "F1 Ca", "F1 Cb"},
		},
		{
			name: "a post that failed is tried again", url: "slack://xoxb-1-abc/#a/#b?retry=2&wait=0", fail: "chat.postMessage",
			posted: []string{"#a", "#b"}, shared: []string{"F0 Ca", "F0 Cb", "F1 Ca", "F1 Cb"},
		},
		{
			name: "the other channels get the message if one refuses it", url: "slack://xoxb-1-abc/#closed/#a/nobody@example.com",
			posted: []string{"#a"}, shared: []string{"F0 Ca", "F1 Ca"}, err: "not_in_channel",
		},
		{name: "no user with that address", url: "slack://xoxb-1-abc/nobody@example.com", err: "users_not_found"},
		{name: "a wrong token", url: "slack://xoxb-2-abc/#a", err: "invalid_auth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{uploads: map[string]string{}, failures: map[string]int{tt.fail: 1}}
			err := servicetest.API(s.answer).Destination(t, tt.url)(servicetest.Message(t, "attach"))
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("the error is %v, want %q", err, tt.err)
			}
			slices.Sort(s.posted)
			slices.Sort(s.shared)
			if !slices.Equal(s.posted, tt.posted) {
				t.Errorf("posted to %q, want %q", s.posted, tt.posted)
			}
			if !slices.Equal(s.shared, tt.shared) {
				t.Errorf("shared %q, want %q", s.shared, tt.shared)
			}
		})
	}
}

// A text that is too long for a section block is sent in parts, by a bot and
// through a webhook.
func TestBlocks(t *testing.T) {
	for _, address := range []string{"slack://xoxb-1-abc/#a?blocks=yes", "slack://T1/A1/x?blocks=yes"} {
		var lengths []int
		err := servicetest.API(func(q *http.Request, body string) (int, string) {
			var in struct {
				Attachments []struct {
					Blocks []struct{ Text struct{ Text string } }
				}
			}
			_ = json.Unmarshal([]byte(body), &in)
			length := len(in.Attachments[0].Blocks[1].Text.Text)
			switch hook := q.URL.Host == "hooks.slack.com"; {
			case length > 3000 && hook:
				return 400, "invalid_attachments"
			case length > 3000:
				return 200, `{"ok": false, "error": "invalid_attachments"}`
			case hook:
				lengths = append(lengths, length)
				return 200, "ok"
			}
			lengths = append(lengths, length)
			return 200, `{"ok": true, "channel": "C1"}`
		}).Destination(t, address)(servicetest.Message(t, "long"))
		if err != nil || len(lengths) != 5 {
			t.Errorf("%s: parts of %v: %v", address, lengths, err)
		}
	}
}

func TestTargets(t *testing.T) {
	for target, want := range map[string]string{
		"#a": "#a", "ops": "#ops", "@joe.doe": "@joe.doe", "+C0FFEE": "C0FFEE", "#a:1234.5": "#a",
		"#büro.дом-東京_1": "#büro.дом-東京_1", "#ห้อง": "#ห้อง",
		"#" + strings.Repeat("x", 80): "#" + strings.Repeat("x", 80),
		"#" + strings.Repeat("x", 81): "", "#a b": "", "#a:b": "", "#": "", "a/b": "",
	} {
		p := map[string]any{}
		err := new(service).address(t.Context(), nil, target, p)
		if got, _ := p["channel"].(string); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: the channel is %q, want %q: %v", target, got, want, err)
		}
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"a < b & c > d":                         "a &lt; b &amp; c &gt; d",
		"<!channel> <@U1|joe> <#C1>":            "<!channel> <@U1|joe> <#C1>",
		"< https://a.b/?c=1&d=2 | more & more>": "<https://a.b/?c=1&d=2|more &amp; more>",
		"<script>alert(1)</script>":             "&lt;script&gt;alert(1)&lt;/script&gt;",
	} {
		if got := escape(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

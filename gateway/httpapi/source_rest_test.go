package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestAlertmanagerRocketChat sends the requests of rocketchat_configs of Alertmanager 0.34, and
// judges the answers as it does. An answer that is not JSON made it send each alert five or six
// times, and never its end.
func TestAlertmanagerRocketChat(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	const token = "TIiajkdnlazkcOXrIdevi7FQ"
	g := siteWith(t, lockedKey("ops", token, s.NotifyURL("/ops")), lockedKey("bad", token, s.NotifyURL("/refuse")+"?retry=0"))
	// notify returns whether Alertmanager sends again, and the error that it logs.
	notify := func(key, token, payload string) (retry bool, reason string) {
		r := httptest.NewRequest("POST", "/notify/"+key+"/slack/api/v1/chat.postMessage", strings.NewReader(payload+"\n"))
		r.Header = http.Header{
			"User-Agent": {"Alertmanager/0.34.0"}, "Content-Type": {gatewaytest.TypeJSON}, "X-Auth-Token": {token},
			"X-User-Id": {"USER"},
		}
		got := g.Do(r)
		if got.Status/100 != 2 {
			return got.Status/100 == 5, got.Body
		}
		var answer struct {
			Success bool   `json:"success"`
			Error   string `json:"error"`
		}
		if err := json.Unmarshal([]byte(got.Body), &answer); err != nil {
			return true, err.Error()
		}
		if !answer.Success {
			return false, "error: " + answer.Error
		}
		return false, ""
	}
	const (
		firing = `{"channel":"#ops","attachments":[{"title":"[FIRING:1] DiskFull (db1 ` +
			`critical)","title_link":"http://am.example.net/#/alerts?receiver=ops","color":"red"}]}`
		resolved = `{"channel":"#ops","attachments":[{"title":"[RESOLVED] DiskFull (db1 ` +
			`critical)","title_link":"http://am.example.net/#/alerts?receiver=ops","color":"green"}]}`
	)
	for _, tt := range []struct{ payload, title, typ string }{
		{firing, "[FIRING:1] DiskFull (db1 critical)", "failure"},
		{resolved, "[RESOLVED] DiskFull (db1 critical)", "success"},
	} {
		if retry, reason := notify("ops", token, tt.payload); retry || reason != "" {
			t.Errorf("%s: sent again: %t, %s", tt.title, retry, reason)
		}
		if got := s.One(t); got.Title != tt.title || got.Type != tt.typ {
			t.Errorf("%s: arrived %+v", tt.title, got)
		}
	}
	if retry, reason := notify("ops", "another", firing); retry || !strings.Contains(reason, `"success":false`) || len(s.Take()) > 0 {
		t.Errorf("a wrong token: sent again: %t, %s", retry, reason)
	}
	if retry, reason := notify("bad", token, firing); !retry || !strings.Contains(reason, `"success":false`) {
		t.Errorf("a destination that is busy: sent again: %t, %s", retry, reason)
	}
}

// TestChatRESTClients sends messages with the services for Rocket.Chat and Mattermost to the
// REST APIs of the source slack, with the token of the key.
func TestChatRESTClients(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	const token = "TIiajkdnlazkcOXrIdevi7FQTIiajkdnlazkcOXr"
	g := siteWith(t, lockedKey("ops", token, s.NotifyURL("/ops")+"?format=markdown"))
	api := servicetest.API(func(q *http.Request, body string) (int, string) {
		r := httptest.NewRequest(q.Method, "/notify/ops/slack"+q.URL.RequestURI(), strings.NewReader(body))
		maps.Copy(r.Header, q.Header)
		got := g.Do(r)
		return got.Status, got.Body
	})
	const text = "**91%** on [db1](https://db1.example.net)"
	graph := notifier.NewAttachment("graph.txt", "text/plain", []byte("the file"))
	for _, tt := range []struct {
		url   string
		files []*notifier.Attachment
		want  []string // texts
	}{
		{"rockets://user:TOKEN@chat.example.net/#general?mode=token", nil, []string{text}},
		{"rockets://user:TOKEN@chat.example.net/#general?mode=basic", nil, []string{text}},
		{"mmosts://mattermost.example.net/TOKEN?mode=bot&to=9c4qrrrwijrz3r6tq6y5eircxo", nil, []string{text}},
		{"mmosts://mattermost.example.net/TOKEN?mode=bot&team=ops&to=%23alerts", []*notifier.Attachment{graph}, []string{"", text}},
	} {
		m := func() *notifier.Message {
			return &notifier.Message{Body: text, Format: notifier.Markdown, Attachments: tt.files}
		}
		if err := api.Destination(t, strings.ReplaceAll(tt.url, "TOKEN", token))(m()); err != nil {
			t.Errorf("%s: %v", tt.url, err)
		}
		got := s.Take()
		if len(got) != len(tt.want) {
			t.Errorf("%s: arrived %+v", tt.url, got)
			continue
		}
		for i, want := range tt.want {
			if got[i].Message != want {
				t.Errorf("%s: arrived %+v", tt.url, got[i])
			}
		}
		if len(tt.files) > 0 && got[0].Files() != "graph.txt text/plain the file" {
			t.Errorf("%s: the files %s arrived", tt.url, got[0].Files())
		}
		if err := api.Destination(t, strings.ReplaceAll(tt.url, "TOKEN", "another"))(m()); err == nil || len(s.Take()) > 0 {
			t.Errorf("%s: a wrong token is accepted", tt.url)
		}
	}
}

// TestAddressOfAPIIsNoWebhook checks that the address of an API is not taken for a webhook with a
// token at its end: the client would not understand the answer, and a method that the gateway lacks
// would send its text.
func TestAddressOfAPIIsNoWebhook(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	for _, tt := range []struct {
		method, path string
		status       int
		want         string // in the answer
	}{
		{"POST", "slack/api", 200, `"unknown_method"`},
		{"POST", "slack/api/v1", 404, `"success":false`},
		{"POST", "slack/api/v1/chat.update", 404, `"success":false`},
		{"POST", "slack/api/v1/channels.list/x", 404, `"success":false`},
		{"GET", "slack/api/v1/chat.postMessage", 405, `"success":false`},
		{"POST", "slack/api/v4/channels", 404, `"status_code":404`},
		{"PUT", "slack/api/v4/posts/x/patch", 404, `"status_code":404`},
		{"POST", "slack/api/v2/x/y", 200, `"unknown_method"`},
		{"POST", "slack/chat.scheduleMessage", 200, `"unknown_method"`},
		{"POST", "slack/v1/chat.postMessage", 200, `"unknown_method"`},
		{"PUT", "slack/chat.postMessage", 200, `"invalid_post_type"`},
		{"PUT", "slack/api/chat.postMessage", 200, `"invalid_post_type"`},
		{"POST", "discord/api/x", 404, ""},
		{"POST", "discord/api/x/slack", 404, ""},
		{"POST", "slack/hooks/1/a.token", 200, `"success":true`},
		{"POST", "slack/services/T0/B0/chatpost", 200, "ok"},
		{"POST", "slack/team", 200, "ok"},
		{"POST", "discord/api/webhooks/1/TOKEN", 204, ""},
	} {
		r := httptest.NewRequest(tt.method, "/notify/ops/"+tt.path, strings.NewReader(`{"text":"disk full","content":"disk full"}`))
		r.Header.Set("Content-Type", gatewaytest.TypeJSON)
		if got := g.Do(r); got.Status != tt.status || !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.Status, got.Body)
		}
		if got := len(s.Take()); (got > 0) != (tt.status/100 == 2 && !strings.HasSuffix(tt.want, "_method\"") &&
			!strings.HasSuffix(tt.want, "_type\"")) {
			t.Errorf("%s %s: %d messages arrived", tt.method, tt.path, got)
		}
	}
}

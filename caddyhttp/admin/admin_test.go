package admin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/caddy-notify/caddy-notify/caddyhttp" // the gateway
	"github.com/caddy-notify/caddy-notify/caddyhttp/admin"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/hometest"
	_ "github.com/caddy-notify/caddy-notify/notifier/services" // the services of the keys
)

func TestMain(m *testing.M) { os.Exit(hometest.Main(m)) }

// ask sends a request to the admin API of the Caddy that serve has started.
func ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	got := caddyhttptest.Do(t, method, "http://"+caddyhttptest.Admin+path, body)
	return got.Status, got.Body
}

// TestAdminAPI checks that the admin API lists the keys of the running
// configuration and the last messages, sends test messages, and never shows a
// secret, and that metrics and recent messages survive a reload.
func TestAdminAPI(t *testing.T) {
	caddyhttptest.ReplaceShared(t)
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	s := gatewaytest.NewStation(t)
	url := func(path string) string {
		return "json://user:{env.NOTIFY_TEST_SECRET}@" + strings.TrimPrefix(s.URL, "http://") + path
	}
	global := "notify {\nkey ops {\nurl " + url("/ops") + " chat\nurl " + url("/refuse?optional=yes") +
		" pager\ndefault_tag chat\n}\nkey own {\nurl " + url("/global") + "\n}\n}"
	siteID := "key own {\nurl " + url("/site") + "\n}"
	caddyhttptest.Serve(t, global, siteID)
	var all strings.Builder

	status, text := ask(t, "GET", "/notify/keys", "")
	all.WriteString(text)
	masked := "json://user:****@" + strings.TrimPrefix(s.URL, "http://")
	if i := strings.Index(text, "json://user:"); i >= 0 { // however secrets are masked
		masked = text[i:i+strings.Index(text[i:], "@")] + "@" + strings.TrimPrefix(s.URL, "http://")
	}
	want := fmt.Sprintf(`[{"name":"ops","destinations":2,"definitions":[{"scope":"global","destinations":[`+
		`{"service":"JSON","destination":"%[1]s/ops","tags":["chat"],"optional":false,"default":true},`+
		`{"service":"JSON","destination":"%[1]s/refuse?optional=yes","tags":["pager"],"optional":true,"default":false}]}]},`+
		`{"name":"own","destinations":2,"definitions":[`+
		`{"scope":"global","destinations":[{"service":"JSON","destination":"%[1]s/global","tags":[],"optional":false,"default":true}]},`+
		`{"scope":"site","destinations":[{"service":"JSON","destination":"%[1]s/`+
		`site","tags":[],"optional":false,"default":true}]}]}]`+"\n", masked)
	if status != 200 || text != want {
		t.Errorf("keys: status %d\n%swant\n%s", status, text, want)
	}
	var keys []json.RawMessage
	if err := json.Unmarshal([]byte(text), &keys); err != nil || len(keys) != 2 {
		t.Fatalf("%d keys: %v", len(keys), err)
	}
	if status, text := ask(t, "GET", "/notify/keys/ops", ""); status != 200 || strings.TrimSpace(text) != string(keys[0]) {
		t.Errorf("the key ops: status %d: %s", status, text)
	}

	for _, tt := range []struct {
		name, key, body string
		status          int
		text            string // in the response
		arrives         string
	}{
		{"default text", "ops", "", 200, `"error":null`, "ops"},
		{"everywhere that it is defined", "own", `{"title": "T", "body": "B", "type": "warning"}`, 200, `"error":null`, "global site"},
		{"by tag, optional", "ops", `{"tag": "pager"}`, 200, "500", "refuse"},
		{"no such tag", "ops", `{"tag": "none"}`, 424, `{"error":"no destination of the key ops has the requested tag`, ""},
		{"tag", "ops", `{"tag": "$"}`, 400, `{"error":"tag: `, ""},
		{"type", "ops", `{"type": "loud"}`, 400, `{"error":"type: `, ""},
		{"no JSON", "ops", `title=x`, 400, `{"error":"the body must be empty or one JSON object`, ""},
		{"an unknown field", "ops", `{"text": "x"}`, 400, `{"error":"the body must be empty or one JSON object`, ""},
		{"too long", "ops", `{"body": "` + strings.Repeat("x", admin.MaxTestRequest) + `"}`, 413, `{"error":"the request is larger`, ""},
		{"an unknown key", "none", ``, 404, `{"error":"there is no such key: none; GET /notify/keys lists`, ""},
		{"a misspelt key", "opps", ``, 404, `{"error":"there is no such key: opps; you may mean ops"`, ""},
	} {
		status, text := ask(t, "POST", "/notify/keys/"+tt.key+"/test", tt.body)
		all.WriteString(text)
		if status != tt.status || !strings.Contains(text, tt.text) {
			t.Errorf("test, %s: status %d, want %d: %s", tt.name, status, tt.status, text)
		}
		got := s.Take()
		var paths []string
		for _, a := range got {
			paths = append(paths, strings.TrimPrefix(a.Path, "/"))
			if tt.key == "own" && (a.Title != "T" || a.Message != "B" || a.Type != "warning") ||
				tt.key == "ops" && (a.Title != "Test" || !strings.Contains(a.Message, "the key ops works")) {
				t.Errorf("test, %s: arrived %+v", tt.name, a)
			}
		}
		if strings.Join(paths, " ") != tt.arrives {
			t.Errorf("test, %s: messages at %q, want %q", tt.name, paths, tt.arrives)
		}
	}
	for _, tt := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/notify/keys/ops/test", 405, `{"error":"the method GET is not allowed here; use POST"}`},
		{"POST", "/notify/keys", 405, `{"error":"the method POST is not allowed here; use GET"}`},
		{"DELETE", "/notify/keys/ops", 405, `{"error":"the method DELETE is not allowed here; use GET"}`},
		{"PUT", "/notify/recent", 405, `{"error":"the method PUT is not allowed here; use GET"}`},
		{"GET", "/notify", 404, `{"error":"there is nothing at this address`},
		{"GET", "/notify/", 404, `{"error":"there is nothing at this address`},
		{"POST", "/notify/ops", 404, `{"error":"there is nothing at this address`},
		{"GET", "/notify/keys/ops/more", 404, `{"error":"there is nothing at this address`},
	} {
		if status, text := ask(t, tt.method, tt.path, ""); status != tt.status || !strings.HasPrefix(text, tt.text) {
			t.Errorf("%s %s: status %d, want %d: %s", tt.method, tt.path, status, tt.status, text)
		}
	}

	_, before := ask(t, "GET", "/metrics", "")
	caddyhttptest.Serve(t, strings.ReplaceAll(global, "key ops", "key dev"), "timeout 20s\n"+siteID)
	if _, text := ask(t, "GET", "/notify/keys", ""); !strings.Contains(text, `"name":"dev"`) || strings.Contains(text, `"name":"ops"`) {
		t.Errorf("the keys after a reload: %s", text)
	}
	if status, body := caddyhttptest.Send(t.Context(), t, "/notify",
		"body=wordsofmessage&title=wordsofmessage&urls=discord://"); status != 400 {
		t.Errorf("status %d: %s", status, body)
	}
	if status, body := caddyhttptest.Send(t.Context(), t, "/notify/own", "body=wordsofmessage&title=wordsofmessage"); status != 200 {
		t.Errorf("status %d: %s", status, body)
	}
	status, text = ask(t, "GET", "/notify/recent", "")
	all.WriteString(text)
	var messages []history.Entry
	if err := json.Unmarshal([]byte(text), &messages); err != nil || status != 200 || len(messages) < 5 {
		t.Fatalf("recent: status %d, %v: %s", status, err, text)
	}
	if m := messages[1]; m.Outcome != site.OutcomeRefused || m.Key != "" ||
		m.Reason != metrics.RefusalBadRequest || m.Status != 400 || m.Count != 1 || m.Error == "" {
		t.Errorf("the refusal is %+v", m)
	}
	messages = slices.Delete(messages, 1, 2)
	for i, want := range []string{
		"http own delivered site", "test ops delivered refuse?optional=yes",
		"test own delivered ", "test own delivered ",
	} {
		m := messages[i]
		got := strings.Join([]string{
			m.Source, string(m.Key), m.Outcome,
			m.Results[0].Destination[strings.LastIndexByte(m.Results[0].Destination, '/')+1:],
		}, " ")
		if !strings.HasPrefix(got, want) || time.Since(m.Time) > time.Minute {
			t.Errorf("recent message %d: %s at %s, want %s", i, got, m.Time, want)
		}
	}
	_, after := ask(t, "GET", "/metrics", "")
	all.WriteString(after)
	const counter = `caddy_notify_messages_total{outcome="delivered"}`
	if a, b := metric(t, before, counter), metric(t, after, counter); b != a+1 {
		t.Errorf("delivered messages: %v before the reload and one more, %v after it", a, b)
	}
	if shown := all.String(); strings.Contains(shown, "secretsecret") || strings.Contains(shown, "wordsofmessage") {
		t.Errorf("a secret or a message is shown:\n%s", shown)
	}

	caddyWithout(t)
	for _, path := range []string{"/notify/keys", "/notify/recent"} {
		if status, text := ask(t, "GET", path, ""); status != 404 || !strings.Contains(text, "does not use notify") {
			t.Errorf("%s without notify: status %d: %s", path, status, text)
		}
	}
}

// metric returns the value of one line of /metrics.
func metric(t *testing.T, text, name string) (value float64) {
	t.Helper()
	_, rest, _ := strings.Cut(text, "\n"+name+" ")
	if _, err := fmt.Sscan(rest, &value); err != nil {
		t.Fatalf("there is no metric %s", name)
	}
	return value
}

// caddyWithout loads a configuration without the gateway.
func caddyWithout(t *testing.T) {
	t.Helper()
	if status, text := ask(t, "POST", "/load", `{"admin": {"listen": "`+caddyhttptest.Admin+`"}}`); status != 200 {
		t.Fatalf("status %d: %s", status, text)
	}
}

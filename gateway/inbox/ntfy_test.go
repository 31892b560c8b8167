package inbox_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/feed"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// ntfyEvents decodes lines of ntfy's JSON.
func ntfyEvents(t *testing.T, body string) (out []feed.NtfyEvent) {
	t.Helper()
	for line := range strings.Lines(body) {
		var e feed.NtfyEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		out = append(out, e)
	}
	return out
}

// TestNtfyPoll checks what ntfy's clients get when they ask for the messages that are
// there, with their parameters in the query and in headers.
func TestNtfyPoll(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kept("ops"))
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"plain","title":"T"}`)
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"**bold**","format":"markdown","type":"failure"}`)
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"<b>html</b>","format":"html","type":"warning"}`)
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"title":"file","type":"success","attach":{"base64":"aGVsbG8=","filename":"a.txt"}}`)
	g.Post("/notify/ops/ntfy/disk", "text/plain", "from ntfy")
	all := ntfyEvents(t, g.Do(asReader(t, "/notify/ops/ntfy/disk/json?poll=1")).Body)
	if len(all) != 5 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []feed.NtfyEvent{
		{Title: "T", Message: "plain", Priority: 3},
		{Message: "**bold**", Priority: 5, Tags: []string{"rotating_light"}, ContentType: "text/markdown"},
		{Message: "html", Priority: 4, Tags: []string{"warning"}},
		{Title: "file", Message: "Attached: a.txt (5 B)", Priority: 3, Tags: []string{"white_check_mark"}},
		{Message: "from ntfy", Priority: 3},
	} {
		got := all[i]
		if got.Title != want.Title || got.Message != want.Message || got.Priority != want.Priority ||
			strings.Join(got.Tags, ",") != strings.Join(want.Tags, ",") || got.ContentType != want.ContentType {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got.Event != "message" || got.Topic != "disk" || len(got.ID) != 12 || got.Expires-got.Time < 7*24*3600-60 {
			t.Errorf("%+v", got)
		}
	}
	poll := func(query string, header ...string) string {
		r := asReader(t, "/notify/ops/ntfy/disk/json"+query)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		var out []string
		for _, e := range ntfyEvents(t, g.Do(r).Body) {
			out = append(out, e.Message)
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		query  string
		header []string
		want   string
	}{
		{"?poll=1&since=" + all[3].ID, nil, "from ntfy"},
		{"?poll=1&since=latest", nil, "from ntfy"},
		{"?poll=true&since=hwQ2YpKdmgzz", nil, "plain **bold** html Attached: a.txt (5 B) from ntfy"},
		{"?poll=1&since=10m&priority=high,max", nil, "**bold** html"},
		{"?po=1&si=all&tags=warning", nil, "html"},
		{"?POLL=1&Title=T", nil, "plain"},
		{"?poll=1&message=from+ntfy", nil, "from ntfy"},
		{"?poll=1&id=" + all[2].ID, nil, "html"},
		{"", []string{"X-Poll", "1", "X-Since", all[3].ID}, "from ntfy"},
		{"", []string{"Poll", "1", "Since", "latest"}, "from ntfy"},
		{"?poll=1&since=none", nil, ""},
	} {
		if got := poll(tt.query, tt.header...); got != tt.want {
			t.Errorf("%s %v: %q, want %q", tt.query, tt.header, got, tt.want)
		}
	}
	for target, want := range map[string]string{
		"/notify/ops/ntfy/disk/json?poll=1&since=never":   "since must be",
		"/notify/ops/ntfy/disk/json?poll=1&priority=9":    "a priority is",
		"/notify/ops/ntfy/a,b!,c/json?poll=1&since=all":   "a topic has",
		"/notify/ops/ntfy/disk/ws?poll=1&since=all":       "for WebSockets",
		"/notify/ops/ntfy/disk,/json?poll=1":              "a topic has",
		"/notify/ops/ntfy/disk/json?poll=1&since=1h&p=no": "a priority is",
	} {
		resp := g.Do(asReader(t, target))
		var e struct {
			Code, HTTP int
			Error      string
		}
		if err := json.Unmarshal([]byte(resp.Body), &e); err != nil || resp.Status != http.StatusBadRequest || e.HTTP != 400 ||
			!strings.Contains(e.Error, want) {
			t.Errorf("%s: %d %s", target, resp.Status, resp.Body)
		}
	}
	if got := g.Do(asReader(t, "/notify/ops/ntfy/disk/sse?poll=1&since=latest")); !strings.HasPrefix(got.Body, "data: {") ||
		!strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("%v %s", got.Header, got.Body)
	}
}

// TestNtfyAuth checks the ways in which ntfy's clients send a token or password, and what
// they ask to check it.
func TestNtfyAuth(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kept("ops"))
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	encoded := base64.RawURLEncoding.EncodeToString
	for _, tt := range []struct {
		header, query string
		want          int
	}{
		{"", "", 401},
		{"Bearer " + testReader, "", 200},
		{basic("phil", testReader), "", 200},
		{basic("", testReader), "", 200},
		{basic(testReader, "x"), "", 401},
		{"Bearer wrong", "", 401},
		{"", "?auth=" + encoded([]byte("Bearer "+testReader)), 200},
		{"", "?auth=" + encoded([]byte(basic("phil", testReader))), 200},
		{"", "?auth=" + encoded([]byte(basic("phil", "wrong"))), 401},
		{"", "?auth=!", 401},
	} {
		r := httptest.NewRequest(http.MethodGet, "/notify/ops/ntfy/alerts/auth"+tt.query, nil)
		if tt.header != "" {
			r.Header.Set("Authorization", tt.header)
		}
		resp := g.Do(r)
		if resp.Status != tt.want || tt.want == 200 && strings.TrimSpace(resp.Body) != `{"success":true}` {
			t.Errorf("%q %q: %d %s", tt.header, tt.query, resp.Status, resp.Body)
		}
	}
}

// TestNtfyReadsOnly checks that the addresses at which ntfy's clients read take no message
// if the key has a reader and no token, in any spelling: behind the matcher that leaves
// them to readers, everybody could send.
func TestNtfyReadsOnly(t *testing.T) {
	t.Parallel()
	withToken := kept("ops")
	withToken.Tokens = []string{otherToken}
	withoutReader := kept("ops")
	withoutReader.Readers = nil
	ntfy, err := source.New(source.Config{Name: "ntfy", Token: otherToken})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		site    site.Options
		sources source.Set
		want    int
	}{
		"a reader":                      {site.Options{Keys: []site.KeyOptions{kept("ops")}}, nil, http.StatusMethodNotAllowed},
		"a reader and a token":          {site.Options{Keys: []site.KeyOptions{withToken}}, nil, http.StatusOK},
		"a reader and a source's token": {site.Options{Keys: []site.KeyOptions{kept("ops")}}, source.Set{"ntfy": ntfy}, http.StatusOK},
		"who may manage and no reader": {
			site.Options{Keys: []site.KeyOptions{withoutReader}, Managers: gatewaytest.Everybody()},
			nil,
			http.StatusOK,
		},
	} {
		g := gatewaytest.New(t, gatewaytest.Options{Site: tt.site, Sources: tt.sources, Queue: &outbox.Settings{}})
		for _, path := range []string{
			"t/json", "t/sse", "t/raw", "t/ws", "t/auth", "t/json/", "t/JSON", "/t//Json", "a,b/auth", "t/json?beat=x",
			"t/%6Ason",
		} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
				r := httptest.NewRequest(method, "/notify/ops/ntfy/"+path, strings.NewReader("text"))
				r.Header.Set("X-Gotify-Key", otherToken)
				r.Header.Set("Authorization", "Bearer "+otherToken)
				want := tt.want
				if strings.Contains(path, "beat") && want == http.StatusOK && method != http.MethodDelete {
					want = http.StatusNotFound // there is no such beat
				}
				resp := g.Do(r)
				if resp.Status != want && !(method == http.MethodDelete && want == http.StatusOK && resp.Status < 500) {
					t.Errorf("%s: %s %s: %d %s", name, method, path, resp.Status, resp.Body)
				}
				if want == http.StatusMethodNotAllowed && resp.Header.Get("Allow") != http.MethodGet {
					t.Errorf("%s: %s %s: Allow: %s", name, method, path, resp.Header.Get("Allow"))
				}
			}
		}
		if tt.want == http.StatusMethodNotAllowed {
			if got := inboxOf(t, g, "/notify/ops/messages").Messages; len(got) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
		token := httptest.NewRequest(http.MethodPost, "/notify/ops/ntfy/t", strings.NewReader("text"))
		token.Header.Set("Authorization", "Bearer "+otherToken)
		if resp := g.Do(token); resp.Status != http.StatusOK {
			t.Errorf("%s: a topic: %d %s", name, resp.Status, resp.Body)
		}
	}
}

// TestNtfyStreams checks that ntfy's streams begin with open, and that messages come with
// each topic that the client has named.
func TestNtfyStreams(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kept("ops"))
	s := serve(t, g)
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"before"}`)
	lines := listen(t, s, "/notify/ops/ntfy/a,b/json")
	lines.wants(`"event":"open"`, `"topic":"a,b"`)
	events := listen(t, s, "/notify/ops/ntfy/a/sse?since=all")
	events.wants("event: open")
	events.wants(`data: {"id"`)
	events.wants(`"message":"before"`)
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"now"}`)
	lines.wants(`"topic":"a"`, `"message":"now"`)
	lines.wants(`"topic":"b"`, `"message":"now"`)
	events.wants(`"message":"now"`)
}

// TestNtfyWebSocket checks the stream over a WebSocket: who may open one, that pages of
// other sites may not, and how it ends.
func TestNtfyWebSocket(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		TrustedOrigins: []string{"https://app.example.com"},
		Keys:           []site.KeyOptions{kept("ops")},
	}, Queue: &outbox.Settings{}})
	s := serve(t, g)
	address := "ws" + strings.TrimPrefix(s.URL, "http") + "/notify/ops/ntfy/phone/ws"
	dial := func(query, origin, secret string) (*websocket.Conn, *http.Response, error) {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		if secret != "" {
			header.Set("Authorization", "Bearer "+secret)
		}
		c, resp, err := websocket.DefaultDialer.DialContext(t.Context(), address+query, header)
		if resp != nil {
			t.Cleanup(func() { _ = resp.Body.Close() })
		}
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return c, resp, err
	}
	for _, tt := range []struct {
		origin, secret string
		want           int
	}{
		{"", testReader, 101},
		{s.URL, testReader, 101},
		{"https://app.example.com", testReader, 101},
		{"https://evil.example", testReader, 403},
		{"", "wrong", 401},
	} {
		if _, resp, err := dial("", tt.origin, tt.secret); resp == nil || resp.StatusCode != tt.want {
			t.Errorf("origin %q: %v, want %d", tt.origin, err, tt.want)
		}
	}
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"before"}`)
	c, _, err := dial("?since=all", "", testReader)
	if err != nil {
		t.Fatal(err)
	}
	next := func() (e feed.NtfyEvent) {
		t.Helper()
		if err := c.ReadJSON(&e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := next(); e.Event != "open" || e.Topic != "phone" {
		t.Errorf("%+v", e)
	}
	if e := next(); e.Message != "before" {
		t.Errorf("%+v", e)
	}
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"now"}`)
	if e := next(); e.Message != "now" || e.Topic != "phone" || e.Event != "message" {
		t.Errorf("%+v", e)
	}
	g.Streams.Stop()
	_, _, err = c.ReadMessage()
	if closed, ok := errors.AsType[*websocket.CloseError](err); !ok || closed.Code != websocket.CloseServiceRestart {
		t.Errorf("at the end: %v", err)
	}
}

// TestNtfyKeepsWhatWasPublished checks that ntfy's clients get a message as it was published:
// a phone must not ring for the priority 1, and a button must not become a line of text.
func TestNtfyKeepsWhatWasPublished(t *testing.T) {
	t.Parallel()
	station := gatewaytest.NewStation(t)
	ops := kept("ops")
	ops.URLs = gatewaytest.Key("ops", station.NotifyURL("/a")).URLs
	g := newGateway(t, ops)
	publish := func(body string, header ...string) (id string) {
		r := httptest.NewRequest("POST", "/notify/ops/ntfy/disk", strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		var answer struct{ ID string }
		if err := json.Unmarshal([]byte(g.Do(r).Body), &answer); err != nil || len(answer.ID) != 12 {
			t.Fatalf("%+v, %v", answer, err)
		}
		return answer.ID
	}
	first := publish("91% full", "Title", "Disk", "Priority", "min", "Tags", "skull,db1,backup", "Click", "https://example.com/disk",
		"Actions", "view, Open, https://example.com/log; http, Clean, https://example.com/clean, method=PUT, headers.X-A=b, clear=true")
	second := publish("quiet", "Priority", "2")
	publish("**down**", "Tags", "rotating_light", "Markdown", "yes")
	publish("", "Title", "only a title", "Tags", "+1,db2")
	publish("plain")

	events := ntfyEvents(t, g.Do(asReader(t, "/notify/ops/ntfy/disk/json?poll=1")).Body)
	if len(events) != 5 {
		t.Fatalf("%+v", events)
	}
	for i, want := range []feed.NtfyEvent{
		{Title: "Disk", Message: "91% full", Priority: 1, Tags: []string{"skull", "db1", "backup"}, Click: "https://example.com/disk"},
		{Message: "quiet", Priority: 2},
		{Message: "**down**", Priority: 5, Tags: []string{"rotating_light"}, ContentType: "text/markdown"},
		{Title: "only a title", Message: "triggered", Priority: 3, Tags: []string{"+1", "db2"}},
		{Message: "plain", Priority: 3},
	} {
		got := events[i]
		if got.Title != want.Title || got.Message != want.Message || got.Priority != want.Priority || got.Click != want.Click ||
			got.ContentType != want.ContentType ||
			strings.Join(got.Tags, ",") != strings.Join(want.Tags, ",") {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	var actions []struct {
		ID, Action, Label, URL, Method string
		Clear                          bool
		Headers                        map[string]string
	}
	if err := json.Unmarshal(events[0].Actions, &actions); err != nil || len(actions) != 2 || actions[0].Action != "view" ||
		actions[0].URL != "https://example.com/log" ||
		actions[1].Method != "PUT" || actions[1].Headers["X-A"] != "b" || !actions[1].Clear || actions[1].ID == "" {
		t.Errorf("%s: %+v, %v", events[0].Actions, actions, err)
	}

	poll := func(query string) (out []string) {
		for _, e := range ntfyEvents(t, g.Do(asReader(t, "/notify/ops/ntfy/disk/json?poll=1&"+query)).Body) {
			out = append(out, e.Message)
		}
		return out
	}
	for query, want := range map[string]string{
		"since=" + second:                  "**down**|triggered|plain",
		"since=" + first + "&priority=low": "quiet",
		"id=" + second:                     "quiet",
		"tags=backup":                      "91% full",
		"since=AAAAAAAAAAAA":               "91% full|quiet|**down**|triggered|plain", // of another server
	} {
		if got := strings.Join(poll(query), "|"); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	raw := g.Do(asReader(t, "/notify/ops/ntfy/disk/raw?poll=1"))
	if raw.Body != "91% full\nquiet\n**down**\ntriggered\nplain\n" || !strings.HasPrefix(raw.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%+v", raw)
	}

	var shown []string
	for _, a := range station.Take() {
		shown = append(shown, a.Title+"|"+strings.ReplaceAll(a.Message, "\n", "/"))
	}
	want := []string{
		"💀 Disk|91% full/Open: https://example.com/log/https://example.com/disk/Tags: db1, backup",
		"|quiet", "|🚨 **down**", "👍 only a title|Tags: db2", "|plain",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("another destination shows %q, want %q", shown, want)
	}
}

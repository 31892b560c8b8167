package caddyhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
)

const (
	testReader = "reader-of-the-inbox"
	otherToken = "token-of-another-key"
)

// inboxServer serves a gateway with a key that has only an inbox.
func inboxServer(t *testing.T, h *Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(nextStatus)
			return nil
		})
		if err := h.ServeHTTP(w, r, next); err != nil {
			t.Errorf("ServeHTTP: %v", err)
		}
	}))
	t.Cleanup(func() {
		h.api.Streams.Stop()
		s.Close()
	})
	return s
}

// asReader returns a request of a reader.
func asReader(t *testing.T, target string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	r.Header.Set("Authorization", "Bearer "+testReader)
	return r
}

// inboxOf returns the messages that a reader sees.
func inboxOf(t *testing.T, h *Handler, target string) (list httpapi.MessagesJSON) {
	t.Helper()
	resp := do(t, h, asReader(t, target))
	if err := json.Unmarshal([]byte(resp.body), &list); err != nil || resp.status != http.StatusOK {
		t.Fatalf("%s: %d %s", target, resp.status, resp.body)
	}
	return list
}

// bodies returns the texts of messages.
func bodies(list []inbox.JSON) string {
	var out []string
	for _, m := range list {
		out = append(out, m.Body)
	}
	return strings.Join(out, " ")
}

// TestInbox checks that a key keeps its messages readable: with a destination and
// without one, in any format, in their order, and from a place on.
func TestInbox(t *testing.T) {
	t.Parallel()
	station := gatewaytest.NewStation(t)
	h := newQueueGateway(t, t.TempDir(), "key ops {\ninbox 7d\nreader "+testReader+"\n}\nkey both {\nurl "+station.NotifyURL("")+"\ninbox 1h\nreader "+testReader+"\n}", "")
	resp := post(t, h, "/notify/ops", typeJSON, `{"body":"**one**","title":"First","type":"failure","format":"markdown","incident":"disk"}`)
	if resp.status != http.StatusOK || !strings.Contains(resp.body, "Kept in the inbox of the key ops until ") || !strings.Contains(resp.body, `"results":[]`) {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(resp.body), &answer); err != nil {
		t.Fatal(err)
	}
	id := answer.ID
	if state := get(t, h, "/notify/messages/"+id, typeJSON); state.status != http.StatusOK || !strings.Contains(state.body, `"state":"delivered"`) || strings.Contains(state.body, "one") {
		t.Errorf("%d %s", state.status, state.body)
	}
	if resp := post(t, h, "/notify/ops/grafana", typeJSON, `{"title":"[FIRING:1] Disk","state":"alerting","message":"two","alerts":[],"commonLabels":{},"receiver":"x","status":"firing"}`); resp.status != http.StatusOK {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	post(t, h, "/notify/ops?tag=any", typeJSON, `{"body":"three"}`)
	list := inboxOf(t, h, "/notify/ops/messages")
	if len(list.Messages) != 3 || list.Next != nil {
		t.Fatalf("%+v", list)
	}
	first := list.Messages[0]
	if first.Body != "**one**" || first.Title != "First" || first.Type != "failure" || first.Format != "markdown" || first.Incident != "disk" || first.Message != id {
		t.Errorf("%+v", first)
	}
	if d := first.Expires.Sub(*first.Time); d < 7*24*time.Hour-time.Minute || d > 7*24*time.Hour+time.Minute {
		t.Errorf("it expires after %s", d)
	}
	if list.Messages[1].Source != "grafana" || list.Messages[1].Type != "failure" {
		t.Errorf("%+v", list.Messages[1])
	}
	for since, want := range map[string]string{
		first.ID: list.Messages[1].Body + " three", list.Messages[2].ID: "", "1h": bodies(list.Messages), "all": bodies(list.Messages), "latest": "three",
		"2000-01-01T00:00:00Z": bodies(list.Messages), "946684800": bodies(list.Messages), "4102444800": "", "none": "",
	} {
		if got := bodies(inboxOf(t, h, "/notify/ops/messages?since="+since).Messages); got != want {
			t.Errorf("since %s: %q, want %q", since, got, want)
		}
	}
	if resp := do(t, h, asReader(t, "/notify/ops/messages?since=yesterday")); resp.status != http.StatusBadRequest || !strings.Contains(resp.body, "a duration such as 10m") {
		t.Errorf("%d %s", resp.status, resp.body)
	}

	if resp := post(t, h, "/notify/both", typeJSON, `{"body":"both"}`); resp.status != http.StatusOK || station.One(t).Message != "both" {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	if got := bodies(inboxOf(t, h, "/notify/both/messages").Messages); got != "both" {
		t.Errorf("the inbox of the key with a URL has %q", got)
	}
	if resp := post(t, h, "/notify/both?tag=other", typeJSON, `{"body":"nobody"}`); resp.status != http.StatusFailedDependency {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	if got := bodies(inboxOf(t, h, "/notify/both/messages").Messages); got != "both" {
		t.Errorf("a message that was refused is kept: %q", got)
	}
}

// TestInboxSurvives checks that messages can be read after a restart of the gateway, and
// that those are gone whose time is over.
func TestInboxSurvives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const block = "key ops {\ninbox %s\nreader " + testReader + "\n}"
	h := newQueueGateway(t, dir, fmt.Sprintf(block, "7d"), "")
	post(t, h, "/notify/ops", typeJSON, `{"body":"kept"}`)
	stopApp(t, h)
	h = newQueueGateway(t, dir, fmt.Sprintf(block, "7d"), "")
	if got := bodies(inboxOf(t, h, "/notify/ops/messages").Messages); got != "kept" {
		t.Errorf("after a restart: %q", got)
	}
	post(t, h, "/notify/ops", typeJSON, `{"body":"later"}`)
	if got := bodies(inboxOf(t, h, "/notify/ops/messages").Messages); got != "kept later" {
		t.Errorf("after a restart: %q", got)
	}
}

// TestInboxExpires checks that a message is removed from the store when its time is over.
func TestInboxExpires(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, t.TempDir(), "key ops {\ninbox 1h\nreader "+testReader+"\n}", "")
		defer stopApp(t, h)
		post(t, h, "/notify/ops", typeJSON, `{"body":"old"}`)
		time.Sleep(50 * time.Minute)
		post(t, h, "/notify/ops", typeJSON, `{"body":"new"}`)
		time.Sleep(11 * time.Minute)
		q, place := h.app.gateway.Rooms, "site "+h.api.Site()+"\x00ops"
		stored, err := q.Inboxes.Read(t.Context(), place, 0)
		if err != nil || len(stored) != 1 || stored[0].Body != "new" {
			t.Errorf("%d messages are stored, %v", len(stored), err)
		}
		head, err := q.Inboxes.Head(t.Context(), place)
		if err != nil || head.Count != 1 || head.Size != int64(stored[0].Size()) {
			t.Errorf("%+v, %v", head, err)
		}
		time.Sleep(3 * time.Hour)
		if sizes, err := q.Outbox.Queue.CallersGroupSizes(t.Context()); err != nil || len(sizes) > 0 {
			t.Errorf("%v, %v", sizes, err)
		}
	})
}

// TestInboxIsFull checks that the oldest messages of the largest inbox go when there are
// too many, and that messages are accepted meanwhile.
func TestInboxIsFull(t *testing.T) {
	t.Parallel()
	h := newGateway(t, "key loud {\ninbox 7d\nreader "+testReader+"\n}\nkey quiet {\ninbox 7d\nreader "+testReader+"\n}", "queue {\npath "+t.TempDir()+"\nwait 5s\nmax_size 8MiB\n}")
	startApp(t, h)
	post(t, h, "/notify/quiet", typeJSON, `{"body":"quiet"}`)
	text := strings.Repeat("x", 30<<10)
	for i := range 100 {
		if resp := post(t, h, "/notify/loud", typeJSON, fmt.Sprintf(`{"title":"%d","body":"%s"}`, i, text)); resp.status != http.StatusOK {
			t.Fatalf("%d %s", resp.status, resp.body)
		}
	}
	h.app.gateway.Rooms.Inboxes.Refresh(t.Context())
	list := inboxOf(t, h, "/notify/loud/messages").Messages
	if len(list) == 0 || len(list) > 70 || list[len(list)-1].Title != "99" {
		t.Errorf("%d messages, the last is %q", len(list), list[len(list)-1].Title)
	}
	if got := bodies(inboxOf(t, h, "/notify/quiet/messages").Messages); got != "quiet" {
		t.Errorf("the quiet inbox has %q", got)
	}
}

// TestInboxAccess checks who may read an inbox, and that nobody else learns what exists.
func TestInboxAccess(t *testing.T) {
	t.Parallel()
	h := newQueueGateway(t, t.TempDir(), "console {\nmanage boss\n}\nkey ops {\ninbox 7d\nreader "+testReader+"\n}\nkey other {\nurl json://localhost\ntoken "+otherToken+"\n}\nkey plain {\nurl json://localhost\n}", "")
	post(t, h, "/notify/ops", typeJSON, `{"body":"secret text"}`)
	addresses := []string{"messages", "stream", "ntfy/x/json", "ntfy/x/json?poll=1", "ntfy/x/sse", "ntfy/x/ws", "ntfy/x/auth"}
	answers := map[string]string{}
	for _, key := range []string{"ops", "other", "plain", "none"} {
		for _, address := range addresses {
			for name, secret := range map[string]string{"no secret": "", "another secret": "Bearer " + otherToken} {
				r := httptest.NewRequest(http.MethodGet, "/notify/"+key+"/"+address, nil)
				if secret != "" {
					r.Header.Set("Authorization", secret)
				}
				resp := do(t, h, r)
				if resp.status != http.StatusUnauthorized || resp.header.Get("WWW-Authenticate") == "" || strings.Contains(resp.body, "secret text") {
					t.Errorf("%s of %s with %s: %d %s", address, key, name, resp.status, resp.body)
				}
				text := strings.ReplaceAll(strings.ReplaceAll(resp.body, key, "KEY"), resp.header.Get("Date"), "")
				if i := strings.Index(text, " ["); i > 0 && address == "messages" || address == "stream" {
					text = text[i:]
				}
				if answers[address] == "" {
					answers[address] = text
				}
				if text != answers[address] {
					t.Errorf("%s of %s differs: %s", address, key, text)
				}
			}
		}
	}
	boss := func(target string) reply {
		return do(t, h, asUser(httptest.NewRequest(http.MethodGet, target, nil), "boss"))
	}
	if resp := boss("/notify/ops/messages"); resp.status != http.StatusOK || !strings.Contains(resp.body, "secret text") {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	for target, want := range map[string]string{"/notify/plain/messages": "add inbox 7d", "/notify/none/messages": "no such key"} {
		if resp := boss(target); resp.status != http.StatusNotFound || !strings.Contains(resp.body, want) {
			t.Errorf("%s: %d %s", target, resp.status, resp.body)
		}
	}
	if resp := post(t, h, "/notify/ops?token="+testReader, typeJSON, `{"body":"x"}`); resp.status != http.StatusOK {
		t.Errorf("%d %s", resp.status, resp.body) // the key has no token
	}
	if resp := do(t, h, httptest.NewRequest(http.MethodDelete, "/notify/ops/messages", nil)); resp.status != http.StatusUnauthorized {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	r := asReader(t, "/notify/ops/messages")
	r.Method = http.MethodDelete
	if resp := do(t, h, r); resp.status != http.StatusMethodNotAllowed || resp.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %s", resp.status, resp.body)
	}
}

// TestInboxPage checks that a browser gets a page with the texts, which are escaped.
func TestInboxPage(t *testing.T) {
	t.Parallel()
	h := newQueueGateway(t, t.TempDir(), "key ops {\ninbox 7d\nreader "+testReader+"\n}", "")
	post(t, h, "/notify/ops", typeJSON, `{"title":"<i>T</i>","body":"<script>x</script>","type":"warning"}`)
	r := asReader(t, "/notify/ops/messages")
	r.Header.Set("Accept", "text/html")
	resp := do(t, h, r)
	if resp.status != http.StatusOK || !strings.Contains(resp.body, "&lt;script&gt;x") || !strings.Contains(resp.body, "&lt;i&gt;T") || strings.Contains(resp.body, "<script>x") {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	if resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", resp.header)
	}
}

// listener reads a stream, line by line.
type listener struct {
	t      *testing.T
	lines  *bufio.Scanner
	header http.Header
	cancel context.CancelFunc
}

func listen(t *testing.T, s *httptest.Server, target string, header ...string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testReader)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", target, resp.Status)
	}
	return &listener{t, bufio.NewScanner(resp.Body), resp.Header, cancel}
}

// next returns the next line that is not empty, or "" at the end.
func (l *listener) next() string {
	l.t.Helper()
	for l.lines.Scan() {
		if l.lines.Text() != "" {
			return l.lines.Text()
		}
	}
	return ""
}

// wants checks that the next line has texts.
func (l *listener) wants(texts ...string) string {
	l.t.Helper()
	line := l.next()
	for _, text := range texts {
		if !strings.Contains(line, text) {
			l.t.Fatalf("got %q, want %q in it", line, text)
		}
	}
	return line
}

// TestInboxStream checks that listeners get what comes in and, if they ask for it, what
// was there before, and that the end of the configuration ends their streams.
func TestInboxStream(t *testing.T) {
	t.Parallel()
	h := newQueueGateway(t, t.TempDir(), "key ops {\ninbox 7d\nreader "+testReader+"\n}", "")
	s := inboxServer(t, h)
	post(t, h, "/notify/ops", typeJSON, `{"body":"one"}`)
	lines := listen(t, s, "/notify/ops/stream")
	lines.wants(`"event":"open"`)
	all := listen(t, s, "/notify/ops/stream?since=all")
	all.wants(`"event":"open"`)
	first := all.wants(`"event":"message"`, `"body":"one"`)
	events := listen(t, s, "/notify/ops/stream", "Accept", "text/event-stream")
	if got := events.header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	events.wants(": open")
	post(t, h, "/notify/ops", typeJSON, `{"body":"two"}`)
	for _, l := range []*listener{lines, all} {
		l.wants(`"event":"message"`, `"body":"two"`)
	}
	id := events.wants("id: m")
	events.wants(`data: {"id"`, `"body":"two"`)

	var one inbox.JSON
	if err := json.Unmarshal([]byte(first), &one); err != nil {
		t.Fatal(err)
	}
	again := listen(t, s, "/notify/ops/stream?since="+one.ID)
	again.wants("open")
	again.wants(`"body":"two"`)
	resumed := listen(t, s, "/notify/ops/stream", "Accept", "text/event-stream", "Last-Event-ID", one.ID)
	resumed.wants(": open")
	if got := resumed.wants("id: "); got != id {
		t.Errorf("%q, want %q", got, id)
	}
	h.api.Streams.Stop()
	for _, l := range []*listener{lines, all, again, events} {
		if got := l.next(); got != "" {
			t.Errorf("after the end: %q", got)
		}
	}
}

// TestInboxManyMissed checks that a listener that comes back after a long time gets all
// that it has missed, in order, while others come in.
func TestInboxManyMissed(t *testing.T) {
	t.Parallel()
	h := newQueueGateway(t, t.TempDir(), "key ops {\ninbox 7d\nreader "+testReader+"\n}", "")
	s := inboxServer(t, h)
	const before, meanwhile = 180, 60
	for i := range before {
		post(t, h, "/notify/ops", typeJSON, fmt.Sprintf(`{"body":"n%d."}`, i))
	}
	l := listen(t, s, "/notify/ops/stream?since=all")
	l.wants("open")
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range meanwhile {
			post(t, h, "/notify/ops", typeJSON, fmt.Sprintf(`{"body":"n%d."}`, before+i))
		}
	}()
	for i := range before + meanwhile {
		l.wants(fmt.Sprintf(`"n%d."`, i))
	}
	<-done
	list := inboxOf(t, h, "/notify/ops/messages")
	if len(list.Messages) != before+meanwhile {
		t.Errorf("%d messages", len(list.Messages))
	}
}

// TestInboxListeners checks that a key has a limit of listeners, and that those who have
// left do not count.
func TestInboxListeners(t *testing.T) {
	t.Parallel()
	h := newQueueGateway(t, t.TempDir(), "key ops {\ninbox 7d\nreader "+testReader+"\n}", "")
	s := inboxServer(t, h)
	var all []*listener
	for range inbox.MaxListeners {
		l := listen(t, s, "/notify/ops/ntfy/x/json")
		l.wants("open")
		all = append(all, l)
	}
	if resp := do(t, h, asReader(t, "/notify/ops/stream")); resp.status != http.StatusTooManyRequests || !strings.Contains(resp.body, "100 clients") {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	if resp := do(t, h, asReader(t, "/notify/ops/ntfy/x/json?poll=1")); resp.status != http.StatusOK {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	post(t, h, "/notify/ops", typeJSON, `{"body":"to all"}`)
	for _, l := range all {
		l.wants("to all")
	}
	all[0].cancel()
	for range 1000 { // until the gateway has noticed
		_, leave, err := h.app.gateway.Rooms.Inboxes.Listen(t.Context(), "site "+h.api.Site()+"\x00ops")
		if err == nil {
			leave()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a listener that has left still counts")
}

// TestInboxRefused checks that an inbox that cannot work is refused when the
// configuration loads, with what to do.
func TestInboxRefused(t *testing.T) {
	t.Parallel()
	const inbox, reader = "inbox 7d\n", "reader " + testReader + "\n"
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	for _, tt := range []struct{ block, global, want string }{
		{"key k {\n" + inbox + reader + "}", "", "Testfile:3: key k: inbox: messages are kept in the queue, and there is none; add queue"},
		{"key k {\n" + inbox + reader + "queue off\n}", queue, "Testfile:3: key k: inbox: messages are kept in the queue, which the key does not use; remove queue off"},
		{"key k {\n" + inbox + "}", queue, "Testfile:3: key k: inbox: nobody can read it, because the key has no reader and nobody may manage; add reader"},
		{"configs {\nmanage\n" + inbox + "}", "", "Testfile:4: configs: inbox: messages are kept in the queue, and there is none"},
		{"configs {\n" + inbox + "}", queue, "Testfile:3: configs: inbox: nobody can read it, because nobody may manage; add manage"},
		{"key k {\n" + inbox + reader + "dedupe 1h\n}", queue, "dedupe: it has no effect, because rules are for URLs and the key has none"},
		{"key k {\n" + inbox + reader + "default_tag a\n}", queue, "no URL of the key has this tag"},
		{"", queue + "key k {\n" + inbox + "queue off\n}", "key k: inbox: messages are kept in the queue, which the key does not use"},
	} {
		if _, err := provision(t, tt.block, tt.global); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.block, err, tt.want)
		}
	}
	for _, tt := range []struct{ block, global, want string }{
		{"", queue + "key k {\n" + inbox + "}", "nobody can read it, because the key has no reader"},
		{"console {\nmanage open\n}", queue + "key k {\n" + inbox + "}", ""},
		{"", queue + "key k {\n" + inbox + reader + "}", ""},
	} {
		h, err := provision(t, tt.block, tt.global)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.app.checkInboxReaders(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.global, err, tt.want)
		}
	}
	h, err := provision(t, "", queue+"key k {\n"+inbox+reader+"}")
	if err != nil {
		t.Fatal(err)
	}
	h.app.gateway.Engine.Sites = nil
	if err := h.app.checkInboxReaders(); err == nil || !strings.Contains(err.Error(), "no site has notify") {
		t.Error(err)
	}
	if _, err := provision(t, `key k {`+"\n"+inbox+reader+"expect nightly every 1h\n}", queue); err != nil {
		t.Errorf("beats of a key with only an inbox: %v", err)
	}
}

// TestInboxOfFallback checks that an inbox keeps the message about a delivery that was
// given up, also of a key that has nothing else.
func TestInboxOfFallback(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusBadGateway)
	h := newQueueGateway(t, t.TempDir(), "key ops {\nurl "+p.NotifyURL()+"\nfallback told\n}\nkey told {\ninbox 7d\nreader "+testReader+"\n}", "")
	if resp := post(t, h, "/notify/ops", typeJSON, `{"body":"lost"}`); !strings.Contains(resp.body, `"status":"queued"`) {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	p.answer(http.StatusNotFound)
	for range 1000 {
		if list := inboxOf(t, h, "/notify/told/messages").Messages; len(list) > 0 {
			if !strings.Contains(list[0].Title, "Message for ops not delivered") {
				t.Errorf("%+v", list[0])
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the fallback was told nothing")
}

// TestInboxOfSavedKey checks that inbox in configs keeps the messages of a saved key for
// who may manage, and that they cannot be read when the key is deleted.
func TestInboxOfSavedKey(t *testing.T) {
	t.Parallel()
	station := gatewaytest.NewStation(t)
	h := newQueueGateway(t, t.TempDir(), open+"configs "+strings.ToLower(t.Name())+" {\nmanage open\ninbox 7d\n}", "")
	if resp := post(t, h, "/add/saved", typeJSON, `{"urls":"`+station.NotifyURL("")+`"}`); resp.status != http.StatusOK {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	if resp := post(t, h, "/notify/saved", typeJSON, `{"body":"kept"}`); resp.status != http.StatusOK {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	if got := bodies(inboxOf(t, h, "/notify/saved/messages").Messages); got != "kept" {
		t.Errorf("the inbox has %q", got)
	}
	post(t, h, "/del/saved", typeJSON, "")
	if resp := do(t, h, asReader(t, "/notify/saved/messages")); resp.status != http.StatusNotFound {
		t.Errorf("%d %s", resp.status, resp.body)
	}
}

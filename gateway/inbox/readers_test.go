package inbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/feed"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestInbox checks that a key keeps its messages readable: with a destination and
// without one, in any format, in their order, and from a place on.
func TestInbox(t *testing.T) {
	t.Parallel()
	station := gatewaytest.NewStation(t)
	both := gatewaytest.Key("both", station.NotifyURL(""))
	both.Inbox, both.Readers = time.Hour, []string{testReader}
	g := newGateway(t, kept("ops"), both)
	resp := g.Post("/notify/ops", gatewaytest.TypeJSON,
		`{"body":"**one**","title":"First","type":"failure","format":"markdown","incident":"disk"}`)
	if resp.Status != http.StatusOK || !strings.Contains(resp.Body, "Kept in the inbox of the key ops until ") ||
		!strings.Contains(resp.Body, `"results":[]`) {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(resp.Body), &answer); err != nil {
		t.Fatal(err)
	}
	id := answer.ID
	if state := g.Message(http.MethodGet, id, gatewaytest.TypeJSON); state.Status != http.StatusOK ||
		!strings.Contains(state.Body, `"state":"delivered"`) || strings.Contains(state.Body, "one") {
		t.Errorf("%d %s", state.Status, state.Body)
	}
	if resp := g.Post("/notify/ops/grafana", gatewaytest.TypeJSON,
		`{"title":"[FIRING:1] Disk","state":"alerting","message":"two","alerts":[],"commonLabels":{},"receiver":"x",`+
			`"status":"firing"}`); resp.Status != http.StatusOK {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	g.Post("/notify/ops?tag=any", gatewaytest.TypeJSON, `{"body":"three"}`)
	list := inboxOf(t, g, "/notify/ops/messages")
	if len(list.Messages) != 3 || list.Next != nil {
		t.Fatalf("%+v", list)
	}
	first := list.Messages[0]
	if first.Body != "**one**" || first.Title != "First" || first.Type != "failure" || first.Format != "markdown" ||
		first.Incident != "disk" || first.Message != id {
		t.Errorf("%+v", first)
	}
	if d := first.Expires.Sub(*first.Time); d < 7*24*time.Hour-time.Minute || d > 7*24*time.Hour+time.Minute {
		t.Errorf("it expires after %s", d)
	}
	if list.Messages[1].Source != "grafana" || list.Messages[1].Type != "failure" {
		t.Errorf("%+v", list.Messages[1])
	}
	for since, want := range map[string]string{
		first.ID: list.Messages[1].Body + " three", list.Messages[2].ID: "", "1h": bodies(list.Messages), "all": bodies(list.Messages),
		"latest":               "three",
		"2000-01-01T00:00:00Z": bodies(list.Messages), "946684800": bodies(list.Messages), "4102444800": "", "none": "",
	} {
		if got := bodies(inboxOf(t, g, "/notify/ops/messages?since="+since).Messages); got != want {
			t.Errorf("since %s: %q, want %q", since, got, want)
		}
	}
	if resp := g.Do(asReader(t, "/notify/ops/messages?since=yesterday")); resp.Status != http.StatusBadRequest ||
		!strings.Contains(resp.Body, "a duration such as 10m") {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}

	if resp := g.Post("/notify/both", gatewaytest.TypeJSON, `{"body":"both"}`); resp.Status != http.StatusOK ||
		station.One(t).Message != "both" {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	if got := bodies(inboxOf(t, g, "/notify/both/messages").Messages); got != "both" {
		t.Errorf("the inbox of the key with a URL has %q", got)
	}
	if resp := g.Post("/notify/both?tag=other", gatewaytest.TypeJSON, `{"body":"nobody"}`); resp.Status != http.StatusFailedDependency {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	if got := bodies(inboxOf(t, g, "/notify/both/messages").Messages); got != "both" {
		t.Errorf("a message that was refused is kept: %q", got)
	}
}

// TestInboxSurvives checks that messages can be read after a restart of the gateway, until their
// time is over.
func TestInboxSurvives(t *testing.T) {
	t.Parallel()
	o := gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{kept("ops")}}, Queue: &outbox.Settings{Path: t.TempDir()}}
	g := gatewaytest.New(t, o)
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"kept"}`)
	g.Stop()
	g = gatewaytest.New(t, o)
	if got := bodies(inboxOf(t, g, "/notify/ops/messages").Messages); got != "kept" {
		t.Errorf("after a restart: %q", got)
	}
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"later"}`)
	if got := bodies(inboxOf(t, g, "/notify/ops/messages").Messages); got != "kept later" {
		t.Errorf("after a restart: %q", got)
	}
}

// TestInboxExpires checks that a message is removed from the store when its time is over.
func TestInboxExpires(t *testing.T) {
	t.Parallel()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, site.KeyOptions{Name: "ops", Readers: []string{testReader}, KeySettings: site.KeySettings{Inbox: time.Hour}})
		defer g.Stop()
		g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"old"}`)
		time.Sleep(50 * time.Minute)
		g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"new"}`)
		time.Sleep(11 * time.Minute)
		q, place := g.Rooms(), "site "+g.Site()+"\x00ops"
		stored, err := q.Inboxes.Read(t.Context(), place, 0)
		if err != nil || len(stored) != 1 || stored[0].Body != "new" {
			t.Errorf("%d messages are stored, %v", len(stored), err)
		}
		head, err := q.Inboxes.Head(t.Context(), place)
		if err != nil || head.Count != 1 || head.Size != int64(stored[0].Size()) {
			t.Errorf("%+v, %v", head, err)
		}
		time.Sleep(3 * time.Hour)
		if sizes, err := q.Outbox.Queue.Records.GroupSizes(t.Context()); err != nil || len(sizes) > 0 {
			t.Errorf("%v, %v", sizes, err)
		}
	})
}

// TestInboxIsFull checks that the oldest messages of the largest inbox go when there are
// too many, and that messages are accepted meanwhile.
func TestInboxIsFull(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:  site.Options{Keys: []site.KeyOptions{kept("loud"), kept("quiet")}},
		Queue: &outbox.Settings{MaxSize: 8 << 20},
	})
	g.Post("/notify/quiet", gatewaytest.TypeJSON, `{"body":"quiet"}`)
	text := strings.Repeat("x", 30<<10)
	for i := range 100 {
		if resp := g.Post("/notify/loud", gatewaytest.TypeJSON,
			fmt.Sprintf(`{"title":"%d","body":"%s"}`, i, text)); resp.Status != http.StatusOK {
			t.Fatalf("%d %s", resp.Status, resp.Body)
		}
	}
	g.Rooms().Inboxes.Refresh(t.Context(), nil)
	list := inboxOf(t, g, "/notify/loud/messages").Messages
	if len(list) == 0 || len(list) > 33 || list[len(list)-1].Title != "99" {
		t.Errorf("%d messages, the last is %q", len(list), list[len(list)-1].Title)
	}
	if got := bodies(inboxOf(t, g, "/notify/quiet/messages").Messages); got != "quiet" {
		t.Errorf("the quiet inbox has %q", got)
	}
}

// TestInboxAccess checks who may read an inbox, and that nobody else learns what exists.
func TestInboxAccess(t *testing.T) {
	t.Parallel()
	other := gatewaytest.Key("other", "json://localhost")
	other.Tokens = []string{otherToken}
	g := gatewaytest.New(t, gatewaytest.Options{
		Site: site.Options{
			Managers: &site.Managers{Named: []string{"boss"}},
			Keys:     []site.KeyOptions{kept("ops"), other, gatewaytest.Key("plain", "json://localhost")},
		},
		Queue: &outbox.Settings{},
	})
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"secret text"}`)
	addresses := []string{"messages", "stream", "ntfy/x/json", "ntfy/x/json?poll=1", "ntfy/x/sse", "ntfy/x/raw", "ntfy/x/ws", "ntfy/x/auth"}
	answers := map[string]string{}
	for _, key := range []string{"ops", "other", "plain", "none"} {
		for _, address := range addresses {
			for name, secret := range map[string]string{"no secret": "", "another secret": "Bearer " + otherToken} {
				r := httptest.NewRequest(http.MethodGet, "/notify/"+key+"/"+address, nil)
				if secret != "" {
					r.Header.Set("Authorization", secret)
				}
				resp := g.Do(r)
				if resp.Status != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" || strings.Contains(resp.Body, "secret text") {
					t.Errorf("%s of %s with %s: %d %s", address, key, name, resp.Status, resp.Body)
				}
				text := strings.ReplaceAll(strings.ReplaceAll(resp.Body, key, "KEY"), resp.Header.Get("Date"), "")
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
	boss := func(target string) gatewaytest.Reply {
		return g.Do(gatewaytest.As(httptest.NewRequest(http.MethodGet, target, nil), "boss"))
	}
	if resp := boss("/notify/ops/messages"); resp.Status != http.StatusOK || !strings.Contains(resp.Body, "secret text") {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	for target, want := range map[string]string{"/notify/plain/messages": "add inbox 7d", "/notify/none/messages": "no such key"} {
		if resp := boss(target); resp.Status != http.StatusNotFound || !strings.Contains(resp.Body, want) {
			t.Errorf("%s: %d %s", target, resp.Status, resp.Body)
		}
	}
	if resp := g.Post("/notify/ops?token="+testReader, gatewaytest.TypeJSON, `{"body":"x"}`); resp.Status != http.StatusOK {
		t.Errorf("%d %s", resp.Status, resp.Body) // the key has no token
	}
	if resp := g.Do(httptest.NewRequest(http.MethodDelete, "/notify/ops/messages", nil)); resp.Status != http.StatusUnauthorized {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	r := asReader(t, "/notify/ops/messages")
	r.Method = http.MethodDelete
	if resp := g.Do(r); resp.Status != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
}

// TestInboxPage checks that a browser gets a page with the texts, which are escaped.
func TestInboxPage(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kept("ops"))
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"title":"<i>T</i>","body":"<script>x</script>","type":"warning"}`)
	r := asReader(t, "/notify/ops/messages")
	r.Header.Set("Accept", "text/html")
	resp := g.Do(r)
	if resp.Status != http.StatusOK || !strings.Contains(resp.Body, "&lt;script&gt;x") || !strings.Contains(resp.Body, "&lt;i&gt;T") ||
		strings.Contains(resp.Body, "<script>x") {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	if resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", resp.Header)
	}
}

// TestInboxStream checks that listeners get what comes in and, if they ask for it, what
// was there before, and that the end of the configuration ends their streams.
func TestInboxStream(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kept("ops"))
	s := serve(t, g)
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"one"}`)
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
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"two"}`)
	for _, l := range []*listener{lines, all} {
		l.wants(`"event":"message"`, `"body":"two"`)
	}
	id := events.wants("id: m")
	events.wants(`data: {"id"`, `"body":"two"`)

	var one feed.JSON
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
	g.Streams.Stop()
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
	g := newGateway(t, kept("ops"))
	s := serve(t, g)
	const before, meanwhile = 180, 60
	for i := range before {
		g.Post("/notify/ops", gatewaytest.TypeJSON, fmt.Sprintf(`{"body":"n%d."}`, i))
	}
	l := listen(t, s, "/notify/ops/stream?since=all")
	l.wants("open")
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range meanwhile {
			g.Post("/notify/ops", gatewaytest.TypeJSON, fmt.Sprintf(`{"body":"n%d."}`, before+i))
		}
	}()
	for i := range before + meanwhile {
		l.wants(fmt.Sprintf(`"n%d."`, i))
	}
	<-done
	list := inboxOf(t, g, "/notify/ops/messages")
	if len(list.Messages) != before+meanwhile {
		t.Errorf("%d messages", len(list.Messages))
	}
}

// TestInboxListeners checks that a key has a limit of listeners, and that those who have
// left do not count.
func TestInboxListeners(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kept("ops"))
	s := serve(t, g)
	var all []*listener
	for range inbox.MaxListeners {
		l := listen(t, s, "/notify/ops/ntfy/x/json")
		l.wants("open")
		all = append(all, l)
	}
	if resp := g.Do(asReader(t, "/notify/ops/stream")); resp.Status != http.StatusTooManyRequests ||
		!strings.Contains(resp.Body, "100 clients") {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	if resp := g.Do(asReader(t, "/notify/ops/ntfy/x/json?poll=1")); resp.Status != http.StatusOK {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"to all"}`)
	for _, l := range all {
		l.wants("to all")
	}
	all[0].cancel()
	gatewaytest.Eventually(t, func() bool { // the gateway notices that a listener has left
		_, leave, err := g.Rooms().Inboxes.Listen(t.Context(), "site "+g.Site()+"\x00ops")
		if err == nil {
			leave()
		}
		return err == nil
	})
}

// TestInboxOfFallback checks that an inbox keeps the message about a delivery that was
// given up, also of a key that has nothing else.
func TestInboxOfFallback(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	ops := gatewaytest.Key("ops", p.NotifyURL())
	ops.Fallback = "told"
	g := newGateway(t, ops, kept("told"))
	if resp := g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"lost"}`); !strings.Contains(resp.Body, `"status":"queued"`) {
		t.Fatalf("%d %s", resp.Status, resp.Body)
	}
	p.Answer(http.StatusNotFound)
	gatewaytest.Eventually(t, func() bool {
		list := inboxOf(t, g, "/notify/told/messages").Messages
		if len(list) > 0 && !strings.Contains(list[0].Title, "Message for ops not delivered") {
			t.Errorf("%+v", list[0])
		}
		return len(list) > 0
	})
}

// TestInboxOfSavedKey checks that inbox in configs keeps the messages of a saved key for
// who may manage, and that they cannot be read when the key is deleted.
func TestInboxOfSavedKey(t *testing.T) {
	t.Parallel()
	station := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:  site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback()},
		Queue: &outbox.Settings{}, Saved: &saved.Options{Manage: true, KeySettings: site.KeySettings{Inbox: 7 * 24 * time.Hour}},
	})
	if resp := g.Post("/add/saved", gatewaytest.TypeJSON, `{"urls":"`+station.NotifyURL("")+`"}`); resp.Status != http.StatusOK {
		t.Fatalf("%d %s", resp.Status, resp.Body)
	}
	if resp := g.Post("/notify/saved", gatewaytest.TypeJSON, `{"body":"kept"}`); resp.Status != http.StatusOK {
		t.Fatalf("%d %s", resp.Status, resp.Body)
	}
	if got := bodies(inboxOf(t, g, "/notify/saved/messages").Messages); got != "kept" {
		t.Errorf("the inbox has %q", got)
	}
	g.Post("/del/saved", gatewaytest.TypeJSON, "")
	if resp := g.Do(asReader(t, "/notify/saved/messages")); resp.Status != http.StatusNotFound {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
}

package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// newTroubledGateway has the keys ops, whose first destination fails, and fine, and a
// queue in dir.
func newTroubledGateway(t *testing.T, dir string, s *gatewaytest.Station) *Handler {
	t.Helper()
	return newQueueGateway(t, dir, "console {\nmanage open\n}\nkey ops {\nurl "+s.NotifyURL("/refuse")+"\nurl "+s.NotifyURL("/ok")+"\n}\nkey fine {\nurl "+s.NotifyURL("/fine")+"\n}", "")
}

// listed returns the outcome and key of each message of a page.
func listed(body string) (out []string) {
	for _, m := range regexp.MustCompile(`(?s)<li class="row is-(\w+)">.*?</li>`).FindAllStringSubmatch(body, -1) {
		key := regexp.MustCompile(`class="key"[^>]*>(\w+)<`).FindStringSubmatch(m[0])
		if key == nil {
			key = []string{"", ""}
		}
		out = append(out, m[1]+" "+key[1])
	}
	return out
}

// TestConsoleMessages checks that the messages are listed with what became of them, from
// the records of the queue, so that a restart keeps them, and that filters select them.
// Refused requests are among them.
func TestConsoleMessages(t *testing.T) {
	replaceShared(t)
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	h := newTroubledGateway(t, dir, s)
	send := func(target, form string) {
		t.Helper()
		post(t, h, target, typeForm, form)
		time.Sleep(2 * time.Millisecond) // so that the messages have an order
	}
	send("/notify/fine?type=success", "body=confidential")
	send("/notify/ops?type=failure", "body=confidential&incident=disk+db1")
	send("/notify/fine", "title=confidential")
	page := func(query string) string {
		t.Helper()
		r := get(t, h, "/notify/console/messages"+query, browser)
		if r.status != http.StatusOK || strings.Contains(r.body, "confidential") {
			t.Fatalf("%s: %d %s", query, r.status, r.body)
		}
		return r.body
	}
	for query, want := range map[string][]string{
		"":                {"refused fine", "queued ops", "delivered fine"},
		"?key=ops":        {"queued ops"},
		"?state=queued":   {"queued ops"},
		"?state=refused":  {"refused fine"},
		"?type=success":   {"delivered fine"},
		"?since=1h":       {"refused fine", "queued ops", "delivered fine"},
		"?key=none":       nil,
		"?state=failed":   nil,
		"?state=x&type=y": nil,
	} {
		if got := listed(page(query)); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	body := page("?key=ops")
	for _, want := range []string{"answered 500", "Delivered to JSON.", "incident disk db1", `class="tag type-failure"`, " UTC</time>", "http"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	for _, query := range []string{"?since=x", "?before=x"} {
		if r := get(t, h, "/notify/console/messages"+query, browser); r.status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, r.status)
		}
	}
	stopApp(t, h)
	h.shared.History.Mu.Lock()
	h.shared.History.Messages, h.shared.History.Refusals = nil, nil
	h.shared.History.Mu.Unlock()
	h = newTroubledGateway(t, dir, s)
	if got := listed(page("")); !slices.Equal(got, []string{"queued ops", "delivered fine"}) {
		t.Errorf("after a restart: %q", got)
	}
	h.app.gateway.Engine.SiteIndex = func() *site.Index {
		return &site.Index{IDs: map[*site.Site]string{h.api.Resolved: "other"}, ByID: map[string][]*site.Site{"other": {h.api.Resolved}}}
	}
	if got := listed(page("")); len(got) > 0 {
		t.Errorf("messages of another site are listed: %q", got)
	}
}

// TestConsoleMessagePages checks that each message is on one page of several.
func TestConsoleMessagePages(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newTroubledGateway(t, t.TempDir(), s)
	const n = 130
	for range n {
		r := httptest.NewRequest(http.MethodPost, "/notify/fine", strings.NewReader("body=x"))
		r.Header = http.Header{"Content-Type": {typeForm}, "Prefer": {"respond-async"}}
		if got := do(t, h, r); got.status != http.StatusAccepted {
			t.Fatal(got.body)
		}
	}
	h.shared.History.Mu.Lock()
	h.shared.History.Refusals = nil
	h.shared.History.Mu.Unlock()
	seen, pages := map[string]bool{}, 0
	older := regexp.MustCompile(`rel="next" class="button" href="\.\./\.\./notify/console/messages([^"]*)"`)
	link := regexp.MustCompile(`messages/([0-9a-f-]{36})"`)
	for query := ""; ; pages++ {
		body := get(t, h, "/notify/console/messages"+query, browser).body
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			if seen[m[1]] {
				t.Errorf("%s is on two pages", m[1])
			}
			seen[m[1]] = true
		}
		next := older.FindStringSubmatch(body)
		if next == nil || pages > 10 {
			break
		}
		query = strings.ReplaceAll(next[1], "&amp;", "&")
	}
	if len(seen) != n || pages < 2 {
		t.Errorf("%d messages on %d pages, want %d on several", len(seen), pages+1, n)
	}
}

// TestConsoleMessagesWithoutQueue checks that the history is listed, and that the page
// says what a queue would add.
func TestConsoleMessagesWithoutQueue(t *testing.T) {
	replaceShared(t)
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "console {\nmanage open\n}\nkey ops {\nurl "+s.NotifyURL("/refuse")+"\n}\nkey fine {\nurl "+s.NotifyURL("/fine")+"\n}", "")
	for _, key := range []string{"ops", "fine"} {
		post(t, h, "/notify/"+key+"?type=warning", typeForm, "body=confidential")
	}
	body := get(t, h, "/notify/console/messages?type=warning", browser).body
	if got := listed(body); !slices.Equal(got, []string{"delivered fine", "failed ops"}) || !strings.Contains(body, "With queue in the global option notify") {
		t.Errorf("%q: %s", got, body)
	}
	body = get(t, h, "/notify/console", browser).body
	if !strings.Contains(body, `<strong class="state is-failing">`) || !strings.Contains(body, `<strong class="state is-fine">`) || strings.Contains(body, "console/queue") {
		t.Errorf("the keys: %s", body)
	}
	if r := get(t, h, "/notify/console/messages/"+uuid.NewString(), browser); r.status != http.StatusNotFound {
		t.Errorf("a message: %d", r.status)
	}
}

// TestConsoleMessage checks the page of a message: each destination with its attempts,
// and buttons that try it again and drop it.
func TestConsoleMessage(t *testing.T) {
	p := newPager(t, http.StatusServiceUnavailable)
	h := newQueueGateway(t, t.TempDir(), "console {\nmanage open\n}\nkey ops {\nurl "+p.NotifyURL()+"\n}", "")
	id := do(t, h, jsonPost("/notify/ops", `{"body":"confidential","type":"failure"}`)).queued(t).ID
	address := "/notify/console/messages/" + id
	// The attempt is known before it is settled.
	body := ""
	caddyhttptest.Eventually(t, func() bool {
		body = get(t, h, address, browser).body
		return strings.Contains(body, "1 attempt") && strings.Contains(body, "Next attempt")
	})
	for _, want := range []string{"Message to <span class=\"key\">ops</span>", "is-queued", "answered 503", "Next attempt", `<ol class="tries"`, id, "1 attempt", "type-failure"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	if strings.Contains(body, "confidential") {
		t.Error("the page has the text of the message")
	}
	for _, other := range []string{uuid.NewString(), "x", strings.ToUpper(id)} {
		if r := submit(t, h, "/notify/console/messages/"+other+"?drop", nil); r.status != http.StatusNotFound {
			t.Errorf("%s: %d", other, r.status)
		}
	}
	if r := submit(t, h, address, nil); r.status != http.StatusBadRequest {
		t.Errorf("a form without a button: %d", r.status)
	}
	if r := submit(t, h, address+"?retry", nil); r.status != http.StatusSeeOther || r.header.Get("Location") != "../../../notify/console/messages/"+id {
		t.Errorf("trying it again: %d %v", r.status, r.header)
	}
	caddyhttptest.Eventually(t, func() bool {
		return p.count() == 2 && strings.Contains(get(t, h, address, browser).body, "<strong>×2</strong>")
	})
	caddyhttptest.Eventually(t, func() bool {
		return submit(t, h, address+"?drop", nil).status == http.StatusSeeOther && strings.Contains(get(t, h, address, browser).body, `<strong class="state is-cancelled">`)
	})
}

// newStoreIn returns a store of saved keys in a folder.
func newStoreIn(t *testing.T, h *Handler, dir string) *configstore.Store {
	t.Helper()
	store, err := configstore.New(configstore.Options{Storage: storagetest.New(dir), Index: h.api.Saved.Index})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func jsonPost(target, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {typeJSON}, "Prefer": {"respond-async"}, "Accept": {typeJSON}}
	return r
}

// TestConsoleQueue checks what the page of the queue shows, and that its buttons change
// only what they name.
func TestConsoleQueue(t *testing.T) {
	bad, good := newPager(t, http.StatusServiceUnavailable), newPager(t, http.StatusServiceUnavailable)
	h := newQueueGateway(t, t.TempDir(), "console {\nmanage open\n}\nkey ops {\nurl "+bad.NotifyURL()+"\nurl "+good.NotifyURL()+"\n}\nkey idle {\nurl json://127.0.0.1:1/idle\n}", "")
	page := func() string { return get(t, h, "/notify/console/queue", browser).body }
	if body := page(); !strings.Contains(body, "Nothing waits, nothing fails") {
		t.Errorf("an empty queue: %s", body)
	}
	for range 3 {
		do(t, h, jsonPost("/notify/ops", `{"body":"confidential"}`))
	}
	caddyhttptest.Eventually(t, func() bool { return strings.Count(page(), "3 deliveries wait") == 2 })
	body := page()
	for _, want := range []string{"answered 503", ">ops</a>", "Try all now", "will never arrive there"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	if strings.Contains(body, "idle") || strings.Contains(body, "confidential") {
		t.Errorf("the page shows what is fine, or a text: %s", body)
	}
	keys := get(t, h, "/notify/console", browser).body
	if strings.Index(keys, ">ops</a>") > strings.Index(keys, ">idle</a>") || !strings.Contains(keys, "JSON: the service answered 503") {
		t.Errorf("the worst key is not the first, or has no cause: %s", keys)
	}
	id := console.EncodeDestination(h.app.gateway.Rooms.Outbox.Queue.Hash(h.api.Resolved.Keys["ops"].Targets[0].Hash()))
	for _, wrong := range []url.Values{{}, {"destination": {"x"}}, {"destination": {console.EncodeDestination(queue.Hash{})}}} {
		if r := submit(t, h, "/notify/console/queue?drop", wrong); r.status != http.StatusNotFound {
			t.Errorf("dropping %v: %d", wrong, r.status)
		}
		if r := submit(t, h, "/notify/console/keys/idle?drop", wrong); r.status != http.StatusNotFound {
			t.Errorf("dropping %v of a key: %d", wrong, r.status)
		}
	}
	if r := submit(t, h, "/notify/console/keys/idle?hurry", url.Values{"destination": {id}}); r.status != http.StatusNotFound {
		t.Errorf("a destination of another key: %d", r.status)
	}
	waits := func(n int) int {
		t.Helper()
		states, err := h.app.gateway.Rooms.Outbox.Queue.Health(t.Context(), h.app.gateway.Rooms.Outbox.Queue.Hash(h.api.Resolved.Keys["ops"].Targets[n].Hash()))
		if err != nil || len(states) != 1 {
			t.Fatalf("%v %v", states, err)
		}
		return states[0].Waiting
	}
	all := func() int { // also those under way, which the health does not count
		s, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Queued + s.Sending
	}
	caddyhttptest.Eventually(t, func() bool { // some may be under way
		submit(t, h, "/notify/console/queue?drop", url.Values{"destination": {id}})
		return all() == 3 && waits(1) == 3
	})
	if body := page(); !strings.Contains(body, "Drop all 3 for good") {
		t.Errorf("the button for all: %s", body)
	}
	if n := bad.count(); n > 6 {
		t.Errorf("%d attempts at what was dropped", n)
	}
	good.answer(http.StatusOK)
	if r := submit(t, h, "/notify/console/queue?hurry", nil); r.status != http.StatusSeeOther {
		t.Errorf("trying all: %d %s", r.status, r.body)
	}
	caddyhttptest.Eventually(t, func() bool { return all() == 0 })
	good.answer(http.StatusServiceUnavailable)
	for range 3 {
		do(t, h, jsonPost("/notify/ops", `{"body":"x"}`))
	}
	caddyhttptest.Eventually(t, func() bool { return waits(0) == 3 && waits(1) == 3 })
	caddyhttptest.Eventually(t, func() bool {
		submit(t, h, "/notify/console/queue?drop", url.Values{"destination": {"all"}})
		return all() == 0
	})
	if r := get(t, h, "/notify/console/queue?done=%3Cscript%3E", browser); strings.Contains(r.body, `class="card done"`) {
		t.Error("an unknown text is shown")
	}
}

// TestConsoleHealthAfterRestart checks that destinations whose state the queue does not
// remember have that of the last messages: one that refuses for good, and one of a
// client that does not fail.
func TestConsoleHealthAfterRestart(t *testing.T) {
	replaceShared(t)
	ok, refuses := newPager(t, http.StatusOK), newPager(t, http.StatusForbidden)
	dir, storage := t.TempDir(), t.TempDir()
	begin := func() *Handler {
		h := newQueueGateway(t, dir, open+"configs {\nmanage open\n}\nkey refused {\nurl "+refuses.NotifyURL()+"\n}", "")
		h.api.Saved.Store = newStoreIn(t, h, storage)
		return h
	}
	h := begin()
	if r := post(t, h, "/add/mine", typeForm, "urls="+ok.NotifyURL()); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	post(t, h, "/notify/mine", typeForm, "body=x")
	post(t, h, "/notify/refused", typeForm, "body=x")
	check := func() {
		t.Helper()
		for key, want := range map[string]string{"mine": "state is-fine", "refused": "state is-failing"} {
			if body := get(t, h, "/notify/console/keys/"+key, browser).body; !strings.Contains(body, want) {
				t.Errorf("%s is not %s: %s", key, want, body)
			}
		}
		if body := get(t, h, "/notify/console?state=fine", browser).body; !strings.Contains(body, ">mine</a>") || strings.Contains(body, ">refused</a>") {
			t.Errorf("the list: %s", body)
		}
	}
	check()
	stopApp(t, h)
	h.shared.History.Mu.Lock()
	h.shared.History.Messages, h.shared.History.Last = nil, nil
	h.shared.History.Mu.Unlock()
	h = begin()
	check()
}

// TestConsoleTestAll checks that all destinations of a key are tested, each with its
// result, also for a program.
func TestConsoleTestAll(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "console {\nmanage open\n}\nkey ops {\nurl "+s.NotifyURL("/a")+" 1:x\nurl "+s.NotifyURL("/refuse")+" 2:x\nurl "+s.NotifyURL("/b")+"\n}", "")
	form := url.Values{"destination": {"all"}}
	got := submit(t, h, "/notify/console/keys/ops?test", form)
	arrived := s.Paths()
	for _, want := range []string{"a", "refuse", "b"} {
		if strings.Count(arrived, want) == 0 {
			t.Errorf("%s got no test: %s", want, arrived)
		}
	}
	if got.status != http.StatusOK || strings.Count(got.body, `role="status">Delivered in `) != 2 || strings.Count(got.body, `role="status">Failed: the service answered 500`) != 1 || !strings.Contains(got.body, `<li id="destination-2" class="row is-failing failed">`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := post(t, h, "/notify/console/keys/ops?test", typeForm, form.Encode()); len(got.json(t).Results) != 3 {
		t.Errorf("a program gets %s", got.body)
	}
}

// TestSendingLines checks the lines that programs use to send to a key.
func TestSendingLines(t *testing.T) {
	h := newGateway(t, "key ops {\nurl json://h\n}\nkey secret {\nurl json://h\ntoken a-token-of-the-key\n}", "")
	lines := func(key, target, host string) map[string]string {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host = host
		out := map[string]string{}
		for _, l := range console.SendingLines(r, h.api.Resolved.Keys[key]) {
			out[l.Name] = l.Text
		}
		return out
	}
	plain, secure := lines("ops", "http://x/", "alerts.example.com:8080"), lines("secret", "https://x/", "alerts.example.com")
	for name, want := range map[string][2]string{
		"curl":        {`curl -f -d "backup done" http://alerts.example.com:8080/notify/ops`, `curl -f -H "Authorization: Bearer $TOKEN" -d "backup done" https://alerts.example.com/notify/secret`},
		"apprise":     {`apprise -b "backup done" "apprise://alerts.example.com:8080/ops"`, `apprise -b "backup done" "apprises://any:$TOKEN@alerts.example.com/secret"`},
		"ntfy":        {`curl -d "backup done" http://alerts.example.com:8080/notify/ops/ntfy/alerts`, `curl -H "Authorization: Bearer $TOKEN" -d "backup done" https://alerts.example.com/notify/secret/ntfy/alerts`},
		"Uptime Kuma": {"http://alerts.example.com:8080/notify/ops/uptime_kuma", "https://alerts.example.com/notify/secret/uptime_kuma?token=$TOKEN"},
	} {
		if plain[name] != want[0] || secure[name] != want[1] {
			t.Errorf("%s:\n%s\n%s, want\n%s\n%s", name, plain[name], secure[name], want[0], want[1])
		}
	}
	for name, text := range lines("ops", "http://x/", `a"; rm -rf $HOME #`) {
		if strings.Contains(text, "rm -rf") {
			t.Errorf("%s has the text of a hostile host: %s", name, text)
		}
	}
}

// TestGroup checks that equal messages that have not arrived are counted.
func TestGroup(t *testing.T) {
	at := time.Now()
	failed := func(minutes int, reason string) view.ListedMessage {
		return view.ListedMessage{Time: at.Add(-time.Duration(minutes) * time.Minute), Outcome: view.Failed, Lines: []string{reason}}
	}
	got := view.Group([]view.ListedMessage{failed(0, "503"), failed(1, "401"), failed(2, "503"), {Outcome: view.Delivered}, {Outcome: view.Delivered}, failed(9, "503")}, 3)
	if len(got) != 3 || got[0].Count != 3 || got[0].First == nil || !got[0].First.Equal(at.Add(-9*time.Minute)) || got[1].Count != 0 || got[2].Outcome != view.Delivered {
		t.Errorf("%+v", got)
	}
}

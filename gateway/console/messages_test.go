package console_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestConsoleMessages checks that the messages are listed with their outcomes from the records of
// the queue, so that they survive a restart, and that filters select them. Refused requests are
// among them.
func TestConsoleMessages(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	o := troubled(t.TempDir(), s)
	o.Process = gatewaytest.NewProcess(t)
	g := gatewaytest.New(t, o)
	send := func(target, form string) {
		t.Helper()
		g.PostForm(target, form)
	}
	send("/notify/fine?type=success", "body=confidential")
	send("/notify/ops?type=failure", "body=confidential&incident=disk+db1")
	send("/notify/fine", "title=confidential")
	page := func(query string) string {
		t.Helper()
		r := get(g, "/notify/console/messages"+query, browser)
		if r.Status != http.StatusOK || strings.Contains(r.Body, "confidential") {
			t.Fatalf("%s: %d %s", query, r.Status, r.Body)
		}
		return r.Body
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
	for _, want := range []string{
		"answered 500", "Delivered to JSON 127.0.0.1:", "incident disk db1", `class="tag type-failure"`,
		` UTC" data-clock>`, "http",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	for _, query := range []string{"?since=x", "?before=x"} {
		if r := get(g, "/notify/console/messages"+query, browser); r.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, r.Status)
		}
	}
	g.Stop()
	o.Process = gatewaytest.NewProcess(t)
	g = gatewaytest.New(t, o)
	if got := listed(page("")); !slices.Equal(got, []string{"queued ops", "delivered fine"}) {
		t.Errorf("after a restart: %q", got)
	}
	g.SetSiteID("other")
	if got := listed(page("")); len(got) > 0 {
		t.Errorf("messages of another site are listed: %q", got)
	}
}

// TestConsoleMessagePages checks that each message is on one page of several.
func TestConsoleMessagePages(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, troubled(t.TempDir(), s))
	const n = 130
	for range n {
		r := httptest.NewRequest(http.MethodPost, "/notify/fine", strings.NewReader("body=x"))
		r.Header = http.Header{"Content-Type": {gatewaytest.TypeForm}, "Prefer": {"respond-async"}}
		if got := g.Do(r); got.Status != http.StatusAccepted {
			t.Fatal(got.Body)
		}
	}
	seen, pages := map[string]bool{}, 0
	older := regexp.MustCompile(`rel="next" class="button" href="\.\./\.\./notify/console/messages([^"]*)"`)
	link := regexp.MustCompile(`messages/([0-9a-f-]{36})"`)
	for query := ""; ; pages++ {
		body := get(g, "/notify/console/messages"+query, browser).Body
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

// TestConsoleMessagesWithoutQueue checks that the history is listed, and that the page says what a
// queue would add.
func TestConsoleMessagesWithoutQueue(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConsole(gatewaytest.Key("ops", s.NotifyURL("/refuse")), gatewaytest.Key("fine", s.NotifyURL("/fine"))))
	for _, key := range []string{"ops", "fine"} {
		g.PostForm("/notify/"+key+"?type=warning", "body=confidential")
	}
	body := get(g, "/notify/console/messages?type=warning", browser).Body
	if got := listed(body); !slices.Equal(got, []string{"delivered fine", "failed ops"}) ||
		!strings.Contains(body, "<code>queue</code>") {
		t.Errorf("%q: %s", got, body)
	}
	body = get(g, "/notify/console/keys", browser).Body
	if !strings.Contains(body, `<span class="dot is-failing">`) || !strings.Contains(body, `<span class="dot is-fine">`) ||
		strings.Contains(body, "console/queue") {
		t.Errorf("the keys: %s", body)
	}
	if r := get(g, "/notify/console/messages/"+uuid.NewString(), browser); r.Status != http.StatusNotFound {
		t.Errorf("a message: %d", r.Status)
	}
}

// TestConsoleMessage checks the page of a message: each destination with its attempts,
// and buttons that try it again and drop it.
func TestConsoleMessage(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	g := gatewaytest.New(t, queued(openConsole(gatewaytest.Key("ops", p.NotifyURL()))))
	id := g.Do(jsonPost("/notify/ops", `{"body":"confidential","type":"failure"}`)).JSON(t).ID
	address := "/notify/console/messages/" + id
	// The attempt is known before it is settled.
	body := ""
	gatewaytest.Eventually(t, func() bool {
		body = get(g, address, browser).Body
		return strings.Contains(body, "1 attempt") && strings.Contains(body, "Next attempt")
	})
	for _, want := range []string{
		"Message to <span class=\"key\">ops</span>", "is-queued", "answered 503", "Next attempt",
		`<ol class="tries"`, id, "1 attempt", "type-failure",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	if strings.Contains(body, "confidential") {
		t.Error("the page has the text of the message")
	}
	for _, other := range []string{uuid.NewString(), "x", strings.ToUpper(id)} {
		if r := submit(g, "/notify/console/messages/"+other+"?drop", nil); r.Status != http.StatusNotFound {
			t.Errorf("%s: %d", other, r.Status)
		}
	}
	if r := submit(g, address, nil); r.Status != http.StatusBadRequest {
		t.Errorf("a form without a button: %d", r.Status)
	}
	if r := submit(g, address+"?retry", nil); r.Status != http.StatusSeeOther ||
		r.Header.Get("Location") != "../../../notify/console/messages/"+id {
		t.Errorf("trying it again: %d %v", r.Status, r.Header)
	}
	gatewaytest.Eventually(t, func() bool {
		return p.Count() == 2 && strings.Contains(get(g, address, browser).Body, "<strong>×2</strong>")
	})
	gatewaytest.Eventually(t, func() bool {
		return submit(g, address+"?drop", nil).Status == http.StatusSeeOther &&
			strings.Contains(get(g, address, browser).Body, `<strong class="state is-cancelled">`)
	})
}

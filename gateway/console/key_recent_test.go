package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestKeyPageRecent checks that the page of a key shows its last messages and
// refusals with their reasons, and neither texts of messages nor other keys.
func TestKeyPageRecent(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusTeapot)
	g := gatewaytest.New(t, openConfigs(gatewaytest.Key("ops", "json://user:s3cret-t0ken-x@"+strings.TrimPrefix(p.URL, "http://")+"/"),
		gatewaytest.Key("other", p.NotifyURL())))
	page := func(key string) string {
		t.Helper()
		r := get(g, "/notify/console/keys/"+key+"?tab=messages", "text/html")
		if r.Status != http.StatusOK || strings.Contains(r.Body, "s3cret") || strings.Contains(r.Body, "confidential") {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		return r.Body
	}
	if body := page("ops"); !strings.Contains(body, "No message has come in") || strings.Contains(body, `id="queue"`) {
		t.Errorf("the page of an unused key: %s", body)
	}
	g.PostForm("/notify/ops", "body=confidential")
	g.PostForm("/notify/ops", "title=confidential")
	g.PostForm("/notify/ops?tag=confidential", "body=confidential&tag=absent")
	body := page("ops")
	for _, want := range []string{"Failed: JSON 127.0.0.1:", "answered 418", "Refused request", ">400: ", ">424: "} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	if body := page("other"); !strings.Contains(body, "No message has come in") {
		t.Errorf("the page of another key: %s", body)
	}
}

// TestKeyPageQueue checks that managers see the waiting and dead deliveries of a key and can retry
// and drop them, and that nobody else can.
func TestKeyPageQueue(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusNotFound)
	g := gatewaytest.New(t, queued(openConfigs(gatewaytest.Key("ops", p.NotifyURL()), gatewaytest.Key("other", p.NotifyURL()))))
	page := func(key string) string { return get(g, "/notify/console/keys/"+key+"?tab=messages", "text/html").Body }
	if body := page("ops"); !strings.Contains(body, "No message of this key waits") {
		t.Errorf("the queue is empty, but the page is %s", body)
	}
	send := func() string {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/notify/ops", strings.NewReader("body=confidential"))
		r.Header = http.Header{"Content-Type": {gatewaytest.TypeForm}, "Prefer": {"respond-async"}, "Accept": {gatewaytest.TypeJSON}}
		return g.Do(r).JSON(t).ID
	}
	dead := func(id string) bool {
		e, err := g.Rooms().Outbox.Queue.Get(t.Context(), uuid.MustParse(id))
		if err != nil || len(e.Jobs) != 1 || e.Jobs[0].Status != queue.Dead {
			return false
		}
		// The outcome is in the store a moment before the job can be dropped.
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		return err == nil && s.Dead == 1
	}
	id := send()
	gatewaytest.Eventually(t, func() bool { return dead(id) })
	body := page("ops")
	if !strings.Contains(body, ">Given up</strong>") || !strings.Contains(body, id) || !strings.Contains(body, "404") ||
		strings.Contains(body, "confidential") {
		t.Errorf("the page does not show what was given up: %s", body)
	}
	if strings.Contains(page("other"), id) {
		t.Error("the page of another key shows it")
	}
	form := url.Values{"id": {id}}
	for _, target := range []string{"/notify/console/keys/other?drop", "/notify/console/keys/other?retry"} {
		if r := submit(g, target, form); r.Status != http.StatusNotFound || !dead(id) {
			t.Errorf("%s changes a message of another key: %d %s", target, r.Status, r.Body)
		}
	}
	for _, id := range []string{"", "x", uuid.NewString()} {
		if r := submit(g, "/notify/console/keys/ops?drop", url.Values{"id": {id}}); r.Status != http.StatusNotFound {
			t.Errorf("the ID %q: %d", id, r.Status)
		}
	}
	cross := httptest.NewRequest(http.MethodPost, "/notify/console/keys/ops?drop", strings.NewReader(form.Encode()))
	cross.Header = http.Header{"Content-Type": {gatewaytest.TypeForm}, "Sec-Fetch-Site": {"cross-site"}}
	if r := g.Do(cross); r.Status != http.StatusForbidden || !dead(id) {
		t.Errorf("a page of another site gets %d", r.Status)
	}
	g.Resolved.Managers.Open = false
	if r := submit(g, "/notify/console/keys/ops?drop", form); r.Status != http.StatusForbidden || !dead(id) {
		t.Errorf("an anonymous client gets %d", r.Status)
	}
	g.Resolved.Managers.Open = true

	p.Answer(http.StatusOK)
	if r := submit(g, "/notify/console/keys/ops?retry", form); r.Status != http.StatusSeeOther ||
		r.Header.Get("Location") != "../../../notify/console/keys/ops?tab=messages#queue" {
		t.Errorf("trying again gets %d, Location %q, %s", r.Status, r.Header.Get("Location"), r.Body)
	}
	gatewaytest.Eventually(t, func() bool { return p.Count() == 2 && !strings.Contains(page("ops"), ">Waiting</strong>") })
	p.Answer(http.StatusNotFound)
	id = send()
	gatewaytest.Eventually(t, func() bool { return dead(id) })
	r := httptest.NewRequest(http.MethodPost, "/notify/console/keys/ops?drop", strings.NewReader(url.Values{"id": {id}}.Encode()))
	r.Header = http.Header{"Content-Type": {gatewaytest.TypeForm}, "Accept": {gatewaytest.TypeJSON}}
	if got := g.Do(r); got.Status != http.StatusOK || got.Body != `{"deliveries":1}`+"\n" {
		t.Errorf("dropping gets %d %s", got.Status, got.Body)
	}
	if body := page("ops"); !strings.Contains(body, "No message of this key waits") {
		t.Errorf("after dropping: %s", body)
	}
}

// TestKeyPageOfOtherSite checks that the page of a key shows only the messages that
// came to its own site.
func TestKeyPageOfOtherSite(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConfigs(gatewaytest.Key("ops", s.NotifyURL("/a"))))
	g.PostForm("/notify/ops", "body=x")
	body := get(g, "/notify/console/keys/ops?tab=messages", "text/html").Body
	if !strings.Contains(body, `is-delivered">Delivered</span>`) {
		t.Errorf("the page lacks its own message: %s", body)
	}
	g.SetSiteID("other")
	for _, address := range []string{"/notify/console/keys/ops", "/notify/console/keys/ops?tab=messages", "/notify/console/keys"} {
		if body := get(g, address, "text/html").Body; strings.Contains(body, "elivered</span>") || strings.Contains(body, " is-fine\"") ||
			strings.Contains(body, "<time") {
			t.Errorf("%s shows a message of another site: %s", address, body)
		}
	}
}

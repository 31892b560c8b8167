package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestKeyPageRecent checks that the page of a key shows its last messages and
// refusals with their reasons, and neither texts of messages nor other keys.
func TestKeyPageRecent(t *testing.T) {
	replaceShared(t)
	p := newPager(t, http.StatusTeapot)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "key ops {\nurl json://user:s3cret-t0ken-x@"+strings.TrimPrefix(p.URL, "http://")+"/\n}\nkey other {\nurl "+p.NotifyURL()+"\n}")
	page := func(key string) string {
		t.Helper()
		r := get(t, h, "/cfg/"+key, "text/html")
		if r.status != http.StatusOK || strings.Contains(r.body, "s3cret") || strings.Contains(r.body, "confidential") {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r.body
	}
	if body := page("ops"); !strings.Contains(body, "No message has come in") || strings.Contains(body, `id="queue"`) {
		t.Errorf("the page of an unused key: %s", body)
	}
	post(t, h, "/notify/ops", typeForm, "body=confidential")
	post(t, h, "/notify/ops", typeForm, "title=confidential")
	post(t, h, "/notify/ops?tag=confidential", typeForm, "body=confidential&tag=absent")
	body := page("ops")
	for _, want := range []string{">Failed</strong>", "answered 418", ">Refused</strong>", ">400: ", ">424: "} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	if body := page("other"); !strings.Contains(body, "No message has come in") {
		t.Errorf("the page of another key: %s", body)
	}
}

// TestKeyPageQueue checks that those who manage see what waits and was given up
// for a key, and can try it again and drop it, and that nobody else can.
func TestKeyPageQueue(t *testing.T) {
	p := newPager(t, http.StatusNotFound)
	h := newQueueGateway(t, t.TempDir(), open+"configs {\nmanage open\n}", "key ops {\nurl "+p.NotifyURL()+"\n}\nkey other {\nurl "+p.NotifyURL()+"\n}")
	page := func(key string) string { return get(t, h, "/cfg/"+key, "text/html").body }
	if body := page("ops"); !strings.Contains(body, "No message of this key waits") {
		t.Errorf("the queue is empty, but the page is %s", body)
	}
	send := func() string {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/notify/ops", strings.NewReader("body=confidential"))
		r.Header = http.Header{"Content-Type": {typeForm}, "Prefer": {"respond-async"}, "Accept": {typeJSON}}
		return do(t, h, r).queued(t).ID
	}
	dead := func(id string) bool {
		e, err := h.app.gateway.Rooms.Outbox.Queue.Get(t.Context(), uuid.MustParse(id))
		if err != nil || len(e.Jobs) != 1 || e.Jobs[0].Status != queue.Dead {
			return false
		}
		// The outcome is in the store a moment before the job can be dropped.
		s, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context())
		return err == nil && s.Dead == 1
	}
	id := send()
	caddyhttptest.Eventually(t, func() bool { return dead(id) })
	body := page("ops")
	if !strings.Contains(body, ">Given up</strong>") || !strings.Contains(body, id) || !strings.Contains(body, "404") || strings.Contains(body, "confidential") {
		t.Errorf("the page does not show what was given up: %s", body)
	}
	if strings.Contains(page("other"), id) {
		t.Error("the page of another key shows it")
	}
	form := url.Values{"id": {id}}
	for _, target := range []string{"/cfg/other?drop", "/cfg/other?retry"} {
		if r := submit(t, h, target, form); r.status != http.StatusNotFound || !dead(id) {
			t.Errorf("%s changes a message of another key: %d %s", target, r.status, r.body)
		}
	}
	for _, id := range []string{"", "x", uuid.NewString()} {
		if r := submit(t, h, "/cfg/ops?drop", url.Values{"id": {id}}); r.status != http.StatusNotFound {
			t.Errorf("the ID %q: %d", id, r.status)
		}
	}
	cross := httptest.NewRequest(http.MethodPost, "/cfg/ops?drop", strings.NewReader(form.Encode()))
	cross.Header = http.Header{"Content-Type": {typeForm}, "Sec-Fetch-Site": {"cross-site"}}
	if r := do(t, h, cross); r.status != http.StatusForbidden || !dead(id) {
		t.Errorf("a page of another site gets %d", r.status)
	}
	h.api.Resolved.Managers.Open = false
	if r := submit(t, h, "/cfg/ops?drop", form); r.status != http.StatusForbidden || !dead(id) {
		t.Errorf("an anonymous client gets %d", r.status)
	}
	h.api.Resolved.Managers.Open = true

	p.answer(http.StatusOK)
	if r := submit(t, h, "/cfg/ops?retry", form); r.status != http.StatusSeeOther || r.header.Get("Location") != "../notify/console/keys/ops#queue" {
		t.Errorf("trying again gets %d, Location %q, %s", r.status, r.header.Get("Location"), r.body)
	}
	caddyhttptest.Eventually(t, func() bool { return p.count() == 2 && !strings.Contains(page("ops"), ">Waiting</strong>") })
	p.answer(http.StatusNotFound)
	id = send()
	caddyhttptest.Eventually(t, func() bool { return dead(id) })
	r := httptest.NewRequest(http.MethodPost, "/cfg/ops?drop", strings.NewReader(url.Values{"id": {id}}.Encode()))
	r.Header = http.Header{"Content-Type": {typeForm}, "Accept": {typeJSON}}
	if got := do(t, h, r); got.status != http.StatusOK || got.body != `{"deliveries":1}`+"\n" {
		t.Errorf("dropping gets %d %s", got.status, got.body)
	}
	if body := page("ops"); !strings.Contains(body, "No message of this key waits") {
		t.Errorf("after dropping: %s", body)
	}
}

// TestKeyPageOfOtherSite checks that the page of a key shows only the messages that
// came to its own site.
func TestKeyPageOfOtherSite(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "key ops {\nurl "+s.NotifyURL("/a")+"\n}")
	post(t, h, "/notify/ops", typeForm, "body=x")
	body := get(t, h, "/cfg/ops", "text/html").body
	if !strings.Contains(body, ">Delivered</strong>") {
		t.Errorf("the page lacks its own message: %s", body)
	}
	h.app.gateway.Engine.SiteIndex = func() *site.Index {
		return &site.Index{IDs: map[*site.Site]string{h.api.Resolved: "other"}, ByID: map[string][]*site.Site{"other": {h.api.Resolved}}}
	}
	for _, address := range []string{"/cfg/ops", "/cfg"} {
		if body := get(t, h, address, "text/html").body; strings.Contains(body, "elivered</strong>") || strings.Contains(body, "state is-fine\"") || strings.Contains(body, "<time") {
			t.Errorf("%s shows a message of another site: %s", address, body)
		}
	}
}

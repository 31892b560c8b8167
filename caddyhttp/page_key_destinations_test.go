package caddyhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// submit posts a form as a browser does.
func submit(t *testing.T, h *Handler, target string, form url.Values) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("Accept", browser)
	return do(t, h, r)
}

// TestDestinationTests tests the destinations of a key of the Caddyfile and of a
// saved one, for a browser without a script and for one with it.
func TestDestinationTests(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "key fixed {\nurl "+s.NotifyURL("/a-token-of-the-path")+"\nurl "+s.NotifyURL("/refuse")+" b\n}")
	if r := post(t, h, "/add/saved", typeForm, "urls="+s.NotifyURL("/a-token-of-the-path")+","+s.NotifyURL("/refuse")); r.status != http.StatusOK {
		t.Fatal(r.body)
	}
	for _, key := range []string{"fixed", "saved"} {
		page := get(t, h, "/cfg/"+key, browser)
		shown := "/" + redact.Mask // the path, which may be a token
		if !strings.Contains(page.body, `action="../notify/console/keys/`+key+`?test#destination-1"`) || !strings.Contains(page.body, shown) {
			t.Errorf("%s: the page has no test: %s", key, page.body)
		}
		got := submit(t, h, "/cfg/"+key+"?test", url.Values{"destination": {"1"}})
		if got.status != http.StatusOK || !strings.Contains(got.body, `<li id="destination-1" class="row is-fine delivered">`) || !strings.Contains(got.body, "Delivered in ") || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", key, got.status, got.body)
		}
		if a := s.One(t); a.Path != "/a-token-of-the-path" || a.Title != "Test from Caddy" || a.Type != string(notifier.Info) || !strings.Contains(a.Message, "of the key "+key+" works") {
			t.Errorf("%s: the message is %+v", key, a)
		}
		got = submit(t, h, "/cfg/"+key+"?test", url.Values{"destination": {"2"}})
		if !strings.Contains(got.body, `<li id="destination-2" class="row is-failing failed">`) || !strings.Contains(got.body, "answered 500") {
			t.Errorf("%s: %s", key, got.body)
		}
		s.Take()
		if got := post(t, h, "/cfg/"+key+"?test", typeForm, "destination=2"); got.status != http.StatusFailedDependency || len(got.json(t).Results) != 1 {
			t.Errorf("%s: %d %s", key, got.status, got.body)
		}
		if s.Paths() != "refuse" {
			t.Errorf("%s: the test went elsewhere", key)
		}
		for form, status := range map[string]int{
			"destination=3": 400, "destination=0": 400, "": 400, "destination=1&shown=json://other": 409,
			"destination=1&x=" + strings.Repeat("x", console.MaxPageForm): 413,
		} {
			if got := post(t, h, "/cfg/"+key+"?test", typeForm, form); got.status != status {
				t.Errorf("%s: %.40s: %d %s, want %d", key, form, got.status, got.body, status)
			}
		}
	}
	if got := post(t, h, "/cfg/none?test", typeForm, "destination=1"); got.status != http.StatusNotFound {
		t.Errorf("a key that does not exist: %d %s", got.status, got.body)
	}
	if len(s.Take()) > 0 {
		t.Error("a mistake was sent")
	}
}

// TestDestinationTestsAreGuarded checks that only those who may manage can
// test, and not from a page of another site.
func TestDestinationTestsAreGuarded(t *testing.T) {
	s := gatewaytest.NewStation(t)
	key := "key fixed {\nurl " + s.NotifyURL("/a") + "\n}\n"
	form := url.Values{"destination": {"1"}}
	for _, manage := range []string{"", "manage"} {
		h, _ := newConfigGateway(t, t.TempDir(), manage, key)
		if got := submit(t, h, "/cfg/fixed?test", form); got.status != http.StatusForbidden {
			t.Errorf("%q: an anonymous client gets %d", manage, got.status)
		}
	}
	h, _ := newConfigGateway(t, t.TempDir(), "manage", key)
	request := func(header string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/cfg/fixed?test", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", typeForm)
		r.Header.Set("Sec-Fetch-Site", header)
		values := caddy.NewReplacer()
		values.Set("http.auth.user.id", "ann")
		return r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, values))
	}
	if got := do(t, h, request("cross-site")); got.status != http.StatusForbidden || len(s.Take()) > 0 {
		t.Errorf("a page of another site gets %d", got.status)
	}
	if got := do(t, h, request("same-origin")); got.status != http.StatusOK || s.Paths() != "a" {
		t.Errorf("a user gets %d %s", got.status, got.body)
	}
	off, _ := newConfigGateway(t, t.TempDir(), "manage open", "page off\n"+key)
	if got := submit(t, off, "/cfg/fixed?test", form); got.status != http.StatusForbidden || len(s.Take()) > 0 {
		t.Errorf("with page off: %d", got.status)
	}
}

// TestDestinationTestWithQueue checks that a test makes one attempt at once,
// without the queue.
func TestDestinationTestWithQueue(t *testing.T) {
	p := newPager(t, http.StatusServiceUnavailable)
	h := newQueueGateway(t, t.TempDir(), open+"configs {\nmanage open\n}", "key ops {\nurl "+p.NotifyURL()+"\n}")
	got := submit(t, h, "/cfg/ops?test", url.Values{"destination": {"1"}})
	if got.status != http.StatusOK || !strings.Contains(got.body, "answered 503") || p.count() != 1 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if jobs, err := h.app.gateway.Rooms.Outbox.Queue.List(t.Context(), queue.JobID{}, 1, queue.Queued); err != nil || len(jobs) > 0 {
		t.Errorf("the queue has %+v, %v", jobs, err)
	}
}

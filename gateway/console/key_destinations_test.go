package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// TestDestinationTests tests the destinations of a key of the Caddyfile and of a
// saved one, for a browser without a script and for one with it.
func TestDestinationTests(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConfigs(gatewaytest.Key("fixed", s.NotifyURL("/a-token-of-the-path"), s.NotifyURL("/refuse")+" b")))
	if r := g.PostForm("/add/saved", "urls="+s.NotifyURL("/a-token-of-the-path")+","+s.NotifyURL("/refuse")); r.Status != http.StatusOK {
		t.Fatal(r.Body)
	}
	for _, key := range []string{"fixed", "saved"} {
		page := get(g, "/notify/console/keys/"+key, browser)
		shown := "/" + redact.Mask // the path, which may be a token
		if !strings.Contains(page.Body, `action="../../../notify/console/keys/`+key+`?test#destination-1"`) ||
			!strings.Contains(page.Body, shown) {
			t.Errorf("%s: the page has no test: %s", key, page.Body)
		}
		got := submit(g, "/cfg/"+key+"?test", url.Values{"destination": {"1"}})
		if got.Status != http.StatusOK || !strings.Contains(got.Body, `<li id="destination-1" class="item is-fine delivered">`) ||
			!strings.Contains(got.Body, "Delivered in ") || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", key, got.Status, got.Body)
		}
		if a := s.One(t); a.Path != "/a-token-of-the-path" || a.Title != "Test from Caddy" || a.Type != string(notifier.Info) ||
			!strings.Contains(a.Message, "of the key "+key+" works") {
			t.Errorf("%s: the message is %+v", key, a)
		}
		got = submit(g, "/cfg/"+key+"?test", url.Values{"destination": {"2"}})
		if !strings.Contains(got.Body, `<li id="destination-2" class="item is-failing failed">`) || !strings.Contains(got.Body, "answered 500") {
			t.Errorf("%s: %s", key, got.Body)
		}
		s.Take()
		if got := g.PostForm("/cfg/"+key+"?test", "destination=2"); got.Status != http.StatusFailedDependency || len(got.JSON(t).Results) != 1 {
			t.Errorf("%s: %d %s", key, got.Status, got.Body)
		}
		if s.Paths() != "refuse" {
			t.Errorf("%s: the test went elsewhere", key)
		}
		for form, status := range map[string]int{
			"destination=3": 400, "destination=0": 400, "": 400, "destination=1&shown=json://other": 409,
			"destination=1&x=" + strings.Repeat("x", console.MaxPageForm): 413,
		} {
			if got := g.PostForm("/cfg/"+key+"?test", form); got.Status != status {
				t.Errorf("%s: %.40s: %d %s, want %d", key, form, got.Status, got.Body, status)
			}
		}
	}
	if got := g.PostForm("/cfg/none?test", "destination=1"); got.Status != http.StatusNotFound {
		t.Errorf("a key that does not exist: %d %s", got.Status, got.Body)
	}
	if len(s.Take()) > 0 {
		t.Error("a mistake was sent")
	}
}

// TestDestinationTestsAreGuarded checks that only those who may manage can
// test, and not from a page of another site.
func TestDestinationTestsAreGuarded(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	key := gatewaytest.Key("fixed", s.NotifyURL("/a"))
	form := url.Values{"destination": {"1"}}
	for _, managers := range []*site.Managers{nil, {}} {
		o := openConfigs(key)
		o.Site.Managers, o.Saved.Manage = managers, managers != nil
		g := gatewaytest.New(t, o)
		if got := submit(g, "/cfg/fixed?test", form); got.Status != http.StatusForbidden {
			t.Errorf("%v: an anonymous client gets %d", managers, got.Status)
		}
	}
	o := openConfigs(key)
	o.Site.Managers = &site.Managers{}
	g := gatewaytest.New(t, o)
	request := func(header string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/cfg/fixed?test", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		r.Header.Set("Sec-Fetch-Site", header)
		return gatewaytest.As(r, "ann")
	}
	if got := g.Do(request("cross-site")); got.Status != http.StatusForbidden || len(s.Take()) > 0 {
		t.Errorf("a page of another site gets %d", got.Status)
	}
	if got := g.Do(request("same-origin")); got.Status != http.StatusOK || s.Paths() != "a" {
		t.Errorf("a user gets %d %s", got.Status, got.Body)
	}
	o = openConfigs(key)
	o.Global.Page = new(false)
	off := gatewaytest.New(t, o)
	if got := submit(off, "/cfg/fixed?test", form); got.Status != http.StatusForbidden || len(s.Take()) > 0 {
		t.Errorf("with page off: %d", got.Status)
	}
}

// TestDestinationTestWithQueue checks that a test makes one attempt at once,
// without the queue.
func TestDestinationTestWithQueue(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	g := gatewaytest.New(t, queued(openConfigs(gatewaytest.Key("ops", p.NotifyURL()))))
	got := submit(g, "/cfg/ops?test", url.Values{"destination": {"1"}})
	if got.Status != http.StatusOK || !strings.Contains(got.Body, "answered 503") || p.Count() != 1 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if jobs, err := g.Rooms().Outbox.Queue.List(t.Context(), queue.JobID{}, 1, queue.Queued); err != nil || len(jobs) > 0 {
		t.Errorf("the queue has %+v, %v", jobs, err)
	}
}

// TestConsoleTestAll checks that all destinations of a key are tested, each with its
// result, also for a program.
func TestConsoleTestAll(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, openConsole(gatewaytest.Key("ops", s.NotifyURL("/a")+" 1:x", s.NotifyURL("/refuse")+" 2:x", s.NotifyURL("/b"))))
	form := url.Values{"destination": {"all"}}
	got := submit(g, "/notify/console/keys/ops?test", form)
	arrived := s.Paths()
	for _, want := range []string{"a", "refuse", "b"} {
		if strings.Count(arrived, want) == 0 {
			t.Errorf("%s got no test: %s", want, arrived)
		}
	}
	if got.Status != http.StatusOK || strings.Count(got.Body, `role="status">Delivered in `) != 2 ||
		strings.Count(got.Body, `role="status">Failed: the service answered 500`) != 1 ||
		!strings.Contains(got.Body, `<li id="destination-2" class="item is-failing failed">`) {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := g.PostForm("/notify/console/keys/ops?test", form.Encode()); len(got.JSON(t).Results) != 3 {
		t.Errorf("a program gets %s", got.Body)
	}
}

// TestTestAfterRepair checks that a destination is not red any more, and gets its waiting messages,
// when a test has reached it. It stayed red until the next message.
func TestTestAfterRepair(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusUnauthorized)
	g := gatewaytest.New(t, queued(openConsole(gatewaytest.Key("ops", p.NotifyURL()))))
	g.PostForm("/notify/ops", "body=x")
	gatewaytest.Eventually(t, func() bool {
		sentence, _ := situation(t, get(g, "/notify/console", browser).Body)
		return sentence == "failing: 1 destination failing"
	})
	test := func() string {
		return submit(g, "/notify/console/keys/ops?test", url.Values{"destination": {"1"}}).Body
	}
	if body := test(); !strings.Contains(body, "Failed: ") {
		t.Errorf("a test that fails: %s", body)
	}
	p.Answer(http.StatusOK)
	if body := test(); !strings.Contains(body, "Delivered in ") || !strings.Contains(body, `class="item is-fine delivered"`) {
		t.Errorf("a test that arrives: %s", body)
	}
	if sentence, _ := situation(t, get(g, "/notify/console", browser).Body); !strings.HasPrefix(sentence, "fine: All quiet") {
		t.Errorf("after the test: %s", sentence)
	}
}

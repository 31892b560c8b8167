package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestConsoleQueue checks what the page of the queue shows, and that its buttons change
// only what they name.
func TestConsoleQueue(t *testing.T) {
	t.Parallel()
	bad, good := gatewaytest.NewPager(t, http.StatusServiceUnavailable), gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	g := gatewaytest.New(t, queued(openConsole(gatewaytest.Key("ops", bad.NotifyURL(), good.NotifyURL()),
		gatewaytest.Key("idle", "json://127.0.0.1:1/idle"))))
	page := func() string { return get(g, "/notify/console/queue", browser).Body }
	if body := page(); !strings.Contains(body, "Nothing waits, nothing fails") {
		t.Errorf("an empty queue: %s", body)
	}
	for range 3 {
		g.Do(jsonPost("/notify/ops", `{"body":"confidential"}`))
	}
	gatewaytest.Eventually(t, func() bool { return strings.Count(page(), "· 3 messages wait") == 2 })
	body := page()
	for _, want := range []string{"answered 503", ">ops</a>", "Try all now", "will never arrive there"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	if strings.Contains(body, "idle") || strings.Contains(body, "confidential") {
		t.Errorf("the page shows what is fine, or a text: %s", body)
	}
	keys := get(g, "/notify/console/keys", browser).Body
	if strings.Index(keys, ">ops</a>") > strings.Index(keys, ">idle</a>") ||
		!regexp.MustCompile(`JSON 127\.0\.0\.1:\d+: the service answered 503`).MatchString(keys) {
		t.Errorf("the worst key is not the first, or has no cause: %s", keys)
	}
	id := console.EncodeDestination(g.Rooms().Outbox.Queue.Hash(g.Resolved.Keys["ops"].Targets[0].Hash()))
	for _, wrong := range []url.Values{{}, {"destination": {"x"}}, {"destination": {console.EncodeDestination(queue.Hash{})}}} {
		if r := submit(g, "/notify/console/queue?drop", wrong); r.Status != http.StatusNotFound {
			t.Errorf("dropping %v: %d", wrong, r.Status)
		}
		if r := submit(g, "/notify/console/keys/idle?drop", wrong); r.Status != http.StatusNotFound {
			t.Errorf("dropping %v of a key: %d", wrong, r.Status)
		}
	}
	if r := submit(g, "/notify/console/keys/idle?hurry", url.Values{"destination": {id}}); r.Status != http.StatusNotFound {
		t.Errorf("a destination of another key: %d", r.Status)
	}
	waits := func(n int) int {
		t.Helper()
		states, err := g.Rooms().Outbox.Queue.Destinations.Of(t.Context(), g.Rooms().Outbox.Queue.Hash(g.Resolved.Keys["ops"].Targets[n].Hash()))
		if err != nil || len(states) != 1 {
			t.Fatalf("%v %v", states, err)
		}
		return states[0].Waiting
	}
	all := func() int { // including those under way, which the health does not count
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Queued + s.Sending
	}
	gatewaytest.Eventually(t, func() bool { // some may be under way
		submit(g, "/notify/console/queue?drop", url.Values{"destination": {id}})
		return all() == 3 && waits(1) == 3
	})
	if body := page(); !strings.Contains(body, "Drop all 3 for good") {
		t.Errorf("the button for all: %s", body)
	}
	if n := bad.Count(); n > 6 {
		t.Errorf("%d attempts at what was dropped", n)
	}
	good.Answer(http.StatusOK)
	if r := submit(g, "/notify/console/queue?hurry", nil); r.Status != http.StatusSeeOther {
		t.Errorf("trying all: %d %s", r.Status, r.Body)
	}
	gatewaytest.Eventually(t, func() bool { return all() == 0 })
	good.Answer(http.StatusServiceUnavailable)
	for range 3 {
		g.Do(jsonPost("/notify/ops", `{"body":"x"}`))
	}
	gatewaytest.Eventually(t, func() bool { return waits(0) == 3 && waits(1) == 3 })
	gatewaytest.Eventually(t, func() bool {
		submit(g, "/notify/console/queue?drop", url.Values{"destination": {"all"}})
		return all() == 0
	})
	good.Answer(http.StatusNotFound) // the delivery is given up at once
	g.Do(jsonPost("/notify/ops", `{"body":"given up"}`))
	gatewaytest.Eventually(t, func() bool {
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		return err == nil && s.Dead > 0 && waits(0) == 1
	})
	good.Answer(http.StatusOK)
	r := submit(g, "/notify/console/queue?hurry", nil)
	if location := r.Header.Get("Location"); !strings.HasSuffix(location, "?dead=1&done=hurry&waiting=1") {
		t.Errorf("trying what waits and what was given up: %d %s", r.Status, location)
	}
	if r := get(g, "/notify/console/queue?dead=1&done=hurry&waiting=2", browser); !strings.Contains(r.Body,
		"2 that waited and 1 that were given up are being tried now.") {
		t.Error("the numbers are not shown")
	}
	gatewaytest.Eventually(t, func() bool {
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		return err == nil && s.Dead == 0
	})
	if r := get(g, "/notify/console/queue?done=%3Cscript%3E", browser); strings.Contains(r.Body, `class="card done"`) {
		t.Error("an unknown text is shown")
	}
}

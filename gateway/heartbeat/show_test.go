package heartbeat_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// newConsole starts a gateway with keys for all sites and a console for everybody.
func newConsole(t *testing.T, queue *outbox.Settings, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: keys},
		Site:   site.Options{Managers: gatewaytest.Everybody()},
		Queue:  queue,
	})
}

// TestWatchdogShown checks that the admin API and the console show since when the watchdog
// is not called and why, without its address, also after a restart, and when it was.
func TestWatchdogShown(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	p := gatewaytest.NewPager(t, http.StatusOK)
	ops := gatewaytest.Key("ops", p.NotifyURL())
	ops.Expects = []site.BeatOptions{expect("nightly", 24*time.Hour, 0)}
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		start := func() *gatewaytest.Gateway {
			return newConsole(t, &outbox.Settings{Path: dir, Watchdog: o.watchdog(t)}, ops)
		}
		state := func(g *gatewaytest.Gateway) *heartbeat.WatchdogJSON {
			t.Helper()
			w, err := g.Rooms().Beats.Watchdog(t.Context())
			if err != nil || w == nil {
				t.Fatalf("%v, %v", w, err)
			}
			return w
		}
		g := start()
		gatewaytest.Eventually(t, func() bool { return state(g).State == "ok" && !state(g).LastSuccess.IsZero() })
		o.answer(http.StatusTeapot)
		gatewaytest.Eventually(t, func() bool { return state(g).State == "failing" })
		since := state(g).FailingSince
		g.Stop()
		g = start()
		for _, path := range []string{"/notify/console", "/notify/console/keys/ops"} {
			body := g.Get(path).Body
			for _, want := range []string{"The watchdog is not told that the gateway works, <time", "the watchdog answers with status 418"} {
				if !strings.Contains(body, want) || strings.Contains(body, "s3cret") {
					t.Errorf("%s lacks %q, or has the address: %s", path, want, body)
				}
			}
		}
		if w := state(g); w.State != "failing" || !w.FailingSince.Equal(since) || w.LastSuccess.IsZero() || w.Interval != "1s" ||
			strings.Contains(w.LastError, "s3cret") {
			t.Errorf("after a restart: %+v", w)
		}
		o.answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool { return state(g).State == "ok" && state(g).FailingSince.IsZero() })
		if body := g.Get("/notify/console").Body; strings.Contains(body, "The watchdog is not told") {
			t.Error("the page shows a watchdog that works")
		}
	})
}

// TestBeatMakesTheKeyFail checks that a missed beat is a trouble of its key in the list of
// keys, with its time, until it comes, and that a beat which is due is in grace before.
func TestBeatMakesTheKeyFail(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		ops := gatewaytest.Key("ops", p.NotifyURL())
		ops.Expects = []site.BeatOptions{expect("nightly", time.Hour, 30*time.Minute)}
		g := newConsole(t, &outbox.Settings{Path: dir}, ops, gatewaytest.Key("other", p.NotifyURL()))
		time.Sleep(65 * time.Minute)
		beats, err := g.Rooms().Beats.AllBeats(t.Context())
		if err != nil || len(beats) != 1 || beats[0].State(time.Now()) != heartbeat.StateInGrace {
			t.Fatalf("%+v, %v", beats, err)
		}
		if body := g.Get("/notify/console/keys/ops").Body; !strings.Contains(body, "Due</span>") ||
			!strings.Contains(body, ", late <time") {
			t.Errorf("the page of the key: %s", body)
		}
		time.Sleep(30 * time.Minute)
		body := g.Get("/notify/console/keys?state=failing").Body
		if !strings.Contains(body, "The beat nightly is late, <time datetime=\"2000-01-01T01:30:0") || strings.Contains(body, "keys/other") {
			t.Errorf("the list of keys: %s", body)
		}
		g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/ops?beat=nightly", ""))
		time.Sleep(time.Minute)
		if body := g.Get("/notify/console").Body; strings.Contains(body, "is late") {
			t.Errorf("the list of keys: %s", body)
		}
	})
}

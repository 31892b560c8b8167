package gatewaytest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestGateway checks that a gateway without Caddy sends, keeps, saves and shows.
func TestGateway(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")+" 1:a", s.NotifyURL("/other")+" b")}},
		Site:   site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback()},
		Queue:  &outbox.Settings{},
		Saved:  &saved.Options{Manage: true},
	})
	if got := g.PostForm("/notify/ops", "body=b&tag=b"); got.Status != http.StatusOK || got.JSON(t).ID == "" || s.One(t).Path != "/other" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := g.PostForm("/add/mine", "urls="+s.NotifyURL("/mine")); got.Status != http.StatusOK {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := g.PostForm("/notify/mine", "body=b"); got.Status != http.StatusOK || s.One(t).Path != "/mine" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := g.Get("/notify/console"); got.Status != http.StatusOK {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := g.Get("/other"); got.Status != gatewaytest.NotServed {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

// TestRestart checks that waiting messages are sent by the next gateway on the same store, and that
// hours of a bubble take no time.
func TestRestart(t *testing.T) {
	t.Parallel()
	p, dir := gatewaytest.NewPager(t, http.StatusServiceUnavailable), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", p.NotifyURL())}},
			Queue:  &outbox.Settings{Path: dir},
		}
		g := gatewaytest.New(t, o)
		id := g.PostForm("/notify/ops", "body=b", "Prefer", "respond-async").JSON(t).ID
		time.Sleep(time.Second)
		g.Stop()
		p.Answer(http.StatusOK)
		g = gatewaytest.New(t, o)
		time.Sleep(3 * time.Hour)
		if state, r := g.State(id); state != "delivered" || r.Attempts < 2 {
			t.Errorf("%s after %d attempts", state, r.Attempts)
		}
		p.WantTold(t, "info: b", "info: b")
	})
}

// TestReload checks that a gateway can replace another one in a process while both have the
// same queue.
func TestReload(t *testing.T) {
	t.Parallel()
	p, dir := gatewaytest.NewPager(t, http.StatusServiceUnavailable), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", p.NotifyURL())}},
			Queue:  &outbox.Settings{Path: dir}, Process: gatewaytest.NewProcess(t),
		}
		before := gatewaytest.New(t, o)
		id := before.PostForm("/notify/ops", "body=b", "Prefer", "respond-async").JSON(t).ID
		next := gatewaytest.New(t, o)
		before.Stop()
		p.Answer(http.StatusOK)
		time.Sleep(3 * time.Hour)
		if state, r := next.State(id); state != "delivered" {
			t.Errorf("%s after %d attempts", state, r.Attempts)
		}
	})
}

package ruler_test

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// TestRulerSavedKey checks that rulers post to saved keys, that a group goes on when its key
// gets another name, and that it ends with the key.
func TestRulerSavedKey(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		core, logs := observer.New(zap.WarnLevel)
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback()},
			Saved: &saved.Options{Manage: true, Trusted: true, Refresh: time.Nanosecond}, Storage: storagetest.New(t.TempDir()),
			Queue: &outbox.Settings{Path: dir}, Log: zap.New(core),
		})
		if got := g.PostForm("/add/k", "urls="+p.NotifyURL()); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		fires(t, g, 2, "a")
		p.WantTold(t, disk)
		if got := g.Ask(http.MethodPost, "/move/k", map[string]string{"to": "other"}); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		const moved = "/notify/other/prometheus/api/v2/alerts"
		for range 5 {
			if got := g.Post(moved, gatewaytest.TypeJSON, "["+alert("a", 4*time.Minute)+"]"); got.Status != http.StatusOK {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
			wait(time.Minute)
		}
		p.WantTold(t, disk)
		if got := g.Ask(http.MethodPost, "/del/other", nil); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		wait(time.Hour)
		p.WantTold(t, disk)
		if n := logs.FilterMessageSnippet("alerts of a ruler are forgotten").Len(); n != 1 {
			t.Errorf("%d lines of the log say that the group is forgotten", n)
		}
		if any, err := g.Rooms().Rulers.Any(t.Context()); any || err != nil {
			t.Errorf("a group is left: %v %v", any, err)
		}
	})
}

// TestRulerGone checks that a group waits for its key over a reload that lacks it for a while,
// and is forgotten if the key stays away.
func TestRulerGone(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, key(p))
		fires(t, g, 2, "a")
		p.WantTold(t, disk)
		g.Stop()
		g = newGateway(t, dir)
		wait(6 * time.Minute)
		g.Stop()
		g = newGateway(t, dir, key(p))
		fires(t, g, 10, "a")
		p.WantTold(t, disk)
		g.Stop()
		g = newGateway(t, dir)
		wait(time.Hour)
		if any, err := g.Rooms().Rulers.Any(t.Context()); any || err != nil {
			t.Errorf("a group is left: %v %v", any, err)
		}
		p.WantTold(t, disk)
	})
}

// TestRulerOfOtherGateway checks that a gateway without a group notices the groups of another one
// with the same store, so that what is due is told in time if only one of them goes on.
func TestRulerOfOtherGateway(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, key(p))
		o := &outbox.Outbox{Queue: g.Rooms().Outbox.Queue, Shared: true, Log: zap.NewNop()}
		other := ruler.New(o, heartbeat.New(o), programs.RulerMessage)
		if other.Refresh(t.Context(), &g.Gateway.Conf); other.Punctual(&g.Gateway.Conf)() {
			t.Error("there is no group, but the other gateway looks each second")
		}
		post(t, g, alert("a", time.Hour))
		for range 20 {
			wait(time.Second)
			other.Refresh(t.Context(), &g.Gateway.Conf)
		}
		if !other.Punctual(&g.Gateway.Conf)() {
			t.Error("the other gateway does not look each second")
		}
	})
}

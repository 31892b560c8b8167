package outbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestQueueTemplate checks that a message that waits keeps its values for the URL's variables
// over a restart, and goes nowhere once the URL has changed.
func TestQueueTemplate(t *testing.T) {
	t.Parallel()
	p, dir, storage := gatewaytest.NewPager(t, http.StatusBadGateway), t.TempDir(), storagetest.New(t.TempDir())
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Options{
			Site:  site.Options{Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{Path: dir}, Storage: storage,
			Saved: &saved.Options{Manage: true, Refresh: time.Nanosecond},
		}
		g := gatewaytest.New(t, o)
		save := func(path string) {
			t.Helper()
			text := "template: {room: lobby}\nurls: ['" + strings.TrimSuffix(p.NotifyURL(), "/") + path + "']"
			if got := g.PostForm("/add/ops", url.Values{"format": {"yaml"}, "config": {text}}.Encode()); got.Status != 200 {
				t.Fatalf("status %d, %s", got.Status, got.Body)
			}
		}
		save("/first/${ROOM}")
		send := func(form string) string {
			t.Helper()
			a := g.PostForm("/notify/ops", form, "Prefer", "respond-async").JSON(t)
			gatewaytest.Eventually(t, func() bool { _, r := g.State(a.ID); return r.Attempts > 0 })
			return a.ID
		}
		kept, usual := send("body=x&template[room]=a/b"), send("body=y")
		g.Stop()
		p.Answer(http.StatusOK)
		n := p.Count()
		g = gatewaytest.New(t, o)
		gatewaytest.Eventually(t, func() bool {
			one, _ := g.State(kept)
			two, _ := g.State(usual)
			return one == "delivered" && two == "delivered"
		})
		var paths []string
		for _, a := range p.Got()[n:] {
			paths = append(paths, a.Path)
		}
		if got := strings.Join(paths, " "); got != "/first/a/b /first/lobby" && got != "/first/lobby /first/a/b" {
			t.Errorf("after the restart, messages arrived at %s", got)
		}

		p.Answer(http.StatusBadGateway)
		lost := send("body=z&template[room]=c")
		n = p.Count()
		save("/second/${room}")
		time.Sleep(11 * time.Minute)
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(lost); return s == "failed" })
		if p.Count() != n {
			t.Errorf("the URL that was changed got %d more messages", p.Count()-n)
		}
		if jobs, err := g.Rooms().Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Dead); err != nil || len(jobs) != 1 ||
			strings.Contains(jobs[0].Reason, "room") {
			t.Errorf("%+v, %v", jobs, err)
		}
	})
}

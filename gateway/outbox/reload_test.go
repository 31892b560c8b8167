package outbox_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A delivery whose destination is no longer in the configuration is given up
// after ten minutes, with that reason.
func TestQueueDestinationRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, other := gatewaytest.NewPager(t, http.StatusBadGateway), gatewaytest.NewPager(t, http.StatusOK)
	p.Answer(http.StatusBadGateway, "Retry-After", "1")
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Options{
			Global: site.Options{Timeout: time.Second, Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}},
			Queue:  &outbox.Settings{Path: dir}, Process: gatewaytest.NewProcess(t),
		}
		g := gatewaytest.New(t, o)
		got := g.PostForm("/notify/k", "body=hello", "Prefer", "respond-async")
		id := got.JSON(t).ID
		gatewaytest.Eventually(t, func() bool { _, r := g.State(id); return r.Attempts > 0 })
		o.Global = site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", other.NotifyURL())}}
		next := gatewaytest.New(t, o)
		g.Stop()
		time.Sleep(9 * time.Minute) // a gateway that is reloaded next may know it
		if s, _ := next.State(id); s != "queued" {
			t.Errorf("the message is %s at once", s)
		}
		time.Sleep(2 * time.Minute)
		gatewaytest.Eventually(t, func() bool { s, _ := next.State(id); return s == "failed" })
		if _, r := next.State(id); other.Count() != 0 || r.Error == nil {
			t.Errorf("%+v; another destination got %d", r, other.Count())
		}
		gatewaytest.Eventually(t, func() bool {
			jobs, err := next.Rooms().Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Dead)
			return err == nil && len(jobs) == 1 && strings.Contains(jobs[0].Reason, "the key k of the configuration no longer has this destination")
		})
	})
}

// Messages to URLs of clients are delivered under the egress rules at the time
// of the delivery.
func TestQueueEgressRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Options{
			Site:  site.Options{Egress: gatewaytest.Loopback()},
			Queue: &outbox.Settings{Path: dir}, Process: gatewaytest.NewProcess(t),
		}
		g := gatewaytest.New(t, o)
		got := g.PostForm("/notify", "body=hello&urls="+p.NotifyURL())
		a := got.JSON(t)
		if got.Status != 200 || a.Results[0].Status != "queued" {
			t.Fatalf("status %d, %s", got.Status, got.Body)
		}
		n := p.Count()
		o.Site = site.Options{} // egress does not allow loopback
		next := gatewaytest.New(t, o)
		g.Stop()
		gatewaytest.Eventually(t, func() bool { s, _ := next.State(a.ID); return s == "failed" })
		if _, r := next.State(a.ID); p.Count() != n || r.Error == nil || !strings.Contains(*r.Error, "loopback") {
			t.Errorf("%+v; the destination got %d more", r, p.Count()-n)
		}
	})
}

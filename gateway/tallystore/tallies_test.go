package tallystore_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// options returns the options of a gateway with the key k, whose queue is in a folder.
func options(dir string, p *gatewaytest.Pager) gatewaytest.Options {
	return gatewaytest.Options{
		Site:  site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}, Managers: gatewaytest.Everybody()},
		Queue: &outbox.Settings{Path: dir, Secret: "a secret of the tests"},
	}
}

// count returns the sums of the parts of the bar of the key k.
func count(t *testing.T, g *gatewaytest.Gateway) (sum tally.Counts, parts int) {
	t.Helper()
	for _, n := range g.Rooms().Tallies.Sum(t.Context(),
		time.Now())(tally.OfKey(site.KeyID{Site: g.App.Conf.SiteID(g.Resolved), Key: "k"})) {
		if n != (tally.Counts{}) {
			parts++
		}
		sum.Add(n)
	}
	return sum, parts
}

// records returns how many records of tallies the queue has.
func records(t *testing.T, g *gatewaytest.Gateway) (n int) {
	t.Helper()
	q := g.Rooms().Outbox.Queue
	if err := outbox.EachOfGroup(t.Context(), q, q.Hash("tallies"), func(queue.NamedRecord) bool {
		n++
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTallies checks that a restart keeps what was stored, that an idle gateway writes nothing, and
// that counts older than 24 hours are removed.
func TestTallies(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, p))
		time.Sleep(2 * time.Minute)
		if n := records(t, g); n != 0 {
			t.Errorf("an idle gateway has %d records", n)
		}
		send := func(g *gatewaytest.Gateway, want int) {
			t.Helper()
			if got := g.PostForm("/notify/k", "body=x"); got.Status != want {
				t.Fatalf("%d: %s", got.Status, got.Body)
			}
		}
		send(g, http.StatusOK)
		send(g, http.StatusOK)
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n := records(t, g); n != 1 {
			t.Errorf("after 35 seconds there are %d records", n)
		}
		time.Sleep(40 * time.Minute)
		p.Answer(http.StatusNotFound)
		send(g, http.StatusFailedDependency)
		if got, parts := count(t, g); got != (tally.Counts{Delivered: 2, Failed: 1}) || parts != 2 {
			t.Errorf("the first gateway has counted %+v in %d parts", got, parts)
		}
		g.Stop()
		g = gatewaytest.New(t, options(dir, p))
		p.Answer(http.StatusOK)
		send(g, http.StatusOK)
		if got, parts := count(t, g); got != (tally.Counts{Delivered: 3, Failed: 1}) || parts != 2 {
			t.Errorf("after a restart, there are %+v in %d parts", got, parts)
		}
		time.Sleep(23*time.Hour + 40*time.Minute)
		if got, parts := count(t, g); got.Delivered != 1 || parts != 1 {
			t.Errorf("after a day, there are %+v in %d parts", got, parts)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := records(t, g); n != 0 {
			t.Errorf("%d records are kept for more than a day", n)
		}
	})
}

// TestWaiting checks that a delivery that waits counts once in each half hour, and as failed
// when it is given up because it is too old.
func TestWaiting(t *testing.T) {
	t.Parallel()
	p, dir := gatewaytest.NewPager(t, http.StatusServiceUnavailable), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := options(dir, p)
		o.Queue.MaxAge = 3 * time.Hour
		g := gatewaytest.New(t, o)
		if got := g.PostForm("/notify/k", "body=x"); got.Status != http.StatusOK || !strings.Contains(got.Body, "queued") {
			t.Fatalf("%d: %s", got.Status, got.Body)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if got, parts := count(t, g); got != (tally.Counts{Waited: 1}) || parts != 1 || p.Count() < 3 {
			t.Errorf("after %d attempts in a half hour, there are %+v in %d parts", p.Count(), got, parts)
		}
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if got, parts := count(t, g); got.Failed != 1 || got.Delivered != 0 || got.Waited != parts && got.Waited != parts-1 || got.Waited < 2 {
			t.Errorf("after the last attempt, there are %+v in %d parts", got, parts)
		}
	})
}

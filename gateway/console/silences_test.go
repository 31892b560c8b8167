package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// The page of the console lists silences, makes one and ends one.
func TestSilencesPage(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC 1:phone")}},
			Site:   site.Options{Managers: gatewaytest.Everybody()},
			Queue:  &outbox.Settings{Path: dir},
		})
		page := func(path string) string { return g.Get(path).Body }
		html := []string{"Accept", "text/html"}
		if got := page("/notify/console/silences?key=k&tag=phone"); !strings.Contains(got, "Nothing is silent") || !strings.Contains(got, `value="phone"`) {
			t.Error(got)
		}
		if got := page("/notify/console/keys/k"); !strings.Contains(got, `href="../../../notify/console/silences?key=k#silence"`) || !strings.Contains(got, `console/silences?key=k&amp;tag=phone#silence"`) {
			t.Error(got)
		}
		resp := g.PostForm("/notify/console/silences?make", "key=k&for=2h&title=disk&reason=new+disks&who=ann", html...)
		if at := resp.Header.Get("Location"); resp.Status != http.StatusSeeOther || at != "../../notify/console/silences?done=make" {
			t.Fatalf("status %d, %q: %s", resp.Status, at, resp.Body)
		}
		got := page("/notify/console/silences?done=make")
		for _, want := range []string{"The silence is made.", "<strong>disk…</strong>", "new disks", "by ann", "2000-01-01 02:00:00 UTC"} {
			if !strings.Contains(got, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		if resp := g.PostForm("/notify/console/silences?make", "key=k&for=2h", html...); resp.Status != http.StatusBadRequest || !strings.Contains(resp.Body, "match nothing") {
			t.Errorf("status %d: %s", resp.Status, resp.Body)
		}
		resp = g.PostForm("/notify/console/silences?end", "key=k&id="+g.ListSilences("k")[0].ID, html...)
		if resp.Status != http.StatusSeeOther || len(g.ListSilences("k")) != 0 {
			t.Errorf("status %d: %s", resp.Status, resp.Body)
		}
	})
}

package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestForgetButton checks the buttons of the page of incidents: who may press them, what they
// forget, and that incidents of other sites stay.
func TestForgetButton(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		k := gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")
		k.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{k}},
			Site:   site.Options{Managers: gatewaytest.Everybody()},
			Queue:  &outbox.Settings{Path: dir},
		})
		for _, name := range []string{"a", "b", "c"} {
			g.PostForm("/notify/k", gatewaytest.AlertForm("warning", "x", name))
		}
		list := g.ListIncidents("k")
		id := list[0].ID
		page := g.Get("/notify/console/incidents?key=k").Body
		for _, want := range []string{`action="../../notify/console/incidents?forget"`, `name="id" value="` + id + `"`, "Forget all of k"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q: %s", want, page)
			}
		}
		post := func(form, wantLocation string) {
			t.Helper()
			resp := g.PostForm("/notify/console/incidents?forget", form, "Accept", "text/html", "Sec-Fetch-Site", "same-origin")
			if at := resp.Header.Get("Location"); resp.Status != http.StatusSeeOther || at != wantLocation {
				t.Errorf("%s: %d %q %s", form, resp.Status, at, resp.Body)
			}
		}
		post("id="+id+"&filter-key=k", "../../notify/console/incidents?done=forget&forgotten=1&key=k")
		if got := g.ListIncidents("k"); len(got) != 2 {
			t.Errorf("%d incidents are left", len(got))
		}
		if page := g.Get("/notify/console/incidents?done=forget&forgotten=1&key=k").Body; !strings.Contains(page, "One incident is forgotten.") {
			t.Error(page)
		}
		for form, want := range map[string]int{
			"id=" + id:                      http.StatusNotFound,
			"":                              http.StatusBadRequest,
			"key=k&filter-state=shut":       http.StatusBadRequest,
			"id=" + strings.Repeat("a", 26): http.StatusNotFound,
		} {
			if resp := g.PostForm("/notify/console/incidents?forget", form, "Accept", "text/html", "Sec-Fetch-Site",
				"same-origin"); resp.Status != want {
				t.Errorf("%s: %d, want %d: %s", form, resp.Status, want, resp.Body)
			}
		}
		if resp := g.PostForm("/notify/console/incidents?forget", "key=k", "Sec-Fetch-Site", "cross-site"); resp.Status != http.StatusForbidden {
			t.Errorf("another site: %d", resp.Status)
		}
		post("key=k&filter-key=k&filter-state=open", "../../notify/console/incidents?done=forget&forgotten=2&key=k&state=open")
		if got := g.ListIncidents("k"); len(got) != 0 {
			t.Errorf("%d incidents are left", len(got))
		}
	})
}

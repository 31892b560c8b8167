package alerting_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestIncidentRecords checks what is known of the incidents of a key with rules: each
// opening has an ID of its own, and the end of a record.
func TestIncidentRecords(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		start := func() *gatewaytest.Gateway {
			return newGateway(t, dir, ruledKey(p, rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}))
		}
		g := start()
		g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "never told"))
		g.PostForm("/notify/k", "body=x&type=failure")
		for _, name := range []string{"db1", "db2", "db3", "db4", "db5"} {
			g.PostForm("/notify/k", "title=Secret+free&body=secret&type=warning&incident="+name)
		}
		list := g.ListIncidents("k")
		if len(list) != 5 {
			t.Fatalf("%d incidents", len(list))
		}
		for _, x := range list {
			if x.State != notifier.Open || x.Title != "Secret free" || x.Type != notifier.Warning || x.Key != "k" || x.Source != "http" ||
				!x.Opened.Equal(time.Now()) {
				t.Errorf("%+v", x)
			}
			if found, err := g.Rooms().Alerts.Incidents.ByID(t.Context(), x.ID); err != nil || found == nil || found.Incident.Name != x.Name {
				t.Errorf("%v, %v", found, err)
			}
		}
		for _, id := range []string{"", "x", rules.NewIncidentID()} {
			if found, err := g.Rooms().Alerts.Incidents.ByID(t.Context(), id); !errors.Is(err, alerting.ErrNoIncident) || found != nil {
				t.Errorf("%q: %v, %v", id, found, err)
			}
		}
		byName := func(name string) *rules.Incident {
			for _, x := range g.ListIncidents("k") {
				if x.Name == name {
					return x
				}
			}
			t.Fatalf("no incident %s", name)
			return nil
		}
		first := byName("db1")
		time.Sleep(time.Minute)
		g.PostForm("/notify/k", gatewaytest.AlertForm("success", "up", "db1"))
		if x := byName("db1"); x.State != notifier.Resolved || x.ID != first.ID || !x.Resolved.Equal(time.Now()) ||
			!x.Opened.Equal(first.Opened) {
			t.Errorf("%+v", x)
		}
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1"))
		if x := byName("db1"); x.State != notifier.Open || x.ID == first.ID || !x.Resolved.IsZero() {
			t.Errorf("%+v", x)
		}
		if found, err := g.Rooms().Alerts.Incidents.ByID(t.Context(), first.ID); !errors.Is(err, alerting.ErrNoIncident) || found != nil {
			t.Errorf("the ID of the first opening: %v, %v", found, err)
		}
		g.Stop()
		gatewaytest.Until(t, "2000-01-07 23:00:00")
		g = start()
		if list := g.ListIncidents("k"); len(list) != 5 {
			t.Errorf("%d incidents are known, want 5", len(list))
		}
		gatewaytest.Until(t, "2000-01-08 01:00:00")
		if list := g.ListIncidents("k"); len(list) != 0 {
			t.Errorf("%d incidents are not forgotten", len(list))
		}
	})
}

// TestResolveTellsTheTold checks that a person who resolves an incident tells those who were
// told of it or will be, and nobody else.
func TestResolveTellsTheTold(t *testing.T) {
	t.Parallel()
	a, b, c := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Queued(dir, gatewaytest.RuledKey("k", rules.Rules{
			Dedupe: &rules.Dedupe{Window: time.Hour},
			Quiet:  []rules.Quiet{{Window: window("23:00-08:00 UTC"), Scope: rules.Scope{Types: []notifier.Type{notifier.Failure}, Tag: "three"}}},
		}, a.NotifyURL()+" one", b.NotifyURL()+" two", c.NotifyURL()+" three")))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "down", "db1")+"&tag=two,three")
		x := g.ListIncidents("k")[0]
		if _, _, err := g.Rooms().Alerts.Incidents.Resolve(t.Context(), stored(t, g, x), message.Who{User: "Eve"}); err != nil {
			t.Fatal(err)
		}
		gatewaytest.Until(t, "2000-01-01 09:00:00")
		if got := []int{a.Count(), b.Count(), c.Count()}; !slices.Equal(got, []int{0, 2, 1}) {
			t.Errorf("told %v times", got)
		}
		if got := c.Told(); !strings.HasPrefix(got[0], "success: ") {
			t.Errorf("told %q", got)
		}
	})
}

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// namesIn returns the names of the incidents that a response lists.
func namesIn(t *testing.T, r gatewaytest.Reply) (names []string, next string) {
	t.Helper()
	var page alerting.IncidentsJSON
	if err := json.Unmarshal([]byte(r.Body), &page); err != nil || r.Status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", r.Status, err, r.Body)
	}
	for _, x := range page.Incidents {
		names = append(names, x.Key+" "+x.Incident+" "+x.State)
	}
	return names, page.Next
}

// TestIncidentList checks that managers, and nobody else, get the incidents of the keys of a site,
// the worst first and without texts, even after a restart.
func TestIncidentList(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	limited := gatewaytest.Key("net", p.NotifyURL())
	limited.Rules = &rules.Rules{Rate: []rules.Rate{{Count: 100, Per: time.Hour}}}
	keys := []site.KeyOptions{incidentKey("ops", p), limited, gatewaytest.Key("plain", p.NotifyURL())}
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newIncidentGateway(t, dir, keys...)
		for _, form := range []string{"ops warning slow", "ops failure db1", "ops failure db2", "net failure router", "plain failure unknown"} {
			f := strings.Fields(form)
			g.PostForm("/notify/"+f[0], "body=confidential&title=Title+of+"+f[2]+"&type="+f[1]+"&incident="+f[2])
			time.Sleep(time.Minute)
		}
		g.PostForm("/notify/ops", "body=confidential&title=over&type=success&incident=db1")
		for range 2 {
			for query, want := range map[string][]string{
				"":                   {"net router open", "ops db2 open", "ops slow open", "ops db1 resolved"},
				"?key=ops":           {"ops db2 open", "ops slow open", "ops db1 resolved"},
				"?state=resolved":    {"ops db1 resolved"},
				"?state=open&key=ne": nil,
				"?key=plain":         nil,
			} {
				r := g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/incidents"+query, ""))
				if got, next := namesIn(t, r); !slices.Equal(got, want) || next != "" || strings.Contains(r.Body, "confidential") {
					t.Errorf("%s lists %q, want %q: %s", query, got, want, r.Body)
				}
			}
			g.Stop()
			g = newIncidentGateway(t, dir, keys...)
		}
		var all []string
		for address := "/notify/incidents?limit=1"; address != ""; {
			names, next := namesIn(t, g.Do(gatewaytest.NewRequest(http.MethodGet, address, "")))
			if len(names) != 1 {
				t.Errorf("%s has %q", address, names)
			}
			all = append(all, names...)
			if address = strings.TrimPrefix(next, ".."); address == "/" {
				t.Fatal(next)
			}
		}
		slices.Sort(all)
		if want := []string{"net router open", "ops db1 resolved", "ops db2 open", "ops slow open"}; !slices.Equal(all, want) {
			t.Errorf("the pages have %q, want %q", all, want)
		}
		for _, query := range []string{
			"?state=shut", "?limit=0", "?limit=1001", "?after=x",
			"?after=" + alerting.IncidentCursor{Stage: "no"}.Encode(),
		} {
			if r := g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/incidents"+query, "")); r.Status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", query, r.Status, r.Body)
			}
		}
		if r := g.Get("/notify/incidents?key=ops"); r.Status != http.StatusSeeOther ||
			r.Header.Get("Location") != "../notify/console/incidents?key=ops" {
			t.Errorf("a browser gets %d, %q", r.Status, r.Header.Get("Location"))
		}
		page := g.Get("/notify/console/incidents").Body
		for _, want := range []string{
			"Title of db2", "Title of slow",
			`<span class="badge" aria-hidden="true">3</span><span class="unseen">: 3 incidents open</span>`, "/notify/console/keys/ops",
		} {
			if !strings.Contains(page, want) || strings.Contains(page, "confidential") {
				t.Errorf("the page lacks %q: %s", want, page)
			}
		}
		time.Sleep(time.Minute) // the last count is old
		got := g.Process.Values(t)
		for state, want := range map[string]float64{"open": 3, "acknowledged": 0, "resolved": 1} {
			if n := got["incidents state="+state]; n != want {
				t.Errorf("%v are %s, want %v", n, state, want)
			}
		}
	})
}

// TestPartialResolution checks that an incident stays open and escalates when a payload lists only
// resolved alerts but leaves some out.
func TestPartialResolution(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	k := gatewaytest.RuledKey("ops", rules.Rules{Escalate: &rules.Escalate{
		After: []time.Duration{5 * time.Minute}, Repeat: 1,
		Ack: time.Hour,
	}}, p.NotifyURL()+" 1:first", p.NotifyURL()+"?tz=UTC 2:second")
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{
				Keys:      []site.KeyOptions{k},
				PublicURL: gatewaytest.PublicURL,
			}, Site: site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{Path: dir},
		})
		post := func(status string, left int) {
			t.Helper()
			g.Post("/notify/ops/alertmanager", gatewaytest.TypeJSON, fmt.Sprintf(`{"version": "4", "status": %q, "groupKey": "{}",
				"externalURL": "http://am", "truncatedAlerts": %d,
				"alerts": [{"status": %[1]q, "labels": {"alertname": "Down"}, "annotations": {"summary": "db1"}, "fingerprint": "1"}]}`, status, left))
			time.Sleep(time.Minute)
		}
		state := func(want string, told int) {
			t.Helper()
			if got, _ := namesIn(t, g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/incidents", ""))); !slices.Equal(got,
				[]string{"ops http://am {} " + want}) {
				t.Errorf("incidents are %q, want one that is %s", got, want)
			}
			if got := p.Told(); len(got) != told {
				t.Errorf("told %q, want %d messages", got, told)
			}
		}
		post("firing", 2)
		state("open", 1)
		post("resolved", 2)
		state("open", 2)
		time.Sleep(5 * time.Minute)
		state("open", 3) // the second step
		post("resolved", 0)
		state("resolved", 5)
	})
}

// TestIncidentsAccess checks that only managers see incidents.
func TestIncidentsAccess(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		managers     *site.Managers
		saved        *saved.Options
		page         bool
		nobody, user int
	}{
		{"nobody", nil, nil, true, 403, 403},
		{"users", &site.Managers{}, nil, true, 403, 200},
		{"bob", &site.Managers{Named: []string{"bob"}}, nil, true, 403, 403},
		{"everybody", gatewaytest.Everybody(), nil, true, 200, 200},
		{"users of saved keys, without pages", &site.Managers{}, &saved.Options{Manage: true}, false, 403, 200},
	} {
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Managers: tt.managers, Page: &tt.page},
			Queue: &outbox.Settings{},
			Saved: tt.saved,
		})
		for user, want := range map[string]int{"": tt.nobody, "ann": tt.user} {
			for _, accept := range []string{gatewaytest.TypeJSON, "text/html"} {
				r := httptest.NewRequest(http.MethodGet, "/notify/incidents", nil)
				r.Header.Set("Accept", accept)
				if user != "" {
					r = gatewaytest.As(r, user)
				}
				if accept == "text/html" && want == 200 && g.Has.Console {
					want = 303
				}
				if got := g.Do(r); got.Status != want {
					t.Errorf("%q: %q gets %d, want %d: %s", tt.name, user, got.Status, want, got.Body)
				}
				if want == 303 {
					want = 200
				}
			}
		}
		g.Stop()
	}
}

// TestMessageNamesIncident checks that a queued message names its incident, and not a later one of
// the same name.
func TestMessageNamesIncident(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newIncidentGateway(t, dir, incidentKey("k", p), gatewaytest.Key("plain", p.NotifyURL()))
		wantDelivered := func(form string) (id string) {
			t.Helper()
			got := g.PostForm("/notify/k", form)
			a := got.JSON(t)
			if r := a.Results[0]; got.Status != http.StatusOK || r.Status != notifier.Delivered || r.Rule != "" {
				t.Errorf("%s: status %d, %s %q", form, got.Status, r.Status, r.Rule)
			}
			return a.ID
		}
		id := func(m string) string {
			t.Helper()
			return g.Message(http.MethodGet, m, gatewaytest.TypeJSON).JSON(t).IncidentID
		}
		down := wantDelivered(gatewaytest.AlertForm("failure", "down", "db1"))
		time.Sleep(time.Minute)
		info := wantDelivered(gatewaytest.AlertForm("info", "looking", "db1"))
		up := wantDelivered(gatewaytest.AlertForm("success", "up", "db1"))
		first := g.ListIncidents("k")[0].ID
		if id(down) != first || id(info) != first || id(up) != first {
			t.Errorf("%q, %q and %q, want %q", id(down), id(info), id(up), first)
		}
		page := g.Get("/notify/console/messages/" + down).Body
		if !strings.Contains(page, `<a href="../../../notify/console/incidents/`+first+`">db1</a>`) {
			t.Errorf("the page has no link to the incident: %s", page)
		}
		time.Sleep(time.Minute)
		again := wantDelivered(gatewaytest.AlertForm("failure", "down", "db1"))
		if second := g.ListIncidents("k")[0].ID; id(again) != second || second == first || id(down) != "" {
			t.Errorf("%q, and the first message %q", id(again), id(down))
		}
		entry := g.Process.History.List()[0]
		if entry.IncidentID != g.ListIncidents("k")[0].ID {
			t.Errorf("the history has %q", entry.IncidentID)
		}
		other := wantDelivered("body=x")
		plain := g.PostForm("/notify/plain", gatewaytest.AlertForm("failure", "down", "db1"), "Prefer", "respond-async").JSON(t).ID
		if id(other) != "" || id(plain) != "" {
			t.Errorf("%q and %q", id(other), id(plain))
		}
	})
}

package gatewaytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// AlertForm returns a form with a message about an incident.
func AlertForm(typ, text, incident string) string {
	return fmt.Sprintf("type=%s&body=%s&incident=%s", typ, text, incident)
}

// ListIncidents returns the incidents of a key of Options.Global, the worst first.
func (g *Gateway) ListIncidents(key string) (out []*rules.Incident) {
	g.t.Helper()
	place := site.Place{Key: key}.String()
	for _, stage := range rules.Stages {
		by := alerting.IncidentQuery{Stage: stage, Limit: 2}
		for more := true; more; more = by.After != (alerting.IncidentCursor{}) {
			list, after, err := g.Rooms().Alerts.Incidents.List(g.t.Context(), []string{place}, &by)
			if err != nil {
				g.t.Fatal(err)
			}
			by.After, by.Limit = after, 100 // a short page, and then long ones, because each reads all incidents
			for _, x := range list {
				if x.Incident.Stage() != stage {
					g.t.Errorf("%s is among those that are %s", x.Incident.Name, stage)
				}
				out = append(out, x.Incident)
			}
		}
	}
	return out
}

// AddSilence makes a silence of a key, and returns its ID.
func (g *Gateway) AddSilence(key, form string) string {
	g.t.Helper()
	target := "/notify/" + key + "/silences"
	got := g.PostForm(target, form)
	var s silence.JSON
	if err := json.Unmarshal([]byte(got.Body), &s); err != nil || got.Status != http.StatusCreated ||
		got.Header.Get("Location") != target+"/"+s.ID {
		g.t.Fatalf("status %d, Location %q: %s", got.Status, got.Header.Get("Location"), got.Body)
	}
	return s.ID
}

// ListSilences returns the silences of a key.
func (g *Gateway) ListSilences(key string) (all []silence.JSON) {
	g.t.Helper()
	got := g.Do(httptest.NewRequest(http.MethodGet, "/notify/"+key+"/silences", nil))
	if err := json.Unmarshal([]byte(got.Body), &all); err != nil || got.Status != http.StatusOK {
		g.t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	return all
}

// EndSilence ends a silence of a key, and returns the status of the reply.
func (g *Gateway) EndSilence(key, id string) int {
	return g.Do(httptest.NewRequest(http.MethodDelete, "/notify/"+key+"/silences/"+id, nil)).Status
}

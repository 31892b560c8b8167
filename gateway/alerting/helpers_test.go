package alerting_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// newGateway starts a gateway with [gatewaytest.Queued].
func newGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Queued(dir, keys...))
}

// newSilenceGateway is [newGateway] with managers, who may make silences.
func newSilenceGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, withManagers(gatewaytest.Queued(dir, keys...)))
}

// withManagers returns options with which everybody is a manager.
func withManagers(o gatewaytest.Options) gatewaytest.Options {
	o.Site.Managers = gatewaytest.Everybody()
	return o
}

// ruledKey returns the key k with one URL and rules.
func ruledKey(p *gatewaytest.Pager, r rules.Rules) site.KeyOptions {
	return gatewaytest.RuledKey("k", r, p.NotifyURL()+"?tz=UTC")
}

// dedupeMinute suppresses repetitions for a minute.
func dedupeMinute() rules.Rules { return rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute}} }

// window returns the window of a rule quiet, written as in 22:00-07:00 UTC.
func window(text string) rules.Window {
	w, err := rules.ParseWindow(strings.Fields(text))
	if err != nil {
		panic(err) // it is a constant
	}
	return w
}

// moment returns the moment of a digest, written as in mon 08:00 UTC.
func moment(text string) *rules.Moment {
	m, err := rules.ParseDigest(strings.Fields(text))
	if err != nil {
		panic(err) // it is a constant
	}
	return m
}

// escalate returns an escalation with the defaults.
func escalate(after ...time.Duration) *rules.Escalate {
	return &rules.Escalate{After: after, Repeat: 3, Ack: 24 * time.Hour}
}

// wantResult posts a message, and checks the status and the rule of its result.
func wantResult(t *testing.T, g *gatewaytest.Gateway, form string, status notifier.Status, rule notifier.Rule) gatewaytest.Answer {
	t.Helper()
	resp := g.PostForm("/notify/k", form)
	a := resp.JSON(t)
	if r := a.Results[0]; resp.Status != http.StatusOK || r.Status != status || r.Rule != rule {
		t.Errorf("%s: status %d, %s %q; want %s %q", form, resp.Status, r.Status, r.Rule, status, rule)
	}
	return a
}

// teamOptions returns the options of a gateway with the key k of a team with rules, further keys, and the
// setting that the rules need.
func teamOptions(x *gatewaytest.Team, dir string, r rules.Rules, more ...site.KeyOptions) gatewaytest.Options {
	o := gatewaytest.Queued(dir, append([]site.KeyOptions{x.Key(r)}, more...)...)
	o.Global.PublicURL = gatewaytest.PublicURL
	return o
}

// resultsOf returns the status and rule of each result, such as "queued escalating".
func resultsOf(results []message.QueuedResult) (out []string) {
	for _, r := range results {
		out = append(out, strings.TrimSpace(string(r.Status)+" "+string(r.Rule)))
	}
	return out
}

// silenceKey makes a silence of the key k.
func silenceKey(t *testing.T, g *gatewaytest.Gateway, s rules.Silence) {
	t.Helper()
	if err := g.Rooms().Alerts.Silences.Make(t.Context(), g.Resolved.Keys["k"], g.Site(), s); err != nil {
		t.Fatal(err)
	}
}

// placeOfKey returns the place of a key of the configuration.
func placeOfKey(g *gatewaytest.Gateway, name string) string {
	return g.Resolved.Keys[name].Home(g.Site()) + "\x00" + name
}

// incidentsAt returns the names of the incidents of a key.
func incidentsAt(t *testing.T, g *gatewaytest.Gateway, key string) (names []string) {
	t.Helper()
	for _, stage := range rules.Stages {
		list, _, err := g.Rooms().Alerts.Incidents.List(t.Context(), []string{placeOfKey(g, key)},
			&alerting.IncidentQuery{Stage: stage, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			names = append(names, x.Incident.Name)
		}
	}
	slices.Sort(names)
	return names
}

// stored returns an incident for what changes it.
func stored(t *testing.T, g *gatewaytest.Gateway, x *rules.Incident) *alerting.StoredIncident {
	t.Helper()
	at, err := g.Rooms().Alerts.Incidents.ByID(t.Context(), x.ID)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// ackIncident acknowledges the only incident of the key k that is open.
func ackIncident(t *testing.T, g *gatewaytest.Gateway, by string) bool {
	t.Helper()
	list := g.ListIncidents("k")
	list = slices.DeleteFunc(list, func(x *rules.Incident) bool { return !x.IsOpen() })
	if len(list) != 1 {
		t.Fatalf("%d incidents are open", len(list))
	}
	_, changed, err := g.Rooms().Alerts.Incidents.Acknowledge(t.Context(), stored(t, g, list[0]), message.Who{User: by})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// messageID returns the ID of a message for the queue.
func messageID(t *testing.T, text string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

package httpapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentKey returns the key with a name and one URL, which remembers incidents.
func incidentKey(name string, p *gatewaytest.Pager) site.KeyOptions {
	k := gatewaytest.Key(name, p.NotifyURL())
	k.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
	return k
}

// newIncidentGateway starts a gateway on the queue in a folder, with keys for all sites, at
// which everybody manages.
func newIncidentGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: keys},
		Site:   site.Options{Managers: gatewaytest.Everybody()},
		Queue:  &outbox.Settings{Path: dir},
	})
}

// askIncident makes a request to the page of an incident.
func askIncident(t *testing.T, g *gatewaytest.Gateway, method, id, form string, header ...string) gatewaytest.Reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, site.RouteIncidents+"/"+id, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return g.Do(r)
}

// teamOptions returns the options of a gateway on the queue in a folder with the key k of a
// team, which escalates.
func teamOptions(x *gatewaytest.Team, dir string, e *rules.Escalate) gatewaytest.Options {
	return gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{x.Key(rules.Rules{Escalate: e})}, PublicURL: gatewaytest.PublicURL},
		Queue:  &outbox.Settings{Path: dir},
	}
}

// escalateAfter returns the rule with the defaults of the Caddyfile.
func escalateAfter(after time.Duration) *rules.Escalate {
	return &rules.Escalate{After: []time.Duration{after}, Repeat: 3, Ack: 24 * time.Hour}
}

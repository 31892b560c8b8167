package caddyhttp

import (
	"net/http"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestSourceIncidentSetting checks that the template incident of a source in the Caddyfile
// names the incident, at a source of the site and at one of all sites.
func TestSourceIncidentSetting(t *testing.T) {
	s := gatewaytest.NewStation(t)
	const from = "\nfrom backup {\ntitle {{.job}}\ntype {{.state}}\nincident {{.job}}\n}"
	key := "key ops {\nurl " + s.NotifyURL("/ops") + "\n}"
	want := notifier.Incident{Name: "nightly"}.For("ops", "backup")
	for where, h := range map[string]*Handler{"site": newGateway(t, key+from, ""), "all sites": newGateway(t, key, from)} {
		if r := post(t, h, "/notify/ops/backup", typeJSON, `{"job": "nightly", "state": "down"}`); r.status != http.StatusOK {
			t.Errorf("%s: status %d: %s", where, r.status, r.body)
		}
		if got := s.One(t); got.Incident != want.ID || got.Type != "failure" || got.Message != "nightly" {
			t.Errorf("%s: got %+v", where, got)
		}
	}
}

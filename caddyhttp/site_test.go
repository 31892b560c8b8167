package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestSettingsReachSite checks that what a site's block sets is set in the site, because the
// tests of what the settings do make sites without a block.
func TestSettingsReachSite(t *testing.T) {
	h := newGateway(t, `stateless off
config_id on
page off
propagate_trace on
max_body 1KiB
timeout 1m
trusted_origins https://blog.example
attachments {
	max_size 2KiB
	max_count 3
	remote off
}
egress {
	allow 127.0.0.1
}
max_in_flight 9
client_limits {
	in_flight 7
	in_flight_per_address 5
	memory 100MiB
	deliveries 1
	requests 2
	bytes 3KiB
	retry 0
	wait 5s
}
key ops {
	url json://127.0.0.1 a
	url json://127.0.0.2 b
	default_tag b
	accept grafana slack direct
}
from grafana {
	images on
	sign grafana secret-of-grafana
}
from slack {
	token token-of-slack
}`, "").api
	s := h.Resolved
	if s.Stateless || !s.ConfigID || s.Page || !s.PropagateTrace {
		t.Errorf("%+v", s)
	}
	if l := s.Limits; l.MaxBody != 1<<10 || l.Timeout != time.Minute ||
		l.FetchTimeout != time.Minute || l.MaxFileSize != 2<<10 || l.MaxFiles != 3 || l.RemoteFiles {
		t.Errorf("%+v", l)
	}
	client := notifier.Limits{Deliveries: 1, Requests: 2, Bytes: 3 << 10, Wait: 5 * time.Second, Setting: "client_limits"}
	if l := s.Limits; *l.Client != client ||
		l.InFlight != (site.InFlightLimits{Total: 9, Clients: 7, PerAddress: 5}) || l.Memory != 100<<20 {
		t.Errorf("%+v, %+v", l.Client, l)
	}
	for origin, allowed := range map[string]bool{"https://blog.example": true, "https://other.example": false} {
		r := httptest.NewRequest(http.MethodPost, "https://alerts.example/notify/ops", nil)
		r.Header.Set("Origin", origin)
		if err := h.CheckOrigin(r); (err == nil) != allowed {
			t.Errorf("%s: %v", origin, err)
		}
	}
	if k := s.Configured("ops"); len(k.Targets) != 2 || len(k.DefaultTargets) != 1 ||
		!slices.Equal(k.DefaultTargets[0].Tags, []string{"b"}) ||
		!slices.Equal(k.Accept, []string{"grafana", "slack", "direct"}) {
		t.Errorf("%+v", k)
	}
	if f := h.Sources["grafana"]; f == nil || !f.TakesFiles() || !f.ChecksSender() {
		t.Errorf("grafana: %+v", f)
	}
	if f := h.Sources["slack"]; f == nil || !f.ChecksSender() {
		t.Errorf("slack: %+v", f)
	}
}

// TestSiteSetting checks the errors about the name of a site.
func TestSiteSetting(t *testing.T) {
	for block, want := range map[string]string{
		"site":             "expected site <name>",
		"site a b":         "expected site <name>",
		"site a/b":         "site: the name of a site has 1 to 64 letters, digits, _ and -, at Testfile:2",
		"site ":            "expected site <name>",
		`site ""`:          "the name of a site has 1 to 64 letters",
		"site a\nsite b":   "occurs twice in",
		"site {env.BROKEN": "the name of a site has 1 to 64 letters",
	} {
		err := new(Settings).UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\n" + block + "\n}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", block, err, want)
		}
	}
	const global = "site: it names one site, so it belongs into the notify of that site"
	if err := new(App).UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\nsite a\n}")); err == nil ||
		!strings.Contains(err.Error(), global) {
		t.Errorf("in the global option: error %v", err)
	}
	for id, want := range map[string]string{"notify": global, "http.handlers.notify": "site: the name of a site has 1 to 64 letters"} {
		ctx, err := provisionContext(t, &caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ctx.LoadModuleByID(id, []byte(`{"site":"a/b"}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", id, err, want)
		}
	}
}

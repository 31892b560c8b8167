package caddyhttp

import (
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestClientLimits(t *testing.T) {
	defaults := notifier.Limits{Deliveries: 500, Requests: 1500, Bytes: 256 << 20, Retry: 2, Wait: time.Second}
	own := notifier.Limits{Deliveries: 1, Requests: 2, Bytes: 3 << 10, Retry: 0, Wait: 5 * time.Second}
	block := "client_limits {\nin_flight 7\nin_flight_per_address 5\n" +
		"memory 100MiB\ndeliveries 1\nrequests 2\nbytes 3KiB\nretry 0\nwait 5s\n}\n"
	for name, tt := range map[string]struct {
		site, global string
		client       notifier.Limits
		inFlight     site.InFlightLimits
		memory       int64
	}{
		"defaults": {"", "", defaults, site.InFlightLimits{Total: 1000, Clients: 500, PerAddress: 62}, 256 << 20},
		"of max_in_flight": {
			"max_in_flight 100", "", defaults,
			site.InFlightLimits{Total: 100, Clients: 50, PerAddress: 6},
			256 << 20,
		},
		"of in_flight": {
			"client_limits {\nin_flight 80\n}", "", defaults,
			site.InFlightLimits{Total: 1000, Clients: 80, PerAddress: 10},
			256 << 20,
		},
		"all of max_in_flight": {
			"max_in_flight 10\nclient_limits {\nin_flight 10\nin_flight_per_address 10\n}", "",
			defaults,
			site.InFlightLimits{Total: 10, Clients: 10, PerAddress: 10},
			256 << 20,
		},
		"of max_body": {
			"max_body 100MiB", "", defaults,
			site.InFlightLimits{Total: 1000, Clients: 500, PerAddress: 62},
			800 << 20,
		},
		"of the site":              {block, "", own, site.InFlightLimits{Total: 1000, Clients: 7, PerAddress: 5}, 100 << 20},
		"of the app":               {"", block, own, site.InFlightLimits{Total: 1000, Clients: 7, PerAddress: 5}, 100 << 20},
		"of the app, with a count": {"max_in_flight 6", block, own, site.InFlightLimits{Total: 6, Clients: 6, PerAddress: 5}, 100 << 20},
		"the site replaces the app's": {
			"client_limits {\nretry 1\n}", block,
			notifier.Limits{Deliveries: 500, Requests: 1500, Bytes: 256 << 20, Retry: 1, Wait: time.Second},
			site.InFlightLimits{Total: 1000, Clients: 500, PerAddress: 62},
			256 << 20,
		},
	} {
		r := newGateway(t, tt.site, tt.global).api.Resolved
		if *r.Limits.Client != tt.client || r.Limits.InFlight != tt.inFlight || r.Limits.Memory != tt.memory {
			t.Errorf("%s: %+v, %+v, %d", name, *r.Limits.Client, r.Limits.InFlight, r.Limits.Memory)
		}
	}
	for want, s := range map[string]Settings{
		"client_limits: in_flight is -1; it must be above 0":            {ClientLimits: &ClientLimits{InFlight: -1}},
		"client_limits: wait is -1; it must be above 0":                 {ClientLimits: &ClientLimits{Wait: -1}},
		"client_limits: retry is -1; it must be 0 (no retries) or more": {ClientLimits: &ClientLimits{Retry: new(-1)}},
		"in_flight is 80, but max_in_flight lets only 10 messages be under way": {
			MaxInFlight: 10, ClientLimits: &ClientLimits{InFlight: 80},
		},
		"in_flight is 1001, but max_in_flight lets only 1000 messages be under way": {ClientLimits: &ClientLimits{InFlight: 1001}},
		"in_flight_per_address is 8, but in_flight for all addresses is 7; lower": {
			ClientLimits: &ClientLimits{InFlight: 7, InFlightPerAddress: 8},
		},
		"is 501, but in_flight for all addresses is 500, half of max_in_flight":         {ClientLimits: &ClientLimits{InFlightPerAddress: 501}},
		"client_limits: memory is 63 MiB; it must be at least 8 times max_body, 64 MiB": {ClientLimits: &ClientLimits{Memory: 63 << 20}},
	} {
		if _, err := s.resolve(nil, nil, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

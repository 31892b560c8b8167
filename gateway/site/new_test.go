package site_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
	_ "github.com/caddy-notify/caddy-notify/notifier/services" // registers json
)

const secret = "0123456789abcdef"

func key(name, url string, tags ...string) site.KeyOptions {
	return site.KeyOptions{Name: name, URLs: []site.URL{{URL: url, Tags: tags}}}
}

// TestNew checks that a site made without Caddy has all defaults, and that an inheriting site has
// the keys of its base and replaces what it sets.
func TestNew(t *testing.T) {
	t.Parallel()
	ops := key("ops", "json://localhost/a", "x")
	ops.Tokens, ops.Inbox = []string{secret + "\n"}, time.Hour
	base, err := site.New(site.Options{
		Keys: []site.KeyOptions{ops, key("dev", "json://localhost/b")}, MaxInFlight: 100,
		PublicURL: "https://alerts.example.com",
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := base.Limits; !base.Stateless || !base.Page || l.MaxBody != 8<<20 || l.MaxFiles != 6 || !l.RemoteFiles ||
		l.Timeout != notifier.DefaultTimeout || l.Egress == nil || l.Client.Retry != 2 || l.Memory != 256<<20 ||
		l.InFlight != (site.InFlightLimits{Total: 100, Clients: 50, PerAddress: 6}) {
		t.Errorf("%+v", base)
	}
	if k := base.Configured("ops"); k == nil || !k.Tokens.Has(secret) || k.Inbox != time.Hour || k.OfSite || len(k.Targets) != 1 ||
		!base.Protected(t.Context()) {
		t.Errorf("%+v", k)
	}
	own, err := site.New(site.Options{
		Base: base, Keys: []site.KeyOptions{key("ops", "json://localhost/c")}, Timeout: time.Second,
		Stateless: new(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	if k := own.Configured("ops"); k == nil || !k.OfSite || len(k.Tokens) != 0 || own.Configured("dev") != base.Configured("dev") ||
		own.Protected(t.Context()) {
		t.Errorf("%+v", k)
	}
	if own.Stateless || own.Limits.Timeout != time.Second || own.Limits.FetchTimeout != time.Second ||
		own.Limits.InFlight != base.Limits.InFlight || own.PublicURL != base.PublicURL || !base.Stateless {
		t.Errorf("%+v", own)
	}
}

// TestSettingError checks that an error names the setting that it is about.
func TestSettingError(t *testing.T) {
	t.Parallel()
	with := func(change func(*site.KeyOptions)) site.Options {
		k := key("ops", "json://localhost", "1:x")
		change(&k)
		return site.Options{Keys: []site.KeyOptions{k}}
	}
	for want, o := range map[string]site.Options{
		"default_urls, URL 1": {DefaultURLs: []site.URL{{URL: "nonsense"}}},
		"client_limits":       {Clients: &site.ClientOptions{InFlight: 2000}},
		"key ops, URL 2":      with(func(k *site.KeyOptions) { k.URLs = append(k.URLs, site.URL{URL: "jsn://localhost"}) }),
		"key ops, inbox":      with(func(k *site.KeyOptions) { k.Inbox = time.Second }),
		"key ops":             with(func(k *site.KeyOptions) { k.Tokens, k.Readers = []string{secret}, []string{secret} }),
		"key ops, rate":       with(func(k *site.KeyOptions) { k.Rules = &rules.Rules{Rate: []rules.Rate{{Count: 1, Per: time.Minute}}} }),
		"key ops, escalate": with(func(k *site.KeyOptions) {
			k.Rules = &rules.Rules{Escalate: &rules.Escalate{After: []time.Duration{time.Minute}, Repeat: 1, Ack: time.Hour}}
		}),
		"key ops, expect nightly": with(func(k *site.KeyOptions) {
			k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Minute}, Tag: "y"}}
		}),
	} {
		_, err := site.New(o)
		if e, ok := errors.AsType[*site.SettingError](err); !ok || e.Setting != want {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestClientLimits checks the limits of messages under way and of messages with URLs, and which
// limits do not fit together.
func TestClientLimits(t *testing.T) {
	t.Parallel()
	defaults := notifier.Limits{Deliveries: 500, Requests: 1500, Bytes: 256 << 20, Retry: 2, Wait: time.Second, Setting: "client_limits"}
	own := notifier.Limits{Deliveries: 1, Requests: 2, Bytes: 3 << 10, Retry: 0, Wait: 5 * time.Second, Setting: "client_limits"}
	all := &site.ClientOptions{
		InFlight: 7, InFlightPerAddress: 5, Memory: 100 << 20, Deliveries: 1, Requests: 2, Bytes: 3 << 10, Retry: new(0), Wait: 5 * time.Second,
	}
	for name, tt := range map[string]struct {
		site, global site.Options
		client       notifier.Limits
		inFlight     site.InFlightLimits
		memory       int64
	}{
		"defaults": {
			client: defaults, memory: 256 << 20,
			inFlight: site.InFlightLimits{Total: site.DefaultMaxInFlight, Clients: 500, PerAddress: 62},
		},
		"of max_in_flight": {
			site.Options{MaxInFlight: 100},
			site.Options{MaxInFlight: 9},
			defaults,
			site.InFlightLimits{Total: 100, Clients: 50, PerAddress: 6},
			256 << 20,
		},
		"of in_flight": {
			site.Options{Clients: &site.ClientOptions{InFlight: 80}},
			site.Options{},
			defaults,
			site.InFlightLimits{Total: 1000, Clients: 80, PerAddress: 10},
			256 << 20,
		},
		"all of max_in_flight": {
			site.Options{MaxInFlight: 10, Clients: &site.ClientOptions{InFlight: 10, InFlightPerAddress: 10}},
			site.Options{},
			defaults,
			site.InFlightLimits{Total: 10, Clients: 10, PerAddress: 10},
			256 << 20,
		},
		"of max_body": {
			site.Options{MaxBody: 100 << 20},
			site.Options{},
			defaults,
			site.InFlightLimits{Total: 1000, Clients: 500, PerAddress: 62},
			800 << 20,
		},
		"of the site": {site.Options{Clients: all}, site.Options{}, own, site.InFlightLimits{Total: 1000, Clients: 7, PerAddress: 5}, 100 << 20},
		"of the app":  {site.Options{}, site.Options{Clients: all}, own, site.InFlightLimits{Total: 1000, Clients: 7, PerAddress: 5}, 100 << 20},
		"of the app, with a count": {
			site.Options{MaxInFlight: 6}, site.Options{Clients: all}, own, site.InFlightLimits{Total: 6, Clients: 6, PerAddress: 5}, 100 << 20,
		},
		"the site replaces the app's": {
			site.Options{Clients: &site.ClientOptions{Retry: new(1)}},
			site.Options{Clients: all},
			notifier.Limits{Deliveries: 500, Requests: 1500, Bytes: 256 << 20, Retry: 1, Wait: time.Second, Setting: "client_limits"},
			site.InFlightLimits{Total: 1000, Clients: 500, PerAddress: 62},
			256 << 20,
		},
	} {
		base, err := site.New(tt.global)
		if err != nil {
			t.Fatal(err)
		}
		tt.site.Base = base
		r, err := site.New(tt.site)
		if err != nil {
			t.Fatal(err)
		}
		if *r.Limits.Client != tt.client || r.Limits.InFlight != tt.inFlight || r.Limits.Memory != tt.memory {
			t.Errorf("%s: %+v, %+v, %d", name, *r.Limits.Client, r.Limits.InFlight, r.Limits.Memory)
		}
	}
	for want, o := range map[string]site.Options{
		"max_in_flight is -1; it must be":                               {MaxInFlight: -1},
		"client_limits: in_flight is -1; it must be above 0":            {Clients: &site.ClientOptions{InFlight: -1}},
		"client_limits: wait is -1; it must be above 0":                 {Clients: &site.ClientOptions{Wait: -1}},
		"client_limits: retry is -1; it must be 0 (no retries) or more": {Clients: &site.ClientOptions{Retry: new(-1)}},
		"in_flight is 80, but max_in_flight lets only 10 messages be under way": {
			MaxInFlight: 10, Clients: &site.ClientOptions{InFlight: 80},
		},
		"in_flight is 1001, but max_in_flight lets only 1000 messages be under way": {Clients: &site.ClientOptions{InFlight: 1001}},
		"in_flight_per_address is 8, but in_flight for all addresses is 7; lower": {
			Clients: &site.ClientOptions{InFlight: 7, InFlightPerAddress: 8},
		},
		"is 501, but in_flight for all addresses is 500, half of max_in_flight":         {Clients: &site.ClientOptions{InFlightPerAddress: 501}},
		"client_limits: memory is 63 MiB; it must be at least 8 times max_body, 64 MiB": {Clients: &site.ClientOptions{Memory: 63 << 20}},
	} {
		if _, err := site.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

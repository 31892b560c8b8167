package site_test

import (
	"errors"
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

// TestNew checks that a site made without Caddy has all defaults, and that one which inherits
// has the keys of its base and replaces what it sets.
func TestNew(t *testing.T) {
	t.Parallel()
	ops := key("ops", "json://localhost/a", "x")
	ops.Tokens, ops.Inbox = []string{secret + "\n"}, time.Hour
	base, err := site.New(site.Options{Keys: []site.KeyOptions{ops, key("dev", "json://localhost/b")}, MaxInFlight: 100, PublicURL: "https://alerts.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if l := base.Limits; !base.Stateless || !base.Page || l.MaxBody != 8<<20 || l.MaxFiles != 6 || !l.RemoteFiles || l.Timeout != notifier.DefaultTimeout || l.Egress == nil || l.Client.Retry != 2 || l.Memory != 256<<20 ||
		l.InFlight != (site.InFlightLimits{Total: 100, Clients: 50, PerAddress: 6}) {
		t.Errorf("%+v", base)
	}
	if k := base.Configured("ops"); k == nil || !k.Tokens.Has(secret) || k.Inbox != time.Hour || k.OfSite || len(k.Targets) != 1 || !base.Protected(t.Context()) {
		t.Errorf("%+v", k)
	}
	own, err := site.New(site.Options{Base: base, Keys: []site.KeyOptions{key("ops", "json://localhost/c")}, Timeout: time.Second, Stateless: new(false)})
	if err != nil {
		t.Fatal(err)
	}
	if k := own.Configured("ops"); k == nil || !k.OfSite || len(k.Tokens) != 0 || own.Configured("dev") != base.Configured("dev") || own.Protected(t.Context()) {
		t.Errorf("%+v", k)
	}
	if own.Stateless || own.Limits.Timeout != time.Second || own.Limits.FetchTimeout != time.Second || own.Limits.InFlight != base.Limits.InFlight || own.PublicURL != base.PublicURL || !base.Stateless {
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

package caddyhttp

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestPushMistakes checks that mistakes in push are refused with their line.
func TestPushMistakes(t *testing.T) {
	for block, want := range map[string]string{
		"contact ops@example.com":           "contact: it must be mailto: with an e-mail address",
		"contact http://example.com":        "an https URL",
		"devices nobody":                    "devices must be invited, users or open",
		"max_devices 0":                     "max_devices",
		"max_devices 501":                   "max_devices",
		"services https://push.example.com": "services: it must be the name of a host",
		"services *.example.com":            "services: it must be the name of a host",
		"services push.example.com:8443":    "services: it must be the name of a host",
		"vapid secret":                      "unknown subdirective",
	} {
		err := new(App).UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\npush {\n" + block + "\n}\n}"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Testfile:3") {
			t.Errorf("%s: %v, want %q and the line", block, err, want)
		}
	}
	err := new(Handler).UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\npush\n}"))
	if err == nil || !strings.Contains(err.Error(), "global option") {
		t.Errorf("push in a site: %v", err)
	}
	for _, c := range []Push{{Contact: "x"}, {Devices: "x"}, {MaxDevices: -1}, {MaxDevices: 1000}, {Services: []string{"a/b"}}} {
		if _, err := c.resolve(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestPushRefused checks that push is refused where no device could subscribe.
func TestPushRefused(t *testing.T) {
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	const address = "public_url https://alerts.example.com\n"
	for name, tt := range map[string]struct{ site, global, want string }{
		"no queue":      {"", address + "push", "add queue"},
		"no public_url": {"", queue + "push", "add public_url"},
		"http":          {"", queue + "push\npublic_url http://alerts.example.com", "write public_url with https"},
		"no pages":      {"", queue + address + "push\npage off", "remove page off"},
		"no pages here": {"page off", queue + address + "push", "remove page off"},
		"this machine":  {"", queue + "push\npublic_url http://localhost:8080", ""},
		"of the site":   {"public_url https://a.example.com", queue + "push", ""},
		"good":          {"key k", queue + address + "push\nkey ops", ""},
	} {
		h, err := provision(t, tt.site, tt.global)
		if name == "good" && err != nil { // the site knows of push from the whole Caddyfile only
			h, err = provision(t, "", tt.global)
		}
		if err == nil {
			err = h.app.checkPush()
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := provision(t, "", queue+address+"key ops"); err == nil || !strings.Contains(err.Error(), "needs a block") {
		t.Errorf("a key without a URL and without push: %v", err)
	}
	if _, err := provision(t, "", queue+address+"key ops {\naccept direct\n}"); err == nil || !strings.Contains(err.Error(), "has no URL") {
		t.Errorf("a key without a URL and without push: %v", err)
	}
}

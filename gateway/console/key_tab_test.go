package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestKeyTabs checks that each tab of a key is a page with only its own part, and that the tabs
// lead to one another.
func TestKeyTabs(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, queued(openConsole(gatewaytest.Key("ops", s.NotifyURL("/fine")))))
	parts := regexp.MustCompile(`<h2 id="([^"]+)"`)
	for query, want := range map[string]string{
		"":              "State: reaches",
		"?tab=state":    "State: reaches",
		"?tab=nonsense": "State: reaches",
		"?tab=messages": "Messages: recent queue",
		"?send":         "Send: lines",
		"?tab=settings": "Settings: facts",
	} {
		page := get(g, "/notify/console/keys/ops"+query, browser)
		var got []string
		for _, m := range parts.FindAllStringSubmatch(page.Body, -1) {
			got = append(got, m[1])
		}
		here := regexp.MustCompile(`keys/ops[^"]*" aria-current="page">(\w+)</a>`).FindStringSubmatch(page.Body)
		if page.Status != http.StatusOK || here == nil || strings.TrimSpace(here[1]+": "+strings.Join(got, " ")) != want {
			t.Errorf("%q: status %d, tab %q with %q, want %q", query, page.Status, here, got, want)
		}
		for _, link := range []string{`keys/ops"`, `keys/ops?tab=messages"`, `keys/ops?send"`, `keys/ops?tab=settings"`} {
			if !strings.Contains(page.Body, link) {
				t.Errorf("%q does not lead to %s", query, link)
			}
		}
		if strings.Contains(page.Body, `keys/ops?tab=devices"`) {
			t.Errorf("%q leads to devices, which the key cannot have", query)
		}
	}
}

// TestOneAddress checks that a key and the list of keys have one page each, to which the addresses
// of Apprise API redirect browsers, and that programs get there only what Apprise API has.
func TestOneAddress(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, queued(openConfigs(gatewaytest.Key("ops", s.NotifyURL("/fine")))))
	for target, want := range map[string]string{
		"/cfg": "./notify/console/keys", "/cfg/": "../notify/console/keys", "/cfg?search=a%26b": "./notify/console/keys?search=a%26b",
		"/cfg/ops": "../notify/console/keys/ops", "/cfg/ops/": "../../notify/console/keys/ops",
		"/cfg/new?build=json&form=2": "../notify/console/keys/new?build=json&form=2",
	} {
		if r := get(g, target, browser); r.Status != http.StatusSeeOther || r.Header.Get("Location") != want ||
			r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s leads a browser to %q, %d, want %q", target, r.Header.Get("Location"), r.Status, want)
		}
	}
	if r := get(g, "/cfg/ops", gatewaytest.TypeJSON); r.Status != http.StatusNotAcceptable {
		t.Errorf("a program that gets a key: %d %s", r.Status, r.Body)
	}
	for _, query := range []string{"build", "build=json", "retry", "drop", "hurry", "invite", "revoke", "send"} {
		if r := submit(g, "/cfg/ops?"+query, nil); r.Status != http.StatusForbidden ||
			!strings.Contains(r.Body, "is in the configuration of the gateway") {
			t.Errorf("?%s does something at /cfg/ops: %d %s", query, r.Status, r.Body)
		}
	}
	off := openConfigs(gatewaytest.Key("ops", s.NotifyURL("/fine")))
	off.Site.Page = new(false)
	for target, want := range map[string]int{"/cfg": http.StatusOK, "/cfg/ops": http.StatusMethodNotAllowed} {
		if r := get(gatewaytest.New(t, off), target, browser); r.Status != want {
			t.Errorf("without pages, %s: %d %s", target, r.Status, r.Body)
		}
	}
	if paths := s.Paths(); paths != "" {
		t.Errorf("messages have arrived at %q", paths)
	}
}

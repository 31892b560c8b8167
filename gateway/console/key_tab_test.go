package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestKeyTabs checks that each tab of a key is a page that has its part alone, that the tabs
// lead to one another, and that /cfg/{KEY} has all in one.
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
		"?tab=settings": "Settings:",
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
	all := get(gatewaytest.New(t, queued(openConfigs(gatewaytest.Key("ops", s.NotifyURL("/fine"))))), "/cfg/ops", browser).Body
	for _, id := range []string{"reaches", "queue", "recent", "lines"} {
		if !strings.Contains(all, `<h2 id="`+id+`"`) {
			t.Errorf("/cfg/ops lacks %s", id)
		}
	}
	if strings.Contains(all, `class="tabs"`) {
		t.Error("/cfg/ops has tabs")
	}
}

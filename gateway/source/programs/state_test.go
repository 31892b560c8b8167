package programs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestStateOfText checks which texts name a state, with titles and texts of programs that use ntfy
// and Gotify.
func TestStateOfText(t *testing.T) {
	for _, tt := range []struct {
		title, body string
		want        notifier.Type
	}{
		{"Uptime-Kuma", "[Shop] [✅ Up] 200 - OK", notifier.Success},
		{"Uptime-Kuma", "[Shop] [🔴 Down] timeout", notifier.Failure},
		{"[RESOLVED] DiskFull", "", notifier.Success},
		{"[FIRING:2] DiskFull", "", notifier.Failure},
		{"[WARN] DiskFull", "", notifier.Warning},
		{"CLEAR, disk = 20%, on db1", "", notifier.Success},
		{"CRITICAL, disk = 91%, on db1", "", notifier.Failure},
		{"Warning: disk", "", notifier.Warning},
		{"OK - db1", "", notifier.Success},
		{"🚨 Resolved: DiskFull", "", notifier.Success}, // the word counts
		{"🚨 ✅ DiskFull", "", notifier.Failure},         // the most serious one
		{"[CRITICAL] [RESOLVED] DiskFull", "", notifier.Success},
		{"[FIRING:1, RESOLVED:2] DiskFull", "", notifier.Failure},
		{"db1", "[RESOLVED] DiskFull", notifier.Success},
		{"db1 is DOWN", "✅ 3 other checks", notifier.Failure}, // the title counts
		{"db1 is DOWN", "", notifier.Failure},
		{"“Nightly backup” is UP", "", notifier.Success},
		{"db1 is back up.", "", notifier.Success},
		{"Gatus: shop", "An alert for `shop` has been resolved after passing successfully", notifier.Success},
		{"", "An alert has been triggered due to having failed", notifier.Failure},

		{"nginx is up to date", "", ""},
		{"is it up", "", ""},
		{"Open: the door", "", ""},
		{"Backup: done", "", ""},
		{"Not resolved yet", "", ""},
		{"Info: disk", "", ""},
		{"Report", "line\n✅ line 2", ""}, // only the first line
		{"", "", ""},
		// Uptime Kuma's plain text for Slack, without a group and with one.
		{"", "web/shop\n[web/shop] [🔴 Down] timeout", notifier.Failure},
		{"", "web/shop\n[web/shop] [✅ Up] 200 - OK", notifier.Success},
		{"", "_web / eu_\nshop\n[shop] [🔴 Down] timeout", notifier.Failure},
		{"", "web/shop is up\n[web/shop] [🔴 Down] timeout", notifier.Success}, // the first line says something
		{"", "web/shop\nsee below\n[web/shop] [🔴 Down] timeout", ""},
		{"", strings.Repeat("a long line ", 20) + "\n[web/shop] [🔴 Down] timeout", ""},
	} {
		if got := compose.StateOfText(tt.title, tt.body); got != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.title, tt.body, got, tt.want)
		}
	}
}

// TestRate checks the type that follows from a priority and a state.
func TestRate(t *testing.T) {
	for _, tt := range []struct{ priority, state, want notifier.Type }{
		{notifier.Failure, notifier.Success, notifier.Success},
		{"", notifier.Success, notifier.Success},
		{notifier.Info, notifier.Failure, notifier.Failure},
		{notifier.Failure, notifier.Warning, notifier.Failure},
		{notifier.Warning, "", notifier.Warning},
		{"", "", ""},
	} {
		var m source.Message
		if compose.SetType(&m, tt.priority, tt.state); m.Type != string(tt.want) {
			t.Errorf("%q and %q: %q, want %q", tt.priority, tt.state, m.Type, tt.want)
		}
	}
}

// TestNtfyActions checks the short format of buttons.
func TestNtfyActions(t *testing.T) {
	for text, want := range map[string][]ntfyAction{
		"view, Open portal, https://home.nest.com/": {{action: "view", label: "Open portal", url: "https://home.nest.com/"}},
		"view, Open, https://a/?x=1; view, label='a, \\'b\\'; c', url=b": {
			{action: "view", label: "Open", url: "https://a/?x=1"},
			{action: "view", label: "a, 'b'; c", url: "b"},
		},
		"action = VIEW, label=x , clear=true, url=y;": {{action: "view", label: "x", url: "y", clear: true}},
		`view, "Look ma, \"quotes\"", u`:              {{action: "view", label: `Look ma, "quotes"`, url: "u"}},
		"http, Off, https://a, method=PUT, headers.X-A=b, " +
			"body=c": {{action: "http", label: "Off", url: "https://a", method: "PUT", body: "c", headers: map[string]string{"X-A": "b"}}},
		"": nil,
	} {
		got, ok := parseNtfyActions(text)
		if !ok || len(got) != len(want) {
			t.Errorf("%s: %+v, %v", text, got, ok)
			continue
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("%s: %+v", text, got[i])
			}
		}
	}
	for _, text := range []string{`view, "x`, `view, "x"y, z`, `'`} {
		if got, ok := parseNtfyActions(text); ok {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

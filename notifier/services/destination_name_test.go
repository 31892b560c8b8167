package services

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestDestinationName checks the names of destinations.
func TestDestinationName(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"json://web.example", "JSON web.example"},
		{"jsons://user:sesame@web.example:8443/hook/a", "JSON web.example:8443"},
		{"json://[2001:db8::6]:80/a", "JSON [2001:db8::6]:80"},
		{"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#ops", "Slack #ops"},
		{"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#ops/#dev/@jo", "Slack #ops +2"},
		{"ntfys://push.example/duty", "ntfy duty"},
		{"ntfy://duty", "ntfy duty"},
		{"gotifys://push.example.org/AbCdEfGhIjKlMnO", "Gotify push.example.org"},
		{"mailto://alerts:sesame@example.com", "E-Mail alerts@example.com"},
		{"mailtos://alerts:sesame@example.com/ops@example.org", "E-Mail ops@example.org"},
		{"mailtos://alerts:sesame@example.com?to=ops@example.org,dev@example.org", "E-Mail ops@example.org +1"},
		{"mqtt://bob:sesame@127.0.0.1:1883/alerts/disk", "MQTT alerts +1"},
		{"tgram://123456789:abcdefghijklmnopqrstuvwxyz012345678/-1001234567890", "Telegram -1001234567890"},
		{"matrixs://ann:sesame@matrix.example.org/#ops", "Matrix #ops"},
		{"rockets://user:sesame@chat.example.com/#general", "Rocket.Chat #general"},
		{"pover://uuuuuuuuuuuuuuuuuuuuuuuuuuuuuu@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/phone", "Pushover phone"},
		{"discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", "Discord"},
		{"discord://Watch@4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", "Discord Watch"},
		{"twilio://AC00000000000000000000000000000000:sesame@15557654321/15551234567", "Twilio +15551234567"},
		{"xmpp://gateway:sesame@127.0.0.1:1/bob", "XMPP bob"},
		{"syslog://local3", "Syslog"},
		{"json://" + strings.Repeat("long.", 12) + "example", "JSON long.long.long.long.long.long.long.long.long.lo…"},
	} {
		d, err := notifier.Parse(c.url, nil)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if got := d.Name(); got != c.want {
			t.Errorf("%s has the name %q; want %q", d, got, c.want)
		}
		target := notifier.Target{Destination: d, Tags: []string{"1:oncall", "web"}}
		if got, want := target.Name(), c.want+" (1:oncall, web)"; got != want {
			t.Errorf("with tags it has the name %q; want %q", got, want)
		}
	}
}

// TestNameOf checks names of what no URL can name.
func TestNameOf(t *testing.T) {
	for _, c := range []struct{ service, shown, want string }{
		{"Device", "device://Jo's phone", "Device Jo's phone"},
		{"Unknown", "an unknown URL", "Unknown"},
		{"JSON", "json://", "JSON"},
		{"Slack", "", "Slack"},
		{"Key", "ops", "Key ops"},
		{"Device", "device://a\u202eb\nc", "Device ab c"},
	} {
		if got := notifier.NameOf(c.service, c.shown); got != c.want {
			t.Errorf("%s %s has the name %q; want %q", c.service, c.shown, got, c.want)
		}
	}
}

var furtherItems = regexp.MustCompile(` \+[0-9]+$`)

// TestNamesHaveNoSecrets checks that the name of each URL of the golden files shows nothing
// that the masked URL does not show.
func TestNamesHaveNoSecrets(t *testing.T) {
	checked, told := 0, 0
	for _, file := range servicetest.Files(t, ".") {
		for _, c := range servicetest.ReadCases(t, file) {
			d, err := notifier.ParseWithFiles(c.URL, nil, notifier.Files{Dir: ".", Unread: true})
			if err != nil {
				continue
			}
			checked++
			detail, ok := strings.CutPrefix(d.Name(), d.Service())
			if !ok || strings.Contains(detail, redact.Mask) {
				t.Errorf("%s has the name %q", d, d.Name())
			}
			shown, err := url.PathUnescape(d.String())
			if err != nil {
				shown = d.String()
			}
			detail = furtherItems.ReplaceAllString(strings.TrimSpace(detail), "")
			if detail != "" {
				told++
			}
			for part := range strings.FieldsFuncSeq(detail, func(r rune) bool { return r == '@' || r == ':' || r == ' ' }) {
				if !strings.Contains(shown, strings.TrimSuffix(part, "…")) {
					t.Errorf("%s has the name %q, of which it does not show %q", d, d.Name(), part)
				}
			}
		}
	}
	if checked < 300 || told < checked/2 {
		t.Errorf("of %d URLs, only %d have names that tell them apart", checked, told)
	}
}

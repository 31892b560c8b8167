package console_test

import (
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// barLink is the link of a half hour in a bar, with its times and numbers.
var barLink = regexp.MustCompile(`<a href="([^"]*/notify/console/messages\?[^"]*)" tabindex="-1">` +
	`<title data-part="\d+">(\d\d:\d\d–\d\d:\d\d) UTC: ([^<]*)<`)

// TestBarLinks follows the links of bars: each leads to messages that came in in its half hour, or to
// which something happened then, and the filter can be seen and removed.
func TestBarLinks(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		follow := func(at string) (body string) {
			t.Helper()
			r := get(n.Gateway, "/notify/console"+at[strings.Index(at, "/messages"):], browser)
			if r.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", at, r.Status, r.Body)
			}
			return r.Body
		}
		found := map[string]string{}
		for _, address := range []string{"", "/keys", "/keys/everyone", "/keys/many", "/queue"} {
			links := barLink.FindAllStringSubmatch(get(n.Gateway, "/notify/console"+address, browser).Body, -1)
			if len(links) == 0 {
				t.Errorf("%s has no links", address)
			}
			for _, m := range links {
				at := html.UnescapeString(m[1])
				if !strings.Contains(at, "&to=") {
					found[m[2]+" "+m[3]+" "+regexp.MustCompile("key=[^&]*").FindString(at)] = at
				}
				body := follow(at)
				if listed(body) == nil || !strings.Contains(plain(body), strings.Replace(m[2], "–", " – ", 1)+" ✕") {
					t.Errorf("%s, %s: %s leads to %s", address, m[0], at, plain(body))
				}
			}
		}
		if got := listed(follow(found["00:00–00:30 1 delivered key=host-01"])); len(got) != 1 {
			t.Errorf("one message is %q", got)
		}
		body := follow(found["02:00–02:30 200 delivered key=many"])
		if got := listed(body); len(got) < 50 || slices.ContainsFunc(got, func(line string) bool { return line != "delivered many" }) {
			t.Errorf("200 messages are %q", got)
		}
		if !strings.Contains(body, `<input type="hidden" name="half" value="20000101T0200Z">`) ||
			!strings.Contains(body, `notify/console/messages?key=many" aria-label="Remove the filter 02:00–02:30 UTC">`) {
			t.Errorf("the filter cannot be kept, or removed: %s", plain(body))
		}
		if older := regexp.MustCompile(`rel="next" class="button" href="([^"]*)"`).FindStringSubmatch(body); older == nil ||
			!strings.Contains(older[1], "half=2000") {
			t.Errorf("older messages are those of any time: %q", older)
		}
		if r := get(n.Gateway, "/notify/console/messages?half=noon", browser); r.Status != http.StatusBadRequest {
			t.Errorf("a time that is none: %d", r.Status)
		}
		to := "/messages?to=" + strings.ReplaceAll(n.Down.URL, "http://", "ntfy://") + "/phone-07"
		if body := follow(to); !strings.Contains(plain(body), "to ntfy phone-07 ✕") || len(listed(body)) != 3 {
			t.Errorf("%s lists %q: %s", to, listed(body), plain(body))
		}
		// In a later half hour, the messages to what is down are only tried again.
		gatewaytest.Until(t, "2000-01-01 04:10:00")
		links := barLink.FindAllStringSubmatch(get(n.Gateway, "/notify/console/keys/everyone", browser).Body, -1)
		i := slices.IndexFunc(links, func(m []string) bool { return m[2] > "03:00" && strings.HasSuffix(m[3], "waited") })
		if i < 0 {
			t.Fatalf("nothing was tried again: %q", links)
		}
		if body := follow(html.UnescapeString(links[i][1])); !strings.Contains(body, "Storm warning") || strings.Contains(body, "Payments fail") {
			t.Errorf("%s has not what was tried then: %s", links[i][1], plain(body))
		}
	})
}

package console_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// beatNames are the names of the beats on a page, in order.
var beatNames = regexp.MustCompile(`<a class="name" href="[^"]*[?&;]beat=([a-z]+)`)

// TestBeatsPage checks that the page has the beats of all keys, the worst first, that a state and a key
// choose, and that the page of a beat has its runs with what the job posted.
func TestBeatsPage(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		const at = "/notify/console/beats"
		for address, want := range map[string][]string{
			at:                                   {"offsite", "hourly", "mirror", "archive", "yearly", "nightly"},
			at + "?key=backups":                  {"offsite", "hourly", "mirror", "archive", "yearly", "nightly"},
			at + "?state=late":                   {"hourly", "mirror"},
			at + "?state=in_grace":               nil,
			at + "?key=duty":                     nil,
			at + "?key=backups&beat=nightly":     {"nightly"},
			"/notify/console/keys/backups":       {"offsite", "hourly", "mirror", "archive", "yearly", "nightly"},
			at + "?key=backups&state=on_time":    {"nightly"},
			at + "?key=backups&state=nonsense":   nil,
			at + "?key=backups&state=&beat=none": {"404"},
			at + "?key=duty&beat=nightly":        {"404"},
		} {
			got := n.Get(address)
			var names []string
			for _, m := range beatNames.FindAllStringSubmatch(got.Body, -1) {
				names = append(names, m[1])
			}
			if got.Status == http.StatusNotFound {
				names = []string{"404"}
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s has %q, want %q", address, names, want)
			}
		}
		for address, want := range map[string][]string{
			at:                                 {`aria-current="page"`, ">Beats</a>", "no run has come yet", "1 failed, 28 on time"},
			at + "?key=backups&beat=offsite":   {"rsync: connection to offsite.example lost", "exit code 23"},
			at + "?key=backups&beat=yearly":    {"No run has come yet. The first one is expected <time"},
			"/notify/console/beats?key=duty":   {"No beat fits"},
			"/notify/console/keys/backups":     {"rsync: connection to offsite.example lost"},
			at + "?key=backups&beat=nightly":   {"file changed as we read it", `class="missed"`, `class="failed"`, `class="late"`},
			"/notify/console/beats?state=late": {`aria-current="page" href="`},
		} {
			body := n.Get(address).Body
			for _, text := range want {
				if !strings.Contains(body, text) {
					t.Errorf("%s lacks %s", address, text)
				}
			}
		}
	})
}

// TestBeatsPageWithoutBeats checks that the navigation has the page only if a key expects a beat, and
// that the page says otherwise which line brings one.
func TestBeatsPageWithoutBeats(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", p.NotifyURL())}},
		Site:   site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{Path: t.TempDir()},
	})
	if body := g.Get("/notify/console").Body; strings.Contains(body, "console/beats") {
		t.Error("the navigation has a page of beats, and no key expects one")
	}
	if body := g.Get("/notify/console/beats").Body; !strings.Contains(body, "expect nightly every 24h grace 2h") {
		t.Errorf("the page does not say what brings a beat: %s", body)
	}
}

// TestWeekOfIncidents checks that the pages of incidents and of a key have the incidents of the week, and
// that the bar of a day leads to the list of that day.
func TestWeekOfIncidents(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		for address, want := range map[string]string{
			"/notify/console/incidents":          "1 escalated, 202 other failures, 1 warning",
			"/notify/console/incidents?key=many": "200 failures",
			"/notify/console/keys/duty":          "1 escalated, 1 other failure",
		} {
			body := n.Get(address).Body
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q", address, want)
			}
			links := regexp.MustCompile(`<a href="[^"]*(/notify/console/incidents\?[^"]*day=[^"]*)"`).FindAllStringSubmatch(body, -1)
			if len(links) == 0 {
				t.Fatalf("%s has no bar that leads to a day", address)
			}
			for _, m := range links {
				list := n.Get(strings.ReplaceAll(m[1], "&amp;", "&")).Body
				if !strings.Contains(list, "any day") || !strings.Contains(list, `aria-current="page"`) || !strings.Contains(list, `class="row is-`) {
					t.Errorf("%s: %s", m[1], list)
				}
			}
		}
		if body := n.Get("/notify/console/incidents?day=1999-01-01").Body; !strings.Contains(body, "No incident fits") {
			t.Error("a day of last year has incidents")
		}
		if got := n.Get("/notify/console/incidents?day=yesterday"); got.Status != http.StatusBadRequest {
			t.Errorf("yesterday: status %d", got.Status)
		}
	})
}

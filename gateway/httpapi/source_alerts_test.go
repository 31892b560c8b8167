package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// opsgenieAlert returns the address and the body of an alert for Opsgenie.
func opsgenieAlert(key, alias, message, priority string) (target, body string) {
	return "/notify/" + key + "/opsgenie/v2/alerts", fmt.Sprintf(`{"alias":%q,"message":%q,"priority":%q}`, alias, message, priority)
}

// pagerDutyEvent returns the address and the body of an event for PagerDuty.
func pagerDutyEvent(key, action, dedup, summary, severity string) (target, body string) {
	return "/notify/" + key + "/pagerduty/v2/enqueue", fmt.Sprintf(`{"event_action":%q,"dedup_key":%q,"payload":{"summary":%q,"severity":%q,"source":"db1"}}`, action, dedup, summary, severity)
}

// TestRepeatedAlerts checks that an open alert that is opened again is only counted if its
// text and its priority are the same, without a queue and with one.
func TestRepeatedAlerts(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]*outbox.Settings{"without a queue": nil, "with a queue": {}} {
		s := gatewaytest.NewStation(t)
		g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}}, Queue: queue})
		for _, tt := range []struct {
			target, body string
			want         string // what arrives
		}{
			first("ops", "disk", "Disk full", "P3", "warning Disk full"),
			first("ops", "disk", "Disk full", "P3", ""),
			first("ops", "disk", "Disk full", "P3", ""),
			first("ops", "raid", "Disk full", "P3", "warning Disk full"),
			first("ops", "disk", "Disk full", "P1", "failure Disk full\n2 repetitions since"),
			first("ops", "disk", "Disk fuller", "P1", "failure Disk fuller"),
			first("ops", "disk", "Disk full", "P1", "failure Disk full"), // as before, but not what was told last
			first("ops", "disk", "Disk full", "P1", ""),
			{"/notify/ops/opsgenie/v2/alerts/disk/close", `{}`, "success Closed: Disk full\n1 repetition at"},
			first("ops", "disk", "Disk full", "P1", "failure Disk full"),
			event("ops", "trigger", "disk", "Disk full", "critical", "failure Source: db1"),
			event("ops", "trigger", "disk", "Disk full", "critical", ""),
			event("ops", "trigger", "disk", "Disk full", "warning", "warning Source: db1\n1 repetition at"),
			event("ops", "acknowledge", "disk", "Disk full", "warning", "info Source: db1"),
			event("ops", "trigger", "disk", "Disk full", "warning", ""),
			event("ops", "resolve", "disk", "Disk full", "warning", "success Source: db1\n1 repetition at"),
			event("ops", "trigger", "disk", "Disk full", "warning", "warning Source: db1"),
		} {
			if got := g.Post(tt.target, gatewaytest.TypeJSON, tt.body); got.Status != http.StatusAccepted {
				t.Errorf("%s: %s: %d %s", name, tt.body, got.Status, got.Body)
			}
			arrived := ""
			for _, a := range s.Take() {
				arrived += a.Type + " " + a.Message
			}
			if !strings.HasPrefix(arrived, tt.want) || tt.want == "" && arrived != "" || strings.Contains(arrived, "repetition") != strings.Contains(tt.want, "repetition") {
				t.Errorf("%s: %s: arrived %q, want %q", name, tt.body, arrived, tt.want)
			}
		}
	}
}

// row is a request and what arrives.
type row = struct{ target, body, want string }

func first(key, alias, message, priority, want string) row {
	target, body := opsgenieAlert(key, alias, message, priority)
	return row{target, body, want}
}

func event(key, action, dedup, summary, severity, want string) row {
	target, body := pagerDutyEvent(key, action, dedup, summary, severity)
	return row{target, body, want}
}

// TestRepeatedAlertsAreTold checks that an alert that is opened again is told to a destination
// that lacks it, and where somebody has resolved it in the meantime.
func TestRepeatedAlertsAreTold(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	busy := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	g := siteWith(t, gatewaytest.Key("both", s.NotifyURL("/ops"), busy.NotifyURL()+"?retry=0"), gatewaytest.Key("bad", busy.NotifyURL()+"?retry=0"))
	target, body := opsgenieAlert("both", "disk", "Disk full", "P1")
	for i, want := range []int{1, 0} {
		if got := g.Post(target, gatewaytest.TypeJSON, body); i == 0 && got.Status != http.StatusAccepted || len(s.Take()) != want {
			t.Errorf("both, %d: %d %s", i, got.Status, got.Body)
		}
	}
	target, body = opsgenieAlert("bad", "disk", "Disk full", "P1")
	for range 2 {
		if got := g.Post(target, gatewaytest.TypeJSON, body); got.Status != http.StatusServiceUnavailable {
			t.Errorf("a destination that is busy: %d %s", got.Status, got.Body)
		}
	}
	busy.Answer(http.StatusOK)
	if got := g.Post(target, gatewaytest.TypeJSON, body); got.Status != http.StatusAccepted {
		t.Errorf("a destination that works again: %d %s", got.Status, got.Body)
	}

	ruled := gatewaytest.RuledKey("ruled", rules.Rules{Rate: []rules.Rate{{Count: 100, Per: time.Minute}}}, s.NotifyURL("/ops"))
	g = gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{ruled}}, Site: site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{},
	})
	target, body = opsgenieAlert("ruled", "disk", "Disk full", "P1")
	for i, want := range []int{1, 0} {
		g.Post(target, gatewaytest.TypeJSON, body)
		if got := len(s.Take()); got != want {
			t.Errorf("ruled, %d: %d messages arrived", i, got)
		}
	}
	if got := askIncident(t, g, http.MethodPost, g.ListIncidents("ruled")[0].ID, "do=resolve"); got.Status/100 > 3 {
		t.Fatalf("resolve: %d %s", got.Status, got.Body)
	}
	s.Take()
	g.Post(target, gatewaytest.TypeJSON, body)
	s.Arrives(t, "")
}

// TestOpsgenieAliases checks that an alias with slashes and other special characters is the
// same in the path of a request as in the alert that it opens.
func TestOpsgenieAliases(t *testing.T) {
	t.Parallel()
	d := newSourceDesk(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", d.url())}, Egress: gatewaytest.Loopback()}})
	for alias, paths := range map[string][]string{
		"db1/disk":    {"db1%2Fdisk", "db1/disk"},
		"db1//disk":   {"db1%2F%2Fdisk", "db1//disk", "db1%2F/disk"},
		"/disk/":      {"%2Fdisk%2F"},
		"disk/close":  {"disk%2Fclose"},
		"100%2F full": {"100%252F%20full"},
		"disk/tags":   {"disk%2Ftags"},
		"a b+c":       {"a%20b+c"},
	} {
		for _, path := range paths {
			target, body := opsgenieAlert("ops", alias, "Disk full", "P1")
			g.Post(target, gatewaytest.TypeJSON, body)
			opened := d.take()
			for _, r := range []*http.Request{
				gatewaytest.NewRequest("POST", target+"/"+path+"/close", "{}", "Content-Type", gatewaytest.TypeJSON),
				gatewaytest.NewRequest("DELETE", target+"/"+path, ""),
			} {
				got := g.Do(r)
				if closed := d.take(); got.Status != http.StatusAccepted || len(opened) != 1 || len(closed) != 1 || closed[0].ID != opened[0].ID || closed[0].State != "resolved" {
					t.Errorf("%s, %s %s: %d %s, opened %+v, closed %+v", alias, r.Method, path, got.Status, got.Body, opened, closed)
				}
			}
		}
	}
}

// TestOpsgenieHeartbeat checks that the ping of a heartbeat is a beat that the key expects.
func TestOpsgenieHeartbeat(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	k := lockedKey("ops", "secret-token-1234", s.NotifyURL("/ops"))
	k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Minute}}}
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{k}}, Queue: &outbox.Settings{}})
	for _, tt := range []struct {
		method, path, key string
		status            int
		want              string
	}{
		{"GET", "v2/heartbeats/nightly/ping", "secret-token-1234", 202, `"result":"PONG - Heartbeat received"`},
		{"POST", "v2/heartbeats/nightly/ping", "secret-token-1234", 202, `"PONG`},
		{"PUT", "v2/heartbeats/nightly/ping", "secret-token-1234", 202, `"PONG`},
		{"PATCH", "v2/heartbeats/nightly/ping", "secret-token-1234", 202, `"PONG`},
		{"GET", "v2/heartbeats/weekly/ping", "secret-token-1234", 404, "add expect"},
		{"GET", "v2/heartbeats/nightly", "secret-token-1234", 404, "add expect"},
		{"POST", "v2/heartbeats/nightly/enable", "secret-token-1234", 404, "add expect"},
		{"GET", "v2/heartbeats/nightly/ping", "another", 401, ""},
	} {
		got := g.Do(gatewaytest.NewRequest(tt.method, "/notify/ops/opsgenie/"+tt.path, "", "Authorization", "GenieKey "+tt.key))
		if got.Status != tt.status || !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.Status, got.Body)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("messages arrived: %+v", got)
	}
}

// TestResolvedText checks that an alert whose text begins with RESOLVED, as Gatus sends before
// it closes the alert, is no failure.
func TestResolvedText(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	for _, tt := range []row{
		first("ops", "shop", "RESOLVED: shop - health check succeeded", "P1", "success"),
		first("ops", "shop", "[RESOLVED] shop", "P1", "success"),
		first("ops", "shop", "TRIGGERED: shop - not RESOLVED", "P1", "failure"),
		event("ops", "trigger", "shop", "RESOLVED: shop is healthy", "critical", "success"),
		event("ops", "trigger", "shop", "TRIGGERED: shop", "critical", "failure"),
	} {
		if g.Post(tt.target, gatewaytest.TypeJSON, tt.body); true {
			if got := s.One(t); got.Type != tt.want {
				t.Errorf("%s: %s", tt.body, got.Type)
			}
		}
	}
}

// TestLongTexts checks that a text arrives as a whole up to max_body, and that what is left
// out beyond it is said in the text, the answer and the log.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	long := strings.Repeat("x", 200<<10) + " end"
	for _, tt := range [][2]string{
		{"slack/TOKEN", `{"text":"` + long + `"}`},
		{"slack/api/chat.postMessage", `{"text":"` + long + `"}`},
		{"slack/api/v4/posts", `{"message":"` + long + `"}`},
		{"discord/1/TOKEN", `{"content":"` + long + `"}`},
		{"ntfy/alerts", long},
		{"ntfy", `{"topic":"alerts","message":"` + long + `"}`},
		{"gotify/message", `{"message":"` + long + `"}`},
		{"opsgenie/v2/alerts", `{"message":"x","alias":"1","description":"` + long + `"}`},
		{"opsgenie/v2/alerts/1/notes", `{"note":"` + long + `"}`},
		{"pagerduty/v2/enqueue", `{"event_action":"trigger","payload":{"summary":"` + long + `"}}`},
	} {
		g.Post("/notify/ops/"+tt[0], gatewaytest.TypeJSON, tt[1])
		if got := s.One(t); !strings.Contains(got.Message, long) {
			t.Errorf("%s: %d bytes arrived", tt[0], len(got.Message))
		}
	}

	// The text is longer than its request, because each < of a plain text is escaped.
	g = gatewaytest.New(t, gatewaytest.Options{Site: site.Options{MaxBody: 2 << 10, Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=markdown")}}})
	got := g.Post("/notify/ops/slack/api/chat.postMessage", gatewaytest.TypeJSON, `{"blocks":[{"type":"section","text":{"type":"plain_text","text":"`+strings.Repeat("<@", 900)+`"}}]}`)
	if a := s.One(t); got.Status != 200 || !strings.Contains(got.Body, `"[WARN] `) || !strings.Contains(a.Message, "652 bytes are left out") {
		t.Errorf("a text that is too long: %d %s, %q", got.Status, got.Body, a.Message)
	}
}

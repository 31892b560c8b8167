package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

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
	return "/notify/" + key + "/pagerduty/v2/enqueue",
		fmt.Sprintf(`{"event_action":%q,"dedup_key":%q,"payload":{"summary":%q,"severity":%q,"source":"db1"}}`, action, dedup, summary, severity)
}

// TestRepeatedAlerts checks that opening an open alert again is only counted if the text and the
// priority are the same, with and without a queue.
func TestRepeatedAlerts(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]*outbox.Settings{"without a queue": nil, "with a queue": {}} {
		s := gatewaytest.NewStation(t)
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}},
			Queue: queue,
		})
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
			first("ops", "disk", "Disk full", "P1", "failure Disk full"), // as before, but not the last one told
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
			if !strings.HasPrefix(arrived, tt.want) || tt.want == "" && arrived != "" ||
				strings.Contains(arrived, "repetition") != strings.Contains(tt.want, "repetition") {
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

// TestRepeatedAlertsAreTold checks that an alert that is opened again reaches a destination that
// lacks it, and every destination if somebody has resolved it in the meantime.
func TestRepeatedAlertsAreTold(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	busy := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	g := siteWith(t, gatewaytest.Key("both", s.NotifyURL("/ops"), busy.NotifyURL()+"?retry=0"),
		gatewaytest.Key("bad", busy.NotifyURL()+"?retry=0"))
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

// TestAlertOpenedAgainLater checks when an open alert is told again with the same text: after four
// hours without a message, unless somebody takes care of it or has silenced it, and if its priority
// has changed. A message that is not told is recorded in the answer, the log and the metrics. A
// gateway that starts meanwhile knows the alert.
func TestAlertOpenedAgainLater(t *testing.T) {
	t.Parallel()
	opsgenie := func(path, body string) string { return "POST /opsgenie/v2/alerts" + path + " " + body }
	pagerduty := func(action, severity string) string {
		return fmt.Sprintf(`POST /pagerduty/v2/enqueue {"event_action":%q,"dedup_key":"disk","payload":{"summary":"Disk `+
			`full","severity":%q,"source":"db1"}}`, action, severity)
	}
	open := func(priority string) string {
		return opsgenie("", fmt.Sprintf(`{"alias":"disk","message":"Disk full","description":"db1","priority":%q}`, priority))
	}
	silence := func(form string) string { return "POST /silences " + form }
	const hour = time.Hour
	type step struct {
		after   time.Duration
		request string
		told    bool
	}
	first := step{0, open("P1"), true}
	for name, steps := range map[string][]step{
		"each night": {first, {24 * hour, open("P1"), true}, {24 * hour, open("P1"), true}},
		"again within four hours": {
			first,
			{3 * hour, open("P1"), false},
			{4*hour - time.Minute, open("P1"), false},
			{4 * hour, open("P1"), true},
			{hour, open("P1"), false},
		},
		"something else was heard": {first, {3 * hour, opsgenie("/disk/notes", `{"note":"x"}`), true}, {3 * hour, open("P1"), false}},
		"acknowledged": {
			first,
			{hour, opsgenie("/disk/acknowledge", `{}`), true},
			{5 * hour, open("P1"), false},
			{9 * 24 * hour, open("P1"), false},
		},
		"acknowledged no more": {
			first,
			{hour, opsgenie("/disk/acknowledge", `{}`), true},
			{hour, opsgenie("/disk/unacknowledge", `{}`), true},
			{5 * hour, open("P1"), true},
		},
		"acknowledged and closed": {
			first,
			{hour, opsgenie("/disk/acknowledge", `{}`), true},
			{hour, opsgenie("/disk/close", `{}`), true},
			{hour, open("P1"), true},
			{5 * hour, open("P1"), true},
		},
		"silenced": {
			first,
			{hour, silence("for=10h&title=disk"), false},
			{5 * hour, open("P1"), false},
			{6 * hour, open("P1"), true},
		},
		"another title is silenced": {first, {hour, silence("for=10h&title=raid"), false}, {5 * hour, open("P1"), true}},
		"P2, then P1": {
			{0, open("P2"), true},
			{time.Minute, open("P1"), true},
			{time.Minute, open("P1"), false},
			{time.Minute, open("P2"), true},
		},
		"PagerDuty, each night": {
			{0, pagerduty("trigger", "critical"), true},
			{24 * hour, pagerduty("trigger", "critical"), true},
			{hour, pagerduty("trigger", "critical"), false},
		},
		"PagerDuty, error to critical": {{0, pagerduty("trigger", "error"), true}, {hour, pagerduty("trigger", "critical"), true}},
		"PagerDuty, acknowledged": {
			{0, pagerduty("trigger", "error"), true},
			{hour, pagerduty("acknowledge", "error"), true},
			{5 * hour, pagerduty("trigger", "error"), false},
		},
	} {
		for rule, r := range map[string]rules.Rules{"": {}, "rate": {Rate: []rules.Rate{{Count: 100, Per: time.Minute}}}} {
			if rule != "" && name == "acknowledged no more" { // where rules keep incidents, it stays acknowledged
				continue
			}
			p, dir := gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				core, logs := observer.New(zap.InfoLevel)
				o := gatewaytest.Options{
					Global: site.Options{Keys: []site.KeyOptions{gatewaytest.RuledKey("ops", r, p.NotifyURL())}},
					Site:   site.Options{Managers: gatewaytest.Everybody()},
					Queue:  &outbox.Settings{Path: dir}, Log: zap.New(core),
				}
				g := gatewaytest.New(t, o)
				for i, s := range steps {
					if s.after >= hour { // a gateway that runs for days costs much
						g.Stop()
						time.Sleep(s.after - time.Minute)
						s.after = time.Minute
						g = gatewaytest.New(t, o)
					}
					time.Sleep(s.after)
					method, rest, _ := strings.Cut(s.request, " ")
					path, body, _ := strings.Cut(rest, " ")
					media, before, lines, count := gatewaytest.TypeJSON, p.Count(), logs.FilterMessageSnippet("opened again").Len(),
						g.Process.Values(t)["key_messages_total key=ops outcome=repeated"]
					if strings.HasPrefix(path, "/silences") {
						media = gatewaytest.TypeForm
					}
					got := g.Do(gatewaytest.NewRequest(method, "/notify/ops"+path, body, "Content-Type", media))
					synctest.Wait()
					if told := p.Count() > before; told != s.told || got.Status/100 != 2 {
						t.Errorf("%s %s, step %d: told %v, want %v: %d %s", name, rule, i, told, s.told, got.Status, got.Body)
					}
					if path == "/silences" {
						continue
					}
					untold := strings.Contains(got.Body, `"result":"Nothing was sent: `)
					counted := g.Process.Values(t)["key_messages_total key=ops outcome=repeated"] > count
					logged := logs.FilterMessageSnippet("opened again").Len() > lines
					if untold == s.told || counted == s.told || logged == s.told {
						t.Errorf("%s %s, step %d: the answer is %s, logged %v, counted %v", name, rule, i, got.Body, logged, counted)
					}
				}
			})
		}
	}
}

// TestOpsgenieAliases checks that an alias with slashes and other special characters is the
// same in the path of a request as in the alert that it opens.
func TestOpsgenieAliases(t *testing.T) {
	t.Parallel()
	d := newSourceDesk(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys:   []site.KeyOptions{gatewaytest.Key("ops", d.url())},
		Egress: gatewaytest.Loopback(),
	}})
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
				if closed := d.take(); got.Status != http.StatusAccepted || len(opened) != 1 || len(closed) != 1 || closed[0].ID != opened[0].ID ||
					closed[0].State != "resolved" {
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

// TestLongTexts checks that a text arrives as a whole up to max_body, and that a note about the
// rest is in the text, the answer and the log.
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

	// Written in the markup of the chat, the text is longer than max_body, because each < is escaped.
	g = gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		MaxBody: 2 << 10,
		Keys:    []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=markdown")},
	}})
	post := func(text string) gatewaytest.Reply {
		return g.Post("/notify/ops/slack/api/chat.postMessage", gatewaytest.TypeJSON,
			`{"blocks":[{"type":"section","text":{"type":"plain_text","text":"`+text+`"}}]}`)
	}
	escaped := post(strings.Repeat("<@", 900))
	if a := s.One(t); escaped.Status != 200 || strings.Contains(escaped.Body, `"[WARN] `) || strings.Count(a.Message, "@") != 900 {
		t.Errorf("a text with escapes: %d %s, %q", escaped.Status, escaped.Body, a.Message)
	}
	got := post(strings.Repeat(":us:", 450)) // a flag has twice as many bytes as its name
	if a := s.One(t); got.Status != 200 || !strings.Contains(got.Body, `"[WARN] `) || !strings.Contains(a.Message, "1552 bytes are left out") {
		t.Errorf("a text that is too long: %d %s, %q", got.Status, got.Body, a.Message)
	}
}

package httpapi_test

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// TestSources checks that built-in sources work without configuration, and the errors
// of requests to sources.
func TestSources(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=text"))
	for _, tt := range []struct {
		target, sample string
		want           gatewaytest.Arrived
	}{
		{
			"/notify/ops/alertmanager", "alertmanager/group",
			gatewaytest.Arrived{
				Title:   "DiskFull",
				Message: "Firing: 91% full on db1\nFiring: 95% full on db2\nResolved: db3 is fine again\nhttp://prom.example.net/graph?g0=x",
				Type:    "failure",
			},
		},
		{
			"/notify/ops/alertmanager/", "alertmanager/resolved",
			gatewaytest.Arrived{
				Title:   "DiskFull",
				Message: "Resolved: 91% full on db1\nResolved: 95% full on db2\nResolved: db3 is fine again\nhttp://prom.example.net/graph?g0=x",
				Type:    "success",
			},
		},
		{"/notify/ops/uptime_kuma", "uptime_kuma/test", gatewaytest.Arrived{Title: "Uptime Kuma", Message: "Testing", Type: "info"}},
		{
			"/notify/ops/healthchecks?type=failure", "healthchecks/down",
			gatewaytest.Arrived{
				Title: "Nightly backup is down", Message: "Last ping: 2026-11-19 02:00 UTC\nPeriod: 1 d\nTags: prod db",
				Type: "failure",
			},
		},
	} {
		if got := g.Post(tt.target, gatewaytest.TypeJSON, sourceSample(t, tt.sample)); got.Status != 200 {
			t.Errorf("%s: status %d: %s", tt.target, got.Status, got.Body)
		}
		got := s.One(t)
		if got.Title != tt.want.Title || got.Message != tt.want.Message || got.Type != tt.want.Type {
			t.Errorf("%s: got %+v", tt.target, got)
		}
	}
	for _, tt := range []struct {
		method, target, contentType, body string
		want                              int
		text                              string
	}{
		{"POST", "/notify/ops/grafanna", gatewaytest.TypeJSON, "{}", 404, "there is no such source: grafanna; you may mean grafana"},
		{"POST", "/notify/none/grafana", gatewaytest.TypeJSON, "{}", 404, "there is no such key"},
		{"GET", "/notify/ops/grafana", "", "", 405, "POST"},
		{"POST", "/notify/ops/grafana", gatewaytest.TypeJSON, `{"a":`, 400, "must be JSON: it ends too early"},
		{"POST", "/notify/ops/grafana", gatewaytest.TypeJSON, `[]`, 400, ""},
		{"POST", "/notify/ops/proxmox", gatewaytest.TypeJSON, `{"severity":"error"}`, 400, `\"message\" is missing`},
		{
			"POST", "/notify/ops/grafana", gatewaytest.TypeJSON, sourceSample(t, "uptime_kuma/test"), 400,
			"it looks like one of Uptime Kuma, whose address ends with /uptime_kuma",
		},
		{"POST", "/notify/ops/watchtower", gatewaytest.TypeJSON, strings.Repeat(" ", 9<<20), 413, "larger"},
		{"POST", "/notify/ops/sns", "text/plain", sampleSNS, 401, "signature"},
	} {
		r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.contentType)
		if got := g.Do(r); got.Status != tt.want || !strings.Contains(got.Body, tt.text) {
			t.Errorf("%s %s: status %d: %s", tt.method, tt.target, got.Status, got.Body)
		}
		s.Take()
	}
}

// TestPayloadWithoutSource posts payloads of programs to addresses without a source. The
// error names the address of the right one.
func TestPayloadWithoutSource(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	kuma := sourceSample(t, "uptime_kuma/test")
	for _, tt := range []struct {
		target, contentType, header, body string
		want                              string // the end of the error
	}{
		{
			"/notify/ops", gatewaytest.TypeJSON, "", sourceSample(t, "alertmanager/group"),
			"; it looks like a payload of Prometheus Alertmanager, so post it to /notify/ops/alertmanager",
		},
		{
			"/notify/ops", gatewaytest.TypeJSON, "", sourceSample(t, "radarr/grab"),
			"; it looks like a payload of Radarr, so post it to /notify/ops/radarr",
		},
		{
			"/notify/ops", gatewaytest.TypeJSON, "", sourceSample(t, "discord/embed"),
			"; it looks like a payload of Discord, so post it to /notify/ops/discord",
		},
		{
			"/notify/ops", gatewaytest.TypeJSON, "", sourceSample(t, "pagerduty/resolve"),
			"; it looks like a payload of PagerDuty, so post it to /notify/ops/pagerduty",
		},
		{
			"/notify/ops", gatewaytest.TypeJSON, "X-GitHub-Event", sourceSample(t, "github/workflow_run"),
			"; it looks like a payload of GitHub, so post it to /notify/ops/github",
		},
		// its type is no type here
		{
			"/notify/ops", gatewaytest.TypeJSON, "", sourceSample(t, "stripe/payment_failed"),
			"; it looks like a payload of Stripe, so post it to /notify/ops/stripe",
		},
		{"/notify", gatewaytest.TypeJSON, "", kuma, "; it looks like a payload of Uptime Kuma, so post it to /notify/{KEY}/uptime_kuma"},
		{
			"/notify/ops", gatewaytest.TypeForm, "", "data=" + url.QueryEscape(kuma),
			"; it looks like a payload of Uptime Kuma, so post it to /notify/ops/uptime_kuma",
		},
		// several programs may have a title and a message
		{"/notify/ops", gatewaytest.TypeJSON, "", sourceSample(t, "watchtower/updates"), "or add ?:message=body to the address"},
		{"/notify/ops", gatewaytest.TypeJSON, "", `{"body":"x","type":"x","topic":"x"}`, "use info, success, warning or failure"},
	} {
		r := httptest.NewRequest(http.MethodPost, tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.contentType)
		if tt.header != "" {
			r.Header.Set(tt.header, "x")
		}
		r.Header.Set("Accept", gatewaytest.TypeJSON)
		if got := g.Do(r); got.Status != 400 || !strings.Contains(got.Body, tt.want+`","field":`) &&
			!strings.Contains(got.Body, tt.want+`","details"`) {
			t.Errorf("%.50s: status %d: %s", tt.body, got.Status, got.Body)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("arrived %+v", got)
	}
}

// TestRulerAstray checks that alerts that a ruler posts to a wrong address are answered with the
// right one, by the path or by the payload.
func TestRulerAstray(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	const posted = `[{"labels":{"alertname":"DiskFull"},"annotations":{"summary":"full"},"startsAt":"2026-11-20T08:00:00Z"}]`
	for path, want := range map[string]struct {
		status int
		key    string // in the address that is given; "" for none
	}{
		"/notify/ops/alertmanager/api/v2/alerts":  {404, "ops"},
		"/notify/ops/alertmanager/api/v2/alerts/": {404, "ops"},
		"/notify/ops/alertmanager/api/v1/alerts":  {404, "ops"},
		"/notify/ops/grafana/api/v2/alerts":       {404, "ops"},
		"/notify/ops/api/v2/alerts":               {404, "ops"},
		"/notify/ops/api/v1/alerts":               {404, "ops"},
		"/notify/api/v2/alerts":                   {404, "{KEY}"},
		"/notify/ops/alertmanager":                {400, "ops"},
		"/notify/ops/grafana":                     {400, "ops"},
		"/notify/ops":                             {400, "ops"},
		"/notify":                                 {400, "{KEY}"},
		"/notify/ops/alertmanager/api/v2/silence": {404, ""},
		"/notify/ops/prometheus/api/v1/alerts":    {404, ""},
	} {
		got := g.Post(path, gatewaytest.TypeJSON, posted)
		address := "/notify/" + want.key + "/prometheus;"
		if got.Status != want.status || strings.Contains(got.Body, address) != (want.key != "") {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	for _, path := range []string{"/notify/ops/alertmanager", "/notify/ops"} {
		if got := g.Post(path, gatewaytest.TypeJSON, `[{"name":"x"}]`); got.Status != 400 || strings.Contains(got.Body, "/prometheus") {
			t.Errorf("%s, another list: %d %s", path, got.Status, got.Body)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("arrived %+v", got)
	}
}

const sampleSNS = `{"Type":"Notification","Message":"x","Timestamp":"2026-11-20T08:00:00.000Z","SignatureVersion":"1",` +
	`"Signature":"QQ==","SigningCertURL":"https://sns.eu-central-1.amazonaws.com/x.pem"}`

// TestSourceTags checks that tags of a payload select only if a destination has one of
// them, and that tags of ?tag= always select.
func TestSourceTags(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/plain"), s.NotifyURL("/critical")+" critical", s.NotifyURL("/always")+" always"))
	for _, tt := range []struct{ query, severity, want string }{
		{"", "critical", "always critical"},
		{"", "warning", "always critical plain"},
		{"", "all", "always critical plain"},
		{"?tag=critical", "warning", "always critical"},
	} {
		body := strings.ReplaceAll(sourceSample(t, "alertmanager/group"), `"critical"`, `"`+tt.severity+`"`)
		if got := g.Post("/notify/ops/alertmanager"+tt.query, gatewaytest.TypeJSON, body); got.Status != 200 {
			t.Errorf("%+v: status %d: %s", tt, got.Status, got.Body)
		}
		if got := s.Paths(); got != tt.want {
			t.Errorf("%+v: sent to %s", tt, got)
		}
	}
}

// TestNtfyTags checks that tags in the query string of a message for ntfy select only if a
// destination has one of them, because many are names of emojis.
func TestNtfyTags(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/plain"), s.NotifyURL("/critical")+" critical"))
	for query, want := range map[string]string{
		"?tags=tada,skull": "critical plain", "?tags=skull,critical": "critical",
		"?tag=critical": "critical", "?ta=critical": "critical",
	} {
		for _, target := range []string{"/notify/ops/ntfy/alerts", "/notify/ops/ntfy/alerts/publish"} {
			method := "POST"
			if strings.HasSuffix(target, "publish") {
				method = "GET"
			}
			r := httptest.NewRequest(method, target+query, strings.NewReader("x"))
			if got := g.Do(r); got.Status != 200 {
				t.Errorf("%s%s: status %d: %s", target, query, got.Status, got.Body)
			}
			if got := s.Paths(); got != want {
				t.Errorf("%s%s: sent to %s", target, query, got)
			}
		}
	}
}

// hexSum returns the HMAC-SHA256 of a text in hexadecimal.
func hexSum(secret, text string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

// TestSourceHandshake checks that a sender of CloudEvents that asks for permission
// gets it if it may post.
func TestSourceHandshake(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")), acceptingKey("other", s.NotifyURL("/ops"), "grafana")},
	}, Sources: sourcesWith(t, source.Config{Name: "cloudevents", Token: "secret"})})
	for _, tt := range []struct {
		target, origin string
		want           int
	}{
		{"/notify/ops/cloudevents?access_token=secret", "events.example.net", 200},
		{"/notify/ops/cloudevents?access_token=other", "events.example.net", 401},
		{"/notify/ops/cloudevents", "events.example.net", 401},
		{"/notify/other/cloudevents?access_token=secret", "events.example.net", 403},
		{"/notify/none/cloudevents?access_token=secret", "events.example.net", 404},
		{"/notify/ops/cloudevents?access_token=secret", "", 405},
		{"/notify/ops/grafana", "events.example.net", 405},
	} {
		r := httptest.NewRequest(http.MethodOptions, tt.target, nil)
		if tt.origin != "" {
			r.Header.Set("WebHook-Request-Origin", tt.origin)
		}
		got := g.Do(r)
		allowed := ""
		if tt.want == 200 {
			allowed = tt.origin
		}
		if got.Status != tt.want || got.Header.Get("WebHook-Allowed-Origin") != allowed ||
			(got.Header.Get("WebHook-Allowed-Rate") == "*") != (tt.want == 200) {
			t.Errorf("%s from %q: status %d, %v", tt.target, tt.origin, got.Status, got.Header)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("arrived %+v", got)
	}
}

// TestSourceChecks checks that a request without the signature or the token of its
// source sends nothing.
func TestSourceChecks(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	global := sourcesWith(t, source.Config{Name: "slack", Token: "global-token"}, source.Config{Name: "pagerduty", Token: "routing"},
		source.Config{Name: "opsgenie", Token: "genie"})
	own := sourcesWith(t,
		source.Config{Name: "github", Scheme: "github", Secret: "gh-secret"},
		source.Config{Name: "gotify", Token: "app-token"},
		source.Config{
			Name: "backup", Templates: source.Templates{Title: "{{.job}}"}, Scheme: "standard",
			Secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte("std-secret-of-24-bytes..")),
		})
	g := gatewaytest.New(t, gatewaytest.Options{
		Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}}, Sources: own.Inherit(global),
	})
	now := time.Now()
	body := sourceSample(t, "github/push")
	backup := `{"job":"nightly"}`
	at := func(d time.Duration) (id, stamp, sum string) {
		stamp = strconv.FormatInt(now.Add(d).Unix(), 10)
		m := hmac.New(sha256.New, []byte("std-secret-of-24-bytes.."))
		m.Write([]byte("id." + stamp + "." + backup))
		return "id", stamp, "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	}
	standard := func(d time.Duration) http.Header {
		id, stamp, sum := at(d)
		return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {"v1a,x " + sum}}
	}
	for name, tt := range map[string]struct {
		target, body string
		header       http.Header
		want         int
	}{
		"signed":                   {"/github", body, http.Header{"X-Hub-Signature-256": {"sha256=" + hexSum("gh-secret", body)}}, 200},
		"another secret":           {"/github", body, http.Header{"X-Hub-Signature-256": {"sha256=" + hexSum("other", body)}}, 401},
		"another body":             {"/github", body + " ", http.Header{"X-Hub-Signature-256": {"sha256=" + hexSum("gh-secret", body)}}, 401},
		"no signature":             {"/github", body, nil, 401},
		"no JSON and no signature": {"/github", "{", nil, 401},
		"standard":                 {"/backup", backup, standard(0), 200},
		"standard, too old":        {"/backup", backup, standard(-6 * time.Minute), 401},
		"standard, in the future":  {"/backup", backup, standard(6 * time.Minute), 401},
		"token in the query":       {"/gotify/message?token=app-token", `{"message":"x"}`, nil, 200},
		"token in the header":      {"/gotify/message", `{"message":"x"}`, http.Header{"X-Gotify-Key": {"app-token"}}, 200},
		"bearer token":             {"/gotify/message", `{"message":"x"}`, http.Header{"Authorization": {"Bearer app-token"}}, 200},
		"wrong token":              {"/gotify/message?token=app", `{"message":"x"}`, nil, 401},
		"no token":                 {"/gotify/message", `{"message":"x"}`, nil, 401},
		"global source, in a path": {"/slack/hooks/global-token", `{"text":"x"}`, nil, 200},
		"global source, wrong":     {"/slack/hooks/other", `{"text":"x"}`, nil, 401},
		"a source without a check": {"/proxmox", `{"message":"x"}`, nil, 200},
		"routing key":              {"/pagerduty", `{"routing_key":"routing","event_action":"resolve","dedup_key":"1"}`, nil, 202},
		"another routing key":      {"/pagerduty", `{"routing_key":"other","event_action":"resolve","dedup_key":"1"}`, nil, 401},
		"no routing key":           {"/pagerduty", `{"event_action":"resolve","dedup_key":"1"}`, nil, 401},
		"routing key of a change":  {"/pagerduty/v2/change/enqueue", `{"routing_key":"routing","payload":{"summary":"x"}}`, nil, 202},
		"API key":                  {"/opsgenie/v2/alerts", `{"message":"x"}`, http.Header{"Authorization": {"GenieKey genie"}}, 202},
		"another API key":          {"/opsgenie/v2/alerts", `{"message":"x"}`, http.Header{"Authorization": {"GenieKey other"}}, 401},
		"no API key, a status":     {"/opsgenie/v2/alerts/x/close", ``, nil, 401},
	} {
		r := httptest.NewRequest("POST", "/notify/ops"+tt.target, strings.NewReader(tt.body))
		maps.Copy(r.Header, tt.header)
		got := g.Do(r)
		if got.Status != tt.want {
			t.Errorf("%s: status %d, want %d: %s", name, got.Status, tt.want, got.Body)
		}
		if n := len(s.Take()); (n == 1) != (tt.want/100 == 2) {
			t.Errorf("%s: %d messages", name, n)
		}
		if strings.Contains(got.Body, "gh-secret") || strings.Contains(got.Body, "app-token") {
			t.Errorf("%s: the answer has a secret: %s", name, got.Body)
		}
	}
}

// TestAccept checks that a key accepts only messages of the sources in accept.
func TestAccept(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, acceptingKey("ops", s.NotifyURL("/ops"), "proxmox", "slack"),
		acceptingKey("both", s.NotifyURL("/both"), "direct", "slack"))
	for _, tt := range []struct {
		target, body string
		want         int
	}{
		{"/notify/ops", `{"body":"x"}`, 403},
		{"/notify/ops/proxmox", `{"message":"x"}`, 200},
		{"/notify/ops/slack", `{"text":"x"}`, 200},
		{"/notify/ops/discord", `{"content":"x"}`, 403},
		{"/notify/both", `{"body":"x"}`, 200},
		{"/notify/both/proxmox", `{"message":"x"}`, 403},
	} {
		if got := g.Post(tt.target, gatewaytest.TypeJSON, tt.body); got.Status != tt.want {
			t.Errorf("%s: status %d, want %d: %s", tt.target, got.Status, tt.want, got.Body)
		}
		if n := len(s.Take()); (n == 1) != (tt.want == 200) {
			t.Errorf("%s: %d messages", tt.target, n)
		}
	}
}

// TestAPIAnswers checks that clients of an API get answers in its format.
func TestAPIAnswers(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")), gatewaytest.Key("bad", s.NotifyURL("/refuse")+"?retry=0"))
	for _, tt := range []struct {
		method, target, contentType, body string
		status                            int
		media, text                       string
	}{
		{"POST", "/notify/ops/slack", gatewaytest.TypeJSON, `{"text":"x"}`, 200, "text/plain; charset=utf-8", "ok"},
		{
			"POST", "/notify/ops/slack/hooks/abc", gatewaytest.TypeForm, `payload=%7B%22text%22%3A%22x%22%7D`, 200,
			"text/plain; charset=utf-8", "ok",
		},
		{"POST", "/notify/ops/slack/hooks/1/abc", gatewaytest.TypeJSON, `{"text":"x"}`, 200, "application/json", `{"success":true}`},
		{"POST", "/notify/ops/slack/hooks/1/abc", gatewaytest.TypeJSON, `{"text":""}`, 400, "application/json", `"success":false`},
		{"POST", "/notify/ops/slack", gatewaytest.TypeJSON, `{}`, 400, "text/plain; charset=utf-8", "has no text"},
		{"POST", "/notify/bad/slack", gatewaytest.TypeJSON, `{"text":"x"}`, 503, "text/plain; charset=utf-8", "could not be sent"},
		{"POST", "/notify/ops/discord/1/abc", gatewaytest.TypeJSON, `{"content":"x"}`, 204, "", ""},
		{"POST", "/notify/ops/discord/1/abc?wait=true", gatewaytest.TypeJSON, `{"content":"x"}`, 200, gatewaytest.TypeJSON, `"content":"x"`},
		{"POST", "/notify/ops/discord", gatewaytest.TypeJSON, `{}`, 400, gatewaytest.TypeJSON, `"message":`},
		{"POST", "/notify/ops/gotify/message", gatewaytest.TypeJSON, `{"message":"x","priority":9}`, 200, gatewaytest.TypeJSON, `"message":"x"`},
		{"POST", "/notify/ops/gotify/message", gatewaytest.TypeForm, `message=x&title=t`, 200, gatewaytest.TypeJSON, `"title":"t"`},
		{"POST", "/notify/ops/gotify/message", gatewaytest.TypeJSON, `{}`, 400, gatewaytest.TypeJSON, `"errorDescription":`},
		{"POST", "/notify/none/gotify/message", gatewaytest.TypeJSON, `{}`, 404, gatewaytest.TypeJSON, `there is no such key`},
		{"POST", "/notify/ops/ntfy/alerts", "", `x`, 200, gatewaytest.TypeJSON, `"topic":"alerts"`},
		{"PUT", "/notify/ops/ntfy/alerts?title=t&priority=5", "", `x`, 200, gatewaytest.TypeJSON, `"title":"t"`},
		{"POST", "/notify/ops/ntfy", gatewaytest.TypeJSON, `{"topic":"alerts","message":"x"}`, 200, gatewaytest.TypeJSON, `"topic":"alerts"`},
		{"POST", "/notify/ops/ntfy", "", `x`, 400, gatewaytest.TypeJSON, `"http":400`},
		// shoutrrr, with a path that ends with a slash
		{"POST", "/notify/ops/gotify//message", gatewaytest.TypeJSON, `{"message":"x"}`, 200, gatewaytest.TypeJSON, `"message":"x"`},
		{"POST", "/notify/ops/gotify/message", gatewaytest.TypeJSON, `{"message":"x","priority":7}`, 200, gatewaytest.TypeJSON, `"priority":7`},
		{"POST", "/notify/ops/gotify/message", gatewaytest.TypeJSON, `{"title":"x"}`, 400, gatewaytest.TypeJSON, `"errorCode":400`},
		{"GET", "/notify/ops/gotify/message", "", ``, 405, gatewaytest.TypeJSON, `"errorCode":405`},
		{"GET", "/notify/none/gotify/version", "", ``, 200, gatewaytest.TypeJSON, `"version":"`},
		{"GET", "/notify/none/ntfy/v1/health", "", ``, 200, gatewaytest.TypeJSON, `{"healthy":true}`},
		{"GET", "/notify/ops/ntfy/alerts/trigger?message=x", "", ``, 200, gatewaytest.TypeJSON, `"topic":"alerts"`},
		{"GET", "/notify/ops/ntfy/alerts", "", ``, 405, gatewaytest.TypeJSON, `"code":40501`},
		{"POST", "/notify/none/ntfy/alerts", "", `x`, 404, gatewaytest.TypeJSON, `"code":40401`},
		{"GET", "/notify/ops/discord/1/abc", "", ``, 200, gatewaytest.TypeJSON, `"token":"abc"`},
		{"GET", "/notify/none/discord/1/abc", "", ``, 404, gatewaytest.TypeJSON, `"code":10015`},
		{
			"POST", "/notify/ops/discord/1/abc/slack", gatewaytest.TypeForm, `payload=%7B%22text%22%3A%22x%22%7D`, 200,
			"text/plain; charset=utf-8", "ok",
		},
		{"PATCH", "/notify/ops/discord/1/abc/messages/5", gatewaytest.TypeJSON, `{"content":"x"}`, 200, gatewaytest.TypeJSON, `"id":"5"`},
		{"DELETE", "/notify/ops/discord/1/abc/messages/5", "", ``, 204, "", ""},
		{"PATCH", "/notify/ops/discord/1/abc", gatewaytest.TypeJSON, `{"name":"x"}`, 405, gatewaytest.TypeJSON, `"code":0`},
		{
			"POST", "/notify/ops/pagerduty/v2/enqueue", gatewaytest.TypeJSON, `{"event_action":"resolve","dedup_key":"1"}`, 202,
			gatewaytest.TypeJSON, `"dedup_key":"1"`,
		},
		{
			"POST", "/notify/ops/pagerduty/v2/change/enqueue", gatewaytest.TypeJSON, `{"payload":{"summary":"x"}}`, 202, gatewaytest.TypeJSON,
			`"message":"Change event processed"`,
		},
		{
			"POST", "/notify/ops/pagerduty/v2/change/enqueue", gatewaytest.TypeJSON, `{"payload":{}}`, 400, gatewaytest.TypeJSON,
			`"status":"invalid event"`,
		},
		{"GET", "/notify/ops/pagerduty/v2/enqueue", "", ``, 405, gatewaytest.TypeJSON, `"errors":["the method GET`},
		{"POST", "/notify/none/pagerduty/v2/enqueue", gatewaytest.TypeJSON, `{}`, 404, gatewaytest.TypeJSON, `there is no such key`},
		{
			"POST", "/notify/ops/opsgenie/v2/alerts", gatewaytest.TypeJSON, `{"message":"x","alias":"1"}`, 202, gatewaytest.TypeJSON,
			`"result":"Request will be processed"`,
		},
		{
			"POST", "/notify/ops/opsgenie/v2/alerts/disk%20db1/close?identifierType=alias", gatewaytest.TypeJSON, ``, 202, gatewaytest.TypeJSON,
			`"requestId":"Close-`,
		},
		{
			"POST", "/notify/ops/opsgenie/v2/alerts/db1%2Fdisk/close?identifierType=alias", gatewaytest.TypeJSON, `{}`, 202, gatewaytest.TypeJSON,
			`"requestId":"Close-1`,
		},
		{
			"POST", "/notify/ops/opsgenie/v2/alerts/disk/tags", gatewaytest.TypeJSON, `{"tags":["a"]}`, 202, gatewaytest.TypeJSON,
			`"result":"Nothing was sent`,
		},
		{
			"GET", "/notify/ops/opsgenie/v2/alerts/requests/Create-1795161600000-ZGlzay1kYjE", "", ``, 200, gatewaytest.TypeJSON,
			`"alertId":"disk-db1"`,
		},
		{"GET", "/notify/ops/opsgenie/v2/alerts/disk", "", ``, 404, gatewaytest.TypeJSON, `keeps no alerts`},
		{
			"POST", "/notify/ops/opsgenie/v2/alerts", gatewaytest.TypeJSON, `{}`, 400, gatewaytest.TypeJSON,
			`"message":"the field message is missing"`,
		},
		{"GET", "/notify/ops/opsgenie/v2/heartbeats/x/ping", "", ``, 404, gatewaytest.TypeJSON, `"requestId":`},
	} {
		r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		got := g.Do(r)
		if got.Status != tt.status || got.Header.Get("Content-Type") != tt.media || !strings.Contains(got.Body, tt.text) {
			t.Errorf("%s %s: %d %q %s", tt.method, tt.target, got.Status, got.Header.Get("Content-Type"), got.Body)
		}
	}
}

// TestSendingGets checks that a page of another site cannot send with a GET, and that the answer to
// a wrong method names the allowed ones.
func TestSendingGets(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	for siteID, want := range map[string]int{"": 200, "none": 200, "same-origin": 200, "cross-site": 403} {
		r := httptest.NewRequest("GET", "/notify/ops/ntfy/alerts/trigger?message=x", nil)
		if siteID != "" {
			r.Header.Set("Sec-Fetch-Site", siteID)
		}
		if got := g.Do(r); got.Status != want {
			t.Errorf("%q: status %d: %s", siteID, got.Status, got.Body)
		}
		if n := len(s.Take()); (n == 1) != (want == 200) {
			t.Errorf("%q: %d messages", siteID, n)
		}
	}
	for target, want := range map[string]string{
		"/notify/ops/grafana": "POST, PUT", "/notify/ops/ntfy/alerts": "POST, PUT", "/notify/ops/ntfy/alerts/send": "DELETE, GET, POST, PUT",
		"/notify/ops/discord/1/abc": "GET, POST, PUT", "/notify/ops/discord/1/abc/messages/5": "DELETE, GET, PATCH",
	} {
		got := g.Do(httptest.NewRequest("HEAD", target, nil))
		if got.Status != 405 || got.Header.Get("Allow") != want {
			t.Errorf("%s: status %d, Allow: %s", target, got.Status, got.Header.Get("Allow"))
		}
	}
}

// TestSourceFiles checks that files arrive from a form for Discord and from the body
// for ntfy, and that files of a webhook do not arrive without images on.
func TestSourceFiles(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	form := func(field, text string) (body, contentType string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		header := http.Header{"Content-Disposition": {`form-data; name="` + field + `"`}, "Content-Type": {gatewaytest.TypeJSON}}
		part, err := w.CreatePart(map[string][]string(header))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte(text))
		file, err := w.CreateFormFile("file", "g.png")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = file.Write([]byte("picture"))
		_ = w.Close()
		return b.String(), w.FormDataContentType()
	}
	body, contentType := form("payload_json", `{"content":"look"}`)
	if got := g.Post("/notify/ops/discord", contentType, body); got.Status != 200 || !strings.Contains(got.Body, `"content":"look"`) {
		t.Errorf("discord: %d %s", got.Status, got.Body)
	}
	if a := s.One(t); a.Message != "look" || a.Files() != "g.png image/png picture" {
		t.Errorf("discord: %+v", a)
	}
	body, contentType = form("payload", sourceSample(t, "plex/library_new"))
	if got := g.Post("/notify/ops/plex", contentType, body); got.Status != 200 {
		t.Errorf("plex: %d %s", got.Status, got.Body)
	}
	if a := s.One(t); a.Title != "library.new: Some Show" || a.Files() != "" {
		t.Errorf("plex: %+v", a)
	}
	body, contentType = form("data", sourceSample(t, "uptime_kuma/down"))
	if got := g.Post("/notify/ops/uptime_kuma", contentType, body); got.Status != 200 {
		t.Errorf("uptime_kuma: %d %s", got.Status, got.Body)
	}
	if a := s.One(t); a.Title != "Shop" || a.Type != "failure" {
		t.Errorf("uptime_kuma: %+v", a)
	}
	r := httptest.NewRequest("PUT", "/notify/ops/ntfy/alerts", strings.NewReader("\x89PNG\xff"))
	r.Header.Set("Filename", "../g.png")
	r.Header.Set("Message", "look")
	if got := g.Do(r); got.Status != 200 {
		t.Errorf("ntfy: %d %s", got.Status, got.Body)
	}
	if a := s.One(t); a.Message != "look" || len(a.Attachments) != 1 || a.Attachments[0].Filename != "g.png" ||
		string(a.Attachments[0].Base64) != "\x89PNG\xff" {
		t.Errorf("ntfy: %+v", a)
	}
}

// TestRemoteFileName checks that the file at an address gets its name in the message for ntfy.
func TestRemoteFileName(t *testing.T) {
	t.Parallel()
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("picture")) }))
	defer files.Close()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys:   []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))},
		Egress: gatewaytest.Loopback(),
	}})
	for _, name := range []string{"graph.png", ""} {
		r := httptest.NewRequest("POST", "/notify/ops/ntfy/alerts", strings.NewReader("91% full"))
		r.Header.Set("Attach", files.URL+"/8f3a.bin")
		r.Header.Set("Filename", name)
		if got := g.Do(r); got.Status != 200 {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		a := s.One(t)
		if a.Message != "91% full" || len(a.Attachments) != 1 || a.Attachments[0].Filename != cmp.Or(name, "8f3a.bin") ||
			string(a.Attachments[0].Base64) != "picture" {
			t.Errorf("%q: %+v", name, a)
		}
	}
}

// TestSourceImages checks that an image is attached if images is on and the image can
// be fetched.
func TestSourceImages(t *testing.T) {
	t.Parallel()
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/i.png" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write([]byte("picture"))
	}))
	defer images.Close()
	s := gatewaytest.NewStation(t)
	on := sourcesWith(t, source.Config{Name: "grafana", Images: true})
	for name, tt := range map[string]struct {
		options gatewaytest.Options
		want    string
	}{
		"allowed":    {gatewaytest.Options{Site: site.Options{Egress: gatewaytest.Loopback()}, Sources: on}, "i.png image/png picture"},
		"by default": {gatewaytest.Options{Sources: on}, ""}, // egress does not allow it
		"off":        {gatewaytest.Options{Site: site.Options{Egress: gatewaytest.Loopback()}}, ""},
	} {
		tt.options.Site.Keys = []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}
		g := gatewaytest.New(t, tt.options)
		body := strings.ReplaceAll(sourceSample(t, "grafana/no_message"), "https://g.example.net/i.png", images.URL+"/i.png")
		if got := g.Post("/notify/ops/grafana", gatewaytest.TypeJSON, body); got.Status != 200 {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
		if a := s.One(t); a.Files() != tt.want {
			t.Errorf("%s: %q", name, a.Files())
		}
		body = strings.ReplaceAll(body, "/i.png", "/gone.png")
		if got := g.Post("/notify/ops/grafana", gatewaytest.TypeJSON, body); got.Status != 200 {
			t.Errorf("%s: a missing image: %d %s", name, got.Status, got.Body)
		}
		if a := s.One(t); a.Files() != "" {
			t.Errorf("%s: %q", name, a.Files())
		}
	}
}

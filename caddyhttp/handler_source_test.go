package caddyhttp

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
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// sample returns a payload of a program from the test data of package programs.
func sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../gateway/source/programs/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSources checks that built-in sources work without configuration, and the errors
// of requests to sources.
func TestSources(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"?format=text\n}", "")
	for _, tt := range []struct {
		target, sample string
		want           gatewaytest.Arrived
	}{
		{"/notify/ops/alertmanager", "alertmanager/group", gatewaytest.Arrived{Title: "DiskFull", Message: "Firing: 91% full on db1\nFiring: 95% full on db2\nResolved: db3 is fine again\nhttp://prom.example.net/graph?g0=x", Type: "failure"}},
		{"/notify/ops/alertmanager/", "alertmanager/resolved", gatewaytest.Arrived{Title: "DiskFull", Message: "Resolved: 91% full on db1\nResolved: 95% full on db2\nResolved: db3 is fine again\nhttp://prom.example.net/graph?g0=x", Type: "success"}},
		{"/notify/ops/uptime_kuma", "uptime_kuma/test", gatewaytest.Arrived{Title: "Uptime Kuma", Message: "Testing", Type: "info"}},
		{"/notify/ops/healthchecks?type=failure", "healthchecks/down", gatewaytest.Arrived{Title: "Nightly backup is down", Message: "Last ping: 2026-11-19 02:00 UTC\nPeriod: 1 d\nTags: prod db", Type: "failure"}},
	} {
		if got := post(t, h, tt.target, typeJSON, sample(t, tt.sample)); got.status != 200 {
			t.Errorf("%s: status %d: %s", tt.target, got.status, got.body)
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
		{"POST", "/notify/ops/grafanna", typeJSON, "{}", 404, "there is no such source"},
		{"POST", "/notify/none/grafana", typeJSON, "{}", 404, "there is no such key"},
		{"GET", "/notify/ops/grafana", "", "", 405, "POST"},
		{"POST", "/notify/ops/grafana", typeJSON, `{"a":`, 400, "must be JSON: it ends too early"},
		{"POST", "/notify/ops/grafana", typeJSON, `[]`, 400, ""},
		{"POST", "/notify/ops/proxmox", typeJSON, `{"severity":"error"}`, 400, `\"message\" is missing`},
		{"POST", "/notify/ops/grafana", typeJSON, sample(t, "uptime_kuma/test"), 400, "it looks like one of Uptime Kuma, whose address ends with /uptime_kuma"},
		{"POST", "/notify/ops/watchtower", typeJSON, strings.Repeat(" ", 9<<20), 413, "larger"},
		{"POST", "/notify/ops/sns", "text/plain", sampleSNS, 401, "signature"},
	} {
		r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.contentType)
		if got := do(t, h, r); got.status != tt.want || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s %s: status %d: %s", tt.method, tt.target, got.status, got.body)
		}
		s.Take()
	}
}

// TestPayloadWithoutSource posts payloads of programs to addresses without a source. The
// error names the address of the right one.
func TestPayloadWithoutSource(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}", "")
	kuma := sample(t, "uptime_kuma/test")
	for _, tt := range []struct {
		target, contentType, header, body string
		want                              string // the end of the error
	}{
		{"/notify/ops", typeJSON, "", sample(t, "alertmanager/group"), "; it looks like a payload of Prometheus Alertmanager, so post it to /notify/ops/alertmanager"},
		{"/notify/ops", typeJSON, "", sample(t, "radarr/grab"), "; it looks like a payload of Radarr, so post it to /notify/ops/radarr"},
		{"/notify/ops", typeJSON, "", sample(t, "discord/embed"), "; it looks like a payload of Discord, so post it to /notify/ops/discord"},
		{"/notify/ops", typeJSON, "", sample(t, "pagerduty/resolve"), "; it looks like a payload of PagerDuty, so post it to /notify/ops/pagerduty"},
		{"/notify/ops", typeJSON, "X-GitHub-Event", sample(t, "github/workflow_run"), "; it looks like a payload of GitHub, so post it to /notify/ops/github"},
		{"/notify/ops", typeJSON, "", sample(t, "stripe/payment_failed"), "; it looks like a payload of Stripe, so post it to /notify/ops/stripe"}, // whose type is no type here
		{"/notify", typeJSON, "", kuma, "; it looks like a payload of Uptime Kuma, so post it to /notify/{KEY}/uptime_kuma"},
		{"/notify/ops", typeForm, "", "data=" + url.QueryEscape(kuma), "; it looks like a payload of Uptime Kuma, so post it to /notify/ops/uptime_kuma"},
		{"/notify/ops", typeJSON, "", sample(t, "watchtower/updates"), "or add ?:message=body to the address"}, // a title and a message may be of several programs
		{"/notify/ops", typeJSON, "", `{"body":"x","type":"x","topic":"x"}`, "use info, success, warning or failure"},
	} {
		r := httptest.NewRequest(http.MethodPost, tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.contentType)
		if tt.header != "" {
			r.Header.Set(tt.header, "x")
		}
		r.Header.Set("Accept", typeJSON)
		if got := do(t, h, r); got.status != 400 || !strings.Contains(got.body, tt.want+`","details"`) {
			t.Errorf("%.50s: status %d: %s", tt.body, got.status, got.body)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("arrived %+v", got)
	}
}

const sampleSNS = `{"Type":"Notification","Message":"x","Timestamp":"2026-11-20T08:00:00.000Z","SignatureVersion":"1","Signature":"QQ==","SigningCertURL":"https://sns.eu-central-1.amazonaws.com/x.pem"}`

// TestSourceTags checks that tags of a payload select only if a destination has one of
// them, and that tags of ?tag= always select.
func TestSourceTags(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/plain")+"\nurl "+s.NotifyURL("/critical")+" critical\nurl "+s.NotifyURL("/always")+" always\n}", "")
	for _, tt := range []struct{ query, severity, want string }{
		{"", "critical", "always critical"},
		{"", "warning", "always critical plain"},
		{"", "all", "always critical plain"},
		{"?tag=critical", "warning", "always critical"},
	} {
		body := strings.ReplaceAll(sample(t, "alertmanager/group"), `"critical"`, `"`+tt.severity+`"`)
		if got := post(t, h, "/notify/ops/alertmanager"+tt.query, typeJSON, body); got.status != 200 {
			t.Errorf("%+v: status %d: %s", tt, got.status, got.body)
		}
		if got := s.Paths(); got != tt.want {
			t.Errorf("%+v: sent to %s", tt, got)
		}
	}
}

// TestNtfyTags checks that tags in the query string of a message for ntfy select only if
// a destination has one of them: many name emojis.
func TestNtfyTags(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/plain")+"\nurl "+s.NotifyURL("/critical")+" critical\n}", "")
	for query, want := range map[string]string{"?tags=tada,skull": "critical plain", "?tags=skull,critical": "critical", "?tag=critical": "critical", "?ta=critical": "critical"} {
		for _, target := range []string{"/notify/ops/ntfy/alerts", "/notify/ops/ntfy/alerts/publish"} {
			method := "POST"
			if strings.HasSuffix(target, "publish") {
				method = "GET"
			}
			r := httptest.NewRequest(method, target+query, strings.NewReader("x"))
			if got := do(t, h, r); got.status != 200 {
				t.Errorf("%s%s: status %d: %s", target, query, got.status, got.body)
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
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}\nkey other {\naccept grafana\nurl "+s.NotifyURL("/ops")+"\n}\nfrom cloudevents {\ntoken secret\n}", "")
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
		got := do(t, h, r)
		allowed := ""
		if tt.want == 200 {
			allowed = tt.origin
		}
		if got.status != tt.want || got.header.Get("WebHook-Allowed-Origin") != allowed || (got.header.Get("WebHook-Allowed-Rate") == "*") != (tt.want == 200) {
			t.Errorf("%s from %q: status %d, %v", tt.target, tt.origin, got.status, got.header)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("arrived %+v", got)
	}
}

// TestSourceChecks checks that a request without the signature or the token of its
// source sends nothing.
func TestSourceChecks(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}\nfrom github {\nsign github gh-secret\n}\nfrom gotify {\ntoken app-token\n}\nfrom backup {\ntitle {{.job}}\nsign standard whsec_"+
		base64.StdEncoding.EncodeToString([]byte("std-secret-of-24-bytes.."))+"\n}", "from slack {\ntoken global-token\n}\nfrom pagerduty {\ntoken routing\n}\nfrom opsgenie {\ntoken genie\n}")
	now := time.Now()
	body := sample(t, "github/push")
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
		got := do(t, h, r)
		if got.status != tt.want {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, tt.want, got.body)
		}
		if n := len(s.Take()); (n == 1) != (tt.want/100 == 2) {
			t.Errorf("%s: %d messages", name, n)
		}
		if strings.Contains(got.body, "gh-secret") || strings.Contains(got.body, "app-token") {
			t.Errorf("%s: the answer has a secret: %s", name, got.body)
		}
	}
}

// TestAccept checks that a key accepts only messages of the sources in accept.
func TestAccept(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\naccept proxmox\naccept slack\n}\nkey both {\nurl "+s.NotifyURL("/both")+"\naccept direct slack\n}", "")
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
		if got := post(t, h, tt.target, typeJSON, tt.body); got.status != tt.want {
			t.Errorf("%s: status %d, want %d: %s", tt.target, got.status, tt.want, got.body)
		}
		if n := len(s.Take()); (n == 1) != (tt.want == 200) {
			t.Errorf("%s: %d messages", tt.target, n)
		}
	}
}

// TestCustomSources checks new sources and built-in sources with changed templates.
func TestCustomSources(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "body.tmpl")
	if err := os.WriteFile(file, []byte("{{range .hosts}}{{.}}\n{{end}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}\nfrom backup {\ntitle \"{{.job}} on {{.host}}\"\nbody_file "+file+"\ntype \"{{.state}}\"\ntypes broken=failure Partial=warning\nskip `{{eq .state \"started\"}}`\n}\n"+
		"from proxmox {\ntitle \"{{range 99999}}{{end}}\"\nbody `PVE: {{.message}}`\n}\nfrom bad {\nbody `line 1\n {{range 99999}}{{end}}`\n}", "")
	for _, tt := range []struct {
		source, body        string
		want                int
		title, message, typ string
	}{
		{"backup", `{"job":"j","host":"h","state":"broken","hosts":["a","b"]}`, 200, "j on h", "a\nb", "failure"},
		{"backup", `{"job":"j","host":"h","state":"partial","hosts":[]}`, 200, "", "j on h", "warning"},
		{"backup", `{"job":"j","host":"h","state":"resolved","hosts":["{{.job}}"]}`, 200, "j on h", "{{.job}}", "success"},
		{"backup", `{"state":"started"}`, 200, "", "", ""},
		{"proxmox", `{"title":"T","message":"M","severity":"error"}`, 200, "T", "PVE: M", "failure"}, // the built-in title replaces one that fails
		{"bad", `{}`, 400, "", "the template body, line 2, column", ""},
	} {
		got := post(t, h, "/notify/ops/"+tt.source, typeJSON, tt.body)
		if got.status != tt.want {
			t.Errorf("%s: status %d: %s", tt.body, got.status, got.body)
		}
		all := s.Take()
		if tt.typ == "" {
			if len(all) != 0 || !strings.Contains(got.body, tt.message) {
				t.Errorf("%s: %d messages: %s", tt.body, len(all), got.body)
			}
			continue
		}
		if len(all) != 1 || all[0].Title != tt.title || all[0].Message != tt.message || all[0].Type != tt.typ {
			t.Errorf("%s: got %+v", tt.body, all)
		}
		if tt.source == "proxmox" && !strings.Contains(got.body, "The built-in text is used in place of a template that fails") {
			t.Errorf("no warning: %s", got.body)
		}
	}
}

// TestSourceConfigErrors checks the errors of from blocks and of accept.
func TestSourceConfigErrors(t *testing.T) {
	const key = "key ops {\nurl json://localhost\n}\n"
	for block, want := range map[string]string{
		"from mine {\ntype info\n}":                                  "there is no built-in source mine; give it a title or a body",
		"from grafana {\nsign grafana\n}":                            "sign: the secret is missing; write sign grafana {env.NAME}",
		"from mine {\ntitle x\nsign standard whsec_\n}":              "the secret is empty",
		"from mine {\ntitle x\nsign standard whsec_QUJD\n}":          "the secret of the scheme standard has 3 bytes and must have at least 16",
		"from grafana {\nsign sns x\n}":                              "sns takes no secret",
		"from grafana {\nsign md5 x\n}":                              "there is no such signature scheme; use flux, github",
		"from mine {\ntitle {{.a\n}":                                 "the template title, line 1: unclosed action",
		"from mine {\ntitle `{= .x}}`\n}":                            "Caddy takes {$x} for an environment variable",
		"from mine {\ntitle {{nope}}\n}":                             `function "nope" not defined`,
		"from mine {\ntitle x\ntypes a=bad\n}":                       "use info, success, warning or failure",
		"from mine {\ntitle x\ntypes a\n}":                           "word=type",
		"from mine {\ntitle x\ntitle_file /nonexistent/t\n}":         "title_file: there is a template in the configuration as well",
		"from mine {\nbody_file /nonexistent/t\n}":                   "body_file: no such file",
		"from mine {\ntitle x\ntoken {env.SOURCE_NOT_SET}\n}":        "no such environment variable",
		"from slack {\ntitle x\n}":                                   "slack is an API, whose messages need no templates",
		"from direct {\ntitle x\n}":                                  "direct cannot be the name of a source",
		"from a.b {\ntitle x\n}":                                     "the name of a source must be",
		"from grafana {\nimages on\n}\nfrom grafana {\nimages on\n}": "the source grafana occurs twice",
		"from grafana {\n}":                                          "from needs a block with at least one of",
		"key k {\nurl json://localhost\naccept nobody\n}":            "accept: there is no source nobody",
	} {
		if _, err := provision(t, key+block, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", block, err, want)
		}
	}
}

// TestAPIAnswers checks that clients of an API get answers in its format.
func TestAPIAnswers(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}\nkey bad {\nurl "+s.NotifyURL("/refuse")+"?retry=0\n}", "")
	for _, tt := range []struct {
		method, target, contentType, body string
		status                            int
		media, text                       string
	}{
		{"POST", "/notify/ops/slack", typeJSON, `{"text":"x"}`, 200, "text/plain; charset=utf-8", "ok"},
		{"POST", "/notify/ops/slack/hooks/abc", typeForm, `payload=%7B%22text%22%3A%22x%22%7D`, 200, "text/plain; charset=utf-8", "ok"},
		{"POST", "/notify/ops/slack/hooks/1/abc", typeJSON, `{"text":"x"}`, 200, "application/json", `{"success":true}`},
		{"POST", "/notify/ops/slack/hooks/1/abc", typeJSON, `{"text":""}`, 400, "application/json", `"success":false`},
		{"POST", "/notify/ops/slack", typeJSON, `{}`, 400, "text/plain; charset=utf-8", "has no text"},
		{"POST", "/notify/bad/slack", typeJSON, `{"text":"x"}`, 503, "text/plain; charset=utf-8", "could not be sent"},
		{"POST", "/notify/ops/discord/1/abc", typeJSON, `{"content":"x"}`, 204, "", ""},
		{"POST", "/notify/ops/discord/1/abc?wait=true", typeJSON, `{"content":"x"}`, 200, typeJSON, `"content":"x"`},
		{"POST", "/notify/ops/discord", typeJSON, `{}`, 400, typeJSON, `"message":`},
		{"POST", "/notify/ops/gotify/message", typeJSON, `{"message":"x","priority":9}`, 200, typeJSON, `"message":"x"`},
		{"POST", "/notify/ops/gotify/message", typeForm, `message=x&title=t`, 200, typeJSON, `"title":"t"`},
		{"POST", "/notify/ops/gotify/message", typeJSON, `{}`, 400, typeJSON, `"errorDescription":`},
		{"POST", "/notify/none/gotify/message", typeJSON, `{}`, 404, typeJSON, `there is no such key`},
		{"POST", "/notify/ops/ntfy/alerts", "", `x`, 200, typeJSON, `"topic":"alerts"`},
		{"PUT", "/notify/ops/ntfy/alerts?title=t&priority=5", "", `x`, 200, typeJSON, `"title":"t"`},
		{"POST", "/notify/ops/ntfy", typeJSON, `{"topic":"alerts","message":"x"}`, 200, typeJSON, `"topic":"alerts"`},
		{"POST", "/notify/ops/ntfy", "", `x`, 400, typeJSON, `"http":400`},
		{"POST", "/notify/ops/gotify//message", typeJSON, `{"message":"x"}`, 200, typeJSON, `"message":"x"`}, // shoutrrr, with a path that ends with a slash
		{"POST", "/notify/ops/gotify/message", typeJSON, `{"message":"x","priority":7}`, 200, typeJSON, `"priority":7`},
		{"POST", "/notify/ops/gotify/message", typeJSON, `{"title":"x"}`, 400, typeJSON, `"errorCode":400`},
		{"GET", "/notify/ops/gotify/message", "", ``, 405, typeJSON, `"errorCode":405`},
		{"GET", "/notify/none/gotify/version", "", ``, 200, typeJSON, `"version":"`},
		{"GET", "/notify/none/ntfy/v1/health", "", ``, 200, typeJSON, `{"healthy":true}`},
		{"GET", "/notify/ops/ntfy/alerts/trigger?message=x", "", ``, 200, typeJSON, `"topic":"alerts"`},
		{"GET", "/notify/ops/ntfy/alerts", "", ``, 405, typeJSON, `"code":40501`},
		{"POST", "/notify/none/ntfy/alerts", "", `x`, 404, typeJSON, `"code":40401`},
		{"GET", "/notify/ops/discord/1/abc", "", ``, 200, typeJSON, `"token":"abc"`},
		{"GET", "/notify/none/discord/1/abc", "", ``, 404, typeJSON, `"code":10015`},
		{"POST", "/notify/ops/discord/1/abc/slack", typeForm, `payload=%7B%22text%22%3A%22x%22%7D`, 200, "text/plain; charset=utf-8", "ok"},
		{"PATCH", "/notify/ops/discord/1/abc/messages/5", typeJSON, `{"content":"x"}`, 200, typeJSON, `"id":"5"`},
		{"DELETE", "/notify/ops/discord/1/abc/messages/5", "", ``, 204, "", ""},
		{"PATCH", "/notify/ops/discord/1/abc", typeJSON, `{"name":"x"}`, 405, typeJSON, `"code":0`},
		{"POST", "/notify/ops/pagerduty/v2/enqueue", typeJSON, `{"event_action":"resolve","dedup_key":"1"}`, 202, typeJSON, `"dedup_key":"1"`},
		{"POST", "/notify/ops/pagerduty/v2/change/enqueue", typeJSON, `{"payload":{"summary":"x"}}`, 202, typeJSON, `"message":"Change event processed"`},
		{"POST", "/notify/ops/pagerduty/v2/change/enqueue", typeJSON, `{"payload":{}}`, 400, typeJSON, `"status":"invalid event"`},
		{"GET", "/notify/ops/pagerduty/v2/enqueue", "", ``, 405, typeJSON, `"errors":["the method GET`},
		{"POST", "/notify/none/pagerduty/v2/enqueue", typeJSON, `{}`, 404, typeJSON, `there is no such key`},
		{"POST", "/notify/ops/opsgenie/v2/alerts", typeJSON, `{"message":"x","alias":"1"}`, 202, typeJSON, `"result":"Request will be processed"`},
		{"POST", "/notify/ops/opsgenie/v2/alerts/disk%20db1/close?identifierType=alias", typeJSON, ``, 202, typeJSON, `"requestId":"Close-`},
		{"POST", "/notify/ops/opsgenie/v2/alerts/db1%2Fdisk/close?identifierType=alias", typeJSON, `{}`, 202, typeJSON, `"requestId":"Close-1`},
		{"POST", "/notify/ops/opsgenie/v2/alerts/disk/tags", typeJSON, `{"tags":["a"]}`, 202, typeJSON, `"result":"Nothing was sent`},
		{"GET", "/notify/ops/opsgenie/v2/alerts/requests/Create-1795161600000-ZGlzay1kYjE", "", ``, 200, typeJSON, `"alertId":"disk-db1"`},
		{"GET", "/notify/ops/opsgenie/v2/alerts/disk", "", ``, 404, typeJSON, `keeps no alerts`},
		{"POST", "/notify/ops/opsgenie/v2/alerts", typeJSON, `{}`, 400, typeJSON, `"message":"the field message is missing"`},
		{"GET", "/notify/ops/opsgenie/v2/heartbeats/x/ping", "", ``, 404, typeJSON, `"requestId":`},
	} {
		r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		got := do(t, h, r)
		if got.status != tt.status || got.header.Get("Content-Type") != tt.media || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s %s: %d %q %s", tt.method, tt.target, got.status, got.header.Get("Content-Type"), got.body)
		}
	}
}

// TestSendingGets checks that a page of another site cannot send with a GET, and that
// the answer to a wrong method names those that are allowed.
func TestSendingGets(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}", "")
	for siteID, want := range map[string]int{"": 200, "none": 200, "same-origin": 200, "cross-site": 403} {
		r := httptest.NewRequest("GET", "/notify/ops/ntfy/alerts/trigger?message=x", nil)
		if siteID != "" {
			r.Header.Set("Sec-Fetch-Site", siteID)
		}
		if got := do(t, h, r); got.status != want {
			t.Errorf("%q: status %d: %s", siteID, got.status, got.body)
		}
		if n := len(s.Take()); (n == 1) != (want == 200) {
			t.Errorf("%q: %d messages", siteID, n)
		}
	}
	for target, want := range map[string]string{
		"/notify/ops/grafana": "POST, PUT", "/notify/ops/ntfy/alerts": "POST, PUT", "/notify/ops/ntfy/alerts/send": "DELETE, GET, POST, PUT",
		"/notify/ops/discord/1/abc": "GET, POST, PUT", "/notify/ops/discord/1/abc/messages/5": "DELETE, GET, PATCH",
	} {
		got := do(t, h, httptest.NewRequest("HEAD", target, nil))
		if got.status != 405 || got.header.Get("Allow") != want {
			t.Errorf("%s: status %d, Allow: %s", target, got.status, got.header.Get("Allow"))
		}
	}
}

// TestSourceFiles checks that files arrive from a form for Discord and from the body
// for ntfy, and that files of a webhook do not arrive without images on.
func TestSourceFiles(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}", "")
	form := func(field, text string) (body, contentType string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		header := http.Header{"Content-Disposition": {`form-data; name="` + field + `"`}, "Content-Type": {typeJSON}}
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
	if got := post(t, h, "/notify/ops/discord", contentType, body); got.status != 204 {
		t.Errorf("discord: %d %s", got.status, got.body)
	}
	if a := s.One(t); a.Message != "look" || a.Files() != "g.png image/png picture" {
		t.Errorf("discord: %+v", a)
	}
	body, contentType = form("payload", sample(t, "plex/library_new"))
	if got := post(t, h, "/notify/ops/plex", contentType, body); got.status != 200 {
		t.Errorf("plex: %d %s", got.status, got.body)
	}
	if a := s.One(t); a.Title != "library.new: Some Show" || a.Files() != "" {
		t.Errorf("plex: %+v", a)
	}
	body, contentType = form("data", sample(t, "uptime_kuma/down"))
	if got := post(t, h, "/notify/ops/uptime_kuma", contentType, body); got.status != 200 {
		t.Errorf("uptime_kuma: %d %s", got.status, got.body)
	}
	if a := s.One(t); a.Title != "Shop" || a.Type != "failure" {
		t.Errorf("uptime_kuma: %+v", a)
	}
	r := httptest.NewRequest("PUT", "/notify/ops/ntfy/alerts", strings.NewReader("\x89PNG\xff"))
	r.Header.Set("Filename", "../g.png")
	r.Header.Set("Message", "look")
	if got := do(t, h, r); got.status != 200 {
		t.Errorf("ntfy: %d %s", got.status, got.body)
	}
	if a := s.One(t); a.Message != "look" || len(a.Attachments) != 1 || a.Attachments[0].Filename != "g.png" || string(a.Attachments[0].Base64) != "\x89PNG\xff" {
		t.Errorf("ntfy: %+v", a)
	}
}

// TestRemoteFileName checks that the file at an address gets the name that a message for
// ntfy has for it.
func TestRemoteFileName(t *testing.T) {
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("picture")) }))
	defer files.Close()
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"key ops {\nurl "+s.NotifyURL("/ops")+"\n}", "")
	for _, name := range []string{"graph.png", ""} {
		r := httptest.NewRequest("POST", "/notify/ops/ntfy/alerts", strings.NewReader("91% full"))
		r.Header.Set("Attach", files.URL+"/8f3a.bin")
		r.Header.Set("Filename", name)
		if got := do(t, h, r); got.status != 200 {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		a := s.One(t)
		if a.Message != "91% full" || len(a.Attachments) != 1 || a.Attachments[0].Filename != cmp.Or(name, "8f3a.bin") || string(a.Attachments[0].Base64) != "picture" {
			t.Errorf("%q: %+v", name, a)
		}
	}
}

// TestSourceImages checks that an image is attached if images is on and the image can
// be fetched.
func TestSourceImages(t *testing.T) {
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
	for block, want := range map[string]string{
		open + "from grafana {\nimages on\n}\n": "i.png image/png picture",
		"from grafana {\nimages on\n}\n":        "", // egress does not allow it
		open:                                    "",
	} {
		h := newGateway(t, block+"key ops {\nurl "+s.NotifyURL("/ops")+"\n}", "")
		body := strings.ReplaceAll(sample(t, "grafana/no_message"), "https://g.example.net/i.png", images.URL+"/i.png")
		if got := post(t, h, "/notify/ops/grafana", typeJSON, body); got.status != 200 {
			t.Errorf("%s: %d %s", block, got.status, got.body)
		}
		if a := s.One(t); a.Files() != want {
			t.Errorf("%s: %q", block, a.Files())
		}
		body = strings.ReplaceAll(body, "/i.png", "/gone.png")
		if got := post(t, h, "/notify/ops/grafana", typeJSON, body); got.status != 200 {
			t.Errorf("%s: a missing image: %d %s", block, got.status, got.body)
		}
		if a := s.One(t); a.Files() != "" {
			t.Errorf("%s: %q", block, a.Files())
		}
	}
}

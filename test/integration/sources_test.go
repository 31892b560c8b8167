package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// apiGateway runs a gateway whose key ops leads to a webhook, and whose APIs demand the token
// secret. It returns its host and port, and the host and port of a site that is an ntfy server.
func apiGateway(t *testing.T) (gateway, ntfy string, hook *webhook) {
	t.Helper()
	hook = newWebhook(t)
	port, ntfyPort := freePort(t), freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		key ops {
			url %s?format=markdown
		}
		from slack {
			token secret
		}
		from gotify {
			token secret
		}
		from discord {
			token secret
		}
		from ntfy {
			token secret
		}
		from pagerduty {
			token secret
		}
		from opsgenie {
			token secret
		}
	}
}
http://127.0.0.1:%d {
	notify
}
http://127.0.0.1:%d {
	rewrite * /notify/ops/ntfy{uri}
	notify
}
`, hook.to("/hook"), port, ntfyPort))
	return fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", ntfyPort), hook
}

// TestAppriseAPIs checks that Apprise can use the gateway as a server of ntfy,
// Gotify and Mattermost.
func TestAppriseAPIs(t *testing.T) {
	gateway, ntfy, hook := apiGateway(t)
	const text = "91% full é 漢字 😀 # ?"
	file := writeFile(t, "graph.txt", "the\x00file\n")
	for _, tt := range []struct {
		url   string
		args  []string
		want  posted
		files int
	}{
		{url: "gotify://" + gateway + "/notify/ops/gotify/secret?priority=high", want: posted{Title: "A title", Message: text, Type: "failure"}},
		{url: "gotify://" + gateway + "/notify/ops/gotify/secret?priority=low", want: posted{Title: "A title", Message: text, Type: "info"}},
		{url: "mmost://" + gateway + "/notify/ops/slack/secret", want: posted{Message: text, Type: "info"}},
		{
			url:  "ntfy://user:secret@" + ntfy + "/alerts?priority=emergency&mode=private",
			want: posted{Title: "A title", Message: text, Type: "failure"},
		},
		{
			url: "ntfy://user:secret@" + ntfy + "/alerts?mode=private", args: []string{"-a", file},
			want: posted{Title: "A title", Message: text, Type: "info"}, files: 1,
		},
	} {
		if ok, said := apprise(t, append([]string{"-t", "A title", "-b", text, tt.url}, tt.args...)...); !ok {
			t.Errorf("%s: %s", tt.url, said)
			continue
		}
		p := hook.take(t, "/hook")
		if !strings.Contains(p.Message, tt.want.Message) || tt.want.Title != "" && p.Title != tt.want.Title ||
			p.Type != tt.want.Type || len(p.Attachments) != tt.files {
			t.Errorf("%s: arrived %+v", tt.url, p)
		}
		if tt.files > 0 && (p.Attachments[0].Filename != "graph.txt" || string(p.Attachments[0].Base64) != "the\x00file\n") {
			t.Errorf("%s: arrived %+v", tt.url, p.Attachments)
		}
		wrong := strings.Replace(tt.url, "secret", "another", 1)
		if ok, said := apprise(t, "-b", text, wrong); ok || hook.paths() != "" {
			t.Errorf("%s: a wrong token is accepted: %s", wrong, said)
		}
	}
}

// TestOwnServicesAsClients checks that the gateway's own services can use the
// gateway as their server.
func TestOwnServicesAsClients(t *testing.T) {
	gateway, ntfy, hook := apiGateway(t)
	s := newSender(t)
	file := notifier.NewAttachment("graph.txt", "text/plain", []byte("the\x00file\n"))
	for url, files := range map[string]int{
		"gotify://" + gateway + "/notify/ops/gotify/secret":    0,
		"mmost://" + gateway + "/notify/ops/slack/secret":      0,
		"ntfy://user:secret@" + ntfy + "/alerts?mode=private":  1,
		"ntfy://" + ntfy + "/alerts?mode=private&token=secret": 1,
	} {
		m := &notifier.Message{Title: "A title", Body: "**91%** full é 漢字", Type: notifier.Failure, Format: markup.Markdown}
		if files > 0 {
			m.Attachments = []*notifier.Attachment{file}
		}
		if r, _ := send(t, s, url, m); r.Err != nil {
			t.Errorf("%s: %v", url, r.Err)
			continue
		}
		p := hook.take(t, "/hook")
		if !strings.Contains(p.Title+p.Message, "A title") || !strings.Contains(p.Message, "91%") ||
			!strings.Contains(p.Message, "é 漢字") || len(p.Attachments) != files {
			t.Errorf("%s: arrived %+v", url, p)
		}
	}
}

// alertmanager runs Alertmanager, which groups alerts by the given labels, with a
// receiver that has the given lines. It returns its address.
func alertmanager(t *testing.T, groupBy, receiver string) string {
	t.Helper()
	name := program(t, "prometheus-alertmanager", "prometheus-alertmanager")
	port := freePort(t)
	config := writeFile(t, "alertmanager.yml", `route:
  receiver: gateway
  group_by: `+groupBy+`
  group_wait: 100ms
  group_interval: 100ms
receivers:
  - name: gateway
`+receiver)
	start(t, port, name, "--config.file="+config, "--storage.path="+filepath.Join(t.TempDir(), "data"), "--cluster.listen-address=",
		"--web.listen-address=127.0.0.1:"+strconv.Itoa(port), "--web.external-url=http://am.example.net")
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// webhookOf returns the lines of a receiver that posts to a gateway.
func webhookOf(gateway string) string {
	return `    webhook_configs:
      - url: http://` + gateway + `/notify/ops/alertmanager
        send_resolved: true
`
}

// postAlerts posts alerts to Alertmanager.
func postAlerts(t *testing.T, address string, alerts ...map[string]any) {
	t.Helper()
	body, err := json.Marshal(alerts)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(address+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("Alertmanager answers %d", resp.StatusCode)
	}
}

// diskAlert returns an alert of a host. It fires if end is 0, and otherwise ends in end.
func diskAlert(host string, end time.Duration) map[string]any {
	a := map[string]any{
		"labels":       map[string]string{"alertname": "DiskFull", "instance": host, "severity": "critical"},
		"annotations":  map[string]string{"summary": "The disk is nearly full.", "description": "The disk of " + host + " is 91% full."},
		"generatorURL": "http://prometheus.example.net/graph?g0.expr=disk",
		"startsAt":     time.Now().Add(-time.Minute).Format(time.RFC3339),
	}
	if end != 0 {
		a["endsAt"] = time.Now().Add(end).Format(time.RFC3339)
	}
	return a
}

// TestAlertmanager checks that Alertmanager sends an alert when it fires and when
// it is resolved.
func TestAlertmanager(t *testing.T) {
	hook := newWebhook(t)
	address := alertmanager(t, "[alertname]", webhookOf(newGateway(t, "key ops {\nurl "+hook.to("/hook")+"\n}")))
	arrives := func(typ string, lines ...string) {
		t.Helper()
		eventually(t, "a message of type "+typ+" arrives", func() bool {
			hook.mu.Lock()
			defer hook.mu.Unlock()
			for _, p := range hook.got {
				want := strings.Join(lines, "\n") + "\nhttp://prometheus.example.net/graph?g0.expr=disk"
				if p.Title == "DiskFull" && p.Type == typ && p.Message == want {
					return true
				}
			}
			return false
		})
	}
	const summary = "The disk is nearly full."
	postAlerts(t, address, diskAlert("db1", 0), diskAlert("db2", 0))
	arrives("failure", summary, "Firing: The disk of db1 is 91% full.", "Firing: The disk of db2 is 91% full.")
	postAlerts(t, address, diskAlert("db1", -time.Second), diskAlert("db2", 0))
	arrives("failure", summary, "Firing: The disk of db2 is 91% full.", "Resolved: The disk of db1 is 91% full.")
	postAlerts(t, address, diskAlert("db2", -time.Second))
	arrives("success", "Resolved: "+summary, "The disk of db2 is 91% full.")
}

// TestAlertmanagerAsSlackClient checks that Alertmanager can use the gateway as Slack:
// as an incoming webhook and, with a token, as the Web API.
func TestAlertmanagerAsSlackClient(t *testing.T) {
	gateway, _, hook := apiGateway(t)
	for path, authorization := range map[string]string{
		"/notify/ops/slack/services/T0/B0/secret": "",
		"/notify/ops/slack/api/chat.postMessage":  "        http_config:\n          authorization:\n            credentials: secret\n",
	} {
		address := alertmanager(t, "[alertname]", `    slack_configs:
      - api_url: http://`+gateway+path+`
        channel: "#ops"
        send_resolved: true
        text: "<!channel> {{ .CommonAnnotations.summary }} :warning:"
`+authorization)
		postAlerts(t, address, diskAlert("db1", 0))
		p := hook.next(t)
		if !strings.HasPrefix(p.Title, "[FIRING:1] DiskFull") || p.Type != "failure" ||
			!strings.HasPrefix(p.Message, "@channel The disk is nearly full. ⚠️  \nhttp://am.example.net/") {
			t.Errorf("%s: %+v", path, p)
		}
		postAlerts(t, address, diskAlert("db1", -time.Second))
		if p := hook.next(t); !strings.HasPrefix(p.Title, "[RESOLVED] DiskFull") || p.Type != "success" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// TestAlertmanagerAsIncidentToolClient checks that Alertmanager can use the gateway as
// PagerDuty and Opsgenie: its messages about a group are one incident, which ends.
func TestAlertmanagerAsIncidentToolClient(t *testing.T) {
	gateway, _, hook := apiGateway(t)
	for name, tt := range map[string]struct{ receiver, resolved string }{
		"pagerduty": {`    pagerduty_configs:
      - url: http://` + gateway + `/notify/ops/pagerduty/v2/enqueue
        routing_key: secret
`, "[RESOLVED] DiskFull"},
		"opsgenie": {`    opsgenie_configs:
      - api_url: http://` + gateway + `/notify/ops/opsgenie/
        api_key: secret
        tags: storage
`, "Closed: DiskFull"},
	} {
		address := alertmanager(t, "[alertname]", tt.receiver)
		postAlerts(t, address, diskAlert("db1", 0))
		opened := hook.next(t)
		if !strings.HasPrefix(opened.Title, "[FIRING:1] DiskFull") || opened.Type != "failure" ||
			!strings.Contains(opened.Message, "The disk of db1 is 91% full.") {
			t.Errorf("%s: %+v", name, opened)
		}
		postAlerts(t, address, diskAlert("db1", -time.Second))
		resolved := hook.next(t)
		if !strings.HasPrefix(resolved.Title, tt.resolved) || resolved.Type != "success" ||
			resolved.Incident != opened.Incident || resolved.Incident == "" {
			t.Errorf("%s: %+v after %+v", name, resolved, opened)
		}
		if n := metric(t, address, `alertmanager_notifications_failed_total{integration="`+name+`"`); n != 0 {
			t.Errorf("%s: %d notifications have failed", name, n)
		}
	}
}

// TestAlertmanagerAndDeadDestination checks that Alertmanager sends an alert once if one
// destination is dead and another one has the message, and again while none has it.
func TestAlertmanagerAndDeadDestination(t *testing.T) {
	flushes := func(address string) int {
		return metric(t, address, "alertmanager_nflog_queries_total")
	}
	for _, status := range []int{http.StatusGone, http.StatusServiceUnavailable} {
		var attempts atomic.Int32
		dead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			attempts.Add(1)
			w.WriteHeader(status)
		}))
		defer dead.Close()
		deadURL := "url json://" + strings.TrimPrefix(dead.URL, "http://") + "/\n"

		hook := newWebhook(t)
		address := alertmanager(t, "[alertname]", webhookOf(newGateway(t, "key ops {\nurl "+hook.to("/hook")+"\n"+deadURL+"}")))
		postAlerts(t, address, diskAlert("db1", 0))
		eventually(t, "the healthy destination has the alert", func() bool { return hook.paths() != "" })
		// Alertmanager looks into its log before each notification: here ten times more.
		before := flushes(address)
		eventually(t, "Alertmanager has looked at the alert again", func() bool { return flushes(address) >= before+10 })
		if got := hook.paths(); got != "" || attempts.Load() != 1 {
			t.Errorf("a destination that answers %d: the healthy one got more messages at %q, the dead one %d", status, got, attempts.Load())
		}
		if n := metric(t, address, `alertmanager_notifications_failed_total{integration="webhook"`); n != 0 {
			t.Errorf("a destination that answers %d: %d notifications have failed", status, n)
		}

		attempts.Store(0)
		address = alertmanager(t, "[alertname]", webhookOf(newGateway(t, "key ops {\n"+deadURL+"}")))
		postAlerts(t, address, diskAlert("db1", 0))
		eventually(t, "Alertmanager sends the alert again", func() bool { return attempts.Load() > 2 })
	}
}

// metric returns the sum of the metrics of a program whose lines begin with prefix.
func metric(t *testing.T, address, prefix string) (sum int) {
	t.Helper()
	resp, err := http.Get(address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += int(n)
		}
	}
	return sum
}

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// apiGateway runs a gateway whose key ops leads to a webhook, and whose APIs
// demand the token secret. It returns its host and port, and those of a site
// that is an ntfy server.
func apiGateway(t *testing.T) (gateway, ntfy string, hook *webhook) {
	t.Helper()
	caddy, err := buildGateway()
	if err != nil {
		t.Fatal(err)
	}
	hook = newWebhook(t)
	port, ntfyPort := freePort(t), freePort(t)
	config := writeFile(t, "Caddyfile", fmt.Sprintf(`{
	admin off
	persist_config off
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
	start(t, port, caddy, "run", "--config", config, "--adapter", "caddyfile")
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
		{url: "ntfy://user:secret@" + ntfy + "/alerts?priority=emergency&mode=private", want: posted{Title: "A title", Message: text, Type: "failure"}},
		{url: "ntfy://user:secret@" + ntfy + "/alerts?mode=private", args: []string{"-a", file}, want: posted{Title: "A title", Message: text, Type: "info"}, files: 1},
	} {
		if ok, said := apprise(t, append([]string{"-t", "A title", "-b", text, tt.url}, tt.args...)...); !ok {
			t.Errorf("%s: %s", tt.url, said)
			continue
		}
		p := hook.take(t, "/hook")
		if !strings.Contains(p.Message, tt.want.Message) || tt.want.Title != "" && p.Title != tt.want.Title || p.Type != tt.want.Type || len(p.Attachments) != tt.files {
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
		if !strings.Contains(p.Title+p.Message, "A title") || !strings.Contains(p.Message, "91%") || !strings.Contains(p.Message, "é 漢字") || len(p.Attachments) != files {
			t.Errorf("%s: arrived %+v", url, p)
		}
	}
}

// TestAlertmanager checks that Alertmanager sends an alert when it fires and when
// it is resolved.
func TestAlertmanager(t *testing.T) {
	name := program(t, "prometheus-alertmanager", "prometheus-alertmanager")
	hook := newWebhook(t)
	gateway := newGateway(t, "key ops {\nurl "+hook.to("/hook")+"\n}")
	port := freePort(t)
	config := writeFile(t, "alertmanager.yml", `route:
  receiver: gateway
  group_by: [alertname]
  group_wait: 100ms
  group_interval: 100ms
receivers:
  - name: gateway
    webhook_configs:
      - url: http://`+gateway+`/notify/ops/alertmanager
        send_resolved: true
`)
	start(t, port, name, "--config.file="+config, "--storage.path="+filepath.Join(t.TempDir(), "data"), "--cluster.listen-address=",
		"--web.listen-address=127.0.0.1:"+strconv.Itoa(port), "--web.external-url=http://am.example.net")
	alert := func(host string, end time.Duration) map[string]any {
		a := map[string]any{
			"labels":      map[string]string{"alertname": "DiskFull", "instance": host, "severity": "critical"},
			"annotations": map[string]string{"summary": "The disk is 91% full"},
			"startsAt":    time.Now().Add(-time.Minute).Format(time.RFC3339),
		}
		if end != 0 {
			a["endsAt"] = time.Now().Add(end).Format(time.RFC3339)
		}
		return a
	}
	post := func(alerts ...map[string]any) {
		t.Helper()
		body, err := json.Marshal(alerts)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/api/v2/alerts", port), "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("Alertmanager answers %d", resp.StatusCode)
		}
	}
	arrives := func(typ string, lines ...string) {
		t.Helper()
		eventually(t, "a message of type "+typ+" arrives", func() bool {
			hook.mu.Lock()
			defer hook.mu.Unlock()
			for _, p := range hook.got {
				want := strings.Join(lines, "\n") + "\nhttp://am.example.net"
				if p.Title == "DiskFull" && p.Type == typ && p.Message == want {
					return true
				}
			}
			return false
		})
	}
	post(alert("db1", 0), alert("db2", 0))
	arrives("failure", "Firing: The disk is 91% full (db1)", "Firing: The disk is 91% full (db2)")
	post(alert("db1", -time.Second), alert("db2", 0))
	arrives("failure", "Firing: The disk is 91% full (db2)", "Resolved: The disk is 91% full (db1)")
	post(alert("db2", -time.Second))
	arrives("success", "Resolved: The disk is 91% full (db2)")
}

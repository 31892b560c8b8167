package safety

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTokensOfKeys checks that a request without the token of its key is answered before its body
// is sent, like a request to a key that does not exist. Such requests hold no room. A reload can
// replace a token. No answer, log line (also with debug) or metric has a secret.
func TestTokensOfKeys(t *testing.T) {
	t.Parallel()
	const old, fresh, reader = "s3cret-0ld-t0ken-0f-ops", "s3cret-fre5h-t0ken-0f-ops", "s3cret-re4der-0f-ops"
	to := newInbox(t)
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(old)
	block := func(tokens string) string {
		return "max_in_flight 5\nconfigs {\nmanage\n}\nkey ops {\nurl json://" +
			authority(to.Server) + "\ntoken " + tokens + "\nreader {env.OPS_READER}\n}"
	}
	g := start(t, "debug", block("{file."+file+"}"), "OPS_READER="+reader, "FRESH="+fresh)

	head := regexp.MustCompile(`(?s)^HTTP/1.1 (\d+).*?\r\n\r\n(.*)`)
	dates := regexp.MustCompile(`Date: [^\r]*|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}`)
	for _, secret := range []string{"", "Authorization: Bearer wrong-wr0ng-wrong-wr0ng\r\n", "X-Gotify-Key: " + reader + "\r\n"} {
		for _, path := range []string{
			"/notify/%s", "/notify/%s/", "/notify/%s?preview", "/notify/%s/grafana",
			"/notify/%s/gotify/message", "/notify/%s/github?token=wrong",
		} {
			var answers []string
			for _, key := range []string{"ops", "qzx"} {
				// The body is announced and never sent.
				answer := g.raw(fmt.Sprintf("POST "+path+" HTTP/1.1\r\nHost: SELF\r\n"+
					"Connection: close\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"+
					"%s\r\n{", key, secret), 30*time.Second)
				if m := head.FindStringSubmatch(answer); m == nil || m[1] != "401" {
					t.Errorf("%s: %.300s", fmt.Sprintf(path, key), answer)
				}
				answers = append(answers, dates.ReplaceAllString(answer, ""))
			}
			if answers[0] != answers[1] {
				t.Errorf("%s: %s\nbut for an unknown key: %s", path, answers[0], answers[1])
			}
		}
	}

	// More of them than max_in_flight leave room for the alert.
	closeAll := g.halfSent(20, "/notify/ops", "Content-Type: application/json\r\n", func(i int) string {
		return fmt.Sprintf("198.51.100.%d", i)
	})
	send := func(token string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, g.url+"/notify/ops", strings.NewReader("body=alert"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("any", token)
		return g.ask(r).Status
	}
	expect := func(what, token string, want int) {
		t.Helper()
		if got := send(token); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	expect("with the token, beside strangers", old, 200)
	closeAll()

	// Replacing the token: both count, then only the new one.
	expect("a token that is not set yet", fresh, 401)
	released := g.keepConnection()
	g.reload("debug", block("{file."+file+"} {env.FRESH}"))
	released()
	expect("the old one of two", old, 200)
	expect("the new one of two", fresh, 200)
	write("s3cret-an0ther-t0ken")
	released = g.keepConnection()
	g.reload("debug", block("{file."+file+"} {env.FRESH}")) // only the file has changed
	released()
	expect("the old one", old, 401)
	expect("the new one", fresh, 200)
	if got := len(to.take()); got != 4 {
		t.Errorf("%d messages were sent, want 4", got)
	}

	if status, body := g.get(g.url+"/json/urls/ops", "*/*"); status != 401 {
		t.Errorf("the destinations without the reader: %d %s", status, body)
	}
	if status, body := g.get(g.url+"/json/urls/ops?token="+reader, "*/*"); status != 200 || strings.Contains(body, reader) {
		t.Errorf("the destinations with the reader: %d %s", status, body)
	}
	_, metrics := g.get(g.adminURL+"/metrics", "*/*")
	if !strings.Contains(metrics, `caddy_notify_key_messages_total{key="ops",outcome="refused"}`) || strings.Contains(metrics, "qzx") {
		t.Error("messages are not counted by key, or also for a key that does not exist")
	}
	_, config := g.get(g.adminURL+"/config/", "*/*")
	for place, text := range map[string]string{"the log": g.log(), "the metrics": metrics, "the configuration": config} {
		for _, secret := range []string{old, fresh, reader} {
			for line := range strings.Lines(text) {
				// Caddy's access log has the query string and X-Gotify-Key.
				if strings.Contains(line, secret) && !strings.Contains(line, `"logger":"http.log.access"`) {
					t.Errorf("%s has the secret %s: %s", place, secret, line)
				}
			}
		}
	}
}

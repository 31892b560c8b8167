package admin_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
)

// TestBeatsShown checks that the admin API, the metrics and the page of the key show
// which beats have come and which have not.
func TestBeatsShown(t *testing.T) {
	caddyhttptest.ReplaceShared(t)
	s := gatewaytest.NewStation(t)
	global := "notify {\nconsole {\nmanage open\n}\nqueue {\npath " + t.TempDir() +
		"\n}\nkey ops {\nurl " + s.NotifyURL("/ops") + "\nexpect nightly every 24h grace 2h\n" +
		"expect quick every 1s grace 1s\nexpect sync every 1h\n}\n}"
	caddyhttptest.Serve(t, global, "key own {\nurl "+s.NotifyURL("/own")+"\nexpect local every 1h\n}")
	for path, want := range map[string]int{
		"/notify/ops?beat=nightly": http.StatusOK, "/notify/ops?beat=sync&type=failure": http.StatusOK,
		"/notify/own?beat=local": http.StatusOK, "/prefix/notify/own?beat=local": http.StatusOK,
		"/notify/own?beat=nightly": http.StatusNotFound,
	} {
		if status, text := caddyhttptest.Send(t.Context(), t, path, ""); status != want {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
	var all heartbeat.AdminBeats
	gatewaytest.Eventually(t, func() bool {
		all = heartbeat.AdminBeats{}
		status, text := ask(t, http.MethodGet, "/notify/beats", "")
		if err := json.Unmarshal([]byte(text), &all); err != nil || status != http.StatusOK {
			t.Fatalf("status %d: %s", status, text)
		}
		return len(all.Beats) == 5 && all.Beats[1].State == "late"
	})
	var got []string
	for _, b := range all.Beats {
		line := b.Key + " " + b.Scope + " " + b.Name + " " + b.Every + " " + b.Grace + " " + b.State
		if b.Due.IsZero() || b.Late.IsZero() || !b.Late.After(b.Due) ||
			(!b.Since.IsZero()) != (b.State != "on_time") || b.Last.IsZero() != (b.Name == "quick") {
			t.Errorf("%+v", b)
		}
		got = append(got, line)
	}
	// the site and its prefix
	const want = "ops global nightly 1d 2h on_time\nops global quick 1s 1s late\n" +
		"ops global sync 1h 6m failed\nown site local 1h 6m on_time\nown site local 1h 6m on_time"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("beats\n%s\nwant\n%s", text, want)
	}
	page := caddyhttptest.Do(t, http.MethodGet, caddyhttptest.Server+"/notify/console/keys/ops", "", "Accept", "text/html")
	for _, text := range []string{
		"/notify/ops?beat=nightly&amp;exit=$?", "<h2 id=\"beats\">",
		"every 1d, grace 2h · last <time", "Late <time", "every 1s, grace 1s · no run has come yet", "Failed <time",
	} {
		if !strings.Contains(page.Body, text) {
			t.Errorf("status %d: the page has no %s", page.Status, text)
		}
	}
	_, metrics := ask(t, http.MethodGet, "/metrics", "")
	for _, line := range []string{
		`caddy_notify_beats{state="on_time"} 3`, `caddy_notify_beats{state="in_grace"} 0`,
		`caddy_notify_beats{state="late"} 1`, `caddy_notify_beats{state="failed"} 1`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no %s: %q", line, regexp.MustCompile(`caddy_notify_beats.*`).FindAllString(metrics, -1))
		}
	}
}

package command

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestBeats checks that the command lists the beats of a running server, and what became of
// the last call of the watchdog.
func TestBeats(t *testing.T) {
	destination := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ping/s3cret" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer destination.Close()
	serve(t, `
	queue {
		beat `+destination.URL+`/ping/s3cret 1s
	}
	key ops {
		url json://`+strings.TrimPrefix(destination.URL, "http://")+`/
		expect nightly every 24h grace 2h
		expect sync every 1h
		expect yearly cron "15 3 24 12 *" UTC grace 2h
	}
	`, "stateless off")
	for _, query := range []string{"beat=sync&state=start", "beat=sync&exit=3", "beat=yearly&state=start"} {
		caddyhttptest.Do(t, http.MethodGet, caddyhttptest.Server+"/notify/ops?"+query, "")
	}
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return command(t, "", append([]string{"beats", "--address=" + caddyhttptest.Admin}, args...)...)
	}
	var out string
	gatewaytest.Eventually(t, func() bool {
		var code int
		out, _, code = run()
		return code == 0 && strings.Contains(out, "watchdog failing since ")
	})
	const date = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := []string{
		`^ops +nightly +on time +every 1d +last never +due ` + date + ` +late ` + date + `$`,
		`^ops +sync +failed since ` + date + ` +every 1h +last ` + date + ` after \d+s, exit 3 +due ` + date + ` +late ` + date + `$`,
		`^ops +yearly +on time +cron 15 3 24 12 \* UTC +last never +due \d{4}-12-24 ` +
			`03:15:00 +late \d{4}-12-24 05:15:00, runs since ` + date + `$`,
		`^watchdog failing since ` + date + `, every 1s, last success never: the watchdog answers with status 418$`,
	}
	if len(lines) != len(want) {
		t.Fatalf("listed\n%s", out)
	}
	for i := range want {
		if !regexp.MustCompile(want[i]).MatchString(lines[i]) {
			t.Errorf("line %q, want %s", lines[i], want[i])
		}
	}
	if out, _, code := run("--json"); code != 0 || !strings.Contains(out, `"beats":[{"key":"ops"`) ||
		!strings.Contains(out, `"watchdog":{"state":"failing"`) || strings.Contains(out, "s3cret") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if _, errs, code := run("ops"); code != 1 || errs == "" {
		t.Errorf("with an argument: exit %d, %s", code, errs)
	}
}

// TestSilenceOfSavedKey makes, lists and ends a silence of a saved key of one of two spaces.
func TestSilenceOfSavedKey(t *testing.T) {
	to := gatewaytest.NewStation(t).NotifyURL("/")
	serve(t, `
	queue
	key fixed {
		url `+to+`
	}
	configs {
		manage open
		trust operator
	}
	`, "configs home {\nmanage open\ntrust operator\n}")
	if status, text := caddyhttptest.Send(t.Context(), t, "/add/alarms", "urls="+to); status != http.StatusOK {
		t.Fatal(status, text)
	}
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return command(t, "", append([]string{"silence", "--address=" + caddyhttptest.Admin}, args...)...)
	}
	made, errs, code := run("alarms", "--for", "2h", "--tag", "all")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	if out, _, _ := run("alarms", "--space", "home", "--list"); out != made {
		t.Errorf("listed\n%s\nmade\n%s", out, made)
	}
	caddyhttptest.Send(t.Context(), t, "/notify/alarms", "body=x")
	if out, _, _ := run("alarms", "--list"); !strings.Contains(out, "1 messages") {
		t.Errorf("the silence has kept nothing: %s", out)
	}
	id, _, _ := strings.Cut(made, " ")
	if out, errs, code := run("alarms", "--space", "home", "--delete", id); code != 0 || !strings.Contains(out, id) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for want, args := range map[string][]string{
		"it is in home":                       {"alarms", "--space", "default", "--list"},
		"no space has a saved key":            {"fixed", "--space", "home", "--list"},
		"neither in the configuration nor":    {"none", "--list"},
		"there is no such silence; it has en": {"fixed", "--delete", id},
	} {
		if _, errs, code := run(args...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
	}
}

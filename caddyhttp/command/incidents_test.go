package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestIncidents checks that the command lists the incidents of a running server, the
// worst first, and that the filters and mistakes in them reach the admin API.
func TestIncidents(t *testing.T) {
	to := gatewaytest.NewStation(t).NotifyURL("/")
	serve(t, `
	queue
	key ops {
		url `+to+`
		dedupe 1h
	}
	key net {
		url `+to+`
		dedupe 1h
	}
	`, "stateless off")
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return command(t, "", append(append([]string{"incidents"}, args...), "--address="+caddyhttptest.Admin)...)
	}
	if out, errs, code := run(); code != 0 || out != "" || !strings.Contains(errs, "There are none.") {
		t.Errorf("without incidents: exit %d\n%s%s", code, out, errs)
	}
	for _, x := range []struct{ key, kind, incident string }{
		{"net", "warning", "slow"}, {"ops", "failure", "disk"}, {"ops", "failure", "cpu"}, {"ops", "success", "cpu"},
	} {
		caddyhttptest.Send(t.Context(), t, "/notify/"+x.key,
			"title=Title%09of+"+x.incident+"&body=confidential&type="+x.kind+"&incident="+x.incident)
	}
	for args, want := range map[string][]string{
		"":                       {"ops open failure Title of disk", "net open warning Title of slow", "ops resolved success Title of cpu"},
		"--key=ops":              {"ops open failure Title of disk", "ops resolved success Title of cpu"},
		"--key=ops --state=open": {"ops open failure Title of disk"},
	} {
		out, errs, code := run(strings.Fields(args)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != 0 || len(lines) != len(want) || strings.Contains(out, "confidential") {
			t.Errorf("%s: exit %d\n%s%s", args, code, out, errs)
			continue
		}
		for i, line := range lines {
			f := strings.Fields(line) // ID, key, state, type, since, date, time, title
			if got := strings.Join(append(f[1:4], f[7:]...), " "); got != want[i] || len(f[0]) != 26 {
				t.Errorf("%s: line %d is %q, want %q", args, i, line, want[i])
			}
		}
	}
	if out, _, code := run("--json"); code != 0 || strings.Count(out, `"id":`) != 3 {
		t.Errorf("--json: exit %d\n%s", code, out)
	}
	if _, errs, code := command(t, "", "silence", "ops", "--for=1h", "--incident=disk",
		"--reason=test", "--address="+caddyhttptest.Admin); code != 0 {
		t.Fatalf("silence: exit %d\n%s", code, errs)
	}
	if out, _, _ := run("--key=ops", "--state=open"); !strings.Contains(out, "silenced until ") {
		t.Errorf("silenced: %s", out)
	}
	if out, _, _ := run("--key=net"); strings.Contains(out, "silenced") {
		t.Errorf("of another key: %s", out)
	}
	list, _, _ := run("--key=ops", "--state=open")
	id := strings.Fields(list)[0]
	if out, errs, code := run("acknowledge", id, "--by", "Eve"); code != 0 || out != "ops Title of disk: acknowledged.\n" {
		t.Errorf("acknowledge: exit %d\n%s%s", code, out, errs)
	}
	if out, _, code := run("acknowledge", id); code != 0 || out != "ops Title of disk: was acknowledged before.\n" {
		t.Errorf("acknowledge again: exit %d\n%s", code, out)
	}
	if out, _, _ := run("--state=acknowledged"); !strings.Contains(out, "by Eve") {
		t.Errorf("acknowledged: %s", out)
	}
	if out, errs, code := run("resolve", id); code != 0 || !strings.HasSuffix(out, ": resolved.\n") {
		t.Errorf("resolve: exit %d\n%s%s", code, out, errs)
	}
	if out, _, _ := run("--key=ops", "--state=resolved"); !strings.Contains(out, id) {
		t.Errorf("resolved: %s", out)
	}
	if out, errs, code := run("forget", id); code != 0 || out != "ops Title of disk: forgotten.\n" {
		t.Errorf("forget: exit %d\n%s%s", code, out, errs)
	}
	if out, _, _ := run("--key=ops"); strings.Contains(out, id) || !strings.Contains(out, "Title of cpu") {
		t.Errorf("after forgetting: %s", out)
	}
	if _, errs, code := run("forget", "--key=nett"); code != 1 ||
		!strings.Contains(errs, "there is no such key: nett, neither in the configuration nor saved; you may mean net") {
		t.Errorf("forget those of no key: exit %d\n%s", code, errs)
	}
	if out, errs, code := run("forget", "--key=net", "--state=resolved"); code != 0 || out != "0 forgotten.\n" {
		t.Errorf("forget what is resolved: exit %d\n%s%s", code, out, errs)
	}
	if out, errs, code := run("forget", "--key=net"); code != 0 || out != "1 forgotten.\n" {
		t.Errorf("forget those of a key: exit %d\n%s%s", code, out, errs)
	}
	for _, args := range [][]string{{"forget"}, {"forget", id, "--key=ops"}} {
		if _, errs, code := run(args...); code != 1 || !strings.Contains(errs, "name either incidents by their ids") {
			t.Errorf("%q: exit %d\n%s", args, code, errs)
		}
	}
	if _, errs, code := run("forget", "--key=ops", "--state=shut"); code != 1 || !strings.Contains(errs, "state must be open") {
		t.Errorf("forget in a wrong state: exit %d\n%s", code, errs)
	}
	for _, what := range []string{"acknowledge", "resolve", "forget"} {
		if _, errs, code := run(what, "aaaaaaaaaaaaaaaaaaaaaaaaaa"); code != 1 || !strings.Contains(errs, "there is no such incident") {
			t.Errorf("%s an unknown one: exit %d\n%s", what, code, errs)
		}
	}
	if _, errs, code := run("--state=shut"); code != 1 || !strings.Contains(errs, "state must be open, acknowledged or resolved") {
		t.Errorf("a wrong state: exit %d\n%s", code, errs)
	}
}

// TestIncidentColumns checks that no next step is announced that a silence stops.
func TestIncidentColumns(t *testing.T) {
	at := func(text string) string {
		x, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return x.Local().Format(time.DateTime)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"a next step": {
			`{"state": "open", "escalation": {"step": 1, "next": "2026-03-01T12:00:00Z"}}`,
			"step 1, next " + at("2026-03-01T12:00:00Z"),
		},
		"silenced": {
			`{"state": "open", "escalation": {"step": 1, "next": "2026-03-01T12:00:00Z"}, "silenced_until": "2026-03-01T13:00:00Z"}`,
			"step 1, silenced until " + at("2026-03-01T13:00:00Z"),
		},
		"silenced before": {
			`{"state": "open", "escalation": {"step": 1, "next": "2026-03-01T14:00:00Z"}, "silenced_until": "2026-03-01T13:00:00Z"}`,
			"step 1, next " + at("2026-03-01T14:00:00Z") + ", silenced until " + at("2026-03-01T13:00:00Z"),
		},
		"not told": {`{"state": "open", "escalation": {"step": 0}}`, "nobody is told yet"},
		"silent for one": {
			`{"state": "open", "escalation": {"step": 1, "next": "2026-03-01T12:00:00Z"}, ` +
				`"silenced_until": "2026-03-01T13:00:00Z", "silenced_for": ["JSON web (1:oncall)"]}`,
			"step 1, next " + at("2026-03-01T12:00:00Z") + ", silent for JSON web (1:oncall) until " + at("2026-03-01T13:00:00Z"),
		},
		"without steps": {`{"state": "open", "silenced_until": "2026-03-01T13:00:00Z"}`, "silenced until " + at("2026-03-01T13:00:00Z")},
	} {
		var x incident
		if err := json.Unmarshal([]byte(tt.text), &x); err != nil {
			t.Fatal(err)
		}
		if got := x.columns()[5]; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

package command

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestSilence makes a silence of a running server, lists it and ends it.
func TestSilence(t *testing.T) {
	serve(t, `
	queue
	key ops {
		silence sun 02:00-04:00 {
			title backup
			reason backups
		}
		url `+gatewaytest.NewStation(t).NotifyURL("/")+`
	}
	`, "stateless off")
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return command(t, "", append([]string{"silence", "--address=" + caddyhttptest.Admin}, args...)...)
	}
	configured, errs, code := run("ops", "--list")
	if code != 0 || strings.Count(configured, "\n") != 1 ||
		!strings.Contains(configured, " from ") && !strings.Contains(configured, " until ") ||
		!strings.Contains(configured, "title backup, in the configuration") {
		t.Errorf("without silences: exit %d\n%s%s", code, configured, errs)
	}
	made, errs, code := run("ops", "--for", "2h", "--title", "disk", "--tag", "all", "--reason", "new disks")
	if code != 0 || !strings.Contains(made, "tag all, title disk") ||
		!strings.Contains(made, "0 messages") || !strings.Contains(made, "new disks") {
		t.Fatalf("exit %d\n%s%s", code, made, errs)
	}
	list := func() (lines [][]string) {
		out, _, _ := run("ops", "--list")
		for line := range strings.Lines(out) {
			lines = append(lines, strings.Fields(line))
		}
		return lines
	}
	if got := list(); len(got) != 2 || !slices.ContainsFunc(got, func(x []string) bool { return slices.Equal(x, strings.Fields(made)) }) {
		t.Errorf("listed\n%s\nmade\n%s", got, made)
	}
	if out, errs, code := run("ops", "--from",
		time.Now().AddDate(0, 6, 0).Format(time.RFC3339), "--for", "2h", "--tag", "all",
		"--tell"); code != 0 || !strings.Contains(out, " from ") || !strings.Contains(out, " until ") || len(list()) != 3 {
		t.Errorf("planned: exit %d\n%s%s", code, out, errs)
	}
	longer, _, _ := strings.Cut(made, " ")
	if out, errs, code := run("ops", "--extend", longer, "--for", "1d"); code != 0 || !strings.Contains(out, longer) || out == made {
		t.Errorf("extended: exit %d\n%s%s", code, out, errs)
	} else {
		made = out
	}
	if out, errs, code := run("ops", "--until", "resolved", "--incident", "db1"); code != 0 || !strings.Contains(out, "until it is resolved") {
		t.Errorf("until resolved: exit %d\n%s%s", code, out, errs)
	}
	inConfiguration, _, _ := strings.Cut(configured, " ")
	if out, _, code := run("ops", "--list", "--json"); code != 0 || !strings.Contains(out, `"reason":"new disks"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	id, _, _ := strings.Cut(made, " ")
	if out, errs, code := run("ops", "--delete", id); code != 0 || !strings.Contains(out, id) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for want, args := range map[string][]string{
		"there is no such silence": {"ops", "--delete", id},
		"is a line of the key in":  {"ops", "--delete", inConfiguration},
		"change the line to make":  {"ops", "--extend", inConfiguration, "--for", "1h"},
		"is made longer by for":    {"ops", "--extend", id, "--for", "1h", "--title", "x"},
		"from: it must be a time":  {"ops", "--from", "tomorrow", "--for", "2h", "--tag", "all"},
		"there is no such key":     {"none", "--for", "2h", "--tag", "all"},
		"match nothing":            {"ops", "--for", "2h"},
		"add --for":                {"ops", "--tag", "all"},
		"alone":                    {"ops", "--list", "--for", "2h"},
		"accepts 1 arg":            {"--list"},
	} {
		if _, errs, code := run(args...); code != 1 || !strings.Contains(errs, want) || strings.Contains(errs, "{") {
			t.Errorf("%s: exit %d, %s; want %s, and no JSON", args, code, errs, want)
		}
	}
}

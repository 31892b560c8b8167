package command

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestSilence makes a silence of a running server, lists it and ends it.
func TestSilence(t *testing.T) {
	serve(t, `
	queue
	key ops {
		url `+gatewaytest.NewStation(t).NotifyURL("/")+`
	}
	`, "stateless off")
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return command(t, "", append([]string{"silence", "--address=" + caddyhttptest.Admin}, args...)...)
	}
	if out, errs, code := run("ops", "--list"); code != 0 || out != "" || !strings.Contains(errs, "There are none.") {
		t.Errorf("without silences: exit %d\n%s%s", code, out, errs)
	}
	made, errs, code := run("ops", "--for", "2h", "--title", "disk", "--tag", "all", "--reason", "new disks")
	if code != 0 || !strings.Contains(made, "tag all, title disk") || !strings.Contains(made, "0 messages") || !strings.Contains(made, "new disks") {
		t.Fatalf("exit %d\n%s%s", code, made, errs)
	}
	if out, _, _ := run("ops", "--list"); out != made {
		t.Errorf("listed\n%s\nmade\n%s", out, made)
	}
	if out, _, code := run("ops", "--list", "--json"); code != 0 || !strings.Contains(out, `"reason":"new disks"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	id, _, _ := strings.Cut(made, " ")
	if out, errs, code := run("ops", "--delete", id); code != 0 || !strings.Contains(out, id) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for want, args := range map[string][]string{
		"there is no such silence": {"ops", "--delete", id},
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

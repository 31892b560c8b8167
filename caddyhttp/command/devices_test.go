package command

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/notifier/webpush/webpushtest"
)

// TestInviteAndDevices invites a device at a running server, lets it subscribe, lists it and
// revokes it.
func TestInviteAndDevices(t *testing.T) {
	serve(t, `
	queue
	public_url https://alerts.example.com
	push {
		services 127.0.0.1
	}
	egress {
		allow 127.0.0.0/8
	}
	key ops
	`, "stateless off")
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return command(t, "", append(args, "--address="+caddyhttptest.Admin)...)
	}
	if out, errs, code := run("devices", "list", "ops"); code != 0 || out != "" || !strings.Contains(errs, "There are none.") {
		t.Errorf("without devices: exit %d\n%s%s", code, out, errs)
	}
	out, errs, code := run("invite", "ops", "--tag", "1:oncall", "--tag", "night")
	qr, rest, _ := strings.Cut(out, "\nhttps://alerts.example.com/notify/ops?invite=")
	token, end, ok := strings.Cut(rest, "\n\nFor one device, until ")
	if code != 0 || !ok || len(token) < 22 || !strings.HasSuffix(end, ".\n") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	qr = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(qr, "") // black on white, whatever the terminal has
	lines := strings.Split(strings.TrimRight(qr, "\n"), "\n")           // half blocks: two rows of the code in a line
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); len(lines) < 12 || n < 2*len(lines)-2 || strings.Trim(line, " █▀▄") != "" {
			t.Fatalf("%d lines, one of %d characters: %q", len(lines), n, line)
		}
	}
	subscribe := func(token string) int {
		t.Helper()
		body, err := json.Marshal(map[string]any{
			"name":         "Ann's phone",
			"subscription": webpushtest.NewBrowser(t).Subscription("https://127.0.0.1:1/x"), "invite": token,
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, caddyhttptest.Server+"/notify/ops/devices", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if status := subscribe(token); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	if status := subscribe(token); status != http.StatusForbidden {
		t.Errorf("the invitation once more: status %d", status)
	}
	listed, errs, code := run("devices", "list", "ops")
	for _, want := range []string{"Ann's phone", "1:oncall night", "added ", "never seen", "127.0.0.1"} {
		if code != 0 || !strings.Contains(listed, want) {
			t.Errorf("%q is missing: exit %d\n%s%s", want, code, listed, errs)
		}
	}
	if out, _, code := run("devices", "list", "ops", "--json"); code != 0 ||
		!strings.Contains(out, `"name":"Ann's phone"`) || strings.Contains(out, "https://127.0.0.1:1/x") {
		t.Errorf("exit %d\n%s", code, out)
	}
	id, _, _ := strings.Cut(listed, " ")
	if out, errs, code := run("devices", "revoke", "ops", id); code != 0 ||
		!strings.Contains(out, id) || !strings.Contains(out, "Ann's phone") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if out, errs, _ := run("devices", "list", "ops"); out != "" || !strings.Contains(errs, "There are none.") {
		t.Errorf("after it was revoked: %s%s", out, errs)
	}
	if _, errs, code := run("devices", "revoke", "ops", "--all"); code != 0 || !strings.Contains(errs, "no devices any more") {
		t.Errorf("all of none: exit %d\n%s", code, errs)
	}
	out, _, _ = run("invite", "ops")
	_, rest, _ = strings.Cut(out, "?invite=")
	if token, _, _ := strings.Cut(rest, "\n"); subscribe(token) != http.StatusCreated {
		t.Error("another device cannot subscribe")
	}
	if out, errs, code := run("devices", "revoke", "ops", "--all"); code != 0 || !strings.Contains(out, "Ann's phone") || errs != "" {
		t.Errorf("all: exit %d\n%s%s", code, out, errs)
	}
	if out, errs, _ := run("devices", "list", "ops"); out != "" || !strings.Contains(errs, "There are none.") {
		t.Errorf("after all were revoked: %s%s", out, errs)
	}
	if out, _, code := run("invite", "ops", "--json"); code != 0 || !json.Valid([]byte(out)) ||
		!strings.Contains(out, `"url":"https://alerts.example.com/notify/ops?invite=`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	for want, args := range map[string][]string{
		"the key has no such device":   {"devices", "revoke", "ops", id},
		"there is no such key":         {"invite", "none"},
		"no such key":                  {"devices", "list", "none"},
		"tag":                          {"invite", "ops", "--tag", "a b"},
		"accepts 1 arg":                {"invite"},
		"accepts 2 arg":                {"devices", "revoke", "ops"},
		"accepts 1 arg(s), received 2": {"devices", "revoke", "ops", "--all", id},
	} {
		if _, errs, code := run(args...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
	}
}

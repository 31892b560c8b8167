package caddyhttp

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestEscalateMistakes checks that an escalation that cannot work does not load, and that
// the error has the line and says what to write.
func TestEscalateMistakes(t *testing.T) {
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	public := "public_url " + gatewaytest.PublicURL + "\n"
	one, other := "url json://127.0.0.1:1/a 1:x\n", "url json://127.0.0.1:1/c y\n"
	for _, tt := range []struct{ global, key, want string }{
		{public, one + "escalate after 5m", "key k: escalate: rules keep what they hold"},
		{
			queue, one + "escalate after 5m",
			"key k: escalate: its messages have a link with which to acknowledge, " +
				"and the gateway does not know its address; add public_url https://… ",
		},
		{queue + public, other + "escalate after 5m", "key k: escalate: no URL of the key has a number in a tag"},
		{
			queue + "public_url alerts.example.com\n", one + "escalate after 5m",
			"public_url: it must be the address at which the gateway is reached",
		},
	} {
		_, err := loadCaddyfile(t, withOptions(tt.global+"key k {\n"+tt.key+"\n}", ""))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "Caddyfile:") {
			t.Errorf("%s%s: %v, want %s", tt.global, tt.key, err, tt.want)
		}
	}
	for _, text := range []string{
		"", "example.com", "ftp://example.com", "https://", "https://u@example.com",
		"https://example.com/?x", "https://example.com/#x", "https://example.com/notify",
		"https://example.com/../x", "https://exa mple.com", "https://{host}", "https://*.example.com", "javascript:alert(1)",
	} {
		if got, err := parsePublicURL(text); err == nil {
			t.Errorf("%q is taken as %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"https://example.com/": "https://example.com", "http://10.0.0.1:8080/a/b/": "http://10.0.0.1:8080/a/b",
	} {
		if got, err := parsePublicURL(text); err != nil || got != want {
			t.Errorf("%q is taken as %q, %v", text, got, err)
		}
	}
}

// TestOnCallPage drives the Caddyfile of docs/on-call.md as the page says.
func TestOnCallPage(t *testing.T) {
	text, err := os.ReadFile("../docs/on-call.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "alerts.example.com {\n\tnotify {\n")
	block, _, found := strings.Cut(block, "\tstateless off\n\t}")
	if !found {
		t.Fatal("the page has no Caddyfile")
	}
	x := gatewaytest.NewTeam(t, 3)
	t.Setenv("OPS_TOKEN", "a-secret-of-the-test")
	t.Setenv("CHAT_URL", x.Chat.NotifyURL())
	for i, name := range []string{"ANN_URL", "BOB_URL", "BOSS_URL"} {
		t.Setenv(name, x.Phones[i].NotifyURL())
	}
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, block, "")
		send := func(form string) {
			t.Helper()
			if a := postWith(t, h, "/notify/ops", form, "Authorization", "Bearer a-secret-of-the-test"); a.status != http.StatusOK {
				t.Errorf("status %d %s", a.status, a.body)
			}
		}
		send("type=failure&incident=disk+db1&title=Disk+full&body=/var+has+2+MB+left")
		x.WantCounts(t, 1, 1, 0, 0)
		link := x.Phones[0].Links()[0]
		id, found := strings.CutPrefix(link, "https://alerts.example.com/notify/incidents/")
		if !found {
			t.Fatalf("the link is %q", link)
		}
		gatewaytest.Until(t, "2000-01-01 00:05:03")
		x.WantCounts(t, 1, 1, 1, 0)
		if w := askIncident(t, h, http.MethodPost, id, "by=Bob"); w.Code != http.StatusOK ||
			!strings.Contains(w.Body.String(), `"by":"Bob (typed)"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		gatewaytest.Until(t, "2000-01-01 04:05:00")
		x.WantCounts(t, 1, 1, 1, 0)
		gatewaytest.Until(t, "2000-01-01 04:05:10") // still open
		x.WantCounts(t, 2, 2, 1, 0)
		send("type=success&incident=disk+db1&title=Disk+is+fine&body=ok")
		gatewaytest.Until(t, "2000-01-02 00:00:00")
		x.WantCounts(t, 3, 3, 2, 0)
		// Without anybody who acknowledges, each is told three times.
		send("type=failure&incident=disk+db2&body=full")
		gatewaytest.Until(t, "2000-01-03 00:00:00")
		x.WantCounts(t, 4, 6, 5, 3)
	})
}

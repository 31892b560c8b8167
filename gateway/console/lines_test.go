package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestSendingLines checks the lines that programs use to send to a key.
func TestSendingLines(t *testing.T) {
	t.Parallel()
	secret := gatewaytest.Key("secret", "json://h")
	secret.Tokens = []string{"a-token-of-the-key"}
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", "json://h"), secret}}})
	lines := func(key, target, host string) map[string]string {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host = host
		out := map[string]string{}
		for _, l := range console.SendingLines(r, g.Resolved.Keys[key]) {
			out[l.Name] = l.Text
		}
		return out
	}
	plain, secure := lines("ops", "http://x/", "alerts.example.com:8080"), lines("secret", "https://x/", "alerts.example.com")
	for name, want := range map[string][2]string{
		"curl":        {`curl -f -d "backup done" http://alerts.example.com:8080/notify/ops`, `curl -f -H "Authorization: Bearer $TOKEN" -d "backup done" https://alerts.example.com/notify/secret`},
		"apprise":     {`apprise -b "backup done" "apprise://alerts.example.com:8080/ops"`, `apprise -b "backup done" "apprises://any:$TOKEN@alerts.example.com/secret"`},
		"ntfy":        {`curl -d "backup done" http://alerts.example.com:8080/notify/ops/ntfy/alerts`, `curl -H "Authorization: Bearer $TOKEN" -d "backup done" https://alerts.example.com/notify/secret/ntfy/alerts`},
		"Uptime Kuma": {"http://alerts.example.com:8080/notify/ops/uptime_kuma", "https://alerts.example.com/notify/secret/uptime_kuma?token=$TOKEN"},
	} {
		if plain[name] != want[0] || secure[name] != want[1] {
			t.Errorf("%s:\n%s\n%s, want\n%s\n%s", name, plain[name], secure[name], want[0], want[1])
		}
	}
	for name, text := range lines("ops", "http://x/", `a"; rm -rf $HOME #`) {
		if strings.Contains(text, "rm -rf") {
			t.Errorf("%s has the text of a hostile host: %s", name, text)
		}
	}
}

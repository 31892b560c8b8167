package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/console/sending"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestSendingLines checks the lines that programs use to send to a key.
func TestSendingLines(t *testing.T) {
	t.Parallel()
	secret := gatewaytest.Key("secret", "json://h")
	secret.Tokens = []string{"a-token-of-the-key"}
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", "json://h"), secret}}})
	lines := func(key, target, host string, login bool) map[string]string {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host = host
		out := map[string]string{}
		for _, l := range sending.Lines(r, g.Resolved.Keys[key], login) {
			out[l.Name] = l.Text
			// Access logs have addresses, and all headers but Authorization.
			if strings.Contains(l.Text, "?token=") || strings.Contains(l.Text, "&token=") ||
				strings.Contains(l.Text, "X-Gotify-Key") != strings.HasSuffix(l.Log, "tokens.md#keep-it-out-of-the-log") {
				t.Errorf("%s: an access log has the token, and the page of the log is %q: %s", l.Name, l.Log, l.Text)
			}
		}
		return out
	}
	plain, secure := lines("ops", "http://x/", "alerts.example.com:8080", false), lines("secret", "https://x/", "alerts.example.com", false)
	for name, want := range map[string][2]string{
		"curl": {
			`curl -f -d "backup done" http://alerts.example.com:8080/notify/ops`,
			`curl -f -H "Authorization: Bearer $TOKEN" -d "backup done" https://alerts.example.com/notify/secret`,
		},
		"apprise": {
			`apprise -b "backup done" "apprise://alerts.example.com:8080/ops"`,
			`apprise -b "backup done" "apprises://any:$TOKEN@alerts.example.com/secret"`,
		},
		"ntfy": {
			`curl -d "backup done" http://alerts.example.com:8080/notify/ops/ntfy/alerts`,
			`curl -H "Authorization: Bearer $TOKEN" -d "backup done" https://alerts.example.com/notify/secret/ntfy/alerts`,
		},
		"Uptime Kuma": {
			"http://alerts.example.com:8080/notify/ops/uptime_kuma",
			"https://alerts.example.com/notify/secret/uptime_kuma",
		},
		"Uptime Kuma, with the token": {"", `{"Authorization": "Bearer $TOKEN"}`},
	} {
		if plain[name] != want[0] || secure[name] != want[1] {
			t.Errorf("%s:\n%s\n%s, want\n%s\n%s", name, plain[name], secure[name], want[0], want[1])
		}
	}
	plain, secure = lines("ops", "http://x/", "alerts.example.com:8080", true), lines("secret", "https://x/", "alerts.example.com", true)
	for name, want := range map[string][2]string{
		"curl": {
			`curl -f -u USER:PASSWORD -d "backup done" http://alerts.example.com:8080/notify/ops`,
			`curl -f -u USER:PASSWORD -H "X-Gotify-Key: $TOKEN" -d "backup done" https://alerts.example.com/notify/secret`,
		},
		"curl, with a title and a type": {
			`curl -f -u USER:PASSWORD -H "Title: Disk full" -d "/data has 2 GB left" ` +
				`"http://alerts.example.com:8080/notify/ops?type=failure"`,
			`curl -f -u USER:PASSWORD -H "X-Gotify-Key: $TOKEN" -H "Title: Disk full" -d "/data has 2 GB left" ` +
				`"https://alerts.example.com/notify/secret?type=failure"`,
		},
		"apprise": {
			`apprise -b "backup done" "apprise://USER:PASSWORD@alerts.example.com:8080/ops"`,
			`apprise -b "backup done" "apprises://USER:PASSWORD@alerts.example.com/secret?+X-Gotify-Key=$TOKEN"`,
		},
		"ntfy": {
			`curl -u USER:PASSWORD -d "backup done" http://alerts.example.com:8080/notify/ops/ntfy/alerts`,
			`curl -u USER:PASSWORD -H "X-Gotify-Key: $TOKEN" -d "backup done" https://alerts.example.com/notify/secret/ntfy/alerts`,
		},
		"Uptime Kuma": {
			"http://USER:PASSWORD@alerts.example.com:8080/notify/ops/uptime_kuma",
			"https://USER:PASSWORD@alerts.example.com/notify/secret/uptime_kuma",
		},
		"Uptime Kuma, with the token": {"", `{"X-Gotify-Key": "$TOKEN"}`},
	} {
		if plain[name] != want[0] || secure[name] != want[1] {
			t.Errorf("%s, behind a login:\n%s\n%s, want\n%s\n%s", name, plain[name], secure[name], want[0], want[1])
		}
	}
	if got := secure["Alertmanager"]; !strings.Contains(got,
		"/alertmanager\"\n        http_config:\n          basic_auth:\n            username: USER\n            password: PASSWORD\n"+
			"          http_headers:\n            X-Gotify-Key:\n              secrets: [\"$TOKEN\"]\n") || strings.Contains(got, "credentials") {
		t.Error(got)
	}
	for name, text := range lines("ops", "http://x/", `a"; rm -rf $HOME #`, true) {
		if strings.Contains(text, "rm -rf") {
			t.Errorf("%s has the text of a hostile host: %s", name, text)
		}
	}
}

package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
)

// TestClientAddress checks that a client is counted by its IPv4 address or its IPv6 network.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.7":           "192.0.2.7",
		"::ffff:192.0.2.7":    "192.0.2.7",
		"2001:db8:1:2:3::4":   "2001:db8:1:2::",
		"2001:db8:1:2::9":     "2001:db8:1:2::",
		"fe80::1%eth0":        "fe80::",
		"":                    "invalid IP",
		"@":                   "invalid IP",
		"2001:db8:1:3:3::4%1": "2001:db8:1:3::",
	} {
		e := environment.Environment{ClientIP: func(*http.Request) string { return text }}
		if got := httpapi.ClientAddress(environment.With(httptest.NewRequest(http.MethodPost, "/", nil), &e)).String(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

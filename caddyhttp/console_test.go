package caddyhttp

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestConsoleAccess checks who may use the console: without a user or a verified
// certificate, nobody, unless the operator leaves it to the site.
func TestConsoleAccess(t *testing.T) {
	const key = "key ops {\nurl json://host.example\n}\n"
	for _, tt := range []struct {
		site, global                 string
		stranger, ann, bob, verified int
	}{
		{key, "", nextStatus, nextStatus, nextStatus, nextStatus},
		{key + "console", "", 403, 200, 200, 200},
		{key, "console", 403, 200, 200, 200},
		{key + "console {\nmanage\n}", "", 403, 200, 200, 200},
		{key + "console {\nmanage ann\n}", "", 403, 200, 403, 403},
		{key + "console {\nmanage open\n}", "", 200, 200, 200, 200},
		{key + "console {\nmanage ann\n}", "console {\nmanage bob\n}", 403, 200, 403, 403},
		{key + "configs {\nmanage\n}", "", 403, 200, 200, 200},
		{key + "configs {\nmanage bob\n}", "", 403, 403, 200, 403},
		{key + "configs {\nmanage bob\n}\nconsole", "", 403, 403, 200, 403},
		{key + "configs\nconsole", "", 403, 200, 200, 200},
		{key + "configs", "", nextStatus, nextStatus, nextStatus, nextStatus},
		{key + "configs {\nmanage open\n}\npage off", "", nextStatus, nextStatus, nextStatus, nextStatus},
	} {
		h := newGateway(t, tt.site, tt.global)
		get := func(path string) *http.Request {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", browser)
			return r
		}
		for _, path := range []string{
			"/notify/console/keys/ops", "/notify/console/messages",
			"/notify/console/queue", "/notify/console/incidents",
		} {
			certificate := get(path)
			certificate.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
			unverified := get(path)
			unverified.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
			for who, c := range map[string]struct {
				r    *http.Request
				want int
			}{
				"a stranger": {get(path), tt.stranger}, "an unverified certificate": {unverified, tt.stranger},
				"a certificate": {certificate, tt.verified},
				"ann":           {asUser(get(path), "ann"), tt.ann}, "bob": {asUser(get(path), "bob"), tt.bob},
			} {
				got := do(t, h, c.r)
				if got.status != c.want {
					t.Errorf("%q, %q: %s of %s gets %d, want %d", tt.site, tt.global, path, who, got.status, c.want)
				}
				if shown := strings.Contains(got.body, `aria-label="Console"`); shown != (got.status == 200) {
					t.Errorf("%q, %q: %s of %s with the status %d: the navigation is there: %t", tt.site, tt.global, path, who, got.status, shown)
				}
			}
		}
	}
}

package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestCrossOrigin checks that a page of another site cannot send messages with
// its visitor's browser, and that other clients are not affected.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	keys := []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/"))}
	closed := siteWith(t, keys...)
	some := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: keys, TrustedOrigins: []string{"HTTPS://Blog.example:443"}}})
	every := gatewaytest.New(t, gatewaytest.Options{Global: site.Options{TrustedOrigins: []string{"*"}}, Site: site.Options{Keys: keys}})
	for name, tt := range map[string]struct {
		g      *gatewaytest.Gateway
		header map[string]string
		status int
	}{
		"no browser":                       {closed, nil, 200},
		"the page itself":                  {closed, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "https://alerts.example"}, 200},
		"typed in":                         {closed, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		"another site":                     {closed, map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 403},
		"a neighbour":                      {closed, map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://www.example"}, 403},
		"an old browser, itself":           {closed, map[string]string{"Origin": "http://alerts.example"}, 200},
		"an old browser, another":          {closed, map[string]string{"Origin": "http://evil.example"}, 403},
		"a page without an origin":         {closed, map[string]string{"Origin": "null"}, 403},
		"another site that is allowed":     {some, map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://blog.example"}, 200},
		"another site that is not allowed": {some, map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 403},
		"all sites are allowed":            {every, map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 200},
	} {
		for _, target := range []string{"/notify/ops", "/notify/ops?preview"} {
			r := httptest.NewRequest(http.MethodPost, "http://alerts.example"+target, strings.NewReader("body=x"))
			r.Header.Set("Content-Type", gatewaytest.TypeForm)
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			if got := tt.g.Do(r); got.Status != tt.status {
				t.Errorf("%s, %s: status %d, want %d: %s", name, target, got.Status, tt.status, got.Body)
			}
		}
		if got := s.Take(); len(got) > 0 != (tt.status == 200) {
			t.Errorf("%s: %d messages arrived", name, len(got))
		}
	}
}

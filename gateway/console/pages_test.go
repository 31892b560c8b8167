package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestConsoleOrigin checks that a page of another site changes nothing, even if it may send
// messages.
func TestConsoleOrigin(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	o := openConsole(gatewaytest.Key("ops", s.NotifyURL("/a")))
	o.Site.TrustedOrigins = []string{"*"}
	g := gatewaytest.New(t, o)
	for siteID, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		r := httptest.NewRequest(http.MethodPost, "/notify/console/keys/ops?test", strings.NewReader(url.Values{"destination": {"1"}}.Encode()))
		r.Header = http.Header{"Content-Type": {gatewaytest.TypeForm}, "Sec-Fetch-Site": {siteID}, "Accept": {browser}}
		if got := g.Do(r); got.Status != want || len(s.Take()) != want/200%2 {
			t.Errorf("%s: %d", siteID, got.Status)
		}
	}
}

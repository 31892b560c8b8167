package httpapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}, DefaultURLs: gatewaytest.URLs(s.NotifyURL("/default")),
	}})
	for _, tt := range []struct {
		method, path string
		want         int
		arrives      string
	}{
		{"POST", "/notify", 200, "default"},
		{"POST", "/notify/", 200, "default"},
		{"POST", "/notify/ops", 200, "ops"},
		{"POST", "/notify/ops/", 200, "ops"},
		{"POST", "/notify/OPS", 404, ""},
		{"POST", "/notify/other", 404, ""},
		{"POST", "/notify/o.ps", 404, ""},
		{"POST", "/notify/" + strings.Repeat("k", 129), 404, ""},
		{"POST", "/notify//", gatewaytest.NotServed, ""},
		{"POST", "/notify/ops//", gatewaytest.NotServed, ""},
		{"POST", "/notify/ops/more", 404, ""}, // a source that does not exist
		{"POST", "/notify/ops/slack/services/T/B/x", 400, ""},
		{"POST", "/notify/ops/grafana/more", 404, ""},
		{"POST", "/notify/o.ps/grafana", gatewaytest.NotServed, ""},
		{"POST", "/notifyops", gatewaytest.NotServed, ""},
		{"POST", "/Notify", gatewaytest.NotServed, ""},
		{"POST", "/", gatewaytest.NotServed, ""},
		{"GET", "/", gatewaytest.NotServed, ""},
		{"GET", "/notify", 406, ""},
		{"PUT", "/notify/ops", 405, ""},
		{"HEAD", "/notify/ops/", 406, ""},
		{"OPTIONS", "/notify", 405, ""},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader("body=hello"))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		got := g.Do(r)
		if got.Status != tt.want {
			t.Errorf("%s %s: status %d, want %d", tt.method, tt.path, got.Status, tt.want)
		}
		if allow := got.Header.Get("Allow"); (allow == "GET, HEAD, POST") != (tt.want == 405) {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, allow)
		}
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s %s: messages at %q, want %q", tt.method, tt.path, paths, tt.arrives)
		}
	}
}

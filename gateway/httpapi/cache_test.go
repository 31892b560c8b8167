package httpapi_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestCaching checks that each answer to GET has a Cache-Control header, in each format and with each
// status. Only what is the same for everybody has no-cache; pages with a form that a browser
// may show again are private.
func TestCaching(t *testing.T) {
	t.Parallel()
	keys := []site.KeyOptions{gatewaytest.Key("ops", gatewaytest.NewStation(t).NotifyURL("/a"))}
	plain := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: keys}})
	full := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: keys, Push: &site.Push{Who: device.DevicesInvited, Max: 10}},
		Site:   site.Options{Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody(), PublicURL: "https://alerts.example.com"},
		Saved:  &saved.Options{Manage: true}, Queue: &outbox.Settings{},
	})
	values := strings.NewReplacer("{KEY}", "ops", "{ID}", "0198c2b4-0000-7000-8000-000000000000", "{TOPICS}", "a", "{VERB}", "auth",
		"{SOURCE}", "grafana", "/{REST...}", "")
	kept := map[string]string{
		httpapi.RouteOpenAPI: "no-cache", httpapi.RouteWorker: "no-cache", httpapi.RouteManifest: "no-cache", httpapi.RouteIcon: "no-cache",
		httpapi.RouteIconSmall: "no-cache", httpapi.RouteIconLarge: "no-cache", httpapi.RouteBadge: "no-cache",
	}
	served := map[string]bool{}
	for _, g := range []*gatewaytest.Gateway{plain, full} {
		for _, spec := range httpapi.RouteSpecs() {
			for _, accept := range []string{"text/html", "application/json", "*/*"} {
				r := httptest.NewRequest(http.MethodGet, values.Replace(spec.Pattern), nil)
				r.Header.Set("Accept", accept)
				if spec.Pattern == httpapi.RouteManifest {
					r.URL.RawQuery = "key=ops"
				}
				got := g.Do(r)
				if got.Status == gatewaytest.NotServed {
					continue
				}
				served[spec.Pattern] = true
				want := "no-store"
				if got.Status == http.StatusOK {
					want = cmp.Or(kept[spec.Pattern], want)
				}
				if control := got.Header.Get("Cache-Control"); control != want && !(want == "no-store" && control == "private, no-cache") {
					t.Errorf("GET %s, %s: %d with Cache-Control %q, want %q", spec.Pattern, accept, got.Status, control, want)
				}
				if tag := got.Header.Get("Etag"); (tag != "") != (want == "no-cache") {
					t.Errorf("GET %s: the ETag is %q", spec.Pattern, tag)
				}
			}
		}
	}
	if len(served) < 40 {
		t.Errorf("only %d routes were served", len(served))
	}
}

// TestDescriptionTag checks that a client that has the description of the API gets it only once.
func TestDescriptionTag(t *testing.T) {
	t.Parallel()
	g := siteWith(t, gatewaytest.Key("ops", "json://h"))
	get := func(method, match string) gatewaytest.Reply {
		r := httptest.NewRequest(method, httpapi.RouteOpenAPI, nil)
		if match != "" {
			r.Header.Set("If-None-Match", match)
		}
		return g.Do(r)
	}
	first := get(http.MethodGet, "")
	tag := first.Header.Get("Etag")
	if first.Status != http.StatusOK || len(tag) < 10 || tag[0] != '"' || !strings.HasPrefix(first.Body, "{") {
		t.Fatalf("%d, ETag %q", first.Status, tag)
	}
	for match, want := range map[string]int{
		tag: http.StatusNotModified, "W/" + tag: http.StatusNotModified, `"other", ` + tag: http.StatusNotModified, "*": http.StatusNotModified,
		`"other"`: http.StatusOK, strings.Trim(tag, `"`): http.StatusOK,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got := get(method, match)
			if got.Status != want || got.Header.Get("Etag") != tag || got.Header.Get("Cache-Control") != "no-cache" ||
				(got.Body != "") != (want == http.StatusOK && method == http.MethodGet) ||
				want == http.StatusNotModified && got.Header.Get("Content-Type") != "" {
				t.Errorf("%s with If-None-Match %s: %d %v, %d bytes", method, match, got.Status, got.Header, len(got.Body))
			}
		}
	}
}

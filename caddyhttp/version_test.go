package caddyhttp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/version"
)

// TestVersion checks that the OpenAPI description and the requests
// to destinations have the version of the module.
func TestVersion(t *testing.T) {
	agents := make(chan string, 1)
	destination := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { agents <- r.UserAgent() }))
	defer destination.Close()
	h := newGateway(t, "key k {\nurl json://"+strings.TrimPrefix(destination.URL, "http://")+"\n}", "")
	got := do(t, h, httptest.NewRequest(http.MethodGet, "/notify/openapi.json", nil))
	var description struct{ Info struct{ Version string } }
	if err := json.Unmarshal([]byte(got.body), &description); err != nil || description.Info.Version != version.Current {
		t.Errorf("the OpenAPI description has version %q, want %q: %v", description.Info.Version, version.Current, err)
	}

	r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader("body=x"))
	r.Header.Set("Content-Type", typeForm)
	if got := do(t, h, r); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	// A product with a version and a comment (RFC 9110, section 10.1.5).
	want := regexp.MustCompile(`^caddy-notify/` + regexp.QuoteMeta(strings.Trim(version.Current, "()")) +
		` \(\+https://github\.com/caddy-notify/caddy-notify\)$`)
	if agent := <-agents; !want.MatchString(agent) {
		t.Errorf("User-Agent %q, want %s", agent, want)
	}
}

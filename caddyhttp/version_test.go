package caddyhttp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/version"
)

func TestModuleVersion(t *testing.T) {
	const other = "github.com/caddyserver/caddy/v2"
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"no information": {nil, "(devel)"},
		"main module":    {&debug.BuildInfo{Main: debug.Module{Path: version.ModulePath, Version: "v1.2.3"}}, "v1.2.3"},
		"no git history": {&debug.BuildInfo{Main: debug.Module{Path: version.ModulePath}}, "(devel)"},
		"built with xcaddy": {&debug.BuildInfo{
			Main: debug.Module{Path: "caddy", Version: "v9.9.9"},
			Deps: []*debug.Module{{Path: other, Version: "v2.11.9"}, {Path: version.ModulePath, Version: "v1.2.3"}},
		}, "v1.2.3"},
		"built with xcaddy from a folder": {&debug.BuildInfo{
			Main: debug.Module{Path: "caddy"},
			Deps: []*debug.Module{{Path: version.ModulePath, Version: "v0.0.0", Replace: &debug.Module{Path: "/src/caddy-notify"}}},
		}, "(devel)"},
		"a fork": {&debug.BuildInfo{
			Deps: []*debug.Module{{Path: version.ModulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}},
		}, "v1.2.4"},
		"another program": {&debug.BuildInfo{Deps: []*debug.Module{{Path: other, Version: "v2.11.9"}}}, "(devel)"},
	} {
		if got := version.ModuleVersion(tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

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
	want := regexp.MustCompile(`^caddy-notify/` + regexp.QuoteMeta(strings.Trim(version.Current, "()")) + ` \(\+https://github\.com/caddy-notify/caddy-notify\)$`)
	if agent := <-agents; !want.MatchString(agent) {
		t.Errorf("User-Agent %q, want %s", agent, want)
	}
}

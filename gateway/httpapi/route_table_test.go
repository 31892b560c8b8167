package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestRouteTable checks that the path of each route leads to it, with and without a slash at the
// end, and where other paths lead, with and without a queue and saved keys.
func TestRouteTable(t *testing.T) {
	t.Parallel()
	table := httpapi.NewRouteTable(httpapi.RouteSpecs())
	all := &httpapi.SiteRoutes{Queue: true, Configs: true, Push: true, Console: true, Inbox: true, MCP: true}
	check := func(path, pattern string, want httpapi.Route) {
		got, ok := table.Parse(&url.URL{Path: path}, all)
		if !ok {
			t.Errorf("%s is no path of the gateway", path)
			return
		}
		if got.Pattern != pattern || got.ID != want.ID || got.Key != want.Key || got.Source != want.Source || got.Rest != want.Rest {
			t.Errorf("%s: %s with %q %q %q %q", path, got.Pattern, got.ID, got.Key, got.Source, got.Rest)
		}
	}
	for _, spec := range httpapi.RouteSpecs() {
		path, want := spec.Pattern, httpapi.Route{}
		for name, place := range map[string]struct {
			value string
			to    *string
		}{
			"{KEY}": {"ops", &want.Key}, "{ID}": {"1-2", &want.ID}, "{SOURCE}": {"grafana", &want.Source}, "{REST...}": {"a/b", &want.Rest},
			"{TOPICS}": {"x,y", new(string)}, "{VERB}": {"json", new(string)},
		} {
			if strings.Contains(path, name) {
				path, *place.to = strings.ReplaceAll(path, name, place.value), place.value
			}
		}
		check(path, spec.Pattern, want)
		check(path+"/", spec.Pattern, want)
	}
	for path, want := range map[string]httpapi.Route{
		"/notify/ops/grafana":         {Source: "grafana"},
		"/notify/ops/gotify//message": {Source: "gotify", Rest: "message"},
		"/notify/ops/slack//a///b//":  {Source: "slack", Rest: "a/b"},
	} {
		want.Key = "ops"
		check(path, httpapi.RouteSource, want)
	}
	check("/notify/a b", site.RouteNotifyKey, httpapi.Route{Key: "a b"}) // 404 as an unknown key
	check("/notify/ops/ntfy/a/auth", httpapi.RouteNtfyInbox, httpapi.Route{Key: "ops"})
	check("/notify/messages", site.RouteNotifyKey, httpapi.Route{Key: "messages"})
	for _, path := range []string{
		"", "/", "/notify//", "/notify//ops", "//notify/ops", "/notifyx", "/NOTIFY/ops", "/notify/a b/grafana", "/notify/ops//grafana",
		"/notify/messages/a/b",
		"/notify/console/x", "/add", "/add/", "/add/a/b", "/cfg/a/b", "/json/urls", "/json", "/status/x/y", "/qr", "/other",
	} {
		if got, ok := table.Parse(&url.URL{Path: path}, all); ok {
			t.Errorf("%s: %s", path, got.Pattern)
		}
	}
	for _, path := range []string{"/notify/messages/1", "/notify/console/queue", "/cfg", "/status", "/add/x", "/json/urls/x"} {
		if _, ok := table.Parse(&url.URL{Path: path}, &httpapi.SiteRoutes{}); ok {
			t.Errorf("%s is a path of a site without a queue and saved keys", path)
		}
	}
	for path, want := range map[string]bool{
		"/notify%2Fops": false, "/notify/ops%2F": false, "/notify/ops%2fslack/x": false, "/notify/ops/slack%2Fx": false, "/status%2F": false,
		"/notify/ops/slack/a%2Fb": true, "/notify/ops/slack/a%2F..%2Fb": false, "/notify/ops/slack/%2e%2e": false,
		"/notify/ops/slack/..": false, "/notify/ops/slack/../../..": false, "/notify/ops/slack/./x": false, "/notify/./ops": false,
		"/notify/ops/slack/..x": true,
	} {
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := table.Parse(u, all); ok != want {
			t.Errorf("%s is a path of the gateway: %v, %q", path, ok, at.Rest)
		}
	}
}

// TestMatchers checks which patterns of a path matcher are accepted before notify. Patterns for the
// management of saved keys alone were once rejected.
func TestMatchers(t *testing.T) {
	t.Parallel()
	table := httpapi.NewRouteTable(httpapi.RouteSpecs())
	for pattern, want := range map[string]bool{
		"/notify": true, "/notify/": true, "/notify*": true, "/notify/*": true, "/notify/ops": true, "/notify/ops/": true, "/NOTIFY/Ops": true,
		"*": true, "/*": true, "/n*": true, "*/ops": true, "/*/ops": true, "/notify/o*": true, "/notify/{vars.key}": true, "{vars.path}": true,
		"/[mn]otify": true, "/notify/op%73": true, `/\notify`: true, "/notify/ops/more": true, "/notify/ops/ntfy/topic": true,
		"/notify/messages/*": true,
		"/":                  false, "/alerts/*": false, "/alerts": false, "/notify2": false, "/notify2*": false, "/notifying/*": false,
		"/notify/o.ps/more": false,
		"/alerts/notify/*":  false, "notify": false, "/notifications": false,
	} {
		if table.MayMatch(pattern, &httpapi.SiteRoutes{Queue: true}) != want {
			t.Errorf("%s: %v", pattern, !want)
		}
	}
	for _, pattern := range []string{
		"/cfg*", "/cfg", "/add/*", "/add/ops", "/status", "/details", "/json/*", "/json/urls/*", "/get/x",
		"/del/*", "/get", "/add/", "/json/urls",
	} {
		if !table.MayMatch(pattern, &httpapi.SiteRoutes{Configs: true}) {
			t.Errorf("%s is rejected with saved keys", pattern)
		}
		if table.MayMatch(pattern, &httpapi.SiteRoutes{}) {
			t.Errorf("%s is accepted without saved keys", pattern)
		}
	}
	if table.MayMatch("/cfgs*", &httpapi.SiteRoutes{Queue: true, Configs: true}) {
		t.Error("/cfgs* is accepted")
	}
}

// TestRoutesAreDocumented checks that the description of the API and the documentation have each
// route with its methods, and that the description has no others.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	var d struct{ Paths map[string]map[string]any }
	document := newSite(t, site.Options{}).Get("/notify/openapi.json")
	if err := json.Unmarshal([]byte(document.Body), &d); err != nil || document.Status != http.StatusOK {
		t.Fatalf("%d: %v", document.Status, err)
	}
	var docs strings.Builder
	for _, name := range []string{"api.md", "saved-keys.md", "console.md"} {
		b, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(b)
	}
	known := map[string]bool{}
	for _, spec := range httpapi.RouteSpecs() {
		path := strings.TrimSuffix(spec.Pattern, "/{REST...}")
		for _, method := range spec.Methods {
			if method == http.MethodHead {
				continue // as GET
			}
			known[httpapi.DescribedPath(path)+" "+strings.ToLower(method)] = true
			// The description leaves out pages for browsers, and PUT, which is for programs that
			// cannot send POST.
			_, ofApp := console.AppFiles()[path]
			ofPages := ofApp || path == httpapi.RouteManifest || path == httpapi.RouteKey && method == http.MethodGet ||
				strings.HasPrefix(path, httpapi.RouteConsole)
			if !(method == http.MethodPut || ofPages) && d.Paths[httpapi.DescribedPath(path)][strings.ToLower(method)] == nil {
				t.Errorf("the description has no %s %s", method, path)
			}
			documented := slices.ContainsFunc(strings.Split(docs.String(), "\n"), func(line string) bool {
				return strings.HasPrefix(line, "|") && strings.Contains(line, path) && strings.Contains(line, method)
			})
			if !documented {
				t.Errorf("no table of docs/api.md, docs/saved-keys.md or docs/console.md has %s %s", method, path)
			}
		}
	}
	for path, methods := range d.Paths {
		for method := range methods {
			if method != "parameters" && !known[path+" "+method] {
				t.Errorf("the description has %s %s, which is no route", method, path)
			}
		}
	}
}

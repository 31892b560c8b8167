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

// TestRouteTable checks what each path addresses, with and without a queue and saved
// keys.
func TestRouteTable(t *testing.T) {
	t.Parallel()
	table := httpapi.NewRouteTable(httpapi.RouteSpecs())
	all := &httpapi.SiteRoutes{Queue: true, Configs: true, Push: true, Console: true, Inbox: true, MCP: true}
	for path, want := range map[string]httpapi.Route{
		"/notify":                        {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteNotify}},
		"/notify/":                       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteNotify}},
		"/notify/ops":                    {RouteSpec: &httpapi.RouteSpec{Pattern: site.RouteNotifyKey}, Key: "ops"},
		"/notify/ops/":                   {RouteSpec: &httpapi.RouteSpec{Pattern: site.RouteNotifyKey}, Key: "ops"},
		"/notify/a b":                    {RouteSpec: &httpapi.RouteSpec{Pattern: site.RouteNotifyKey}, Key: "a b"}, // 404 as an unknown key
		"/notify/openapi.json":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteOpenAPI}},
		"/notify/status":                 {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteHealth}},
		"/notify/messages":               {RouteSpec: &httpapi.RouteSpec{Pattern: site.RouteNotifyKey}, Key: "messages"},
		"/notify/messages/1-2":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteMessage}, ID: "1-2"},
		"/notify/messages/1-2/":          {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteMessage}, ID: "1-2"},
		"/notify/ops/grafana":            {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteSource}, Key: "ops", Source: "grafana"},
		"/notify/ops/grafana/":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteSource}, Key: "ops", Source: "grafana"},
		"/notify/ops/ntfy/topic/x":       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteSource}, Key: "ops", Source: "ntfy", Rest: "topic/x"},
		"/notify/ops/gotify//message":    {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteSource}, Key: "ops", Source: "gotify", Rest: "message"},
		"/notify/ops/slack//a///b//":     {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteSource}, Key: "ops", Source: "slack", Rest: "a/b"},
		"/notify/console/":               {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteConsole}},
		"/notify/console/keys/ops":       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteConsoleKey}, Key: "ops"},
		"/notify/console/messages":       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteConsoleMessages}},
		"/notify/console/messages/1":     {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteConsoleMessage}, ID: "1"},
		"/notify/console/silences":       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteConsoleSilences}},
		"/notify/ops/messages":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteInbox}, Key: "ops"},
		"/notify/ops/stream":             {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteInboxStream}, Key: "ops"},
		"/notify/ops/ntfy/a,b/json":      {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteNtfyInbox}, Key: "ops"},
		"/notify/ops/ntfy/a/auth/":       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteNtfyInbox}, Key: "ops"},
		"/notify/ops/silences":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteSilences}, Key: "ops"},
		"/notify/ops/silences/1":         {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteSilence}, Key: "ops", ID: "1"},
		"/notify/console/queue":          {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteConsoleQueue}},
		"/notify/incidents":              {RouteSpec: &httpapi.RouteSpec{Pattern: site.RouteIncidents}},
		"/notify/console/incidents/":     {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteConsoleIncidents}},
		"/notify/ops/devices/":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteDevices}, Key: "ops"},
		"/notify/ops/devices/1":          {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteDevice}, Key: "ops", ID: "1"},
		"/notify/ops/devices/1/test":     {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteDeviceTest}, Key: "ops", ID: "1"},
		"/notify/ops/devices/1/receipts": {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteReceipts}, Key: "ops", ID: "1"},
		"/notify/push.js":                {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteWorker}},
		"/notify/app.webmanifest":        {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteManifest}},
		"/notify/icon.svg":               {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteIcon}},
		"/notify/icon-192.png":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteIconSmall}},
		"/notify/icon-512.png":           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteIconLarge}},
		"/notify/badge.png":              {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteBadge}},
		"/add/ops":                       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteAdd}, Key: "ops"},
		"/get/ops/":                      {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteGet}, Key: "ops"},
		"/del/ops":                       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteDel}, Key: "ops"},
		"/cfg":                           {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteKeys}},
		"/cfg/":                          {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteKeys}},
		"/cfg/ops":                       {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteKey}, Key: "ops"},
		"/json/urls/ops":                 {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteURLs}, Key: "ops"},
		"/status":                        {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteStatus}},
		"/status/ops":                    {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteStatusKey}, Key: "ops"},
		"/move/ops":                      {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteMove}, Key: "ops"},
		"/qr/ops":                        {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteQR}, Key: "ops"},
		"/details/":                      {RouteSpec: &httpapi.RouteSpec{Pattern: httpapi.RouteDetails}},
	} {
		got, ok := table.Parse(&url.URL{Path: path}, all)
		if !ok {
			t.Errorf("%s is no path of the gateway", path)
			continue
		}
		if got.Pattern != want.Pattern || got.ID != want.ID || got.Key != want.Key || got.Source != want.Source || got.Rest != want.Rest {
			t.Errorf("%s: %s with %q %q %q %q", path, got.Pattern, got.ID, got.Key, got.Source, got.Rest)
		}
	}
	for _, path := range []string{
		"", "/", "/notify//", "/notify//ops", "//notify/ops", "/notifyx", "/NOTIFY/ops", "/notify/a b/grafana", "/notify/ops//grafana", "/notify/messages/a/b",
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
		"/notify/ops/slack/..": false, "/notify/ops/slack/../../..": false, "/notify/ops/slack/./x": false, "/notify/./ops": false, "/notify/ops/slack/..x": true,
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

// TestMatchers checks which patterns of a path matcher are accepted before notify.
// Those for the management of saved keys alone were rejected once.
func TestMatchers(t *testing.T) {
	t.Parallel()
	table := httpapi.NewRouteTable(httpapi.RouteSpecs())
	for pattern, want := range map[string]bool{
		"/notify": true, "/notify/": true, "/notify*": true, "/notify/*": true, "/notify/ops": true, "/notify/ops/": true, "/NOTIFY/Ops": true,
		"*": true, "/*": true, "/n*": true, "*/ops": true, "/*/ops": true, "/notify/o*": true, "/notify/{vars.key}": true, "{vars.path}": true,
		"/[mn]otify": true, "/notify/op%73": true, `/\notify`: true, "/notify/ops/more": true, "/notify/ops/ntfy/topic": true, "/notify/messages/*": true,
		"/": false, "/alerts/*": false, "/alerts": false, "/notify2": false, "/notify2*": false, "/notifying/*": false, "/notify/o.ps/more": false,
		"/alerts/notify/*": false, "notify": false, "/notifications": false,
	} {
		if table.MayMatch(pattern, &httpapi.SiteRoutes{Queue: true}) != want {
			t.Errorf("%s: %v", pattern, !want)
		}
	}
	for _, pattern := range []string{"/cfg*", "/cfg", "/add/*", "/add/ops", "/status", "/details", "/json/*", "/json/urls/*", "/get/x", "/del/*", "/get", "/add/", "/json/urls"} {
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

// TestRoutesAreDocumented checks that the description of the API and the
// documentation have each route with its methods, and the description no others.
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
			known[path+" "+strings.ToLower(method)] = true
			// The description has neither pages for browsers alone nor PUT, which is POST
			// for programs that cannot send that.
			_, ofApp := console.AppFiles()[path]
			ofPages := ofApp || path == httpapi.RouteManifest || path == httpapi.RouteKey && method == http.MethodGet || strings.HasPrefix(path, httpapi.RouteConsole)
			if !(method == http.MethodPut || ofPages) && d.Paths[path][strings.ToLower(method)] == nil {
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

package caddyhttp

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestRouteTable checks what each path addresses, with and without a queue and saved
// keys.
func TestRouteTable(t *testing.T) {
	table := newRouteTable(routeSpecs())
	all := &siteRoutes{queue: true, configs: true, push: true, console: true, inbox: true}
	for path, want := range map[string]route{
		"/notify":                        {routeSpec: &routeSpec{pattern: routeNotify}},
		"/notify/":                       {routeSpec: &routeSpec{pattern: routeNotify}},
		"/notify/ops":                    {routeSpec: &routeSpec{pattern: site.RouteNotifyKey}, key: "ops"},
		"/notify/ops/":                   {routeSpec: &routeSpec{pattern: site.RouteNotifyKey}, key: "ops"},
		"/notify/a b":                    {routeSpec: &routeSpec{pattern: site.RouteNotifyKey}, key: "a b"}, // 404 as an unknown key
		"/notify/openapi.json":           {routeSpec: &routeSpec{pattern: routeOpenAPI}},
		"/notify/status":                 {routeSpec: &routeSpec{pattern: routeHealth}},
		"/notify/messages":               {routeSpec: &routeSpec{pattern: site.RouteNotifyKey}, key: "messages"},
		"/notify/messages/1-2":           {routeSpec: &routeSpec{pattern: routeMessage}, id: "1-2"},
		"/notify/messages/1-2/":          {routeSpec: &routeSpec{pattern: routeMessage}, id: "1-2"},
		"/notify/ops/grafana":            {routeSpec: &routeSpec{pattern: routeSource}, key: "ops", source: "grafana"},
		"/notify/ops/grafana/":           {routeSpec: &routeSpec{pattern: routeSource}, key: "ops", source: "grafana"},
		"/notify/ops/ntfy/topic/x":       {routeSpec: &routeSpec{pattern: routeSource}, key: "ops", source: "ntfy", rest: "topic/x"},
		"/notify/ops/gotify//message":    {routeSpec: &routeSpec{pattern: routeSource}, key: "ops", source: "gotify", rest: "message"},
		"/notify/ops/slack//a///b//":     {routeSpec: &routeSpec{pattern: routeSource}, key: "ops", source: "slack", rest: "a/b"},
		"/notify/console/":               {routeSpec: &routeSpec{pattern: routeConsole}},
		"/notify/console/keys/ops":       {routeSpec: &routeSpec{pattern: routeConsoleKey}, key: "ops"},
		"/notify/console/messages":       {routeSpec: &routeSpec{pattern: routeConsoleMessages}},
		"/notify/console/messages/1":     {routeSpec: &routeSpec{pattern: routeConsoleMessage}, id: "1"},
		"/notify/console/silences":       {routeSpec: &routeSpec{pattern: routeConsoleSilences}},
		"/notify/ops/messages":           {routeSpec: &routeSpec{pattern: routeInbox}, key: "ops"},
		"/notify/ops/stream":             {routeSpec: &routeSpec{pattern: routeInboxStream}, key: "ops"},
		"/notify/ops/ntfy/a,b/json":      {routeSpec: &routeSpec{pattern: routeNtfyInbox}, key: "ops"},
		"/notify/ops/ntfy/a/auth/":       {routeSpec: &routeSpec{pattern: routeNtfyInbox}, key: "ops"},
		"/notify/ops/silences":           {routeSpec: &routeSpec{pattern: routeSilences}, key: "ops"},
		"/notify/ops/silences/1":         {routeSpec: &routeSpec{pattern: routeSilence}, key: "ops", id: "1"},
		"/notify/console/queue":          {routeSpec: &routeSpec{pattern: routeConsoleQueue}},
		"/notify/incidents":              {routeSpec: &routeSpec{pattern: site.RouteIncidents}},
		"/notify/console/incidents/":     {routeSpec: &routeSpec{pattern: routeConsoleIncidents}},
		"/notify/ops/devices/":           {routeSpec: &routeSpec{pattern: routeDevices}, key: "ops"},
		"/notify/ops/devices/1":          {routeSpec: &routeSpec{pattern: routeDevice}, key: "ops", id: "1"},
		"/notify/ops/devices/1/test":     {routeSpec: &routeSpec{pattern: routeDeviceTest}, key: "ops", id: "1"},
		"/notify/ops/devices/1/receipts": {routeSpec: &routeSpec{pattern: routeReceipts}, key: "ops", id: "1"},
		"/notify/push.js":                {routeSpec: &routeSpec{pattern: routeWorker}},
		"/notify/app.webmanifest":        {routeSpec: &routeSpec{pattern: routeManifest}},
		"/notify/icon.svg":               {routeSpec: &routeSpec{pattern: routeIcon}},
		"/notify/icon-192.png":           {routeSpec: &routeSpec{pattern: routeIconSmall}},
		"/notify/icon-512.png":           {routeSpec: &routeSpec{pattern: routeIconLarge}},
		"/notify/badge.png":              {routeSpec: &routeSpec{pattern: routeBadge}},
		"/add/ops":                       {routeSpec: &routeSpec{pattern: routeAdd}, key: "ops"},
		"/get/ops/":                      {routeSpec: &routeSpec{pattern: routeGet}, key: "ops"},
		"/del/ops":                       {routeSpec: &routeSpec{pattern: routeDel}, key: "ops"},
		"/cfg":                           {routeSpec: &routeSpec{pattern: routeKeys}},
		"/cfg/":                          {routeSpec: &routeSpec{pattern: routeKeys}},
		"/cfg/ops":                       {routeSpec: &routeSpec{pattern: routeKey}, key: "ops"},
		"/json/urls/ops":                 {routeSpec: &routeSpec{pattern: routeURLs}, key: "ops"},
		"/status":                        {routeSpec: &routeSpec{pattern: routeStatus}},
		"/details/":                      {routeSpec: &routeSpec{pattern: routeDetails}},
	} {
		got, ok := table.parse(&url.URL{Path: path}, all)
		if !ok {
			t.Errorf("%s is no path of the gateway", path)
			continue
		}
		if got.pattern != want.pattern || got.id != want.id || got.key != want.key || got.source != want.source || got.rest != want.rest {
			t.Errorf("%s: %s with %q %q %q %q", path, got.pattern, got.id, got.key, got.source, got.rest)
		}
	}
	for _, path := range []string{
		"", "/", "/notify//", "/notify//ops", "//notify/ops", "/notifyx", "/NOTIFY/ops", "/notify/a b/grafana", "/notify/ops//grafana", "/notify/messages/a/b",
		"/notify/console/x", "/add", "/add/", "/add/a/b", "/cfg/a/b", "/json/urls", "/json", "/status/x", "/other",
	} {
		if got, ok := table.parse(&url.URL{Path: path}, all); ok {
			t.Errorf("%s: %s", path, got.pattern)
		}
	}
	for _, path := range []string{"/notify/messages/1", "/notify/console/queue", "/cfg", "/status", "/add/x", "/json/urls/x"} {
		if _, ok := table.parse(&url.URL{Path: path}, &siteRoutes{}); ok {
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
		if at, ok := table.parse(u, all); ok != want {
			t.Errorf("%s is a path of the gateway: %v, %q", path, ok, at.rest)
		}
	}
}

// TestMatchers checks which patterns of a path matcher are accepted before notify.
// Those for the management of saved keys alone were rejected once.
func TestMatchers(t *testing.T) {
	table := newRouteTable(routeSpecs())
	for pattern, want := range map[string]bool{
		"/notify": true, "/notify/": true, "/notify*": true, "/notify/*": true, "/notify/ops": true, "/notify/ops/": true, "/NOTIFY/Ops": true,
		"*": true, "/*": true, "/n*": true, "*/ops": true, "/*/ops": true, "/notify/o*": true, "/notify/{vars.key}": true, "{vars.path}": true,
		"/[mn]otify": true, "/notify/op%73": true, `/\notify`: true, "/notify/ops/more": true, "/notify/ops/ntfy/topic": true, "/notify/messages/*": true,
		"/": false, "/alerts/*": false, "/alerts": false, "/notify2": false, "/notify2*": false, "/notifying/*": false, "/notify/o.ps/more": false,
		"/alerts/notify/*": false, "notify": false, "/notifications": false,
	} {
		if table.mayMatch(pattern, &siteRoutes{queue: true}) != want {
			t.Errorf("%s: %v", pattern, !want)
		}
	}
	for _, pattern := range []string{"/cfg*", "/cfg", "/add/*", "/add/ops", "/status", "/details", "/json/*", "/json/urls/*", "/get/x", "/del/*", "/get", "/add/", "/json/urls"} {
		if !table.mayMatch(pattern, &siteRoutes{configs: true}) {
			t.Errorf("%s is rejected with saved keys", pattern)
		}
		if table.mayMatch(pattern, &siteRoutes{}) {
			t.Errorf("%s is accepted without saved keys", pattern)
		}
	}
	if table.mayMatch("/cfgs*", &siteRoutes{queue: true, configs: true}) {
		t.Error("/cfgs* is accepted")
	}
}

// TestRoutesAreDocumented checks that the description of the API and the
// documentation have each route with its methods, and the description no others.
func TestRoutesAreDocumented(t *testing.T) {
	d := readDescription(t)
	var docs strings.Builder
	for _, name := range []string{"api.md", "saved-keys.md", "console.md"} {
		b, err := os.ReadFile(filepath.Join("../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(b)
	}
	known := map[string]bool{}
	for _, spec := range routeSpecs() {
		path := strings.TrimSuffix(spec.pattern, "/{REST...}")
		for _, method := range spec.methods {
			if method == http.MethodHead {
				continue // as GET
			}
			known[path+" "+strings.ToLower(method)] = true
			// The description has neither pages for browsers alone nor PUT, which is POST
			// for programs that cannot send that.
			_, ofApp := appFiles()[path]
			ofPages := ofApp || path == routeManifest || path == routeKey && method == http.MethodGet || strings.HasPrefix(path, routeConsole)
			if !(method == http.MethodPut || ofPages) && d.at("paths", path, strings.ToLower(method)) == nil {
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
	for path := range d.at("paths") {
		for method := range d.at("paths", path) {
			if method != "parameters" && !known[path+" "+method] {
				t.Errorf("the description has %s %s, which is no route", method, path)
			}
		}
	}
}

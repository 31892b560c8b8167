package caddyhttp

import (
	"slices"
	"testing"
)

// siteIDs returns the IDs of the sites of a Caddyfile, one for each handler, by the
// timeouts of their blocks.
func siteIDs(t *testing.T, text string) map[string][]string {
	t.Helper()
	app := provisionCaddyfile(t, text)
	out := map[string][]string{}
	for _, h := range app.handlers {
		name := h.api.Resolved.Limits.Timeout.String()
		if id := h.api.Site(); id == "" {
			t.Errorf("the site %s has no ID", name)
		} else if !slices.Contains(out[name], id) {
			out[name] = append(out[name], id)
		}
	}
	return out
}

// TestSiteID checks which handlers are one site, and that the ID of a site changes
// only with its addresses.
func TestSiteID(t *testing.T) {
	block := func(timeout string) string { return "notify {\ntimeout " + timeout + "\n}\n" }
	for _, tt := range []struct {
		name, text string
		sites      int // among the blocks with the timeouts 1s, 2s and so on
	}{
		{"hosts", "a.test {\n" + block("1s") + "}\nb.test {\n" + block("2s") + "}\n", 2},
		{"ports", "http://a.test:8001 {\n" + block("1s") + "}\nhttp://a.test:8002 {\n" + block("2s") + "}\n:8003 {\n" + block("3s") + "}\n", 3},
		{"prefixes", "a.test {\nhandle_path /x/* {\n" + block("1s") + "}\nhandle_path /y/* {\n" + block("2s") + "}\n" + block("3s") + "}\n", 3},
		{"a site with several addresses", "http://a.test, https://b.test:8443, :8080 {\n" + block("1s") + "}\n", 1},
		{"several blocks of a site", "a.test {\nnotify /notify/x {\ntimeout 1s\n}\nnotify {\ntimeout 2s\n}\n}\n", 1},
		{"a block that shares one address", "http://a.test, http://b.test:8080 {\nhandle /notify/x {\n" + block("1s") + "}\n}\nhttp://c.test {\n" + block("2s") + "}\n", 2},
		{"a snippet", "(alerts) {\n" + block("1s") + "}\na.test {\nimport alerts\n}\nb.test {\nimport alerts\n}\n", 2},
		{"a named route", "&(alerts) {\n" + block("1s") + "}\na.test {\ninvoke alerts\n}\nb.test {\n" + block("2s") + "}\n", 2},
		{"the handler of an error", "a.test {\nhandle_errors {\n" + block("1s") + "}\n}\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := siteIDs(t, tt.text)
			var ids []string
			for _, of := range got {
				ids = append(ids, of...)
			}
			slices.Sort(ids)
			if ids = slices.Compact(ids); len(ids) != tt.sites {
				t.Errorf("%d sites: %v, want %d", len(ids), got, tt.sites)
			}
			again := siteIDs(t, "{\nnotify {\nkey k {\nurl json://127.0.0.1:1\n}\n}\n}\nfirst.test {\n"+block("9s")+"}\n"+tt.text)
			for name, ids := range got {
				slices.Sort(ids)
				slices.Sort(again[name])
				if !slices.Equal(ids, again[name]) {
					t.Errorf("the IDs of %s are %v, and behind another site %v", name, ids, again[name])
				}
			}
		})
	}
}

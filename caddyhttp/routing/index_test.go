package routing_test

import (
	"slices"
	"strings"
	"testing"
)

// siteIDs returns the IDs of the sites of a Caddyfile, one for each handler, by the
// timeouts of their blocks.
func siteIDs(t *testing.T, text string) map[string][]string {
	t.Helper()
	_, routes := provision(t, text)
	out := map[string][]string{}
	for _, h := range routes.Sites {
		name := h.API.Resolved.Limits.Timeout.String()
		if id := h.API.Site(); id == "" {
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
		{
			"several blocks of a site",
			"a.test {\nnotify /notify/x {\ntimeout 1s\nkey x {\nurl json://127.0.0.1:1\n}\n}\nnotify {\ntimeout 2s\n}\n}\n",
			1,
		},
		{
			"a block that shares one address",
			"http://a.test, http://b.test:8080 {\nhandle /notify/x {\n" + block("1s") + "}\n}\nhttp://c.test {\n" + block("2s") + "}\n",
			2,
		},
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

// TestSiteIDWithoutBind checks that a site has the same ID wherever its server listens, so
// that gateways which differ in bind know each other's messages.
func TestSiteIDWithoutBind(t *testing.T) {
	const block = "notify {\ntimeout 1s\n}\n"
	idOf := func(text string) string {
		t.Helper()
		ids := siteIDs(t, text)["1s"]
		if len(ids) != 1 {
			t.Fatalf("%s: %v", text, ids)
		}
		return ids[0]
	}
	for name, sites := range map[string][]string{
		"a port": {
			"http://a.test:8001 {\n" + block + "}\n",
			"http://a.test:8001 {\nbind 127.0.0.1\n" + block + "}\n",
			"http://a.test:8001 {\nbind 127.0.0.2 ::1\n" + block + "}\n",
			"{\ndefault_bind 127.0.0.3\n}\nhttp://a.test:8001 {\n" + block + "}\n",
		},
		"any host": {":8001 {\n" + block + "}\n", ":8001 {\nbind 127.0.0.1\n" + block + "}\n"},
		"a socket": {"http://a.test {\nbind unix//run/a\n" + block + "}\n", "http://a.test {\nbind unix//run/b\n" + block + "}\n"},
		"the name of a site": {
			"http://a.test:8001 {\nnotify {\nsite x\ntimeout 1s\n}\n}\n",
			"http://b.test:8002 {\nhandle_path /y/* {\nnotify {\nsite x\ntimeout 1s\n}\n}\n}\n",
		},
	} {
		for _, text := range sites[1:] {
			if idOf(text) != idOf(sites[0]) {
				t.Errorf("%s: the ID differs for %s", name, text)
			}
		}
	}
	if idOf("http://a.test:8001 {\n"+block+"}\n") == idOf("http://a.test:8001 {\nnotify {\nsite x\ntimeout 1s\n}\n}\n") {
		t.Error("a name does not separate")
	}
}

// TestSiteNames checks which blocks of a configuration are one site, and the error for sites
// without names that differ only in bind.
func TestSiteNames(t *testing.T) {
	at := func(address, bind, settings string) string {
		return address + " {\nbind " + bind + "\nnotify {\n" + settings + "\n}\n}\n"
	}
	const a, b = "127.0.0.1", "127.0.0.2"
	for name, tt := range map[string]struct {
		text  string
		sites int
		want  string // the error
	}{
		"bind alone": {
			at("http://a.test:8001", a, "timeout 1s") + at("http://a.test:8001", b, "timeout 2s"), 0,
			"differ only in what their servers listen on (127.0.0.",
		},
		"bind alone of one of several hosts": {
			at("http://a.test:8001, http://b.test:8001", a, "timeout 1s") + at("http://b.test:8001", b, "timeout 2s"),
			0, "write site <name> into each",
		},
		"sockets alone": {
			at("http://a.test", "unix//run/a", "timeout 1s") + at("http://a.test", "unix//run/b", "timeout 2s"),
			0, "write site <name> into each",
		},
		"names that separate":     {at("http://a.test:8001", a, "site x\ntimeout 1s") + at("http://a.test:8001", b, "site y\ntimeout 2s"), 2, ""},
		"one name that separates": {at("http://a.test:8001", a, "site x\ntimeout 1s") + at("http://a.test:8001", b, "timeout 2s"), 2, ""},
		"a name that joins":       {at("http://a.test:8001", a, "site x\ntimeout 1s") + at("http://a.test:8001", b, "site x\ntimeout 2s"), 1, ""},
		"a name that joins ports": {at("http://a.test:8001", a, "site x\ntimeout 1s") + at("http://b.test:8002", a, "site x\ntimeout 2s"), 1, ""},
		"ports":                   {at("http://a.test:8001", a, "timeout 1s") + at("http://a.test:8002", b, "timeout 2s"), 2, ""},
		"hosts":                   {at("http://a.test:8001", a, "timeout 1s") + at("http://b.test:8001", b, "timeout 2s"), 2, ""},
		"prefixes": {
			"http://a.test:8001 {\nbind " + a + "\nhandle_path /x/* {\nnotify {\ntimeout 1s\n}\n}\n}\n" +
				at("http://a.test:8001", b, "timeout 2s"), 2, "",
		},
		"one block that listens twice": {at("http://a.test:8001", a+" "+b, "timeout 1s"), 1, ""},
		"a named route": {
			"&(alerts) {\nnotify {\ntimeout 1s\n}\n}\nhttp://a.test:8001 {\nbind " + a +
				"\ninvoke alerts\n}\nhttp://a.test:8001 {\nbind " + b + "\ninvoke alerts\n}\n", 1, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			app, routes := provision(t, tt.text)
			err := app.Check()
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "Caddyfile:") {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				return
			}
			ids := map[string]bool{}
			for _, h := range routes.Sites {
				ids[h.API.Site()] = true
			}
			if err != nil || len(ids) != tt.sites {
				t.Errorf("%d sites, error %v, want %d", len(ids), err, tt.sites)
			}
		})
	}
}

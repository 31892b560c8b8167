package safety

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// TestDefaultSpace checks that caddy validate refuses two sites whose saved keys
// would be the same although neither says so. Before, `manage open` of one site opened
// the keys of the other, and `trust operator` lifted the rules of both.
func TestDefaultSpace(t *testing.T) {
	t.Parallel()
	const site = " {\n\tnotify {\n\t\tconfigs\n\t}\n}\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"two sites":         {":1" + site + ":2" + site, []string{"Caddyfile:3", "Caddyfile:8"}},
		"with a global one": {"{\n\tnotify {\n\t\tconfigs\n\t}\n}\n:1 {\n\tnotify\n}\n:2" + site, []string{"Caddyfile:3", "Caddyfile:11"}},
		"imported": {
			"(keys) {\n\tnotify {\n\t\tconfigs\n\t}\n}\n:1 {\n\timport keys\n}\n:2 {\n\timport keys\n}\n",
			[]string{"Caddyfile:7 (import keys)", "Caddyfile:10 (import keys)"},
		},
		"imported twice": {
			"(keys) {\n\tnotify {\n\t\tconfigs\n\t}\n}\n(all) {\n\timport keys\n}\n:1 {\n\timport all\n}\n:2 {\n\timport all\n}\n",
			nil,
		},
		"different trust": {
			":1 {\n\tnotify {\n\t\tconfigs team\n\t}\n}\n:2 {\n\tnotify {\n\t\tconfigs team {\n\t\t\ttrust operator\n\t\t}\n\t}\n}\n",
			[]string{"trust differs from that of configs at Caddyfile:"},
		},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "Caddyfile"), tt.text)
		out, err := caddy(t, dir, nil, "validate", "--config", "Caddyfile")
		text := strings.Join(logLines(out), "\n")
		if err == nil {
			t.Errorf("%s: the configuration is valid", name)
		}
		for _, want := range append(tt.want, "configs <space>") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "Caddyfile"), ":1, http://a.example:2, b.example"+site)
	if out, err := caddy(t, dir, nil, "validate", "--config", "Caddyfile"); err != nil {
		t.Errorf("one site with several addresses: %s", out)
	}
}

// TestSpaces checks that sites see the saved keys of their own space only, and that
// what one site allows holds for it alone.
func TestSpaces(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	s := serveHTTP(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) { arrived.Add(1) })
	const account = "basic_auth {\n\t\tbob $2a$10$m2.UDsDZjxwNn2SM2qz4ourxotp2P3PeThkOw.X6HW72RDYFdxWUu\n\t}"
	sites := []struct{ name, before, block string }{
		{"alone", "", "configs {\n\t\t\tmanage open\n\t\t\ttrust operator\n\t\t}"},
		{"saver", "", "configs team {\n\t\t\tmanage open\n\t\t}\n\t\tEGRESS"},
		{"sender", "", "configs team\n\t\tegress {\n\t\t\tallow 127.0.0.1\n\t\t}"},
		{"named", account, "configs team {\n\t\t\tmanage ann\n\t\t}\n\t\tEGRESS"},
		{"bob", account, "configs team {\n\t\t\tmanage ann bob\n\t\t}\n\t\tEGRESS"},
	}
	g := prepare(t, "", "")
	addresses := map[string]string{}
	for _, site := range sites {
		addresses[site.name] = g.host + ":" + porttest.Free()
	}
	configure := func(egress string) {
		var text strings.Builder
		fmt.Fprintf(&text,
			"{\n\tadmin %s\n\tpersist_config off\n\tstorage file_system \"%s\"\n}\nhttp://%s {\n\tbind %s\n\trespond /up up\n}\n",
			g.admin, filepath.Dir(g.config)+"/storage", g.address(), g.host)
		for _, site := range sites {
			fmt.Fprintf(&text, "http://%s {\n\tbind %s\n\t%s\n\tnotify {\n\t\tstateless off\n\t\t%s\n\t}\n}\n", addresses[site.name],
				g.host, site.before, site.block)
		}
		if err := os.WriteFile(g.config, []byte(strings.ReplaceAll(text.String(), "EGRESS", egress)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(site, path, form string, change ...func(*http.Request)) reply {
		t.Helper()
		method := http.MethodPost
		if form == "" {
			method = http.MethodGet
		}
		r, err := http.NewRequest(method, "http://"+addresses[site]+path, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, f := range change {
			f(r)
		}
		return g.ask(r)
	}
	asBob := func(r *http.Request) { r.SetBasicAuth("bob", "correct horse") }
	const opened = "egress {\n\t\t\tallow 127.0.0.1\n\t\t}"
	configure(opened)
	g.run()
	const secret = "s3cret-t0ken-of-the-team"
	save := "urls=json://" + authority(s) + "/" + secret
	for _, site := range []string{"alone", "saver"} {
		if r := ask(site, "/add/of-"+site, save); r.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", site, r.Status, r.Body)
		}
	}
	for _, tt := range []struct {
		site, path, form string
		as               func(*http.Request)
		status           int
	}{
		{"alone", "/get/of-saver", "x=1", nil, http.StatusNotFound},
		{"alone", "/del/of-saver", "x=1", nil, http.StatusNotFound},
		{"alone", "/json/urls/of-saver", "", nil, http.StatusNotFound},
		{"alone", "/notify/of-saver", "body=x", nil, http.StatusNotFound},
		{"saver", "/notify/of-alone", "body=x", nil, http.StatusNotFound},
		{"saver", "/get/of-alone", "x=1", nil, http.StatusNotFound},
		{"sender", "/get/of-saver", "x=1", nil, http.StatusForbidden}, // it has no manage
		{"sender", "/notify/of-saver", "body=x", nil, http.StatusOK},
		{"named", "/get/of-saver", "x=1", asBob, http.StatusForbidden},
		{"named", "/get/of-saver", "x=1", nil, http.StatusUnauthorized},
		{"bob", "/get/of-saver", "x=1", asBob, http.StatusOK},
	} {
		if tt.as == nil {
			tt.as = func(*http.Request) {}
		}
		r := ask(tt.site, tt.path, tt.form, tt.as)
		if r.Status != tt.status || r.Status != http.StatusOK && strings.Contains(r.Body, secret) {
			t.Errorf("%s %s: %d %s, want %d", tt.site, tt.path, r.Status, r.Body, tt.status)
		}
	}
	for site, want := range map[string]string{"alone": `["of-alone"]`, "saver": `["of-saver"]`} {
		if _, keys := g.get("http://"+addresses[site]+"/cfg", "application/json"); strings.TrimSpace(keys) != want {
			t.Errorf("%s has the keys %s, want %s", site, keys, want)
		}
	}

	// The sites that save may not reach the address any more; another one of the
	// space still may.
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	configure("")
	g.run()
	before := arrived.Load()
	for _, site := range []string{"saver", "sender"} {
		if r := ask(site, "/notify/of-saver", "body=x"); r.Status < 400 {
			t.Errorf("%s: %d %s", site, r.Status, r.Body)
		}
	}
	if n := arrived.Load() - before; n > 0 {
		t.Errorf("%d messages reach an address that the sites forbid through which URLs are saved", n)
	}
	if r := ask("alone", "/notify/of-alone", "body=x"); r.Status != http.StatusOK {
		t.Errorf("with trust operator: %d %s", r.Status, r.Body)
	}
}

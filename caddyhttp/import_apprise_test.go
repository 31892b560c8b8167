package caddyhttp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// configuration writes a file and returns its path.
func configuration(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImportApprise(t *testing.T) {
	s := gatewaytest.NewStation(t)
	more := configuration(t, "more", "crew=bob\nbob="+s.NotifyURL("/bob"))
	first := configuration(t, "first.yml",
		fmt.Sprintf("include: %s\nurls:\n- %s:\n    - tag: alice\n- %s\n", more, s.NotifyURL("/alice"), s.NotifyURL("/plain")))
	t.Setenv("NOTIFY_TEST_FILE", first)
	h := newGateway(t, "key k {\nurl "+s.NotifyURL("/own")+" own\nimport_apprise {env.NOTIFY_TEST_FILE}\n"+
		"default_tag own,crew\n}\nkey only {\nimport_apprise "+more+"\n}", "")
	for _, tt := range []struct{ target, arrives string }{
		{"/notify/k", "bob own"},
		{"/notify/k?tag=all", "alice bob own plain"},
		{"/notify/k?tag=alice", "alice"},
		{"/notify/k?tag=crew", "bob"},
		{"/notify/only", "bob"},
	} {
		if got := post(t, h, tt.target, typeForm, "body=x"); got.status != 200 {
			t.Errorf("%s: status %d: %s", tt.target, got.status, got.body)
		}
		if got := s.Paths(); got != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", tt.target, got, tt.arrives)
		}
	}
}

// TestImportAppriseFromServer checks that configurations are requested with
// POST from servers that demand it, and otherwise with GET.
func TestImportAppriseFromServer(t *testing.T) {
	s := gatewaytest.NewStation(t)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			switch {
			case r.Method != method:
				w.WriteHeader(http.StatusMethodNotAllowed)
			case user != "u" || password != "secretsecret":
				w.WriteHeader(http.StatusUnauthorized)
			default:
				fmt.Fprintf(w, "ops=%s\n", s.NotifyURL("/fetched"))
			}
		}))
		address := strings.Replace(server.URL, "//", "//u:secretsecret@", 1) + "/get/k?format=text"
		h := newGateway(t, "key k {\nimport_apprise "+address+"\n}", "")
		if got := post(t, h, "/notify/k?tag=ops", typeForm, "body=x"); got.status != 200 || s.Paths() != "fetched" {
			t.Errorf("%s: status %d: %s", method, got.status, got.body)
		}
		server.Close()
	}
}

func TestBadImports(t *testing.T) {
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, appriseconfig.MaxSize+1))
	}))
	defer large.Close()
	nowhere := httptest.NewServer(http.NotFoundHandler())
	defer nowhere.Close()
	includer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("json://localhost\ninclude /etc/passwd"))
	}))
	defer includer.Close()
	const gone = "http://127.0.0.1:1"
	file := func(text string) string { return configuration(t, "f.conf", text) }
	for _, tt := range []struct{ name, location, block, want string }{
		{"no such file", "/nonexistent/f.yml", "", "key k, import_apprise 2: /nonexistent/f.yml: reading the file: no such file"},
		{"unset placeholder", "{env.NOTIFY_TEST_UNSET}", "", "key k, import_apprise 2: {env.NOTIFY_TEST_UNSET} has no value"},
		{"unknown service", file("json://localhost\n\nsecretsecret://secretsecret"), "", "f.conf:3: the URL "},
		{"unusable URL", file("# c\ntgram://secretsecret"), "", "f.conf:2: Telegram: "},
		{"denied service", file("json://localhost"), "services {\ndeny json\n}", "f.conf:1: the service JSON may not be used here"},
		{"a line", file("json://localhost\nsecretsecret"), "", "f.conf:2: unknown line"},
		{"a reserved tag", file("untagged=json://localhost"), "", "f.conf:1: untagged cannot be a tag"},
		{"status", nowhere.URL + "/secretsecret", "", "reading the file: the server answers with status 404"},
		{"size", large.URL + "/secretsecret", "", "reading the file: the file is larger than 1 MiB"},
		{"refused connection", strings.Replace(gone, "//", "//u:secretsecret@", 1) + "/secretsecret", "", "connection refused"},
		{"a local file in a fetched one", includer.URL, "", ":2: include: a file that was fetched cannot include a local file"},
	} {
		empty := configuration(t, "empty", "")
		_, err := provision(t, "key k {\nimport_apprise "+empty+" "+tt.location+"\n}\n"+tt.block, "")
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "key k, import_apprise 2: ") {
			t.Errorf("%s: error %v, want %s", tt.name, err, tt.want)
			continue
		}
		text := strings.Replace(err.Error(), "begins with secretsecret://", "", 1) // the scheme is not a secret
		if strings.Contains(text, "secretsecret") {
			t.Errorf("%s: the error shows a secret: %v", tt.name, err)
		}
	}
	for block, want := range map[string]string{
		"import_apprise " + file(""): "key k: neither it nor the imported files have a URL",
		"import_apprise " + file("a=json://localhost") + "\ndefault_tag other": "key k: default_tag: no URL of the key has this tag",
		"import_apprise " + file("a=json://localhost") + "\ndefault_tag +":     "default_tag: it names no tag",
		"import_apprise \"\"": "the location is empty",
	} {
		if _, err := provision(t, "key k {\n"+block+"\n}", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", block, err, want)
		}
	}
}

// TestURLFiles checks that a path in a URL is relative to the file that
// contains the URL, the Caddyfile or an imported file, and that a URL from a
// server cannot name files.
func TestURLFiles(t *testing.T) {
	const hook = "discord://1098765432109876543/AbCdEf-0123456789?template=hook.json"
	dir := t.TempDir()
	beside := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	beside("hook.json", `{"content": "{{app_body}}"}`)
	imported := beside("apprise.conf", hook)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(hook)) }))
	defer server.Close()

	var s Settings
	block := caddyfile.NewTestDispenser("notify {\n default_urls " + hook + "\n key k {\n url " + hook + "\n url json://localhost\n }\n}")
	if err := s.UnmarshalCaddyfile(block); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	urls := s.Keys["k"].URLs
	if s.DefaultURLsDir != here || urls[0].Dir != here || urls[1].Dir != "" {
		t.Errorf("the directories are %q and %+v, want %q", s.DefaultURLsDir, urls, here)
	}

	load := func(k *Key) error {
		_, err := loadLogged(&keyLoader{parse: parseUnshared, log: zap.NewNop()}, "k", k)
		return err
	}
	if err := load(&Key{URLs: []KeyURL{{URL: hook, Dir: dir}}, ImportApprise: []string{imported}}); err != nil {
		t.Error(err)
	}
	if err := load(&Key{URLs: []KeyURL{{URL: hook}}}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the directory: %v", err)
	}
	if err := load(&Key{ImportApprise: []string{server.URL}}); err == nil ||
		!strings.Contains(err.Error(), "which only URLs in files there can") {
		t.Errorf("from a server: %v", err)
	}
}

// TestImportAppriseTagAll checks that the tag all, an error in the Caddyfile,
// is accepted in imported files.
func TestImportAppriseTagAll(t *testing.T) {
	path := configuration(t, "f.conf", "all,ops=json://localhost\n")
	k, err := loadLogged(&keyLoader{parse: parseUnshared, log: zap.NewNop()}, "k", &Key{ImportApprise: []string{path}})
	if err != nil || len(k.Targets) != 1 || !slices.Contains(k.Targets[0].Tags, "ops") {
		t.Errorf("%+v, %v", k, err)
	}
}

// TestImportAppriseRetired checks that a file loads although it has URLs
// of retired and desktop services.
func TestImportAppriseRetired(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	path := configuration(t, "f.conf", "msteams://a/b/c\nops=json://localhost\ndbus://\n")
	k, err := loadLogged(&keyLoader{parse: parseUnshared, log: zap.New(core)}, "k", &Key{ImportApprise: []string{path}})
	if err != nil || len(k.Targets) != 1 {
		t.Fatal(k, err)
	}
	var got []string
	for _, e := range logs.All() {
		got = append(got, strings.TrimPrefix(e.ContextMap()["warning"].(string), path))
	}
	want := []string{
		":1: the URL begins with msteams://, which is retired: Microsoft has switched off the connectors " +
			"of Teams (2026); create a workflow in Teams and use workflows://; the URL is skipped",
		":3: the URL begins with dbus://, which shows messages on the desktop of a computer " +
			"(D-Bus) and does not work on a server; use another service; the URL is skipped",
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// TestURLsOfApprise checks that URLs as Apprise prints them load, and that
// parameters without effect and wrong items of lists are logged.
func TestURLsOfApprise(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	urls := []KeyURL{
		{
			URL: "jira://apikey/%40user/?action=map&region=us&priority=normal&batch=no&" +
				":info=note&format=text&overflow=upstream&retry=0&wait=0.5&optional=no",
		},
		{URL: "x://ckey/csecret/akey/asecret/?mode=tweet&batch=yes&cache=yes&format=text&overflow=upstream&retry=0&wait=0.5&optional=no"},
		{
			URL: "matrix://example.com/?image=no&mode=off&version=3&msgtype=text&discovery=yes&" +
				"hsreq=yes&e2ee=no&format=text&overflow=upstream&retry=0&wait=0.5&optional=no",
		},
		{URL: "dingtalk://12345678//?format=NotifyFormat.TEXT&overflow=OverflowMode.UPSTREAM&verify=yes"},
		{URL: "psafer://ffffffffffffffffffff/?format=text&overflow=upstream&retry=0&wait=0.5&optional=no&priority=medium"},
		{URL: "twilio://AC00000000000000000000000000000000:secretsecret@15551230000/15551230001/nobody"},
		{URL: "mqtt://localhost/alerts?to=all/%23"},
	}
	if _, err := loadLogged(&keyLoader{parse: parseUnshared, log: zap.New(core)}, "k", &Key{URLs: urls}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range logs.All() {
		got = append(got, fmt.Sprint(e.ContextMap()["key"], ": ", e.ContextMap()["warning"]))
	}
	want := []string{
		"k: Jira: the parameter region has no effect: Jira has one address for all regions",
		"k: Twitter: the parameter cache has no effect: IDs of users are always kept",
		"k: Twilio: item 2 of targets is not a telephone number and is left out",
		"k: MQTT: a topic with a wildcard (+ or #), or of more than 65535 bytes, is left out",
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// TestImportAppriseWarnings checks that a parameter without effect, an error in
// the Caddyfile, is logged for an imported file, and that placeholders in it
// are not replaced.
func TestImportAppriseWarnings(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	core, logs := observer.New(zap.WarnLevel)
	path := configuration(t, "f.yml",
		"asset: {}\nurls:\n- json://localhost/{env.NOTIFY_TEST_SECRET}\n- mailto://u:p@example.com:\n   nonesuch: x\n")
	k, err := loadLogged(&keyLoader{parse: parseUnshared, log: zap.New(core)}, "k", &Key{ImportApprise: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range k.Targets {
		if strings.Contains(target.Destination.URL(), "secretsecret") {
			t.Error("a placeholder in the file was resolved")
		}
	}
	var got []string
	for _, e := range logs.All() {
		if e.ContextMap()["key"] != "k" {
			t.Errorf("the key is missing: %v", e)
		}
		w := e.ContextMap()["warning"].(string)
		got = append(got, strings.TrimPrefix(w, path))
	}
	want := []string{":1: asset is ignored", ":4: E-Mail: the parameter nonesuch is unknown and has no effect"}
	if len(got) != len(want) {
		t.Fatalf("warnings %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("warning %q, want %q", got[i], want[i])
		}
	}
}

// TestImportPath checks that a path is relative to the file that contains it, also in an imported
// Caddyfile.
func TestImportPath(t *testing.T) {
	var h Handler
	tokens, err := caddyfile.Tokenize([]byte("notify {\nkey k {\n"+
		"import_apprise a.yml ../b c/d /e https://example.com/f {env.G}/g\n}\n}"), "/etc/caddy/sites/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err != nil {
		t.Fatal(err)
	}
	const want = "/etc/caddy/sites/a.yml /etc/caddy/b /etc/caddy/sites/c/d /e https://example.com/f {env.G}/g"
	if got := strings.Join(h.Keys["k"].ImportApprise, " "); got != want {
		t.Errorf("got %s", got)
	}
}

// loadLogged loads a key and logs its warnings.
func loadLogged(l *keyLoader, name string, c *Key) (*site.Key, error) {
	r, err := (&Settings{Keys: map[string]*Key{name: c}}).resolve(nil, nil, l.parse, l.log)
	if err != nil {
		return nil, err
	}
	return r.Keys[name], nil
}

package caddyhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
)

// adaptAs adapts a Caddyfile as if it were in a file.
func adaptAs(t *testing.T, text, file string) []byte {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": file})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return config
}

// TestCanonical checks that the JSON of each fixture depends on nothing but what the Caddyfile
// says: not on its name and folder, on comments and empty lines, on when its files have changed,
// and on what they have in them.
func TestCanonical(t *testing.T) {
	names, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`"?[\w/.~-]*/[\w.-]+\.(yml|conf|json|tmpl|pem|asc)"?`) // relative paths of files
	tested := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source, want, _ := strings.Cut(string(text), "\n----------\n")
		if !strings.HasPrefix(want, "{") || named.MatchString(source) {
			continue
		}
		tested++
		config := adaptAs(t, source+"\n", "Caddyfile")
		dir := t.TempDir()
		lines := strings.Split(source, "\n")
		for _, other := range []struct{ text, file string }{
			{source + "\n", filepath.Join(dir, "other.conf")},
			{"# a comment\n\n" + source + "\n", "Caddyfile"},
			{strings.Join(lines, "\n\n") + "\n", "Caddyfile"},
		} {
			if strings.Contains(source, "<<") && strings.Contains(other.text, "\n\n\n") {
				continue // empty lines in a text are part of it
			}
			if again := adaptAs(t, other.text, other.file); !bytes.Equal(again, config) {
				t.Errorf("%s as %s, with other lines, becomes\n%s\nnot\n%s", name, other.file, again, config)
			}
		}
		for _, trace := range []string{`"caddyfile"`, `"lines"`, `"files"`, "Caddyfile:", dir} {
			if strings.Contains(string(config), trace) {
				t.Errorf("the JSON of %s has %s", name, trace)
			}
		}
	}
	if tested < 8 {
		t.Errorf("only %d fixtures were tested", tested)
	}

	secret := filepath.Join(t.TempDir(), "secret")
	text := fmt.Sprintf(`{
	notify {
		queue {
			secret {file.%[1]s}
		}
		key ops {
			url json://127.0.0.1/{file.%[1]s}
			import_apprise %[1]s
			token {file.%[1]s}
		}
	}
}
:9080 {
	notify
}
`, secret)
	config := adaptAs(t, text, "Caddyfile")
	for _, content := range []string{"secret of one length", "another of the same", "short"} {
		if err := os.WriteFile(secret, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if again := adaptAs(t, text, "Caddyfile"); !bytes.Equal(again, config) {
			t.Errorf("with a file, the JSON is\n%s\nnot\n%s", again, config)
		}
	}
}

// TestPositionsFollowContent checks that an error names a line of the Caddyfile only if the block is
// as the Caddyfile has it.
func TestPositionsFollowContent(t *testing.T) {
	text := withOptions("key ops {\nurl json://127.0.0.1/a\nurl json://127.0.0.1/{env.NO_SUCH_TEXT}?template=missing.json\n}", "")
	provision := func(config []byte) error {
		var c caddy.Config
		if err := json.Unmarshal(config, &c); err != nil {
			t.Fatal(err)
		}
		off := false
		c.Admin = &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &off}}
		provisioning.Lock()
		defer provisioning.Unlock()
		_, err := caddy.ProvisionContext(&c)
		return err
	}
	const place, line = "key ops, URL 2", "Caddyfile:5: "
	config := adaptAs(t, text, "Caddyfile")
	if err := provision(config); err == nil || !strings.Contains(err.Error(), line+place) {
		t.Errorf("as adapted: %v", err)
	}
	// As Caddy keeps it, with its fields sorted.
	var tree any
	if err := json.Unmarshal(config, &tree); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := provision(sorted); err == nil || !strings.Contains(err.Error(), line+place) {
		t.Errorf("sorted: %v", err)
	}
	// Adapted again with a comment, as `caddy run --watch` does: the new line.
	if again := adaptAs(t, "# a comment\n"+text, "Caddyfile"); !bytes.Equal(again, config) {
		t.Fatal("a comment changes the configuration")
	}
	if err := provision(config); err == nil || !strings.Contains(err.Error(), "Caddyfile:6: "+place) {
		t.Errorf("with a comment: %v", err)
	}
	// A change by the admin API.
	keys := tree.(map[string]any)["apps"].(map[string]any)["notify"].(map[string]any)["keys"].(map[string]any)
	urls := keys["ops"].(map[string]any)["urls"].([]any)
	keys["ops"].(map[string]any)["urls"] = []any{map[string]any{"url": "json://127.0.0.1/new"}, urls[0], urls[1]}
	changed, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := provision(changed); err == nil || !strings.Contains(err.Error(), "key ops, URL 3") ||
		strings.Contains(err.Error(), "Caddyfile") {
		t.Errorf("after a change: %v", err)
	}
}

// TestFilesOfSettings checks that the app notices another content of each file that a setting can
// name, and nothing else.
func TestFilesOfSettings(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KEY_DIR", dir)
	write("import", "include included\n")
	write("included", "json://h\nfcm://project/device?keyfile=account.json\n")
	write("linked", "abc")
	write("linked2", "abc")
	write("linked3", "abcd")
	link := func(to string) {
		t.Helper()
		_ = os.Remove(path("link"))
		if err := os.Symlink(path(to), path("link")); err != nil {
			t.Fatal(err)
		}
	}
	link("linked")
	var names []string
	file := func(name string) string {
		names = append(names, name)
		return "{file." + path(name) + "}"
	}
	text := `{
	notify {
		queue {
			secret ` + file("queue") + `
			beat https://h.invalid/` + file("beat") + ` 1h
		}
		smtp 127.0.0.1:2525 {
			auth {
				ann ` + file("password") + `
			}
			tls ` + path("certificate") + ` ` + path("certificate-key") + `
		}
		key ops {
			url json://h/` + file("url") + ` ops
			url {file.` + path("link") + `}
			url slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?template=` + path("template") + `
			url mailto://ann:pass@example.com?pgppub={env.KEY_DIR}/pgp
			url fcm://project/device?keyfile=https://h.invalid/fetched
			import_apprise ` + path("import") + `
			variables A=` + file("variable") + `
			token ` + file("token") + `
			reader ` + file("reader") + `
			inbox 1d
		}
	}
}
:9080 {
	notify {
		key site {
			url json://h/` + file("site") + `
			accept backup
		}
		from backup {
			title_file ` + path("title") + `
			body_file ` + path("body") + `
			token ` + file("source") + `
		}
		configs {
			secret ` + file("configs") + `
		}
		default_urls json://h/` + file("default") + `
	}
}
`
	names = append(names, "certificate", "certificate-key", "template", "pgp", "import", "included", "account.json", "title", "body")
	c, err := parseConfig(adaptAs(t, text, "Caddyfile"))
	if err != nil || len(c.sites) != 1 {
		t.Fatal(c, err)
	}
	newApp := func() *App {
		var config struct {
			Apps struct{ Notify App }
		}
		a := &config.Apps.Notify
		if err := json.Unmarshal(adaptAs(t, text, "Caddyfile"), &config); err != nil {
			t.Fatal(err)
		}
		a.addFiles(&a.Settings, a.locate(appID, a))
		a.SMTP.AddFiles(&a.files)
		a.addFiles(c.sites[0], c.sites[0].locate(handlerID, c.sites[0]))
		return a
	}
	for _, name := range names {
		if name != "import" && name != "included" {
			write(name, "first")
		}
	}
	for _, name := range names {
		a := newApp()
		if a.files.Changed() {
			t.Fatal("nothing has changed")
		}
		text, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path(name), old, old); err != nil {
			t.Fatal(err)
		}
		write("copy", string(text))
		if err := os.Rename(path("copy"), path(name)); err != nil {
			t.Fatal(err)
		}
		if a.files.Changed() {
			t.Errorf("%s: another time and another file with the same content are a change", name)
		}
		write(name, strings.ToUpper(string(text))) // of the same size
		if !a.files.Changed() {
			t.Errorf("%s: another content is no change", name)
		}
		write(name, string(text))
		if a.files.Changed() {
			t.Errorf("%s: the content of before is a change", name)
		}
		if err := os.Remove(path(name)); err != nil {
			t.Fatal(err)
		}
		if !a.files.Changed() {
			t.Errorf("%s: a file that is gone is no change", name)
		}
		write(name, string(text))
	}
	a := newApp()
	if link("linked2"); a.files.Changed() {
		t.Error("a link to a file with the same content is a change")
	}
	if link("linked3"); !a.files.Changed() {
		t.Error("a link to a file with another content is no change")
	}
}

// TestKeyLines checks the positions of keys and URLs that the adapter remembers, and that they are
// gone after a start.
func TestKeyLines(t *testing.T) {
	text := `(sms) {
	url json://127.0.0.1/sms
}

http://:9080 {
	notify {
		key ops {
			url json://127.0.0.1/a

			url json://127.0.0.1/b
			import sms
		}
		key ops-2 { # the name begins with that of another key
			import_apprise apprise.yml
			url json://127.0.0.1/c
		}
	}
}
`
	c, err := parseConfig(adaptAs(t, text, "Caddyfile"))
	if err != nil || len(c.sites) != 1 {
		t.Fatal(c, err)
	}
	info := c.sites[0].Caddyfile
	for setting, want := range map[string]string{
		"notify":                      "Caddyfile:6",
		"key ops":                     "Caddyfile:7",
		"key ops, URL 1":              "Caddyfile:8",
		"key ops, URL 2":              "Caddyfile:10",
		"key ops, URL 3":              "Caddyfile:2",
		"key ops, URL 4":              "",
		"key ops-2":                   "Caddyfile:13",
		"key ops-2, import_apprise 1": "Caddyfile:14",
		"key ops-2, URL 1":            "Caddyfile:15",
		"key ops-3":                   "",
		"smtp":                        "",
	} {
		if got := info.Line(setting); got != want {
			t.Errorf("%s is at %q, not at %q", setting, got, want)
		}
	}
	block.Forget(info)
	c.sites[0].Caddyfile = nil
	if c.sites[0].locate(handlerID, c.sites[0]); c.sites[0].Caddyfile != nil {
		t.Errorf("after the start, the positions are still known: %v", c.sites[0].Caddyfile)
	}
}

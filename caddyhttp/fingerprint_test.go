package caddyhttp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// TestFileFingerprint checks that the fingerprint depends on the time, the size
// and the link target of files, and not on their content.
func TestFileFingerprint(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, second int64) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if at := time.Unix(second, 0); os.Chtimes(path(name), at, at) != nil {
			t.Fatal("no time set")
		}
	}
	link := func(to string) {
		t.Helper()
		_ = os.Remove(path("link"))
		if err := os.Symlink(path(to), path("link")); err != nil {
			t.Fatal(err)
		}
	}
	settings := &Settings{
		DefaultURLs: []string{"json://h/{file." + path("secret") + "}"},
		Keys: map[string]*Key{"ops": {
			URLs: []KeyURL{
				{URL: "{file." + path("link") + "}"},
				{URL: "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?template=own.json", Dir: dir},
				{URL: "mailto://ann:pass@example.com?pgppub={env.KEY_DIR}/key.asc"},
				{URL: "fcm://project/device?keyfile=https://h.invalid/fetched"},
			},
			ImportApprise: []string{path("imported"), "https://h.invalid/fetched"},
		}},
	}
	write("secret", "abc", 1)
	write("linked", "abc", 1)
	write("linked2", "abc", 1)
	link("linked")
	write("imported", "include included\n", 1)
	write("included", "json://h\nfcm://project/device?keyfile=account.json\n", 1)
	t.Setenv("KEY_DIR", dir)

	seen := map[string]string{}
	for _, step := range []struct {
		name string
		do   func()
		same bool
	}{
		{"the first", func() {}, false},
		{"nothing", func() {}, true},
		{"another content of the same size and time", func() { write("secret", "xyz", 1) }, true},
		{"the time of a secret", func() { write("secret", "xyz", 2) }, false},
		{"the size of a secret", func() { write("secret", "wxyz", 2) }, false},
		{"the target of a link", func() { link("linked2") }, false},
		{"the time of the target", func() { write("linked2", "abc", 2) }, false},
		{"an imported file", func() { write("imported", "include included\n", 2) }, false},
		{"an included file", func() { write("included", "json://h\nfcm://project/device?keyfile=account.json\n", 2) }, false},
		{"a template", func() { write("own.json", "{}", 1) }, false},
		{"the time of a template", func() { write("own.json", "{}", 2) }, false},
		{"a key file by a placeholder", func() { write("key.asc", "key", 1) }, false},
		{"a key file of an included file", func() { write("account.json", "{}", 1) }, false},
		{"the size of that key file", func() { write("account.json", "{ }", 1) }, false},
		{"an included file is missing", func() { _ = os.Remove(path("included")) }, false},
		{"a folder in its place", func() { _ = os.Mkdir(path("included"), 0o700) }, false},
	} {
		step.do()
		got := settings.fingerprint(nil)
		if other, ok := seen[got]; ok != step.same || got == "" {
			t.Errorf("%s: the fingerprint %q is that of %q", step.name, got, other)
		}
		seen[got] = step.name
	}
	if got := (&Settings{DefaultURLs: []string{"json://h/{env.HOME}"}}).fingerprint(nil); got != "" {
		t.Errorf("a fingerprint %q without files", got)
	}
}

// TestKeyLines checks the positions of keys and URLs that the adapter records.
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
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseConfig(config)
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
}

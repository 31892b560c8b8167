package caddyhttp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
)

// TestMigrateSave moves keys into the storage of a configuration: byte for byte,
// under its limits and its secret, and without replacing what is saved.
func TestMigrateSave(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(source, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const whole = "# a comment\nurls:\n  - json://8.8.8.8/secretsecret:\n      tag: ops\n"
	write("whole.yml", whole)
	write("part.cfg", "# a comment\nnonsense secretsecret\nops,dev=json://8.8.8.8/secretsecret\njson://10.0.0.1/secretsecret\nxml://8.8.8.8\n")
	write("none.cfg", "json://10.0.0.1/secretsecret\n")
	write("fixed.cfg", "json://8.8.8.8\n")
	write("many.cfg", strings.Repeat("json://8.8.8.8\n", 4))
	const secret = "0123456789abcdef"
	config := func(configs string) string {
		return write("Caddyfile", "{\nstorage file_system \""+dir+"\"\n}\n:9471 {\nnotify {\nkey fixed {\nurl json://8.8.8.8\n}\n"+configs+"\n}\n}\n")
	}
	run := func(args ...string) (string, int) {
		t.Helper()
		stdout, stderr, code := command(t, "", append([]string{"migrate", "--env-file", "-"}, append(args, source)...)...)
		if strings.Contains(stdout+stderr, "secretsecret") {
			t.Errorf("a secret shows:\n%s%s", stdout, stderr)
		}
		return stdout + stderr, code
	}
	file := config("configs {\nmax_urls 3\nsecret " + secret + "\n}")
	text, code := run("--save", "--config", file)
	for _, want := range []string{
		"Saved: 2 keys in the storage of " + file, "  key whole: 1 URL\n", "  key part: 2 URLs\n",
		"  - key part: it is saved as text without what cannot be used",
		"  - key part, line 2: unknown line", "  - key part, line 4: ", "  - key none: it has no URL that can be used",
		"  - key fixed: the configuration of --config has a key of this name", "  - key many: it has 4 URLs; at most 3 are allowed (max_urls)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if code != exitPartial || t.Failed() {
		t.Fatalf("exit %d, want %d:\n%s", code, exitPartial, text)
	}
	store, err := configstore.New(&certmagic.FileStorage{Path: dir}, new(configstore.Index), secret)
	if err != nil {
		t.Fatal(err)
	}
	saved := func(key, format, text string) {
		t.Helper()
		if c, err := store.Load(t.Context(), key); err != nil || c.Format != format || c.Text != text {
			t.Errorf("the key %s is saved as %+v, %v", key, c, err)
		}
	}
	saved("whole", configstore.FormatYAML, whole)
	saved("part", configstore.FormatText, "ops,dev=json://8.8.8.8/secretsecret\nxml://8.8.8.8\n")
	if keys, err := store.Keys(t.Context()); err != nil || len(keys) != 2 {
		t.Errorf("the saved keys are %q, %v", keys, err)
	}

	write("whole.yml", whole+"  - xml://8.8.8.8\n")
	if text, _ := run("--save", "--config", file, "--key", "whole"); !strings.Contains(text, "key whole: it is saved already; replace it with --force") {
		t.Errorf("a key that is saved:\n%s", text)
	}
	saved("whole", configstore.FormatYAML, whole)
	if text, code := run("--save", "--config", file, "--key", "whole", "--force"); code != 0 {
		t.Errorf("with --force: exit %d\n%s", code, text)
	}
	saved("whole", configstore.FormatYAML, whole+"  - xml://8.8.8.8\n")

	for name, c := range map[string]struct {
		configs string
		args    []string
		want    string
	}{
		"too many keys":  {"configs {\nmax_keys 2\nsecret " + secret + "\n}", []string{"--save", "--config", file, "--key", "many"}, "more than 2 saved keys"},
		"no configs":     {"", []string{"--save", "--config", file}, "no site with configs"},
		"no file":        {"configs", []string{"--save", "--config", file + ".absent"}, "reading the configuration"},
		"no --config":    {"configs", []string{"--save"}, "--save needs --config"},
		"no --save":      {"configs", []string{"--config", file}, "--save needs --config"},
		"with --out too": {"configs", []string{"--save", "--config", file, "--out", dir}, "--save needs --config"},
	} {
		config(c.configs)
		if text, code := run(c.args...); code != 1 || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit %d, want %q:\n%s", name, code, c.want, text)
		}
	}
}

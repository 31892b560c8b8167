package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/gateway/configstore"
)

// TestMigrateSave moves keys into the storage of a configuration: byte for byte,
// under its limits and its secret, and without replacing what is saved.
func TestMigrateSave(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(source, name)
		writeFile(t, path, text)
		return path
	}
	const whole = "# a comment\nurls:\n  - json://8.8.8.8/secretsecret:\n      tag: ops\n"
	write("whole.yml", whole)
	write("part.cfg", "# a comment\nnonsense secretsecret\nops,dev=json://8.8.8.8/secretsecret\njson://10.0.0.1/secretsecret\nxml://8.8.8.8\n")
	write("none.cfg", "json://10.0.0.1/secretsecret\n")
	write("binary.cfg", "json://\xff\xfe")
	write("fixed.cfg", "json://8.8.8.8\n")
	write("many.cfg", strings.Repeat("json://8.8.8.8\n", 4))
	const secret = "0123456789abcdef"
	config := func(configs string) string {
		return write("Caddyfile",
			"{\nstorage file_system \""+dir+"\"\n}\n:9471 {\nnotify {\nkey fixed {\nurl json://8.8.8.8\n}\n"+configs+"\n}\n}\n")
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
	if want := "nothing is saved, because URLs of the keys part, whole have tags"; code != 1 ||
		!strings.Contains(text, want) || !strings.Contains(text, "into configs at "+file+":9 ") {
		t.Errorf("without a decision: exit %d, want %q:\n%s", code, want, text)
	}
	text, code = run("--save", "--config", file, "--default-tag", "all")
	for _, want := range []string{
		"Saved: 2 keys in the storage of " + file, "  key whole: 1 URL\n", "  key part: 2 URLs\n",
		"  - key part: it is saved as text without what cannot be used",
		"  - key part, line 2: unknown line", "  - key binary, the file is not text in UTF-8",
		"  - key part, line 4: ", "  - key none: it has no URL that can be used",
		"  - key fixed: the configuration of --config has a key of this name", "  - key many: it has 4 URLs; at most 3 are allowed (max_urls)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if code != exit.PartialCode || t.Failed() {
		t.Fatalf("exit %d, want %d:\n%s", code, exit.PartialCode, text)
	}
	store, err := configstore.New(configstore.Options{
		Storage: &certmagic.FileStorage{Path: dir}, Index: new(configstore.Index), Secret: secret,
	})
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
	file = config("configs {\ndefault_tag untagged\nsecret " + secret + "\n}")
	if text, _ := run("--save", "--config", file, "--key",
		"whole"); !strings.Contains(text, "key whole: it is saved already; replace it with --force") {
		t.Errorf("a key that is saved:\n%s", text)
	}
	saved("whole", configstore.FormatYAML, whole)
	if text, code := run("--save", "--config", file, "--key", "whole", "--force"); code != 0 {
		t.Errorf("with --force: exit %d\n%s", code, text)
	}
	saved("whole", configstore.FormatYAML, whole+"  - xml://8.8.8.8\n")

	stdout, _, code := command(t, "APPRISE_AUTH_REQUIRED=yes\nAPPRISE_PASSWORD=secretsecret\n",
		"migrate", "--env-file", "-", "--save", "--config", file, "--key", "whole", "--force", source)
	if want := "put basic_auth into the site before notify"; code != exit.PartialCode || !strings.Contains(stdout, want) {
		t.Errorf("of a server with a login: exit %d, want %q\n%s", code, want, stdout)
	}
	for name, c := range map[string]struct {
		configs string
		args    []string
		want    string
	}{
		"too many keys": {
			"configs {\nmax_keys 2\nsecret " + secret + "\n}",
			[]string{"--save", "--config", file, "--key", "many"},
			"more than 2 saved keys",
		},
		"no configs":  {"", []string{"--save", "--config", file}, "no site with configs"},
		"no file":     {"configs", []string{"--save", "--config", file + ".absent"}, "reading the configuration"},
		"no --config": {"configs", []string{"--save"}, "--save needs --config"},
		"no --save":   {"configs", []string{"--config", file}, "--save needs --config"},
		"another tag": {
			"configs {\ndefault_tag ops\n}",
			[]string{"--save", "--config", file, "--default-tag", "untagged"},
			"write default_tag untagged into configs at " + file + ":9, or give --default-tag ops",
		},
		"another choice": {"configs", []string{"--save", "--config", file, "--default-tag", "untagged"}, "or give --default-tag all"},
		"a tag alone":    {"configs", []string{"--default-tag", "untagged"}, "--default-tag is for --save"},
		"with --out too": {"configs", []string{"--save", "--config", file, "--out", dir}, "--save needs --config"},
	} {
		config(c.configs)
		if text, code := run(c.args...); code != 1 || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit %d, want %q:\n%s", name, code, c.want, text)
		}
	}
}

// TestMigrateSpace moves a key into one of the spaces of a configuration.
func TestMigrateSpace(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(source, "Caddyfile")
	if err := os.WriteFile(filepath.Join(source, "ops.cfg"), []byte("json://8.8.8.8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site := func(port, text string) string { return ":" + port + " {\nnotify {\n" + text + "\n}\n}\n" }
	for name, c := range map[string]struct {
		sites, space, want string
		code               int
	}{
		"none is named": {
			site("9471", "configs") + site("9472", "configs team"), "",
			"several spaces of saved keys; name one with --space: default, team", 1,
		},
		"an unknown one":   {site("9471", "configs") + site("9472", "configs team"), "home", "write one of default, team", 1},
		"sites that clash": {site("9471", "configs") + site("9472", "configs"), "", "name no space", 1},
		"a key of a site": {
			site("9471", "configs team\nkey ops {\nurl json://8.8.8.8\n}") + site("9472", "configs other"),
			"team", "takes precedence", exit.PartialCode,
		},
		"a key of elsewhere": {
			site("9471", "configs other") + site("9472", "configs elsewhere\nkey ops {\nurl json://8.8.8.8\n}"),
			"other", "Saved: 1 key", 0,
		},
		"the default one": {site("9471", "configs") + site("9472", "configs team"), "default", "Saved: 1 key", 0},
		"the only one":    {site("9471", "configs third") + site("9472", "configs third"), "", "Saved: 1 key", 0},
	} {
		if err := os.WriteFile(file, []byte("{\nstorage file_system \""+dir+"\"\n}\n"+c.sites), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"migrate", "--env-file", "-", "--save", "--config", file}
		if c.space != "" {
			args = append(args, "--space", c.space)
		}
		stdout, stderr, code := command(t, "", append(args, source)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s%s", name, code, c.code, c.want, stdout, stderr)
		}
	}
	for space, want := range map[string]int{"": 1, "other": 1, "third": 1, "team": 0, "elsewhere": 0} {
		store, err := configstore.New(configstore.Options{
			Storage: &certmagic.FileStorage{Path: dir}, Space: space, Index: new(configstore.Index),
		})
		if err != nil {
			t.Fatal(err)
		}
		if keys, err := store.Keys(t.Context()); err != nil || len(keys) != want {
			t.Errorf("the space %q has %q, %v", space, keys, err)
		}
	}
}

package migrate

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/commandtest"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/internal/hometest"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

func TestMain(m *testing.M) { os.Exit(hometest.Main(m)) }

// command runs `caddy notify`, which has the command migrate alone.
func command(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := &cobra.Command{Use: "notify"}
	cmd.AddCommand(Command())
	return commandtest.Run(t, cmd, stdin, args...)
}

// writeFile writes a file that only the user can read.
func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// migrate runs `caddy notify migrate` with an output folder and returns what it
// prints, with OUT for that folder.
func migrate(t *testing.T, out string, args ...string) (text string, code int) {
	t.Helper()
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "APPRISE_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	stdout, stderr, code := command(t, "", append([]string{"migrate", "--out", out}, args...)...)
	text = strings.ReplaceAll(stdout+stderr, out, "OUT")
	if strings.Contains(text, "secretsecret") {
		t.Errorf("a secret shows:\n%s", text)
	}
	return text, code
}

// checkGolden compares a text with a file in testdata.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name), got)
}

// checkMigrated compares what the command prints and writes with the files of a
// case, and checks that the Caddyfile loads and that only the user can read the
// files.
func checkMigrated(t *testing.T, name, out, report string) {
	t.Helper()
	checkGolden(t, name+"/report", report)
	text, err := os.ReadFile(filepath.Join(out, folder.Caddyfile))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	got.WriteString(strings.ReplaceAll(string(text), out, "OUT"))
	if strings.Contains(got.String(), "secretsecret") {
		t.Errorf("a secret shows:\n%s", got.String())
	}
	if string(caddyfile.Format(text)) != string(text) {
		t.Error("the Caddyfile is not formatted")
	}
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", path, info.Mode().Perm(), want)
		}
		if d.IsDir() || d.Name() == folder.Caddyfile {
			return nil
		}
		secret, err := os.ReadFile(path)
		fmt.Fprintf(&got, "-- %s --\n%s", d.Name(), secret)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, name+"/written", maskHash(got.String()))
	if err := validate(string(text)); err != nil {
		t.Errorf("the Caddyfile does not load: %v", err)
	}
}

// validate returns an error if Caddy could not load a Caddyfile.
func validate(text string) error {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("{\nadmin off\npersist_config off\n}\n"+text),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	return caddy.Validate(&c)
}

var bcryptHash = lazyregexp.New(`\$2a\$12\$[./A-Za-z0-9]{53}`)

// maskHash replaces the hash of a password, because it differs each time.
func maskHash(text string) string { return bcryptHash.ReplaceAllString(text, "HASH") }

// asksFor reports whether the Caddyfile in a folder has the password.
func asksFor(t *testing.T, out, password string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, folder.Caddyfile))
	if err != nil {
		t.Fatal(err)
	}
	return bcrypt.CompareHashAndPassword([]byte(bcryptHash.FindString(string(text))), []byte(password)) == nil
}

// skipHashes skips a test that makes hashes of passwords if the race detector is on.
func skipHashes(t *testing.T) {
	t.Helper()
	if racetest.Enabled {
		t.Skip("hashes take half a minute with the race detector")
	}
}

// TestMigrateProtected checks that an Apprise API with a login becomes a site with
// one.
func TestMigrateProtected(t *testing.T) {
	skipHashes(t)
	out := filepath.Join(t.TempDir(), "out")
	const config = "testdata/protected/config"
	report, code := migrate(t, out, "--env-file", "testdata/protected/env", config)
	if code != exit.PartialCode {
		t.Errorf("exit %d, want %d", code, exit.PartialCode)
	}
	checkMigrated(t, "protected", out, report)
	if !asksFor(t, out, "secretsecret") {
		t.Error("the password is another one")
	}

	// Without the administrator's password, nobody may get in without one.
	env := filepath.Join(t.TempDir(), "env")
	writeFile(t, env, "APPRISE_AUTH_REQUIRED=yes\nAPPRISE_USER=bob\n")
	out += "2"
	report, code = migrate(t, out, "--env-file", env, config)
	if want := "the site asks for the user apprise and the password in OUT/secrets/password " +
		"instead"; code != exit.PartialCode || !strings.Contains(report, want) {
		t.Errorf("exit %d, want %q:\n%s", code, want, report)
	}
	password, err := os.ReadFile(filepath.Join(out, folder.Secrets, folder.Password))
	if err != nil || len(password) < 20 || !asksFor(t, out, strings.TrimSpace(string(password))) {
		t.Errorf("the password is %q, %v", password, err)
	}

	for name, c := range map[string]struct{ env, want string }{
		"off":             {"APPRISE_AUTH_REQUIRED=no\nAPPRISE_PASSWORD=secretsecret\n", ""},
		"a brace":         {"APPRISE_AUTH_REQUIRED=yes\nAPPRISE_USER={env.X}\nAPPRISE_PASSWORD=secretsecret\n", "cannot have braces"},
		"a long password": {"APPRISE_AUTH_REQUIRED=yes\nAPPRISE_PASSWORD=" + strings.Repeat("secretsecret", 7) + "\n", "more than 72 bytes"},
	} {
		writeFile(t, env, c.env)
		out := filepath.Join(t.TempDir(), "out")
		report, code := migrate(t, out, "--env-file", env, config)
		text, err := os.ReadFile(filepath.Join(out, folder.Caddyfile))
		if c.want == "" {
			if code != 0 || err != nil || strings.Contains(string(text), "\tbasic_auth {") {
				t.Errorf("%s: exit %d\n%s%s", name, code, report, text)
			}
		} else if code != 1 || !strings.Contains(report, c.want) || err == nil {
			t.Errorf("%s: exit %d, want %q\n%s", name, code, c.want, report)
		}
	}
}

func TestMigrateSimple(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	report, code := migrate(t, out, "--env-file", "testdata/simple/env", "testdata/simple/config")
	if code != exit.PartialCode {
		t.Errorf("exit %d, want %d", code, exit.PartialCode)
	}
	checkMigrated(t, "simple", out, report)
}

// hashFolder returns a folder in hash mode with the files of another one.
func hashFolder(t *testing.T, from, secretKey string) string {
	t.Helper()
	dir := t.TempDir()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		extension := filepath.Ext(f.Name())
		sum := sha256.Sum224([]byte(secretKey + strings.TrimSuffix(f.Name(), extension)))
		name := hex.EncodeToString(sum[:])
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(text)
		z.Close()
		if err := os.MkdirAll(filepath.Join(dir, name[:2]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name[:2], name[2:]+extension), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMigrateHash(t *testing.T) {
	dir := hashFolder(t, "testdata/hash/config", "secretsecretkey")
	out := filepath.Join(t.TempDir(), "out")
	report, code := migrate(t, out, "--env-file", "testdata/hash/env", "--key", "ops,none", dir)
	if code != exit.PartialCode {
		t.Errorf("exit %d, want %d", code, exit.PartialCode)
	}
	checkMigrated(t, "hash", out, report)

	// The key can also be given by a flag, and a wrong one finds nothing.
	t.Setenv("NOTIFY_TEST_KEY", "secretsecretkey")
	all := []string{"-k", "ops", "-k", "lost", dir}
	if report, code := migrate(t, out+"2", append(all, "--secret-key", "{env.NOTIFY_TEST_KEY}")...); code != 0 {
		t.Errorf("exit %d\n%s", code, report)
	}
	if report, code := migrate(t, out+"3", all...); code != 1 || !strings.Contains(report, "none of its 3 files belongs to a name of --key") {
		t.Errorf("exit %d\n%s", code, report)
	}
	// Without SECRET_KEY, an Apprise API uses its default.
	dir = hashFolder(t, "testdata/hash/config", defaultSecretKey)
	if report, code := migrate(t, out+"4", "-k", "ops", "-k", "lost", dir); code != 0 {
		t.Errorf("exit %d\n%s", code, report)
	}
}

func TestMigrateSettings(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	report, code := migrate(t, out, "--env-file", "testdata/settings/env", t.TempDir())
	if code != exit.PartialCode {
		t.Errorf("exit %d, want %d", code, exit.PartialCode)
	}
	checkMigrated(t, "settings", out, report)
}

// fakeAppriseAPI answers as an Apprise API does.
func fakeAppriseAPI(t *testing.T, lists bool) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sub/cfg", func(w http.ResponseWriter, _ *http.Request) {
		if !lists {
			http.Error(w, "The site has been configured to deny this request", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `["home", "locked", "ops", "plain"]`)
	})
	mux.HandleFunc("POST /sub/get/{key}", func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "bob" || pass != "secretsecret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.PathValue("key") {
		case "ops":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w,
				`{"format": "text", "config": "json://ops.example.com/secretsecret\r\ninclude `+
					`http://bob:secretsecret@%[1]s/more\r\ninclude http://%[1]s/bad\r\ninclude `+
					`http://%[1]s/none\r\n"}`,
				r.Host)
		case "home":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, `{"format": "yaml", "config": "urls:\n  - json://home.example.com/secretsecret\n"}`)
		case "plain":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprint(w, "json://plain.example.com")
		case "locked":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	mux.HandleFunc("/more", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "team=json://more.example.com") })
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "json://a\nnonsense://secretsecret") })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestMigrateServer(t *testing.T) {
	skipHashes(t)
	host := fakeAppriseAPI(t, true)
	out := filepath.Join(t.TempDir(), "out")
	report, code := migrate(t, out, "http://bob:secretsecret@"+host+"/sub/")
	if code != exit.PartialCode {
		t.Errorf("exit %d, want %d", code, exit.PartialCode)
	}
	include := filepath.Join(out, folder.Secrets, "ops.include1")
	if text, err := os.ReadFile(include); err != nil || string(text) != "http://bob:secretsecret@"+host+"/more\n" {
		t.Errorf("the include is %s, %v", text, err)
	}
	caddyfileText, err := os.ReadFile(filepath.Join(out, folder.Caddyfile))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(string(caddyfileText)); err != nil {
		t.Errorf("the Caddyfile does not load: %v", err)
	}
	checkGolden(t, "server/report", strings.ReplaceAll(report, host, "HOST"))
	checkGolden(t, "server/written", maskHash(strings.ReplaceAll(string(caddyfileText), out, "OUT")))
	if !asksFor(t, out, "secretsecret") {
		t.Error("the site does not ask for the server's password")
	}

	host = fakeAppriseAPI(t, false)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"http://" + host + "/sub", 1, "the server does not list its keys (status 403); name them with --key"},
		{"http://" + host, 1, "the server does not list its keys (status 404)"},
		{"--key plain http://bob:secretsecret@" + host + "/sub", 0, "key plain: 1 URL\n"},
		{
			"--key other http://bob:secretsecret@" + host + "/sub", 1,
			"nothing was found that could be moved: key other: the server has no such key",
		},
		{"--key plain http://" + host + "/sub", 1, "key plain: the server answers with status 401"},
		{"--key plain http://secretsecret@127.0.0.1:1", 1, "key plain: asking the server: dial tcp 127.0.0.1:1"},
		{"http://", 1, "the address is malformed"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		report, code := migrate(t, out, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(report, tt.want) {
			t.Errorf("migrate %s: exit %d\n%s\nwant %d and %q", tt.args, code, report, tt.code, tt.want)
		}
	}
}

// TestMigrateUnreadable checks that unreadable files are listed and all others are moved.
func TestMigrateUnreadable(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		writeFile(t, filepath.Join(dir, name), text)
	}
	write("ops.cfg", "json://ops.example.com")
	write("binary.cfg", "json://\xff\xfe")
	write("large.cfg", strings.Repeat("#\n", appriseconfig.MaxSize/2+1))
	write("lines.cfg", strings.Repeat("secretsecret\n", appriseconfig.MaxErrors+1))
	if err := os.Symlink("nowhere", filepath.Join(dir, "link.cfg")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "folder.yml")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	report, code := migrate(t, out, dir)
	if code != exit.PartialCode {
		t.Errorf("exit %d, want %d", code, exit.PartialCode)
	}
	for _, want := range []string{
		"key ops: 1 URL\n",
		"key binary: the file is not text in UTF-8\n",
		"key large: reading large.cfg: the file is larger than 1 MiB\n",
		"key lines, line 20: unknown line;",
		"key lines: it has more mistakes;",
		"key lines: it has no URL that can be used\n",
		"key link: reading link.cfg: no such file",
		"key folder: reading folder.yml: it is not a regular file\n",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}

	dir = hashFolder(t, "testdata/hash/config", defaultSecretKey)
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(paths) != 3 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		writeFile(t, path, "secretsecret")
	}
	if report, code := migrate(t, out+"2", "-k", "ops", "-k", "lost", dir); code != 1 ||
		!strings.Contains(report, "key ops: reading its file: decompressing: ") {
		t.Errorf("exit %d\n%s", code, report)
	}
}

// TestMigrateExisting checks that existing files are replaced only with
// --force, and that other users can never read the new files.
func TestMigrateExisting(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "ops.cfg"), "json://ops.example.com")
	out := t.TempDir()
	mine := filepath.Join(out, folder.Caddyfile)
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	report, code := migrate(t, out, dir)
	if code != 1 ||
		!strings.Contains(report,
			"OUT/Caddyfile exists already, so nothing was written; choose another folder with --out, or replace the files with --force") {
		t.Errorf("exit %d\n%s", code, report)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("the file is now %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(out, folder.Secrets)); err == nil {
		t.Error("the folder for secrets was created")
	}

	secrets := filepath.Join(out, folder.Secrets)
	if err := os.Mkdir(secrets, 0o755); err != nil {
		t.Fatal(err)
	}
	if report, code := migrate(t, out, "--force", dir); runtime.GOOS != "windows" &&
		(code != 1 || !strings.Contains(report, "other users can read the folder OUT/secrets")) {
		t.Errorf("exit %d\n%s", code, report)
	}
	if err := os.Chmod(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if report, code := migrate(t, out, "--force", dir); code != 0 {
			t.Errorf("exit %d\n%s", code, report)
		}
	}
	info, err := os.Stat(mine)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(out)
	if err != nil || len(files) != 2 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}

func TestMigrateMistakes(t *testing.T) {
	dir := t.TempDir()
	env := filepath.Join(dir, "env")
	writeFile(t, env, "A=b\nsecretsecret\n")
	allow := filepath.Join(dir, "allow")
	writeFile(t, allow, "APPRISE_ALLOW_SERVICES=dbus\n")
	for args, want := range map[string]string{
		"":                      "give one argument",
		"a b":                   "give one argument",
		dir + "/none":           "reading the configuration folder: ",
		t.TempDir():             "nothing was found that could be moved",
		"--env-file " + env:     "--env-file: line 2: it sets no variable; write NAME=value",
		"--env-file " + allow:   "APPRISE_ALLOW_SERVICES: none of its services exists here",
		"--env-file /none":      "--env-file: open /none",
		"--secret-key {env.x y": "--secret-key: the placeholder {env.x has no closing brace",
	} {
		words := strings.Fields(args)
		if strings.HasPrefix(args, "--secret-key") {
			words = []string{"--secret-key", "{env.x"}
		}
		if strings.HasPrefix(args, "--") {
			words = append(words, dir)
		}
		report, code := migrate(t, filepath.Join(dir, "out"), words...)
		if code != 1 || !strings.Contains(report, want) {
			t.Errorf("migrate %s: exit %d\n%s\nwant %q", args, code, report, want)
		}
	}
	if report, code := migrate(t, filepath.Join(dir, "a b"), dir); code != 1 ||
		!strings.Contains(report, "because the path has a space, a quote or a brace; choose another folder") {
		t.Errorf("exit %d\n%s", code, report)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("the folder was created")
	}
}

// TestMigrateTemplate checks that a key with a template becomes a file that import_apprise
// reads, with the values of the environment.
func TestMigrateTemplate(t *testing.T) {
	dir := t.TempDir()
	config, out := filepath.Join(dir, "config"), filepath.Join(dir, "out")
	if err := os.Mkdir(config, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(config, "ops.yml"),
		"version: 2\ntemplate: [ROOM, token, level: low]\nurls:\n- json://h.example/${room}/${level}?tag=a\n"+
			"- gotify://g.example/${TOKEN}\n- json://${room}/x\n- json://h.example/plain\n")
	env := filepath.Join(dir, "env")
	writeFile(t, env,
		"APPRISE_STATEFUL_MODE=S\nAPPRISE_TEMPLATE_TOKEN=secretsecret\n"+
			"APPRISE_TEMPLATE_LEVEL=no\nAPPRISE_STREAM_QUEUE_SIZE=9\nAPPRISE_WEB_AUTH_SECRET=x\n"+
			"APPRISE_PRUNE_INTERVAL_SECONDS=1\nAPPRISE_CONNECTION_TIMEOUT=9\n")
	report, code := migrate(t, out, "--env-file", env, config)
	if code != exit.PartialCode ||
		!strings.Contains(report, "key ops, line 6: a variable of the template decides which server") ||
		!strings.Contains(report, "not moved: 1") {
		t.Fatalf("exit %d, %s", code, report)
	}
	text, err := os.ReadFile(filepath.Join(out, folder.Caddyfile))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(string(text)); err != nil || strings.Contains(string(text), "secretsecret") {
		t.Errorf("%v\n%s", err, text)
	}
	file, err := os.ReadFile(filepath.Join(out, folder.Secrets, "ops.yml"))
	for _, want := range []string{
		"version: 2", "ROOM: null", "token: secretsecret", "level: low",
		"json://h.example/${room}/${level}", "gotify://g.example/${TOKEN}",
	} {
		if err != nil || !strings.Contains(string(file), want) {
			t.Errorf("%v, the file has no %q:\n%s", err, want, file)
		}
	}
}

package safety

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// caddy runs a command of the program in a folder, with additional environment
// variables, and returns what it prints.
func caddy(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = dir
	c.Env = append([]string{
		"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir,
		"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"),
	}, env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logLines returns the level and text of each log line.
func logLines(log string) (lines []string) {
	for line := range strings.Lines(log) {
		var e struct{ Level, Msg string }
		if json.Unmarshal([]byte(line), &e) == nil {
			lines = append(lines, e.Level+" "+e.Msg)
		}
	}
	return lines
}

// wrongConfig is a wrong Caddyfile, with the beginning of its error.
type wrongConfig struct{ text, want string }

// wrongConfigs are Caddyfiles with an error that is found when they are loaded,
// in the line that ends with # HERE.
var wrongConfigs = map[string]wrongConfig{
	"a variable": {
		":0 {\n	handle_path /alerts/* {\n		notify {\n			key ops {\n" +
			"				url json://127.0.0.1:1\n				url json://h/{env.SAFETY_UNSET} # HERE\n" +
			"			}\n		}\n	}\n}\n",
		"key ops, URL 2: {env.SAFETY_UNSET} has no value: there is no such environment variable; set it, or correct the name",
	},
	"a file": {
		":0 {\n	notify {\n		default_urls json://127.0.0.1:1 json://h/{file./nonexistent/safety} # HERE\n	}\n}\n",
		"default_urls, URL 2: {file./nonexistent/safety} has no value: there is no such file; create it, or correct the path",
	},
	"a variable of the global option": {
		"{\n	notify {\n		key ops {\n			url {env.SAFETY_UNSET} # HERE\n		}\n	}\n}\n:0 {\n	notify\n}\n",
		"key ops, URL 1: {env.SAFETY_UNSET} has no value",
	},
	"an imported file": {
		":0 {\n	notify {\n		key ops {\n			import_apprise /nonexistent/safety.yml # HERE\n		}\n	}\n}\n",
		"key ops, import_apprise 1: ",
	},
	"a mistake in an imported file": {
		":0 {\n	notify {\n		key ops {\n			import_apprise wrong.yml # HERE\n		}\n	}\n}\n",
		"key ops, import_apprise 1: ",
	},
	"a tag that no imported URL has": {
		":0 {\n	notify {\n		key ops { # HERE\n			import_apprise right.yml\n			default_tag nobody\n		}\n	}\n}\n",
		"key ops: default_tag: no URL of the key has this tag",
	},
	"a limit": {
		":0 {\n	notify {\n		client_limits { # HERE\n			memory 1MiB\n		}\n	}\n}\n",
		"client_limits: memory is 1.0 MiB",
	},
	"the source of no site": {
		"{\n	notify {\n		key ops {\n			url json://127.0.0.1:1\n" +
			"			accept direct garfana # HERE\n		}\n	}\n}\n:0 {\n	notify {\n		stateless off\n	}\n" +
			"}\n:1 {\n	notify {\n		from backup {\n			title x\n		}\n	}\n}\n",
		"key ops: accept: there is no source garfana; you may mean grafana",
	},
	"a source without a site": {
		"{\n	notify {\n		smtp 127.0.0.1:2525\n		key ops {\n			url json://127.0.0.1:1\n			accept smtp backup # HERE\n		}\n	}\n}\n",
		"key ops: accept: there is no source backup",
	},
	"devices without a site": {
		"{\n	notify {\n		queue {\n			path queue\n		}\n		push # HERE\n	}\n}\n",
		"push: no site has notify",
	},
	"the key of an event": {
		"{\n	notify {\n		key ops {\n			url json://127.0.0.1:1\n		}\n	}\n	events {\n		on started notify nobody # HERE\n	}\n}\n",
		"on started notify: the global option notify has no key nobody",
	},
	"the data of an event": {
		"{\n	notify {\n		key ops {\n			url json://127.0.0.1:1\n		}\n" +
			"	}\n	events {\n		on cert_failed notify ops {\n			title x\n" +
			"			body \"{event.data.identifer}\" # HERE\n		}\n	}\n}\n",
		"on cert_failed notify: body: the placeholder {event.data.identifer} has no value",
	},
	"the tag of an event": {
		"{\n	notify {\n		key ops {\n			url json://127.0.0.1:1\n		}\n	}\n	events {\n" +
			"		on started notify ops {\n			type info\n			tag nobody # HERE\n		}\n	}\n}\n",
		"on started notify: ",
	},
	"the key of a log": {
		"{\n	notify {\n		key ops {\n			url json://127.0.0.1:1\n		}\n	}\n	log errors {\n		output notify nobody # HERE\n	}\n}\n",
		"log output notify: the global option notify has no key nobody",
	},
	"a log without the global option": {
		"{\n	log errors {\n		output notify ops # HERE\n	}\n}\n",
		"log output notify: the global option notify is missing",
	},
}

// config returns the Caddyfile with two more global options, and the position
// of its error.
func (c wrongConfig) config(admin string) (text, position string) {
	options, ok := strings.CutPrefix(c.text, "{\n")
	if !ok {
		options = "}\n" + c.text
	}
	text = "{\n	admin " + admin + "\n	persist_config off\n" + options
	before, _, _ := strings.Cut(text, "# HERE")
	return text, fmt.Sprintf("Caddyfile:%d: ", strings.Count(before, "\n")+1)
}

// TestConfigErrors checks that an error found when the configuration loads is
// one log line, which begins with file and line, without names of modules. Each
// configuration is used with all commands if full is set, and else with one.
func TestConfigErrors(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	g := start(t, "", "key k {\nurl json://127.0.0.1:1\n}")
	commands := []string{"validate", "run", "reload"}
	for i, name := range slices.Sorted(maps.Keys(wrongConfigs)) {
		tt, dir := wrongConfigs[name], t.TempDir()
		writeFile(t, filepath.Join(dir, "wrong.yml"), "urls:\n  - nonsense://h\n")
		writeFile(t, filepath.Join(dir, "right.yml"), "urls:\n  - json://h\n")
		text, position := tt.config(g.admin)
		writeFile(t, filepath.Join(dir, "Caddyfile"), text)
		want := position + tt.want

		for k, command := range commands {
			if !full && k != i%len(commands) {
				continue
			}
			before, file, want := len(g.log()), "Caddyfile", want
			if command == "reload" { // the running program reads it again, for the lines
				file = filepath.Join(dir, file)
				want = dir + "/" + want
			}
			out, err := caddy(t, dir, nil, command, "--config", file)
			if err == nil {
				t.Errorf("%s: %s succeeds", name, command)
			}
			lines := logLines(out)
			// The last line is Caddy's. The last line of reload is a response of the admin API;
			// the plain one is in the log of the running program.
			if len(lines) == 0 || !strings.Contains(lines[len(lines)-1], want) {
				t.Errorf("%s: %s prints no error with %q:\n%s", name, command, want, out)
			}
			if command == "reload" {
				lines = logLines(g.log()[before:])
			}
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "error "+want) }) {
				t.Errorf("%s: %s logs no line with only %q:\n%s", name, command, want, strings.Join(lines, "\n"))
			}
		}
	}
	if r := g.post("/notify/none", message{"body": "x"}); r.Status != 404 {
		t.Errorf("after failed reloads: status %d", r.Status)
	}
}

// TestCaddyfileErrors checks the errors that are found when a Caddyfile is
// read.
func TestCaddyfileErrors(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	for name, tt := range map[string]wrongConfig{
		"an open placeholder": {
			":0 {\n	notify {\n		key ops {\n			url json://{env.HOME/secretsecret\n		}\n	}\n}\n",
			"the placeholder {env.HOME has no closing brace; write {env.HOME}, at Caddyfile:4",
		},
		"an open placeholder alone": {
			":0 {\n	notify {\n		default_urls {env.HOME\n	}\n}\n",
			"the placeholder {env.HOME has no closing brace; write {env.HOME}, at Caddyfile:3",
		},
		"an open file": {
			":0 {\n	notify {\n		key ops {\n			url json://user:{file./secretsecret@h/{env.HOME}\n		}\n	}\n}\n",
			"has no closing brace; write {file./path}, at Caddyfile:4",
		},
		"an open name of an event": {
			"{\n	events {\n		on started notify ops {\n			title \"{event.name is here\"\n		}\n	}\n}\n",
			"title: the placeholder {event.name has no closing brace; write {event.name}, at Caddyfile:4",
		},
		"a directive in a key": {
			":0 {\n	notify {\n		key ops {\n			url json://h\n		reverse_proxy h {\n			}\n		}\n	}\n}\n",
			`unknown subdirective "reverse_proxy" in key; it is a directive of Caddy, so a } for the key in line 3 may be missing, at Caddyfile:5`,
		},
		"a directive in notify": {
			":0 {\n	notify {\n		key ops {\n			url json://h\n		}\n	handle /x {\n	}\n	}\n}\n",
			`unknown subdirective "handle" in notify; it is a directive of Caddy, so a } for the notify in line 2 may be missing, at Caddyfile:6`,
		},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "Caddyfile"), tt.text)
		out, err := caddy(t, dir, nil, "adapt", "--config", "Caddyfile")
		if err == nil || !strings.Contains(strings.Join(logLines(out), "\n"), tt.want) || strings.Contains(out, "secretsecret") {
			t.Errorf("%s: want %q, got %v:\n%s", name, tt.want, err, out)
		}
	}
}

// TestEventWarning checks that the warning about the name of an event has file
// and line.
func TestEventWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "Caddyfile"),
		"{\n	notify {\n		key ops {\n			url json://h\n		}\n	}\n	events {\n		on cert_faild notify ops\n	}\n}\n")
	out, err := caddy(t, dir, nil, "validate", "--config", "Caddyfile")
	if want := "\nwarn Caddyfile:8: on cert_faild notify: Caddy has no event cert_faild; " +
		"did you mean cert_failed?"; err != nil || !strings.Contains("\n"+strings.Join(logLines(out), "\n"), want) {
		t.Errorf("want %q, got %v:\n%s", want, err, out)
	}
}

// TestChangedFiles checks that caddy reload reads secrets and imported files
// again if they have changed, even if the Caddyfile is the same.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	k := newRecorder(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	to := func(name string) string { return k.url + "/" + name }
	writeFile(t, path("secret"), "first-secret\n")
	writeFile(t, path("apprise.yml"), "include: more.conf\n")
	writeFile(t, path("more.conf"), to("first-import")+"\n")
	writeFile(t, path("own.json"), `{"content": "{{app_body}}"}`)
	// Kubernetes replaces the files of a secret by a symbolic link to another folder.
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path(name+"/url"), to("linked-"+name))
	}
	link := func(name string) {
		t.Helper()
		if err := os.Symlink(name, path("new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path("new"), path("current")); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	g := start(t, "", fmt.Sprintf("key k {\nurl %s/{file.%s}\nurl {file.%s}\n"+
		"import_apprise %s\n}\nkey t {\nurl discord://1234/abcd?template=%s\n}",
		k.url, path("secret"), path("current/url"), path("apprise.yml"), path("own.json")))

	reload := func() (loaded bool) {
		t.Helper()
		before, released := len(g.log()), g.keepConnection()
		config := filepath.Join(filepath.Dir(g.tmp), "Caddyfile")
		if out, err := caddy(t, t.TempDir(), nil, "reload", "--config", config); err != nil {
			t.Fatalf("reload: %v\n%s", err, out)
		}
		if strings.Contains(g.log()[before:], "config is unchanged") {
			return false
		}
		released()
		return true
	}
	arrives := func(want ...string) {
		t.Helper()
		if r := g.post("/notify/k", message{"body": "x"}); r.Status != 200 {
			t.Errorf("status %d: %s", r.Status, r.Body)
		}
		got := strings.Join(k.take(), "\n")
		for _, name := range want {
			if strings.Count(got, "/"+name+" ") != 1 {
				t.Errorf("no message at %s: %s", name, got)
			}
		}
	}
	arrives("first-secret", "linked-one", "first-import")
	if reload() {
		t.Error("nothing has changed, and the configuration was loaded again")
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"secret", "apprise.yml", "more.conf", "own.json"} {
		if err := os.Chtimes(path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if reload() {
		t.Error("only times have changed, and the configuration was loaded again")
	}
	writeFile(t, path("secret"), "other-secret\n") // of the same length
	if !reload() {
		t.Error("a secret has changed, and the configuration was not loaded again")
	}
	arrives("other-secret", "linked-one", "first-import")
	link("two")
	if !reload() {
		t.Error("a link has changed, and the configuration was not loaded again")
	}
	arrives("other-secret", "linked-two", "first-import")
	writeFile(t, path("more.conf"), to("second-import")+"\n")
	if !reload() {
		t.Error("an included file has changed, and the configuration was not loaded again")
	}
	arrives("other-secret", "linked-two", "second-import")
	writeFile(t, path("own.json"), `{"content": "Alert: {{app_body}}"}`)
	if !reload() {
		t.Error("a template that a URL names has changed, and the configuration was not loaded again")
	}
	if reload() {
		t.Error("nothing has changed, and the configuration was loaded again")
	}
	if _, config := g.get(g.adminURL+"/config/", "*/*"); strings.Contains(config, "-secret") || strings.Contains(config, `"caddyfile"`) {
		t.Errorf("the configuration has a secret, or what the adapter knows: %s", config)
	}
}

var warnLine = regexp.MustCompile(`Caddyfile:\d+: (anyone who|the authentication).*`)

// siteWarnings returns the warnings about the sites of a gateway. It waits until
// the gateway has started: sites can answer before the warnings are logged.
func (g *gateway) siteWarnings() (warnings []string) {
	eventually(g.t, "the gateway has started", func() bool { return strings.Contains(g.log(), "serving initial configuration") })
	for _, line := range logLines(g.log()) {
		if m := warnLine.FindString(line); strings.HasPrefix(line, "warn ") && m != "" {
			warnings = append(warnings, m)
		}
	}
	return warnings
}

// TestUnreachable checks that a configuration does not load with a notify that no request
// reaches, that the error says where it is and what to write, and that the one before goes
// on. Such a site answered every alert with 200 or 404.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	k := newRecorder(t)
	const key = "key k {\nurl json://127.0.0.1:1\n}\n"
	g := start(t, "", "key k {\nurl "+k.url+"\n}\n")
	site := func(block string) string {
		return key + "}\n}\nhttp://" + porttest.Address() + " {\n" + block + "\n}\nhttp://" + porttest.Address() + " {\nnotify {\n" + key
	}
	for name, tt := range map[string]struct{ block, want string }{
		"in handle":               {site("handle /alerts/* {\nnotify {\n" + key + "}\n}"), "write handle_path /alerts/*"},
		"beside a handle":         {site("handle {\nrespond hi\n}\nnotify {\n" + key + "}"), "respond comes before it"},
		"after respond":           {site("route {\nrespond hi\nnotify {\n" + key + "}\n}"), "respond comes before it"},
		"without a matcher":       {site("notify {\n" + key + "}\nnotify {\n" + key + "}"), "another notify of the site"},
		"one that can be reached": {site("handle_path /alerts/* {\nnotify {\n" + key + "}\n}"), ""},
	} {
		var resp *http.Response
		eventually(t, "the admin API answers", func() (ok bool) {
			g.client.CloseIdleConnections() // a reload closes them
			var err error
			resp, err = g.client.Post(g.adminURL+"/load", "text/caddyfile", strings.NewReader(g.caddyfile("", tt.block)))
			return err == nil
		})
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == "" {
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %d %s", name, resp.StatusCode, text)
			}
			g.reload("", "key k {\nurl "+k.url+"\n}\n")
			continue
		}
		if resp.StatusCode != http.StatusBadRequest ||
			!strings.Contains(string(text), "no request reaches this notify") ||
			!strings.Contains(string(text), tt.want) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
	eventually(t, "the configuration before goes on", func() bool {
		status, _, _, err := g.tryPost("/notify/k", message{"body": "x"})
		return err == nil && status == http.StatusOK
	})
}

// TestOpenSiteWarning checks the warning about a site that has keys and
// requires no authentication.
func TestOpenSiteWarning(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	const key = "key k {\nurl json://127.0.0.1:1\n}\n"
	// The block of the site on loopback ends, and a site on a public address
	// begins.
	public := func(before, block string) string {
		return key + "}\n}\nhttp://:" + porttest.Free() + " {\nbind 11.22.33.44\n" + before + "\nnotify {\n" + block
	}
	for name, tt := range map[string]struct {
		block string
		want  int
	}{
		"loopback":        {key, 0},
		"public":          {public("", key), 1},
		"public, decided": {public("", key+"stateless on"), 0},
		"public, guarded": {public("basic_auth {\nops $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}", key), 0},
	} {
		got := start(t, "", tt.block).siteWarnings()
		if len(got) != tt.want ||
			tt.want > 0 && !strings.Contains(got[0],
				"anyone who can reach this site can send to notification URLs of their own with POST /notify,") {
			t.Errorf("%s: %d warnings, want %d: %q", name, len(got), tt.want, got)
		}
	}
}

// TestSpellingWarning checks the warning about authentication for /notify/secret
// that does not apply to /notify/secret/.
func TestSpellingWarning(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{"/notify/secret": 1, "/notify/secret*": 0, "/notify*": 0} {
		g := start(t, "", "key secret {\nurl json://127.0.0.1:1\n}\n}\nbasic_auth "+path+" {\n"+
			"ops $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n")
		got := g.siteWarnings()
		if len(got) != want || want > 0 && !strings.Contains(got[0], "the authentication for /notify/secret does not apply to /notify/secret/") {
			t.Errorf("%s: %d warnings, want %d: %q", path, len(got), want, got)
		}
		// The request shows that the warning is true.
		if r := g.post("/notify/secret/", message{"body": "x"}); (r.Status != 401) != (want > 0) {
			t.Errorf("%s: /notify/secret/ answers %d", path, r.Status)
		}
	}
}

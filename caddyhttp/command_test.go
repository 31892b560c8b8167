package caddyhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var updateCommands = flag.Bool("update-commands", false, "write the transcripts of testdata/command anew")

// command runs `caddy notify` with arguments inside the test, as caddycmd
// does, and returns what it writes and its exit code.
func command(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := &cobra.Command{Use: "notify", SilenceUsage: true}
	addCommands(cmd)
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		code = 1
		if n, err := strconv.Atoi(strings.TrimPrefix(err.Error(), "exiting with status ")); err == nil {
			code = n
		}
	}
	return stdout.String(), stderr.String(), code
}

// TestCommandTranscripts holds the commands against testdata/command: after
// each line that begins with a $ stands what the command of that line prints.
func TestCommandTranscripts(t *testing.T) {
	t.Setenv("NOTIFY_TEST_TOKEN", "secretsecret")
	t.Setenv(urlsVariable, "")
	files, err := filepath.Glob("testdata/command/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	word := regexp.MustCompile(`'[^']*'|\S+`)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(string(want)) {
				if !strings.HasPrefix(line, "$ caddy notify") {
					continue
				}
				args := word.FindAllString(strings.TrimPrefix(line, "$ caddy notify"), -1)
				for i := range args {
					args[i] = strings.Trim(args[i], "'")
				}
				out, errs, code := command(t, "json://stdin.example.com\n", args...)
				out = strings.ReplaceAll(out, userAgent, "caddy-notify/VERSION "+agentComment)
				got.WriteString(line + out + errs + "exit " + strconv.Itoa(code) + "\n\n")
				if strings.Contains(out+errs, "secretsecret") {
					t.Errorf("a secret shows:\n%s%s", out, errs)
				}
			}
			if *updateCommands {
				if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(want) {
				t.Errorf("got\n%s", got.String())
			}
		})
	}
}

// What is listed can be looked up, by whatever name.
func TestCommandServices(t *testing.T) {
	out, _, code := command(t, "", "services")
	if lines := strings.Count(out, "\n"); code != 0 || lines != len(notifier.Services())+1 {
		t.Errorf("exit %d, %d lines for %d services", code, lines, len(notifier.Services()))
	}
	var all []notifier.ServiceInfo
	out, _, _ = command(t, "", "services", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != len(notifier.Services()) {
		t.Errorf("%d services in JSON, %v", len(all), err)
	}
	for _, s := range notifier.Services() {
		for _, name := range append([]string{s.Name, strings.ToUpper(s.Name), s.Schemes[0] + "://x"}, s.Schemes...) {
			found, err := findService(name)
			if err != nil || found.Name != s.Name {
				t.Errorf("%s is %+v, %v", name, found, err)
			}
		}
	}
	out, _, _ = command(t, "", "services", "--json", "gotify")
	var one notifier.ServiceInfo
	if err := json.Unmarshal([]byte(out), &one); err != nil || one.Name != "Gotify" || len(one.Params) == 0 {
		t.Errorf("%+v, %v", one, err)
	}
}

// A message goes to URLs that stand in arguments, files, on standard input
// and in the environment, and comes from flags, files and standard input.
func TestCommandSend(t *testing.T) {
	s := newStation(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	a, b, refuse := s.url("/a"), s.url("/b"), s.url("/refuse")
	list := write("urls", "# comment\n\n  "+a+"  \n"+b+"\n")
	file := write("report.txt", "91%")
	t.Setenv("NOTIFY_TEST_URL", b)
	t.Setenv("NOTIFY_TEST_TWO", a+","+b)
	t.Setenv(urlsVariable, "")

	for _, tt := range []struct {
		args, stdin, paths string
		code               int
		out, errs          string // parts
	}{
		{"--body hello " + a, "", "a", 0, "delivered  JSON  json://", ""},
		{a + "," + b, "hello\n", "a b", 0, "", ""},
		{"@" + list, "hello\n", "a b", 0, "", ""},
		{"-b hello @-", a + "\n" + b, "a b", 0, "", ""},
		{"{env.NOTIFY_TEST_URL}", "hello", "b", 0, "", ""},
		{"-b hello " + a + " " + refuse, "", "a refuse", 2, "failed     JSON  json://", "Error: 1 of 2 notifications could not be sent\n"},
		{"-b hello " + refuse + "?optional=yes", "", "refuse", 0, "(optional)", ""},
		{"-b hello " + a + "?nonsense=secretsecret", "", "a", 0, "delivered", "Warning: JSON: the parameter nonsense is unknown and has no effect"},
		{"--attach " + file + " " + a, "", "a", 0, "", ""},

		{"", "hello", "", 1, "", "there is no destination; give URLs"},
		{"-b hello", "", "", 1, "", "there is no destination; give URLs"},
		{"@-", a, "", 1, "", "standard input cannot be both the URLs (@-) and the text of the message"},
		{"@" + filepath.Join(dir, "none"), "hello", "", 1, "", "no such file"},
		{"@" + write("empty", "# nobody\n"), "hello", "", 1, "", "the arguments contain no URL"},
		{a, "", "", 1, "", "the message is empty"},
		{a, " \n", "", 1, "", "the message is empty"},
		{a, strings.Repeat("x", defaultMaxBody+1), "", 1, "", "longer than 8.0 MiB"},
		{"-b hello " + a + " nonsense://secretsecret", "", "", 1, "", "nothing was sent: URL 2 of 2: "},
		{"-b hello jsn://secretsecret", "", "", 1, "", "did you mean json://?"},
		{"-b hello json://{env.NOTIFY_TEST_UNSET}", "", "", 1, "", "{env.NOTIFY_TEST_UNSET} has no value"},
		{"-b hello {env.NOTIFY_TEST_TWO}", "", "", 1, "", "this holds several URLs"},
		{"-b hello --type bad " + a, "", "", 1, "", "--type: unknown type"},
		{"-b hello --format bad " + a, "", "", 1, "", "--format: unknown format"},
		{"-b hello --attach " + dir + " " + a, "", "", 1, "", "is a folder"},
		{"-b hello --attach " + dir + "/none " + a, "", "", 1, "", "no such file"},
		{"-b hello --timeout 0s " + a, "", "", 1, "", "--timeout: "},
		{"-b hello --tag x " + a, "", "", 1, "", "--tag has no effect without --key"},
		{"-b hello --config x " + a, "", "", 1, "", "--config has no effect without --key"},
		{"-b hello --adapter x " + a, "", "", 1, "", "--adapter has no effect without --key"},
		{"-b hello --nonsense " + a, "", "", 1, "", "unknown flag"},
	} {
		out, errs, code := command(t, tt.stdin, append([]string{"send"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) {
			t.Errorf("send %s: exit %d\n%s%s\nwant %d, %q and %q", tt.args, code, out, errs, tt.code, tt.out, tt.errs)
		}
		if tt.errs == "" && errs != "" || strings.Contains(out+errs, "secretsecret") {
			t.Errorf("send %s prints %s%s", tt.args, out, errs)
		}
		if paths := s.paths(); paths != tt.paths {
			t.Errorf("send %s: messages at %q, want %q", tt.args, paths, tt.paths)
		}
	}

	t.Setenv(urlsVariable, a+", "+b)
	if _, errs, code := command(t, "hello", "send"); code != 0 || s.paths() != "a b" {
		t.Errorf("URLs of the environment: exit %d, %s", code, errs)
	}
	command(t, "line 1\nline 2\n", "send", "-t", "A\ntitle", "--type", "Failure", "--attach", file, a)
	got := s.one(t)
	if got.Title != "A title" || got.Message != "line 1\nline 2" || got.Type != "failure" {
		t.Errorf("arrived %+v", got)
	}
	if len(got.Attachments) != 1 || got.Attachments[0].Filename != "report.txt" || string(got.Attachments[0].Base64) != "91%" {
		t.Errorf("files %+v", got.Attachments)
	}
	out, _, code := command(t, "**x**", "send", "--json", "--format", "markdown", a+"?format=html", refuse)
	var results jsonResponse
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != 2 || len(results.Results) != 2 || results.Results[1].Status != notifier.Failed {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
	if m := s.take()[0].Message; m != "<p><strong>x</strong></p>" {
		t.Errorf("converted to %q", m)
	}
}

// --key sends under the rules of the place where the key stands.
func TestCommandSendKey(t *testing.T) {
	s := newStation(t)
	t.Setenv("NOTIFY_TEST_URL", s.url("/env"))
	file := filepath.Join(t.TempDir(), "Caddyfile")
	config := `{
	notify {
		key ops {
			url ` + s.url("/a") + ` chat
			url {env.NOTIFY_TEST_URL} urgent
		}
		key both {
			url ` + s.url("/global") + `
		}
		key broken {
			url {env.NOTIFY_TEST_UNSET}
		}
		services {
			allow json
		}
	}
}
:8080 {
	handle_path /x/* {
		notify {
			key site {
				url ` + s.url("/site") + `
			}
			key both {
				url ` + s.url("/local") + `
			}
			key same {
				url ` + s.url("/same") + `
			}
			key differs {
				url ` + s.url("/1") + `
			}
			key denied {
				url ` + s.url("/denied") + `?optional={env.NOTIFY_TEST_YES}
			}
		}
	}
	notify /notify/same {
		key same {
			url ` + s.url("/same") + `
		}
		key differs {
			url ` + s.url("/2") + `
		}
	}
}
`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args, paths string
		code        int
		errs        string
	}{
		{"--key ops", "a env", 0, ""},
		{"--key ops --tag chat", "a", 0, ""},
		{"--key ops --tag CHAT --tag urgent", "a env", 0, ""},
		{"--key ops --tag chat,urgent", "a env", 0, ""},
		{"--key both", "global", 0, ""},
		{"--key site", "site", 0, ""},
		{"--key same", "same", 0, ""},
		{"--key ops --tag none", "", 1, "none of the 2 destinations of the key ops has the requested tag"},
		{"--key ops --tag $", "", 1, "--tag: "},
		{"--key differs", "", 1, "several sites define the key differs"},
		{"--key none", "", 1, "the configuration has no key none; it has both, broken, denied, differs, ops, same, site"},
		{"--key broken", "", 1, "key broken, URL 1: "},
		{"--key denied", "", 1, "key denied, URL 1: "},
		{"--key ops json://h", "", 1, "there are both URLs and --key"},
		{"--key ops --adapter nonsense", "", 1, "no config adapter nonsense"},
	} {
		_, errs, code := command(t, "", append([]string{"send", "-b", "hello", "--config", file}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(errs, tt.errs) || tt.errs == "" && errs != "" {
			t.Errorf("send %s: exit %d\n%s\nwant %d and %q", tt.args, code, errs, tt.code, tt.errs)
		}
		if paths := s.paths(); paths != tt.paths {
			t.Errorf("send %s: messages at %q, want %q", tt.args, paths, tt.paths)
		}
	}

	adapted := `{"apps":{"notify":{"keys":{"ops":{"urls":[{"url":"` + s.url("/json") + `"}]}},"timeout":1000000000}}}`
	for _, args := range [][]string{{"--adapter", "caddyfile", "-c", file}, {"-c", "-"}} {
		if _, errs, code := command(t, adapted, append([]string{"send", "-b", "x", "-k", "ops"}, args...)...); code != 0 {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
	}
	if paths := s.paths(); paths != "a env json" {
		t.Errorf("messages at %q", paths)
	}
	if _, errs, code := command(t, adapted, "send", "-k", "ops", "-c", "-"); code != 1 || !strings.Contains(errs, "standard input cannot be both the configuration") {
		t.Errorf("exit %d, %s", code, errs)
	}
	t.Chdir(t.TempDir())
	if _, errs, code := command(t, "", "send", "-k", "ops", "-b", "x"); code != 1 || !strings.Contains(errs, "set --config to its file") {
		t.Errorf("without a configuration: exit %d, %s", code, errs)
	}
	if err := os.WriteFile("Caddyfile", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := command(t, "", "send", "-k", "ops", "-b", "x"); code != 0 || s.paths() != "a env" {
		t.Errorf("the Caddyfile here: exit %d, %s", code, errs)
	}
}

// A check sends nothing, whatever the service.
func TestCommandCheckSendsNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request has left") }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, u := range []string{"json://" + host, "form://" + host, "gotify://" + host + "/t0k3nt0k3n", "mqtt://" + host + "/topic"} {
		for _, flag := range []string{"--dry-run=false", "--dry-run"} {
			if out, errs, code := command(t, "", "check", flag, u); code != 0 {
				t.Errorf("%s: exit %d\n%s%s", u, code, out, errs)
			}
		}
	}
}

func TestCommandCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"services disc":     "discord\tDiscord\n:4\n",
		"services gotify x": ":4\n",
		"send gotify":       "gotify://\tGotify\ngotifys://\tGotify\n:6\n",
		"check jsons":       "jsons://\tJSON\n:6\n",
		"send @/etc/x":      ":0\n",
		"send --type ":      "info\nsuccess\nwarning\nfailure\n:4\n",
		"check --format ":   "text\nmarkdown\nhtml\n:4\n",
		"ser":               "services\tLists the services, or describes the URLs of one\n:4\n",
	} {
		out, _, _ := command(t, "", append([]string{cobra.ShellCompRequestCmd}, strings.Split(args, " ")...)...)
		if out != want {
			t.Errorf("%s: %q, want %q", args, out, want)
		}
	}
}

const mainVariable = "CADDY_NOTIFY_TEST_MAIN"

// TestMainProgram is caddy where it is asked for, so that tests can run the
// program without building it.
func TestMainProgram(t *testing.T) {
	args, ok := os.LookupEnv(mainVariable)
	if !ok {
		t.Skip("runs in a process of its own")
	}
	os.Args = append([]string{"caddy"}, strings.Fields(args)...)
	caddycmd.Main()
	os.Exit(0)
}

// program runs caddy in a process of its own.
func program(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestMainProgram$")
	cmd.Env = append(os.Environ(), mainVariable+"="+strings.Join(args, " "))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), code
}

// The program's exit codes are those that scripts can use, and Caddy's own
// commands know the module.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := newStation(t)
	loose := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(loose, []byte(":8080 {\nnotify {\nkey k {\nurl nonsense://secretsecret\n}\n}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args      string
		code      int
		out, errs string
	}{
		{"notify send -b x " + s.url("/a"), 0, "delivered", ""},
		{"notify send -b x", 1, "", "Error: there is no destination"},
		{"notify send -b x " + s.url("/refuse"), 2, "failed", "Error: 1 of 1 notifications could not be sent"},
		{"notify check --dry-run json://h", 0, "POST http://h", ""},
		{"notify check nonsense://", 1, "error", "Error: nothing can be sent to the URL"},
		{"notify sent", 1, "", "did you mean send?"},
		{"help", 0, "notify ", ""},
		{"list-modules", 0, "http.handlers.notify", ""},
		{"adapt --config ../Caddyfile.example --validate", 0, `"handler":"notify"`, ""},
		{"validate --config ../Caddyfile.example", 0, "Valid configuration", ""},
		{"validate --config " + loose, 1, "", "which is not a scheme of any service"},
		{"adapt --config " + loose, 1, "", loose + ":4"},
		{"fmt --diff ../Caddyfile.example", 0, "notify {", ""},
		{"fmt " + loose, 1, "\t\tkey k {\n\t\t\turl nonsense://secretsecret\n", ""},
	} {
		out, errs, code := program(t, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) {
			t.Errorf("caddy %s: exit %d\n%s\n%s\nwant %d, %q and %q", tt.args, code, out, errs, tt.code, tt.out, tt.errs)
		}
		if strings.Contains(errs, "secretsecret") {
			t.Errorf("caddy %s shows a secret: %s", tt.args, errs)
		}
	}
}

func TestReadURLs(t *testing.T) {
	got, err := readURLs(strings.NewReader("# all\n json://a/1 # the first\n\t# none\n\nslack://x/#room\t#second\njson://b/1, json://b/2\tform://b/3,x # three\n"))
	if want := []string{"json://a/1", "slack://x/#room", "json://b/1", "json://b/2", "form://b/3,x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

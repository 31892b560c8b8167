package command

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/commandtest"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/internal/version"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// command runs `caddy notify` with arguments inside the test, as caddycmd does.
// It returns the output and the exit code.
func command(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := &cobra.Command{Use: "notify"}
	addCommands(cmd)
	return commandtest.Run(t, cmd, stdin, args...)
}

// serve runs a server with global options of notify, and a site with options of its own,
// until the end of the test. It returns the folder with all data of the server.
func serve(t *testing.T, global, site string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir) // where Caddy keeps an ID of its own, and the queue
	caddyhttptest.Serve(t, "storage file_system \""+dir+"\"\nnotify {\n"+global+"\n}", site)
	return dir
}

// writeFile writes a file that only the user can read.
func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCommandTranscripts runs the commands of testdata/transcripts: each line that
// begins with $ is followed by the output of its command.
func TestCommandTranscripts(t *testing.T) {
	t.Setenv("NOTIFY_TEST_TOKEN", "secretsecret")
	t.Setenv(urlsVariable, "")
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	versions := regexp.MustCompile(`caddy-notify \S+, Caddy \S+, go[\w.]+`)
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
				out = versions.ReplaceAllString(out, "caddy-notify VERSION, Caddy VERSION, go VERSION")
				out = strings.ReplaceAll(out, version.Agent, "caddy-notify/VERSION (+https://github.com/caddy-notify/caddy-notify)")
				got.WriteString(line + out + errs + "exit " + strconv.Itoa(code) + "\n\n")
				if strings.Contains(out+errs, "secretsecret") {
					t.Errorf("a secret shows:\n%s%s", out, errs)
				}
			}
			golden.Check(t, name, got.String())
		})
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
		"ser":               "services\tLists the services, finds some, or describes the URLs of one\n:4\n",
	} {
		out, _, _ := command(t, "", append([]string{cobra.ShellCompRequestCmd}, strings.Split(args, " ")...)...)
		if out != want {
			t.Errorf("%s: %q, want %q", args, out, want)
		}
	}
}

const mainVariable = "CADDY_NOTIFY_TEST_MAIN"

// TestMainProgram runs caddy in a child process of another test, so that tests
// can run the program without building it.
func TestMainProgram(t *testing.T) {
	args, ok := os.LookupEnv(mainVariable)
	if !ok {
		t.Skip("only runs in a child process")
	}
	os.Args = append([]string{"caddy"}, strings.Fields(args)...)
	caddycmd.Main()
	os.Exit(0)
}

// program runs caddy in a child process.
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

// TestProgram checks the exit codes, and that Caddy's own commands know the
// module.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := gatewaytest.NewStation(t)
	loose := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, loose, ":8080 {\nnotify {\nkey k {\nurl nonsense://secretsecret\n}\n}\n}\n")
	for _, tt := range []struct {
		args      string
		code      int
		out, errs string
	}{
		{"notify send -b x " + s.NotifyURL("/a"), 0, "delivered", ""},
		{"notify send -b x", 1, "", "Error: there is no destination"},
		{"notify send -b x " + s.NotifyURL("/refuse"), 2, "failed", "Error: 1 of 1 notifications could not be sent"},
		{"notify check --dry-run json://h", 0, "POST http://h", ""},
		{"notify check nonsense://", 1, "error", "Error: nothing can be sent to the URL"},
		{"notify sent", 1, "", "did you mean send?"},
		{"help", 0, "notify ", ""},
		{"list-modules", 0, "http.handlers.notify", ""},
		{"adapt --config ../../Caddyfile.example --validate", 0, `"handler":"notify"`, ""},
		{"validate --config ../../Caddyfile.example", 0, "Valid configuration", ""},
		{"validate --config " + loose, 1, "", "which is not a scheme of any service"},
		{"adapt --config " + loose, 1, "", loose + ":4"},
		{"fmt --diff ../../Caddyfile.example", 0, "notify {", ""},
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

package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestCommandSend checks that URLs come from arguments, files, standard input
// and the environment, and the message from flags, files and standard input.
func TestCommandSend(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		writeFile(t, name, text)
		return name
	}
	a, b, refuse := s.NotifyURL("/a"), s.NotifyURL("/b"), s.NotifyURL("/refuse")
	list := write("urls", "# comment\n\n  "+a+"  \n"+b+"\n")
	file := write("report.txt", "91%")
	t.Setenv("NOTIFY_TEST_URL", b)
	t.Setenv("NOTIFY_TEST_TWO", a+","+b)
	t.Setenv(urlsVariable, "")

	for _, tt := range []struct {
		args, stdin, paths string
		code               int
		out, errs          string // parts of the output
	}{
		{"--body hello " + a, "", "a", 0, "delivered  JSON  json://", ""},
		{a + "," + b, "hello\n", "a b", 0, "", ""},
		{"@" + list, "hello\n", "a b", 0, "", ""},
		{"-b hello @-", a + "\n" + b, "a b", 0, "", ""},
		{"{env.NOTIFY_TEST_URL}", "hello", "b", 0, "", ""},
		{"-b hello " + a + " " + refuse, "", "a refuse", 2, "failed     JSON  json://", "Error: 1 of 2 notifications could not be sent\n"},
		{"-b hello " + refuse + "?optional=yes", "", "refuse", 0, "(optional)", ""},
		{
			"-b hello " + a + "?nonsense=secretsecret", "", "a", 0, "delivered",
			"Warning: JSON: the parameter nonsense is unknown and has no effect",
		},
		{"--attach " + file + " " + a, "", "a", 0, "", ""},
		{
			"-b hello --incident " + strings.Repeat("x", 256) + " " + a, "", "a", 0, "",
			"Warning: --incident is longer than 255 bytes, so its SHA-256 hash is used",
		},

		{"", "hello", "", 1, "", "there is no destination; give URLs"},
		{"-b hello", "", "", 1, "", "there is no destination; give URLs"},
		{"@-", a, "", 1, "", "standard input cannot be both the URLs (@-) and the text of the message"},
		{"@" + filepath.Join(dir, "none"), "hello", "", 1, "", "no such file"},
		{"@" + write("empty", "# nobody\n"), "hello", "", 1, "", "the arguments contain no URL"},
		{a, "", "", 1, "", "the message is empty"},
		{a, " \n", "", 1, "", "the message is empty"},
		{a, strings.Repeat("x", maxText+1), "", 1, "", "longer than 8.0 MiB"},
		{"-b hello " + a + " nonsense://secretsecret", "", "", 1, "", "nothing was sent: URL 2 of 2: "},
		{"-b hello jsn://secretsecret", "", "", 1, "", "you may mean json://"},
		{"-b hello json://{env.NOTIFY_TEST_UNSET}", "", "", 1, "", "{env.NOTIFY_TEST_UNSET} has no value"},
		{"-b hello {env.NOTIFY_TEST_TWO}", "", "", 1, "", "this holds several URLs"},
		{"-b hello --type bad " + a, "", "", 1, "", "--type: unknown type"},
		{"-b hello --format bad " + a, "", "", 1, "", "--format: unknown format"},
		{"-b hello --incident a\x01b " + a, "", "", 1, "", "--incident: it has a control character"},
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
		if paths := s.Paths(); paths != tt.paths {
			t.Errorf("send %s: messages at %q, want %q", tt.args, paths, tt.paths)
		}
	}

	t.Setenv(urlsVariable, a+", "+b)
	if _, errs, code := command(t, "hello", "send"); code != 0 || s.Paths() != "a b" {
		t.Errorf("URLs of the environment: exit %d, %s", code, errs)
	}
	command(t, "line 1\nline 2\n", "send", "-t", "A\ntitle", "--type", "Failure", "--attach", file, a)
	got := s.One(t)
	if got.Title != "A title" || got.Message != "line 1\nline 2" || got.Type != "failure" {
		t.Errorf("arrived %+v", got)
	}
	if len(got.Attachments) != 1 || got.Attachments[0].Filename != "report.txt" || string(got.Attachments[0].Base64) != "91%" {
		t.Errorf("files %+v", got.Attachments)
	}
	command(t, "down", "send", "--incident", "disk db1", a)
	if got, want := s.One(t).Incident, (notifier.Incident{Name: "disk db1"}).For("", "").ID; got != want {
		t.Errorf("the incident is %q, want %q", got, want)
	}
	out, _, code := command(t, "**x**", "send", "--json", "--format", "markdown", a+"?format=html", refuse)
	var results struct{ Results []message.Result }
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != 2 ||
		len(results.Results) != 2 || results.Results[1].Status != notifier.Failed {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
	if m := s.Take()[0].Message; m != "<p><strong>x</strong></p>" {
		t.Errorf("converted to %q", m)
	}
}

// TestCommandSendKey checks that --key sends with the limits of the site or app
// that has the key.
func TestCommandSendKey(t *testing.T) {
	s := gatewaytest.NewStation(t)
	t.Setenv("NOTIFY_TEST_URL", s.NotifyURL("/env"))
	file := filepath.Join(t.TempDir(), "Caddyfile")
	config := `{
	notify {
		key ops {
			url ` + s.NotifyURL("/a") + ` chat
			url {env.NOTIFY_TEST_URL} urgent
		}
		key both {
			url ` + s.NotifyURL("/global") + `
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
				url ` + s.NotifyURL("/site") + `
			}
			key both {
				url ` + s.NotifyURL("/local") + `
			}
			key same {
				url ` + s.NotifyURL("/same") + `
			}
			key differs {
				url ` + s.NotifyURL("/1") + `
			}
			key denied {
				url ` + s.NotifyURL("/denied") + `?optional={env.NOTIFY_TEST_YES}
			}
		}
	}
	notify /notify/same {
		key same {
			url ` + s.NotifyURL("/same") + `
		}
		key differs {
			url ` + s.NotifyURL("/2") + `
		}
	}
}
`
	writeFile(t, file, config)
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
		{"--key ops --tag none", "", 1, "none of the 2 destinations of the key ops has the requested tag none, so nothing was sent"},
		{"--key ops --tag 2:urgnt,chat+none", "", 1, "you may mean urgent or chat"},
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
		if paths := s.Paths(); paths != tt.paths {
			t.Errorf("send %s: messages at %q, want %q", tt.args, paths, tt.paths)
		}
	}

	adapted := `{"apps":{"notify":{"keys":{"ops":{"urls":[{"url":"` + s.NotifyURL("/json") + `"}]}},"timeout":1000000000}}}`
	for _, args := range [][]string{{"--adapter", "caddyfile", "-c", file}, {"-c", "-"}} {
		if _, errs, code := command(t, adapted, append([]string{"send", "-b", "x", "-k", "ops"}, args...)...); code != 0 {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
	}
	if paths := s.Paths(); paths != "a env json" {
		t.Errorf("messages at %q", paths)
	}
	if _, errs, code := command(t, adapted, "send", "-k", "ops", "-c", "-"); code != 1 ||
		!strings.Contains(errs, "standard input cannot be both the configuration") {
		t.Errorf("exit %d, %s", code, errs)
	}
	command(t, adapted, "send", "-k", "ops", "-b", "x", "-c", "-", "--incident", "disk db1")
	if got, want := s.One(t).Incident, (notifier.Incident{Name: "disk db1"}).For("ops", "").ID; got != want {
		t.Errorf("the incident of a key is %q, want %q", got, want)
	}
	t.Chdir(t.TempDir())
	if _, errs, code := command(t, "", "send", "-k", "ops", "-b", "x"); code != 1 || !strings.Contains(errs, "set --config to its file") {
		t.Errorf("without a configuration: exit %d, %s", code, errs)
	}
	writeFile(t, "Caddyfile", config)
	if _, errs, code := command(t, "", "send", "-k", "ops", "-b", "x"); code != 0 || s.Paths() != "a env" {
		t.Errorf("the Caddyfile here: exit %d, %s", code, errs)
	}
}

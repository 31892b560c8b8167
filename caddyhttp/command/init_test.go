package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
)

// TestInit runs the command without a terminal: what it writes loads, only the user can
// read it, and the test message arrives.
func TestInit(t *testing.T) {
	var got atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got.Store(string(b))
		if r.URL.Path == "/broken/" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	destination := "json" + strings.TrimPrefix(s.URL, "http")
	file := filepath.Join(t.TempDir(), "to")
	writeFile(t, file, " "+destination+"/file/\n")
	for name, tt := range map[string]struct {
		args  string
		stdin string
		code  int
		want  []string // in the Caddyfile
		lacks string   // in the Caddyfile
		says  string   // in the output
		url   string   // in the file
	}{
		"on this machine": {
			args: "--to " + strings.Replace(destination, "://", "://user:secretsecret@", 1),
			url:  strings.Replace(destination, "://", "://user:secretsecret@", 1),
			want: []string{
				"\n\t\tqueue\n", "\n\t\ttitles on\n", "http://:8080 {\n\tbind 127.0.0.1\n",
				"\tbasic_auth @console {\n\t\tadmin $2a$04$", "\t\tconsole {\n\t\t\thome on\n", "\t\t\tinbox 7d\n\t\t\trate 30/1m\n",
				"\t\tconfigs {\n\t\t\tmanage admin\n\t\t\tinbox 7d\n\t\t\trate 30/1m\n", "\t\tegress {\n\t\t\tallow private_ranges\n",
			}, lacks: "basic_auth {", says: "full\" http://127.0.0.1:8080/notify/ops\n",
		},
		"another port": {
			args: "--no-test --site local:18081 --to " + destination,
			url:  destination, want: []string{"http://:18081 {\n\tbind 127.0.0.1\n"},
			says: "\n  http://127.0.0.1:18081/notify/console\n",
		},
		"a phone": {
			args: "--no-test --keep=false --site alerts.example.com --to phone",
			want: []string{
				"\n\t\tqueue\n", "\n\t\tpush\n\t\tpublic_url https://alerts.example.com\n", "\t\t\trate 30/1m\n",
				"\t@login {\n\t\tnot path /notify/*/devices ", "basic_auth @login {\n\t\tmonitoring $2a$04$",
			},
			lacks: "\t\t\turl {", says: "\n  caddy notify invite ops\n",
		},
		"a phone in Tailscale": {
			args: "--no-test --site nas.tail1234.ts.net --to phone",
			want: []string{"\n\t\tpush\n\t\tpublic_url https://nas.tail1234.ts.net\n"}, says: "\n  caddy notify invite ops\n",
		},
		"ntfy's app": {
			args: "--no-test --keep=false --to app",
			want: []string{
				"\n:8080 {\n", "\t\t\tinbox 7d\n", "\t\t\treader {file.", "\t\t\trate 30/1m\n", "basic_auth @login {",
				"/notify/*/ntfy/*/ws",
			},
			says: "\n  Service URL  http://localhost:8080/notify/ops/ntfy\n",
		},
		"a name": {
			args: "--site alerts.example.com --to " + destination,
			want: []string{
				"\nalerts.example.com {\n", "\t\tmonitoring $2a$04$", "\t\tadmin $2a$04$", "\n\t\tpush\n\t\tpublic_url https://alerts.example.com\n",
				"\t\t# egress {\n\t\t# \tallow private_ranges\n",
			},
			says: " https://alerts.example.com/notify/ops\n", url: destination,
		},
		"nothing kept": {
			args: "--site alerts.example.com --keep=false --to " + destination,
			want: []string{"\n\t\t# queue\n\t\t# titles on\n", "\n\t\t# push\n", "\t\t\t# inbox 7d\n\t\t\t# rate 30/1m\n", "\tbasic_auth {\n"},
			says: "Start the gateway", url: destination,
		},
		"a port": {
			args: "--site :8088 --to " + destination, want: []string{"\n:8088 {\n", "basic_auth {"},
			says: " http://localhost:8088/notify/ops\n", url: destination,
		},
		"HTTP": {
			args: "--site http://alerts.example.com:80 --to " + destination,
			want: []string{"\nhttp://alerts.example.com:80 {\n"},
			says: " http://alerts.example.com:80/notify/ops\n", url: destination,
		},
		"a file":   {args: "--to @" + file, url: destination + "/file", says: "delivered  JSON"},
		"stdin":    {args: "--to @-", stdin: destination + "\n", url: destination, says: "delivered  JSON"},
		"it fails": {args: "--to " + destination + "/broken/", code: exit.PartialCode, says: "failed  JSON", url: destination + "/broken"},
		"a webhook": {
			args: "--no-test --to https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
			url:  "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", says: "Start the gateway",
		},
		"a bot": {
			args: "--no-test --to 123456789:AAaaBBbbCCccDDddEEeeFFffGGgghhhhhhh",
			url:  "tgram://123456789:AAaaBBbbCCccDDddEEeeFFffGGgghhhhhhh", says: "Start the gateway",
		},
		"no test":      {args: "--no-test --to json://127.0.0.1:1/", url: "json://127.0.0.1:1", says: "Start the gateway"},
		"a line of it": {args: "--no-test --to @-", stdin: "url json://127.0.0.1:1/", url: "json://127.0.0.1:1", says: "Start the gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			got.Store("")
			out := filepath.Join(t.TempDir(), "out")
			stdout, stderr, code := command(t, tt.stdin, append([]string{"init", "--out", out}, strings.Fields(tt.args)...)...)
			if code != tt.code || !strings.Contains(stdout, tt.says) {
				t.Fatalf("exit %d, want %d and %q:\n%s%s", code, tt.code, tt.says, stdout, stderr)
			}
			if sent := got.Load() != ""; sent == strings.Contains(tt.args, "--no-test") {
				t.Errorf("a test was sent: %t", sent)
			}
			if strings.Contains(stdout+stderr, "secretsecret") {
				t.Errorf("a secret shows:\n%s%s", stdout, stderr)
			}
			text, err := os.ReadFile(filepath.Join(out, folder.Caddyfile))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("the Caddyfile lacks %q:\n%s", want, text)
				}
			}
			if tt.lacks != "" && strings.Contains(string(text), tt.lacks) {
				t.Errorf("the Caddyfile has %q:\n%s", tt.lacks, text)
			}
			if url, err := os.ReadFile(filepath.Join(out, folder.Secrets, initKey)); (err != nil) != (tt.url == "") ||
				strings.TrimRight(string(url), "/\n") != tt.url {
				t.Errorf("the URL is %s, %v, want %s", url, err, tt.url)
			}
			if err := folder.Check(filepath.Join(out, folder.Caddyfile)); err != nil {
				t.Errorf("it does not load: %v", err)
			}
			checkInitModes(t, out)
			checkInitLogin(t, string(text))
			for user, file := range map[string]string{initUser: folder.Password, initAdmin: initConsole} {
				_, hash, ok := strings.Cut(string(text), "\t"+user+" $")
				if !ok && user == initUser {
					continue
				}
				password, err := os.ReadFile(filepath.Join(out, folder.Secrets, file))
				hash, _, _ = strings.Cut(hash, "\n")
				if err != nil || bcrypt.CompareHashAndPassword([]byte("$"+hash), []byte(strings.TrimSpace(string(password)))) != nil {
					t.Errorf("the hash of %s is not that of the password: %v", user, err)
				}
			}
		})
	}
}

// checkInitLogin reports what a Caddyfile leaves out of its login unless the documentation leaves it out, too, whose
// matchers are tested with phones and with ntfy's clients.
func checkInitLogin(t *testing.T, caddyfile string) {
	t.Helper()
	_, login, ok := strings.Cut(caddyfile, "\t@login {\n")
	if !ok {
		return
	}
	var pages strings.Builder
	for _, name := range []string{"phone.md", "inbox.md"} {
		page, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(page)
	}
	login, _, _ = strings.Cut(login, "\n\t}")
	for line := range strings.SplitSeq(login, "\n") {
		if !strings.Contains(pages.String(), strings.TrimPrefix(line, "\t")+"\n") {
			t.Errorf("no page has the line %q", line)
		}
	}
}

// checkInitModes reports files that others can read.
func checkInitModes(t *testing.T, out string) {
	t.Helper()
	err := filepath.Walk(out, func(path string, info os.FileInfo, err error) error {
		if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestInitMistakes(t *testing.T) {
	dir := t.TempDir()
	empty, lines := filepath.Join(dir, "empty"), filepath.Join(dir, "lines")
	writeFile(t, empty, "\n")
	writeFile(t, lines, "json://127.0.0.1:1/secretsecret\njson://127.0.0.1:1/\n")
	for args, want := range map[string]string{
		"":               "standard input is no terminal, so nothing can be asked; give --to",
		"--site :8080":   "standard input is no terminal",
		"--to=":          "--to: it is empty",
		"--to @" + empty: "--to: @" + empty + " is empty",
		"--to @" + lines: "has several lines; give one destination",
		"--to @/none":    "--to: open /none",
		"--to nonsense":  "--to: no service gives out a text of this form; give a notification URL: caddy notify services <name>",
		"--to gmail": `--to: "gmail" is not enough; run this in a terminal, ` +
			`which asks for the rest, or give the notification URL, as caddy notify services gmail shows it`,
		"--to jsn://secretsecret": "--to: the URL begins with jsn://",
		"--to ops@example.com":    "--to: the text may be one of ",
		"--to discord://1":        "--to: ",
		"--site a/b --to json://x": "--site: this is no address of a site; " +
			"write local, local:8081 for another port, a domain name",
		"--site local:0 --to json://x":                   "--site: this is no port; write for example local:8081",
		"--to phone":                                     "--to: a phone or a browser needs HTTPS with a certificate that it trusts",
		"--to phone --site :8080":                        "this machine in Tailscale or the like; or give --to app, and ntfy's app reads",
		"--to phone --site http://alerts.example.com":    "--to: a phone or a browser needs HTTPS",
		"--to phone --site nas.local":                    "--to: a phone or a browser needs HTTPS",
		"--to phone --site 192.168.1.5":                  "--to: a phone or a browser needs HTTPS",
		"--to mailtos://me:secretsecret/x@example.com:y": "--to: E-Mail: port",
		"--site nonsense --to json:x":                    "--site: this is no address of a site",
		"--site {x} --to json://x":                       "--site: this is no address of a site",
		"x":                                              "unknown command",
	} {
		out := filepath.Join(dir, "out")
		stdout, stderr, code := command(t, "", append([]string{"init", "--out", out}, strings.Fields(args)...)...)
		if code != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, "secretsecret") {
			t.Errorf("init %s: exit %d\n%s%s\nwant %q", args, code, stdout, stderr, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("init %s has written something", args)
		}
	}
	if _, stderr, code := command(t, "", "init", "--out", filepath.Join(dir, "a b"), "--to", "json://127.0.0.1:1"); code != 1 ||
		!strings.Contains(stderr, "because the path has a space") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestInitExisting checks that no file is replaced, whichever exists.
func TestInitExisting(t *testing.T) {
	for _, name := range []string{
		folder.Caddyfile, filepath.Join(folder.Secrets, initKey), filepath.Join(folder.Secrets, folder.Password),
		filepath.Join(folder.Secrets, initConsole), filepath.Join(folder.Secrets, initReader),
	} {
		out := t.TempDir()
		if err := os.Mkdir(filepath.Join(out, folder.Secrets), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(out, name), "mine")
		_, stderr, code := command(t, "", "init", "--out", out, "--no-test", "--to", "json://127.0.0.1:1")
		if code != 1 || !strings.Contains(stderr, name+" exists already, so nothing was written; choose another folder with --out") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(text) != "mine" {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
}

// TestInitQuestions answers the questions.
func TestInitQuestions(t *testing.T) {
	for name, tt := range map[string]struct {
		args, answers string // answers: one on each line
		want          firstConfig
		asks          []string
		err           string
	}{
		"defaults": {
			answers: "\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true},
			asks:    []string{"1. Who may send", "2. Where do", "3. Keep"},
		},
		"all": {
			answers: ":8088\njson://127.0.0.1:1/\nNO\n",
			want:    firstConfig{site: ":8088", url: "json://127.0.0.1:1/", service: "JSON"},
		},
		"again": {
			answers: "a b\n:8088\n\nnonsense\njson://127.0.0.1:1/\nperhaps\nyes\n",
			want:    firstConfig{site: ":8088", url: "json://127.0.0.1:1/", service: "JSON", keep: true},
			asks:    []string{"this is no address of a site", "no service gives out", "Answer yes or no."},
		},
		"flags": {
			args: "--site :8088 --keep=false", answers: "json://127.0.0.1:1/\n",
			want: firstConfig{site: ":8088", url: "json://127.0.0.1:1/", service: "JSON"},
		},
		"all flags": {
			args: "--site local --keep=false --to json://127.0.0.1:1/",
			want: firstConfig{url: "json://127.0.0.1:1/", service: "JSON"},
		},
		"a webhook": {
			answers: "\nhttps://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js\n\n",
			want:    firstConfig{url: "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", service: "Discord", keep: true},
			asks:    []string{"Discord: what you pasted is an address that the service gives out"},
		},
		"a port": {
			answers: "local:0\nlocal:9090\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{port: ":9090", url: "json://127.0.0.1:1/", service: "JSON", keep: true},
			asks:    []string{"local:8081: the same at another port", "this is no port"},
		},
		"a phone": {
			answers: "\nphone\n1\nlocalhost\nalerts.example.com\n",
			want:    firstConfig{site: "alerts.example.com", device: true, keep: true},
			asks: []string{
				"HTTPS that it trusts: phone shows the ways",
				"\n   1  This phone or browser: no app, no account; needs HTTPS that it trusts\n   2  ntfy's app",
				"over HTTPS that it trusts.", "A domain name", "Tailscale or the like", "type app.", "Phones do not trust the certificate of localhost",
			},
		},
		"an app":         {answers: "local:9090\nphone\n2\n", want: firstConfig{site: ":9090", app: true, keep: true}},
		"an app instead": {answers: "\nphone\n1\nnas.local\napp\n", want: firstConfig{site: ":8080", app: true, keep: true}},
		"an app at a name": {
			answers: "http://nas.lan\nphone\n1\nAPP\n", want: firstConfig{site: "http://nas.lan", app: true, keep: true},
		},
		"no phone": {answers: "alerts.example.com\npush\n1\n", want: firstConfig{site: "alerts.example.com", device: true, keep: true}},
		"another way": {
			answers: "\nmy phone\n\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true},
		},
		"gmail": {
			answers: "\ngmail\nyou\nyou@gmail.com\nabcd efgh ijkl mnop\n\n",
			want:    firstConfig{url: "mailtos://you:abcdefghijklmnop@gmail.com", service: "E-Mail", keep: true},
			asks:    []string{"such as you@gmail.com?", "It is no e-mail address; write it as you@gmail.com.", "   App password?", "apppasswords"},
		},
		"to gmail": {
			args: "--site local --to gmail", answers: "you@gmail.com\nabcd efgh ijkl mnop\n\n",
			want: firstConfig{url: "mailtos://you:abcdefghijklmnop@gmail.com", service: "E-Mail", keep: true},
			asks: []string{"such as you@gmail.com?", "   App password?"},
		},
		"to a login": {
			args: "--site local --to mailtos://you@example.org", answers: "secret\n\n",
			want: firstConfig{url: "mailtos://you:secret@example.org", service: "E-Mail", keep: true},
			asks: []string{"The password of you?"},
		},
		"to nothing": {
			args: "--site local --to nonsense", answers: "json://127.0.0.1:1/\n\n",
			want: firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true},
			asks: []string{"no service gives out", "2. Where do"},
		},
		"a mailbox": {
			answers: "\nyou@icloud.com\n1\npa/ss\n\n",
			want:    firstConfig{url: "mailtos://you:pa%2Fss@icloud.com?smtp=smtp.mail.me.com", service: "E-Mail", keep: true},
			asks:    []string{"\n   1  iCloud\n", "App-specific password?"},
		},
		"its server": {
			answers: "\nsmtp\n1\nyou@example.org\npa@ss\nmail.example.org\n\n",
			want:    firstConfig{url: "mailtos://you%40example.org:pa%40ss@example.org?smtp=mail.example.org", service: "E-Mail", keep: true},
			asks:    []string{"Its mail server, such as mail.example.org?"},
		},
		"closed": {
			answers: "\nyou@hotmail.com\n1\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true},
			asks:    []string{"accept no password of a program"},
		},
		"a password": {
			answers: "\nmailtos://you@example.org\nsecret\n\n",
			want:    firstConfig{url: "mailtos://you:secret@example.org", service: "E-Mail", keep: true},
			asks:    []string{"The password of you?"},
		},
		"no password": {
			answers: "\nmailtos://you@example.org\n\n\n",
			want:    firstConfig{url: "mailtos://you@example.org", service: "E-Mail", keep: true},
		},
		"with a slash": {
			answers: "\nmailtos://you:pa/ss@example.org\n\n",
			want:    firstConfig{url: "mailtos://you:pa%2Fss@example.org", service: "E-Mail", keep: true},
		},
		"an address": {
			answers: "\nslack\nhello\nhttps://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ\n\n",
			want:    firstConfig{url: "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", service: "Slack", keep: true},
			asks:    []string{"such as https://hooks.slack.com/services/…/…/…?", "This is no address that Slack gives out."},
		},
		"a name": {
			answers: "\ngotify\npush.example.org\nAbCdEfGhIjKlMnO\n\n",
			want:    firstConfig{url: "gotifys://push.example.org/AbCdEfGhIjKlMnO", service: "Gotify", keep: true},
			asks:    []string{"(host)?", "(token)?"},
		},
		"another": {
			answers: "\ngotify\n\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true},
		},
		"a name of": {
			answers: "\nmicrosoft\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true}, asks: []string{"Which one?"},
		},
		"one of": {
			answers: "\nmicrosoft\n99\nmicrosoft\n\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true}, asks: []string{"Which one?"},
		},
		"a group": {
			answers: "\nchat\n\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true},
			asks:    []string{"\n   9  ", " more: type a name"},
		},
		"a number": {
			answers: "\ngoogle chat\n1\nhttps://example.com\n\njson://127.0.0.1:1/\n\n",
			want:    firstConfig{url: "json://127.0.0.1:1/", service: "JSON", keep: true},
			asks:    []string{"Google Chat"},
		},
		"end of input": {answers: "\n", err: "there is no answer, so nothing was written"},
	} {
		t.Run(name, func(t *testing.T) {
			f := new(initFlags)
			cmd := initCommand()
			cmd.RunE = nil
			flags := cmd.Flags()
			if err := flags.Parse(strings.Fields(tt.args)); err != nil {
				t.Fatal(err)
			}
			f.site, _ = flags.GetString("site")
			f.to, _ = flags.GetString("to")
			f.keep, _ = flags.GetBool("keep")
			var asked strings.Builder
			a := &asker{out: &asked}
			a.read(strings.NewReader(tt.answers))
			got, err := f.answers(cmd, a)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v:\n%s", err, asked.String())
			}
			if (got.password != "") != (got.site != "") {
				t.Error("a site and a password belong together")
			}
			if got.admin == "" {
				t.Error("the console has no password")
			}
			if (got.reader != "") != got.app {
				t.Error("an app and a reader belong together")
			}
			got.password, got.admin, got.reader = "", "", ""
			if *got != tt.want {
				t.Errorf("%+v, want %+v", *got, tt.want)
			}
			for _, want := range tt.asks {
				if !strings.Contains(asked.String(), want) {
					t.Errorf("%q is not asked:\n%s", want, asked.String())
				}
			}
		})
	}
}

package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// places are the places of the lines of a Caddyfile that stand in the text of pages. A line
// must load in one of them.
var places = []string{
	"{\nnotify {\nqueue\npublic_url https://alerts.example.com\nkey backup {\nurl {env.MAIL_URL}\n}\n" +
		"key ops {\nurl {env.DISCORD_URL} chat\nurl {env.PHONE_URL} phone\nurl {env.MAIL_URL}\nLINE\n" +
		"}\n}\n}\nalerts.example.com {\nnotify {\nconsole {\nmanage ann\n}\n}\n}\n",
	"{\nnotify {\nqueue\npublic_url https://alerts.example.com\nkey ops {\nurl {env.DISCORD_URL}\n" +
		"token {env.OPS_TOKEN}\n}\nLINE\n}\n}\nalerts.example.com {\nnotify\n}\n",
	"alerts.example.com {\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\ntoken {env.OPS_TOKEN}\n}\nLINE\n}\n}\n",
	"{\nnotify {\nqueue\nsmtp :2526\nkey ops {\nurl {env.DISCORD_URL}\ninbox 7d\n" +
		"reader abcdefghijklmnopqrst\nLINE\n}\n}\n}\nalerts.example.com {\nnotify\n}\n",
	"{\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\nLINE\n}\n}\n",
	"alerts.example.com {\nnotify {\nconfigs {\nmanage\nLINE\n}\n}\n}\n",
	"alerts.example.com {\nnotify {\nconfigs team {\nLINE\n}\n}\n}\n",
	"alerts.example.com {\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\nfrom backup {\nbody {{.message}}\nLINE\n}\n}\n}\n",
	"alerts.example.com {\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\nfrom sns {\nLINE\n}\n}\n}\n",
	"alerts.example.com {\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\nservices {\nLINE\n}\n}\n}\n",
	"alerts.example.com {\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\nattachments {\nLINE\n}\n}\n}\n",
	"{\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\nsmtp :2525 {\nLINE\n}\n}\n}\n",
	"{\nnotify {\nqueue\nkey ops {\nurl {env.DISCORD_URL}\nquiet 22:00-07:00 {\nLINE\n}\n}\n}\n}\nalerts.example.com {\nnotify\n}\n",
	"{\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\n}\nevents {\nLINE notify ops\n}\n}\n",
	"{\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\n}\nevents {\non cert_failed notify ops {\nLINE\n}\n}\n}\n",
	"alerts.example.com {\n@inside remote_ip private_ranges\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\n}\nLINE\n}\n",
	"alerts.example.com {\n@inside remote_ip private_ranges\nLINE\nrespond 404\n}\n",
	"{\nnotify {\nkey ops {\nurl {env.DISCORD_URL}\n}\n}\n}\nalerts.example.com {\nLINE\nrespond 404\n}\n",
}

// settingLine returns what matches the first words of the lines that the test loads: the settings of
// a site and of a key, and some of other blocks.
func settingLine(t *testing.T) *regexp.Regexp {
	t.Helper()
	names := "types|deny|max_count|manage|trust|sign|images|mentions|title|on|notify|respond|redir|trusted_clients|tls"
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)").FindAllStringSubmatch(readFile(t, "docs/caddyfile.md"), -1) {
		names += "|" + row[1]
	}
	return regexp.MustCompile(`^(` + names + `) [^ ]`)
}

// noLines are code that begins like a line and is none: names of settings in their block, what
// another module has, and lines that the page says are refused.
var noLines = []string{
	"queue { secret }", "configs { secret }", "queue { max_size }", "push { services }",
	"client_limits in_flight", "client_limits in_flight_per_address",
	"tls internal", "tls mail.example.com", "notify /alerts/*", "notify /notify/opps", "from prometheus", "from flux", "key {remote_host}",
}

// withoutSeen returns text without the column "you see" of its tables. The column has errors and
// lines of the log.
func withoutSeen(text string) string {
	var b strings.Builder
	seen := -1 // the column in the current table
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			seen = -1
		} else if cells := strings.Split(line, " | "); seen < 0 {
			seen = slices.IndexFunc(cells, func(c string) bool { return strings.TrimPrefix(c, "| ") == "you see" })
		} else if seen < len(cells) {
			line = strings.Join(slices.Delete(cells, seen, seen+1), " | ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestInlineLines loads the lines of a Caddyfile that stand in the text of pages.
func TestInlineLines(t *testing.T) {
	l := newLoader(t)
	t.Setenv("NOTIFY_SECRETS", l.dir)
	writeFile(t, filepath.Join(l.dir, "NAME"), environment["DISCORD_URL"])
	variable := regexp.MustCompile(`\{env\.(\w+)\}`)
	settings := settingLine(t)
	n := map[string]bool{}
	for _, p := range userPages(t) {
		if p.path == "docs/services.md" {
			continue // it is made from what parses
		}
		for _, m := range codeSpan.FindAllStringSubmatch(withoutSeen(p.prose), -1) {
			line := m[1]
			if !settings.MatchString(line) || strings.ContainsAny(line, "…<|\n") ||
				strings.Contains(line, "[") || slices.Contains(noLines, line) || n[line] {
				continue
			}
			n[line] = true
			for _, v := range variable.FindAllStringSubmatch(line, -1) {
				if os.Getenv(v[1]) == "" {
					t.Setenv(v[1], "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
				}
			}
			line = strings.NewReplacer(" { ", " {\n", " }", "\n}").Replace(line)
			var first error
			for _, place := range places {
				err := l.loadCaddyfile(strings.Replace(place, "LINE", line, 1))
				if err == nil {
					first = nil
					break
				}
				if first == nil || strings.Contains(first.Error(), "unknown subdirective") {
					first = err
				}
			}
			if first != nil {
				t.Errorf("%s: %s: %v", p.path, m[1], first)
			}
		}
	}
	if len(n) < 55 {
		t.Errorf("only %d lines were found", len(n))
	}
}

// TestTextConfigurations loads the parts of a site, and parses the JSON, that stand in blocks marked text. The
// Caddyfile with another module is built and run in test/integration.
func TestTextConfigurations(t *testing.T) {
	l := newLoader(t)
	sites, objects := 0, 0
	for _, p := range userPages(t) {
		for _, b := range p.blocks {
			switch text := b.text; {
			case b.language != "text" || b.follows >= 0:
			case strings.HasPrefix(text, "@"):
				sites++
				text = strings.ReplaceAll(text, "…", "bob "+hash)
				if err := l.loadCaddyfile("alerts.example.com {\n" + text + "notify {\nkey ops {\nurl {env.DISCORD_URL}\n}\n}\n}\n"); err != nil {
					t.Errorf("%s: %v", b, err)
				}
			case strings.HasPrefix(text, "{") && !strings.Contains(text, "{{") && !strings.Contains(text, "\tnotify {"):
				objects++
				for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
					if err := d.Decode(new(any)); err != nil {
						t.Fatalf("%s: %v", b, err)
					}
				}
			}
		}
	}
	if sites < 4 || objects < 4 {
		t.Errorf("only %d sites and %d objects were found", sites, objects)
	}
}

// TestInlineCommands checks the options of the curl commands, and the subcommands and flags of the
// caddy commands, that stand in the text of pages.
func TestInlineCommands(t *testing.T) {
	g := &gateway{dir: t.TempDir()}
	n := 0
	for _, p := range userPages(t) {
		for _, m := range codeSpan.FindAllStringSubmatch(p.prose, -1) {
			text := strings.TrimPrefix(m[1], "./")
			if !regexp.MustCompile(`^(curl|caddy) `).MatchString(text) ||
				strings.Contains(text, "<command>") || strings.HasPrefix(text, "caddy notify … ") {
				continue
			}
			n++
			lines, err := splitShell(text)
			switch {
			case err != nil:
			case strings.HasPrefix(text, "curl "):
				words := slices.DeleteFunc(lines[0][0], func(w string) bool { return w == "…" })
				_, err = parseCurl(words, g.dir)
			default:
				err = g.checkFlags(t, lines[0][0])
			}
			if err != nil {
				t.Errorf("%s: %s: %v", p.path, m[1], err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found", n)
	}
}

var (
	subcommand = regexp.MustCompile(`^[a-z][a-z-]*$`)
	longFlag   = regexp.MustCompile(`--[a-z][a-z-]+`)
	helpTexts  = map[string]string{} // by command
)

// checkFlags reports an error if a caddy command, or one of its flags, does not exist.
func (g *gateway) checkFlags(t *testing.T, words command) error {
	t.Helper()
	var name []string
	for _, w := range words[1:] {
		if len(name) == 3 || !subcommand.MatchString(w) || len(name) == 1 && name[0] != "notify" ||
			len(name) == 2 && !slices.Contains([]string{"queue", "incidents", "devices"}, name[1]) {
			break
		}
		name = append(name, w)
	}
	all := "caddy " + strings.Join(name, " ")
	help, ok := helpTexts[all]
	if !ok {
		var err error
		if help, err = g.caddy(t.Context(), "", append(slices.Clone(name), "--help")...); err != nil {
			return fmt.Errorf("%w: %s", err, help)
		}
		helpTexts[all] = help
	}
	if !strings.Contains(help, "\n  "+all) {
		return fmt.Errorf("there is no command %s", all)
	}
	for _, w := range words[1:] {
		if f := longFlag.FindString(w); f != "" && strings.HasPrefix(w, "--") && !slices.Contains(longFlag.FindAllString(help, -1), f) {
			return fmt.Errorf("%s has no flag %s", all, f)
		}
	}
	return nil
}

// everything is a Caddyfile with what the commands in blocks marked text need.
const everything = `{
	admin ADMIN
	notify {
		queue {
			path DIR
			secret the-new-secret-of-the-test the-old-secret-of-the-test
		}
		public_url https://alerts.example.com
		push
	}
}
http://alerts.example.comPORT {
	bind 127.0.0.1
	notify {
		stateless off
		console {
			manage open
		}
		key ops {
			url DESTINATION/ chat
			token {env.OPS_TOKEN}
			reader {env.OPS_READER}
			inbox 1d
			dedupe 10m
			expect nightly every 24h
		}
		key jobs {
			url DESTINATION/
			expect backup cron "15 3 * * 1-5" max_run 1h
		}
		key deploys {
			url DESTINATION/
		}
		key me {
			token {env.OPS_TOKEN}
		}
	}
	respond 404
}
`

// notHere are commands in blocks marked text that the test only parses, with the reason.
var notHere = map[string]string{
	"https://alerts.example.com/notify/ops/stream": "it does not end",
	"https://alerts.example.com/notify/me":         "nothing has subscribed to the key, so the answer is 424",
	"queue backup":                                 "test/safety runs it, with its folders",
	"notify ask":                                   "it waits for an answer; TestAsk runs it",
}

// curlCall matches a call of curl within a line.
var curlCall = regexp.MustCompile(`\bcurl (?:'[^']*'|"[^"]*"|[^;'"])*`)

// startEverything starts a gateway with the Caddyfile everything.
func startEverything(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{dir: t.TempDir(), recorder: newRecorder(t), ports: map[string]string{}, client: &http.Client{Timeout: time.Minute}}
	for _, address := range []string{adminAddress, alertsAddress} {
		g.ports[address] = "127.0.0.1:" + porttest.Free()
	}
	g.variables = []string{"OPS_TOKEN=" + environment["OPS_TOKEN"], "OPS_READER=" + environment["OPS_READER"]}
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, filepath.Join(g.dir, "log"), "the disk is full\n")
	writeFile(t, g.config, strings.NewReplacer("ADMIN", g.ports[adminAddress], "DIR", filepath.Join(g.dir, "queue"),
		"PORT", g.ports[alertsAddress][strings.LastIndexByte(g.ports[alertsAddress], ':'):],
		"DESTINATION", "json"+strings.TrimPrefix(g.URL, "http")).Replace(everything))
	if err := g.start(t, g.config, g.ports[alertsAddress]); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTextCommands runs the curl and caddy commands in blocks marked text, and the calls of curl in
// crontabs and units.
func TestTextCommands(t *testing.T) {
	g := startEverything(t)
	r, err := http.NewRequest(http.MethodPost, "http://alerts.example.com/notify/jobs", strings.NewReader("body=x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sent, text, err := g.do(r)
	if err != nil || sent.StatusCode != http.StatusOK {
		t.Fatal(text, err)
	}
	values := strings.NewReplacer("$OPS_TOKEN", environment["OPS_TOKEN"], "$OPS_READER", environment["OPS_READER"],
		"$b", "https://alerts.example.com/notify/jobs?beat=backup", "$?", "0", "\\\n",
		" ", "01997f10-4a3b-7c8e-9f1d-2b6c1a5e7d90", sent.Header.Get("X-Message-Id"))
	n := 0
	for _, p := range userPages(t) {
		if slices.Contains([]string{"docs/ask.md", "docs/program-setups.md", "docs/postgres.md"}, p.path) {
			continue // other tests run their scripts
		}
		for _, b := range p.blocks {
			if b.language != "text" && b.language != "ini" || strings.Contains(b.text, "send_at=") { // TestLater runs these
				continue
			}
			for line := range strings.Lines(values.Replace(b.text)) {
				calls := curlCall.FindAllString(line, -1)
				if strings.HasPrefix(line, "caddy ") {
					calls = []string{line}
				}
				for _, call := range calls {
					n++
					if err := g.runText(t, strings.TrimSpace(call)); err != nil {
						t.Errorf("%s: %s: %v", b, call, err)
					}
				}
			}
		}
	}
	if n < 18 {
		t.Errorf("only %d commands were found", n)
	}
}

// runText runs a command of a block marked text.
func (g *gateway) runText(t *testing.T, text string) error {
	t.Helper()
	lines, err := splitShell(text)
	if err != nil {
		return err
	}
	words, parseOnly := lines[0][0], false
	for mark := range notHere {
		parseOnly = parseOnly || strings.HasSuffix(text, mark) || strings.Contains(text, mark) && strings.HasPrefix(text, "caddy ")
	}
	if words[0] == "caddy" {
		if err := g.checkFlags(t, words); err != nil || parseOnly {
			return err
		}
		if out, err := g.caddy(t.Context(), "", append(words[1:], "--address", g.ports[adminAddress])...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	c, err := parseCurl(words, g.dir)
	if err != nil || parseOnly {
		return err
	}
	if c.header.Get("Authorization") == "" && c.user == "" {
		c.header.Set("Authorization", "Bearer "+environment["OPS_TOKEN"]) // the key of the page has no token
	}
	r, err := c.request(g.dir)
	if err != nil {
		return err
	}
	resp, body, err := g.do(r)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return err
}

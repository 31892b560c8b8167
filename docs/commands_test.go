package docs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/smtp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestCommands runs the commands in the pages, compares their output with that
// in the pages, and posts the requests that the pages show as JSON.
func TestCommands(t *testing.T) {
	g := startGateway(t)
	for _, p := range userPages(t) {
		if p.path == "docs/install.md" {
			continue // TestInstall runs its commands
		}
		outputs := make([]*output, len(p.blocks)) // of sh blocks
		for i, b := range p.blocks {
			var of *output
			if b.follows >= 0 {
				of = outputs[b.follows]
			}
			switch {
			case b.language == "sh":
				out, err := g.runBlock(t, b)
				if err != nil {
					t.Errorf("%s: %v", b, err)
				}
				outputs[i] = out
				expected := i+1 < len(p.blocks) && p.blocks[i+1].follows == i && slices.Contains([]string{"text", "json"}, p.blocks[i+1].language)
				if !expected && out.failure != nil {
					t.Errorf("%s: %v", b, out.failure)
				}
			case of != nil && (b.language == "text" || b.language == "json"):
				if !of.ran {
					continue // the output of a program that the test does not run
				}
				if err := compare(b, g.asInPages(of.text)); err != nil {
					t.Errorf("%s: %v\ngot:\n%s", b, err, of.text)
				}
			case b.language == "json" && hasField(b.text, "body"):
				if err := g.post("https://alerts.example.com/notify/ops?tag=all", b.text); err != nil {
					t.Errorf("%s: %v", b, err)
				}
			case b.language == "json" && !hasField(b.text, "apps") && !hasField(b.text, "mcpServers"): // TestAsk uses that
				t.Errorf("%s: this JSON is neither a configuration, a request nor the output of a command", b)
			}
		}
	}
}

// post posts JSON and returns an error unless the status is 200.
func (g *gateway) post(address, body string) error { return g.postWith(address, body, nil) }

// postWith is like post with further headers, as the lines of a file.
func (g *gateway) postWith(address, body string, headers []byte) error {
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	for line := range strings.Lines(string(headers)) {
		name, value, _ := strings.Cut(line, ":")
		r.Header.Set(name, strings.TrimSpace(value))
	}
	resp, answer, err := g.do(r)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	return err
}

// output is what the commands of a block print.
type output struct {
	text    string
	ran     bool  // at least one of them was run
	failure error // an expected error that the page must show
}

// programs lists programs that the test does not run.
var programs = []string{
	"go", "xcaddy", "./xcaddy.sh", "export", "source", "df", "journalctl",
	"docker", "install", "mkdir", "echo", "sha256sum", "systemctl", "useradd",
}

// runSwaks sends the mail of a swaks command.
func (g *gateway) runSwaks(words []string) error {
	option := map[string]string{}
	for i := 1; i+1 < len(words); i += 2 {
		option[words[i]] = words[i+1]
	}
	address := g.ports[strings.Replace(option["--server"], "localhost", "127.0.0.1", 1)]
	mail := option["--header"] + "\r\n\r\n" + option["--body"] + "\r\n"
	return smtp.SendMail(address, nil, "docs@example.com", []string{option["--to"]}, []byte(mail))
}

// runBlock runs the commands of a block.
func (g *gateway) runBlock(t *testing.T, b block) (*output, error) {
	out := &output{}
	lines, err := splitShell(b.text)
	if err != nil {
		return out, err
	}
	for _, stages := range lines {
		stdin := ""
		if len(stages) > 1 {
			stdin = "what another program has printed\n"
		}
		for i, words := range stages {
			last := i == len(stages)-1
			var err error
			switch {
			case slices.Contains(programs, words[0]):
				err = pathsExist(words)
			case words[0] == "curl" && last:
				err = g.runCurl(words, out)
			case words[0] == "swaks" && last:
				err = g.runSwaks(words)
			case words[0] == "caddy" && last:
				err = g.runCaddy(t, words, stdin, out)
			default:
				err = errors.New("unknown program; add it to the test")
			}
			if err != nil {
				return out, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
			}
		}
	}
	return out, nil
}

// pathsExist checks the paths of the repository in a command.
func pathsExist(words command) error {
	for _, w := range words {
		if strings.HasPrefix(w, "./") || w == "Caddyfile.example" {
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(w, "/..."))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gateway) runCurl(words command, out *output) error {
	c, err := parseCurl(g.localArguments(words), g.dir)
	if err != nil {
		return err
	}
	r, err := c.request(g.dir)
	if err != nil {
		return err
	}
	resp, body, err := g.do(r)
	if err != nil {
		return err
	}
	out.ran = true
	out.text += body
	if resp.StatusCode/100 != 2 {
		out.failure = fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return nil
}

// runCaddy runs a caddy command, except those that start or stop a server.
func (g *gateway) runCaddy(t *testing.T, words command, stdin string, out *output) error {
	switch words[1] {
	case "run", "reload", "stop", "completion":
		return nil
	}
	text, err := g.caddy(t.Context(), stdin, g.localArguments(words[1:])...)
	out.ran = true
	out.text += text
	if err != nil {
		out.failure = fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// notificationURL matches a notification URL in a command, except HTTP URLs.
var notificationURL = regexp.MustCompile(`\b[a-z0-9]+://[^\s,"']+`)

// localArguments adapts the arguments of a command: to the ports of the gateways, to
// files in the test's folder, and, after they have been parsed, replaces
// destinations on the Internet by a local one.
func (g *gateway) localArguments(words command) command {
	out := slices.Clone(words)
	dry := slices.Contains(words, "check")
	for i, w := range out {
		w = strings.ReplaceAll(w, standInAddress, g.ports[standInAddress])
		w = strings.ReplaceAll(w, "/etc/caddy/Caddyfile", g.config)
		w = strings.ReplaceAll(w, "/etc/notify.urls", filepath.Join(g.dir, "notify.urls"))
		out[i] = notificationURL.ReplaceAllStringFunc(w, func(u string) string {
			if dry || !onInternet(u) {
				return u
			}
			return "json://" + g.ports[standInAddress] + "/internet"
		})
	}
	return out
}

// onInternet reports whether a text is the URL of a destination whose host is
// not an IP address.
func onInternet(text string) bool {
	if strings.HasPrefix(text, "http") {
		return false
	}
	if _, err := notifier.Parse(text, nil); err != nil {
		return false // the output of the command shows the error
	}
	_, host, _ := strings.Cut(text, "://")
	host, _, _ = strings.Cut(host, "/")
	_, err := netip.ParseAddrPort(host)
	_, err2 := netip.ParseAddr(host)
	return err != nil && err2 != nil
}

// asInPages replaces the addresses in an output by those in the pages.
func (g *gateway) asInPages(text string) string {
	for page, address := range g.ports {
		text = strings.ReplaceAll(text, address, page)
	}
	return text
}

// Text that differs in each run.
var (
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}`)
	elapsed   = regexp.MustCompile(`"elapsed_ms": ?\d+`)
)

// compare reports an error if an output differs from the block.
func compare(b block, got string) error {
	if b.language == "json" {
		return compareJSON(b.text, got)
	}
	want := strings.Split(strings.TrimSpace(b.text), "\n")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	for _, w := range want {
		i := slices.IndexFunc(lines, pattern(w).MatchString)
		if i < 0 {
			return fmt.Errorf("this line is not in the output: %s", w)
		}
		lines = slices.Delete(lines, i, i+1)
	}
	if len(lines) > 0 {
		return fmt.Errorf("this line of the output is not in the page: %s", lines[0])
	}
	return nil
}

// pattern returns a pattern that matches a line of the pages.
func pattern(line string) *regexp.Regexp {
	line = timestamp.ReplaceAllString(strings.TrimRight(line, " \r"), "TIMESTAMP")
	line = regexp.QuoteMeta(elapsed.ReplaceAllString(line, "ELAPSED"))
	for mark, p := range map[string]string{"TIMESTAMP": timestamp.String(), "ELAPSED": elapsed.String(), "…": ".*"} {
		line = strings.ReplaceAll(line, mark, p)
	}
	return regexp.MustCompile("^" + line + "$")
}

// compareJSON compares JSON, ignoring white space and times.
func compareJSON(want, got string) error {
	var texts [2]string
	for i, text := range []string{want, got} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		b, err := json.MarshalIndent(v, "", "\t")
		if err != nil {
			return err
		}
		texts[i] = elapsed.ReplaceAllString(timestamp.ReplaceAllString(string(b), "TIMESTAMP"), "ELAPSED")
	}
	if texts[0] != texts[1] {
		return fmt.Errorf("the output differs; want\n%s", texts[0])
	}
	return nil
}

// TestFlags reports flags of the commands that are missing from their page and from those
// about the queue, to which it leads, and flags in the page that do not exist.
func TestFlags(t *testing.T) {
	g := &gateway{dir: t.TempDir()}
	long := regexp.MustCompile(`--[a-z][a-z-]+`)
	p := readPage(t, "docs/command-line.md")
	told := p.prose + readPage(t, "docs/retries.md").prose + readPage(t, "docs/backup.md").prose
	known := map[string]bool{"--help": true}
	subcommand := regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)
	var read func(words ...string)
	read = func(words ...string) {
		help, err := g.caddy(t.Context(), "", append(words, "--help")...)
		if err != nil {
			t.Fatalf("%v: %s", err, help)
		}
		for _, flag := range long.FindAllString(help, -1) {
			known[flag] = true
			if !strings.Contains(told, flag) {
				t.Errorf("%s does not mention %s of %s", p.path, flag, strings.Join(words, " "))
			}
		}
		_, list, _ := strings.Cut(help, "Available Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range subcommand.FindAllStringSubmatch(list, -1) {
			read(append(slices.Clone(words), m[1])...)
		}
	}
	read("notify")
	if !known["--dry-run"] {
		t.Error("the help of no command was read")
	}
	for _, flag := range long.FindAllString(p.prose, -1) {
		if !known[flag] {
			t.Errorf("%s: there is no flag %s", p.path, flag)
		}
	}
}

// TestMetrics compares the metrics of a gateway with those in their page.
func TestMetrics(t *testing.T) {
	g := startEverything(t)
	if err := g.post("http://alerts.example.com/notify/jobs", `{"body": "x"}`); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	p := readPage(t, "docs/metrics-and-tracing.md")
	for _, m := range regexp.MustCompile("(?m)^\\| `(caddy_notify_\\w+)`").FindAllStringSubmatch(p.prose, -1) {
		want = append(want, m[1])
	}
	slices.Sort(want)
	for end := time.Now().Add(10 * time.Second); !slices.Equal(got, want); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) { // what needs an old secret is not known at once
			t.Fatalf("the gateway has %q, the page lists %q", got, want)
		}
		r, err := http.NewRequest(http.MethodGet, "http://"+adminAddress+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, text, err := g.do(r)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (caddy_notify_\w+)`).FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
	}
}

package caddyhttp

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// entriesOf returns the number of log entries that a message has.
func entriesOf(body string) (n int) {
	if _, err := fmt.Sscanf(body, "%d entr", &n); err != nil {
		return 1
	}
	return n
}

// logging returns global options with a log of errors for the key ops. Caddy
// keeps an open log writer if the next one has the same settings, so each test
// has another interval.
func logging(url string, interval time.Duration) string {
	return "notify {\nkey ops {\nurl " + url + "\n}\n}\nlog {\noutput notify ops {\ninterval " +
		interval.String() + "\nmax 2\n}\nlevel ERROR\n}"
}

// anInterval returns a different interval of about an hour each time.
func anInterval() time.Duration { return time.Hour + time.Duration(rand.IntN(1_000_000_000)) }

// broken is a site that logs an error for each request.
var broken = caddyhttptest.Server + " {\nnotify /notify*\nreverse_proxy 127.0.0.1:1\n}\n"

// TestLogStorm checks that many errors are sent as few messages, that none is
// lost when Caddy stops, and that a failed delivery causes no further message.
func TestLogStorm(t *testing.T) {
	caddyhttptest.ReplaceShared(t) // Caddy keeps its log open
	s := gatewaytest.NewStation(t)
	caddyhttptest.StartCaddy(t, logging(s.NotifyURL("/refuse"), anInterval()), broken)
	const n = 200
	for range n {
		if got := caddyhttptest.Do(t, http.MethodGet, caddyhttptest.Server+"/x", ""); got.Status != http.StatusBadGateway {
			t.Fatalf("status %d", got.Status)
		}
	}
	first := s.Arrives(t, "ERROR")
	if status, body := caddyhttptest.Send(t.Context(), t, "/notify/ops", "title=posted&body=x"); status != 424 {
		t.Errorf("status %d: %s", status, body)
	}
	// If the next configuration has no gateway, the reload waits until the
	// collected entries are sent.
	caddyhttptest.StartCaddy(t, "", emptySite)
	total, posted := 0, 0
	messages := s.Take()
	for _, m := range messages {
		if m.Title == "posted" {
			posted++
			continue
		}
		if m.Type != "failure" || !strings.Contains(m.Message, "connection refused") {
			t.Errorf("got %+v", m)
		}
		total += entriesOf(m.Message)
	}
	if total != n || posted != 1 || len(messages) > 1+2 {
		t.Errorf("%d messages have %d entries, want %d; the first was %+v", len(messages), total, n, first)
	}
}

// TestLogWriterAfterReload checks that a log writer which Caddy keeps over a reload
// uses the keys of the new configuration.
func TestLogWriterAfterReload(t *testing.T) {
	caddyhttptest.ReplaceShared(t) // Caddy keeps its log open
	s := gatewaytest.NewStation(t)
	interval := anInterval()
	caddyhttptest.StartCaddy(t, logging(s.NotifyURL("/old"), interval), broken)
	caddyhttptest.StartCaddy(t, logging(s.NotifyURL("/new"), interval), broken)
	caddyhttptest.Do(t, http.MethodGet, caddyhttptest.Server+"/x", "")
	caddyhttptest.StartCaddy(t, "", emptySite)
	if got := s.One(t); got.Path != "/new" || !strings.Contains(got.Message, "GET "+caddyhttptest.Site+"/x") {
		t.Errorf("got %+v", got)
	}
}

// helperConfig is the environment variable with the Caddyfile for TestCaddy.
const helperConfig = "NOTIFY_TEST_CADDYFILE"

// TestCaddy runs Caddy in a child process of another test.
func TestCaddy(t *testing.T) {
	file := os.Getenv(helperConfig)
	if file == "" {
		t.Skip("only runs in a child process")
	}
	os.Args = []string{"caddy", "run", "--config", file, "--adapter", "caddyfile"}
	caddycmd.Main()
}

// caddyWith returns a command that runs Caddy with a Caddyfile.
func caddyWith(t *testing.T, file string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestCaddy$")
	c.Env = append(os.Environ(), helperConfig+"="+file)
	return c
}

// TestExit checks that the message about Caddy's exit and the collected log
// entries are sent before it exits.
func TestExit(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := gatewaytest.NewStation(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	address := porttest.Address()
	config := "{\nadmin off\npersist_config off\n" + logging(s.NotifyURL("/ops"),
		anInterval()) + "\nevents {\non started notify ops\non stopping notify ops\n}\n}\n" +
		"http://" + address + " {\nreverse_proxy 127.0.0.1:1\n}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := caddyWith(t, file)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.Arrives(t, "Caddy has started")
	resp, err := http.Get("http://" + address + "/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, m := range s.Take() {
		titles[m.Title] = true
	}
	if !titles["Caddy is stopping"] || len(titles) != 3 {
		t.Errorf("got %v", titles)
	}
}

// TestFailedStart checks that the reason is on standard error if Caddy cannot
// start and its log goes to the gateway.
func TestFailedStart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program")
	}
	for name, tt := range map[string]struct{ url, key, want string }{
		"a variable that is not set": {"{env.NOTIFY_TEST_UNSET}", "ops", "key ops, URL 1: {env.NOTIFY_TEST_UNSET} has no value"},
		"a key that does not exist":  {"json://127.0.0.1:1", "nope", "the global option notify has no key nope"},
	} {
		file := filepath.Join(t.TempDir(), "Caddyfile")
		config := "{\nadmin off\npersist_config off\nnotify {\nkey ops {\n" +
			"url " + tt.url + "\n}\n}\nlog {\noutput notify " + tt.key + "\nlevel ERROR\n}\n}\n"
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		c := caddyWith(t, file)
		var errs strings.Builder
		c.Stderr = &errs
		if err := c.Run(); err == nil {
			t.Errorf("%s: Caddy has started", name)
		}
		if !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%s: standard error has no %q:\n%s", name, tt.want, errs.String())
		}
	}
}

package safety

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// initDestination is a destination that keeps the messages which it gets.
func initDestination(t *testing.T) (url string, messages chan string) {
	t.Helper()
	messages = make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		messages <- string(b)
	}))
	t.Cleanup(s.Close)
	return "json" + strings.TrimPrefix(s.URL, "http") + "/", messages
}

// arrives waits for the next message and reports one without the text.
func arrives(t *testing.T, messages chan string, text string) {
	t.Helper()
	select {
	case m := <-messages:
		if !strings.Contains(m, text) {
			t.Errorf("the message is %s, want %q", m, text)
		}
	case <-time.After(time.Minute):
		t.Fatalf("no message arrives, want %q", text)
	}
}

// initiated runs what init has written, and sends with the command that it has printed.
// It reports a warning in the log.
func initiated(t *testing.T, env []string, output, port, text string, messages chan string) {
	t.Helper()
	run := regexp.MustCompile(`(?m)^  caddy (run --config .*)$`).FindStringSubmatch(output)
	curl := regexp.MustCompile(`(?m)^  (curl .*)$`).FindStringSubmatch(output)
	if run == nil || curl == nil {
		t.Fatalf("the commands are missing:\n%s", output)
	}
	var log bytes.Buffer
	cmd := exec.Command(program, strings.Fields(run[1])...)
	cmd.Env, cmd.Stderr, cmd.Stdout = env, &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	}
	for {
		r, err := http.Get("http://127.0.0.1:" + port)
		if err == nil {
			r.Body.Close()
			break
		}
		select {
		case <-ended:
			t.Fatalf("caddy has ended:\n%s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	out, err := exec.Command("sh", "-c", strings.Replace(curl[1], "curl ", "curl -fsS ", 1)).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", curl[1], err, out)
	} else {
		arrives(t, messages, text)
	}
	stop()
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"level":"warn"`) && strings.Contains(line, "notify") || strings.Contains(line, `"level":"error"`) {
			t.Errorf("the log has %s", line)
		}
	}
}

// initEnv returns the environment of a newcomer with an empty home folder.
func initEnv(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	return []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home,
		"PATH=" + os.Getenv("PATH"), "CADDY_ADMIN=127.0.0.1:" + porttest.Free(),
	}
}

// TestInit runs `caddy notify init` as a script does, the gateway that it has written,
// and the curl command that it prints.
func TestInit(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	url, messages := initDestination(t)
	env, out, port := initEnv(t), filepath.Join(t.TempDir(), "notify"), porttest.Free()
	cmd := exec.Command(program, "notify", "init", "--out", out, "--site", ":"+port, "--to", "@-")
	cmd.Env, cmd.Stdin = env, strings.NewReader(url+"\n")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	arrives(t, messages, "It works")
	err = filepath.Walk(out, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	initiated(t, env, string(text), port, "91% full", messages)

	// A stranger may not send, and nothing is written twice.
	again := exec.Command(program, "notify", "init", "--out", out, "--to", url)
	again.Env = env
	if text, err := again.CombinedOutput(); err == nil || !strings.Contains(string(text), "exists already, so nothing was written") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// openTerminal returns both ends of a terminal: what a person types and reads, and the
// standard input of a program.
func openTerminal(t *testing.T) (person, standard *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals: ", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	standard, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { standard.Close() })
	return person, standard
}

// TestInitTerminal answers the questions of `caddy notify init` in a terminal.
func TestInitTerminal(t *testing.T) {
	t.Parallel()
	url, messages := initDestination(t)
	person, standard := openTerminal(t)
	out := filepath.Join(t.TempDir(), "notify")
	var text bytes.Buffer
	cmd := exec.Command(program, "notify", "init", "--out", out)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = initEnv(t), standard, &text, &text
	if _, err := person.WriteString("\n" + url + "\n\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, text.String())
	}
	for _, want := range []string{"1. Who may send", "2. Where do messages go", "3. Keep messages", "delivered  JSON"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, text.String())
		}
	}
	arrives(t, messages, "It works")
	config, err := os.ReadFile(filepath.Join(out, "Caddyfile"))
	if err != nil || !strings.Contains(string(config), "\n\t\tqueue\n") || !strings.Contains(string(config), "bind 127.0.0.1\n") {
		t.Errorf("%v:\n%s", err, config)
	}
}

package safety

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is the gateway, built once for all tests.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "notify-safety-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "caddy")
	build := exec.Command("go", "build", "-o", program, "../cmd/caddy")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the gateway:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// gateway is a gateway that runs.
type gateway struct {
	t        *testing.T
	url      string // of its site
	adminURL string
	tmp      string // where its temporary files go
	logFile  string // what it writes to standard error
	port     string
	admin    string
	command  *exec.Cmd
	ended    chan error
}

// start runs a gateway whose notify directive has what stands in block, with
// more global options and environment variables.
func start(t *testing.T, options, block string, env ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{
		t: t, port: freePort(t), admin: "127.0.0.1:" + freePort(t),
		tmp: filepath.Join(dir, "tmp"), logFile: filepath.Join(dir, "log"), ended: make(chan error, 1),
	}
	g.url, g.adminURL = "http://127.0.0.1:"+g.port, "http://"+g.admin
	if err := os.Mkdir(g.tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(g.caddyfile(options, block)), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(g.logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	g.command = exec.Command(program, "run", "--config", config)
	g.command.Env = append([]string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir, "TMPDIR=" + g.tmp, "PATH=" + os.Getenv("PATH")}, env...)
	g.command.Stdout, g.command.Stderr = log, log
	if err := g.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { g.ended <- g.command.Wait() }()
	t.Cleanup(func() {
		_ = g.command.Process.Kill()
		<-g.ended
	})
	eventually(t, "the gateway answers", func() bool {
		select {
		case err := <-g.ended:
			g.ended <- err
			t.Fatalf("the gateway ended: %v\n%s", err, g.log())
		default:
		}
		resp, err := http.Get(g.url + "/up")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == 200
	})
	return g
}

// caddyfile is the configuration of the gateway.
func (g *gateway) caddyfile(options, block string) string {
	return fmt.Sprintf(`{
	admin %s
	auto_https off
	persist_config off
	%s
}
http://127.0.0.1:%s {
	bind 127.0.0.1
	log
	respond /up up
	notify {
		%s
	}
}
`, g.admin, options, g.port, block)
}

// reload gives the running gateway another configuration.
func (g *gateway) reload(options, block string) {
	g.t.Helper()
	resp, err := http.Post(g.adminURL+"/load", "text/caddyfile", strings.NewReader(g.caddyfile(options, block)))
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		text, err := io.ReadAll(resp.Body)
		g.t.Fatalf("reload: %s %s %v", resp.Status, text, err)
	}
}

// stop ends the gateway as a service manager does.
func (g *gateway) stop() error {
	if err := g.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-g.ended
	g.ended <- err
	return err
}

func (g *gateway) log() string {
	text, err := os.ReadFile(g.logFile)
	if err != nil {
		g.t.Error(err)
	}
	return string(text)
}

// reply is an answer of the gateway, which was asked for in JSON.
type reply struct {
	Status  int
	Body    string
	Header  http.Header
	Error   string
	Details [][3]string
	Results []result
}

type result struct {
	Service     string
	Destination string
	Status      string
	Attempts    int
	Error       string
}

// text is all that the answer says about what went wrong.
func (r reply) text() string {
	text := r.Error
	for _, x := range r.Results {
		text += "\n" + x.Error
	}
	return text
}

// message is what clients send as JSON.
type message map[string]any

// post sends a message as JSON.
func (g *gateway) post(path string, m message) reply {
	g.t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.do(path, "application/json", bytes.NewReader(body))
}

func (g *gateway) do(path, contentType string, body io.Reader) reply {
	g.t.Helper()
	r, err := http.NewRequest(http.MethodPost, g.url+path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	return g.ask(r)
}

func (g *gateway) ask(r *http.Request) reply {
	g.t.Helper()
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		return reply{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	out := reply{Status: resp.StatusCode, Body: string(text), Header: resp.Header}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(text, &out); err != nil {
			g.t.Errorf("the answer is no JSON: %v\n%s", err, text)
		}
	}
	return out
}

// get reads an address of the site, the admin API or the metrics.
func (g *gateway) get(address, accept string) (int, string) {
	g.t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Error(err)
	}
	return resp.StatusCode, string(text)
}

var goroutineTotal = regexp.MustCompile(`goroutine profile: total (\d+)`)

// goroutines are those of the gateway, and what they do.
func (g *gateway) goroutines() (int, string) {
	g.t.Helper()
	_, text := g.get(g.adminURL+"/debug/pprof/goroutine?debug=1", "*/*")
	m := goroutineTotal.FindStringSubmatch(text)
	if m == nil {
		g.t.Fatalf("no goroutines in %q", text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		g.t.Fatal(err)
	}
	return n, text
}

// files are those of messages: what there is in the gateway's temporary folder,
// and files without a name that it has open.
func (g *gateway) files() []string {
	g.t.Helper()
	out, err := filepath.Glob(filepath.Join(g.tmp, "*"))
	if err != nil {
		g.t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/fd", g.command.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out // another system
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, g.tmp) {
			out = append(out, to)
		}
	}
	return out
}

var memoryLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peak is the most memory that the gateway has had so far, in bytes.
func (g *gateway) peak() int64 {
	g.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.command.Process.Pid))
	m := memoryLine.FindSubmatch(status)
	if err != nil || m == nil {
		g.t.Skip("the system does not say how much memory a process has")
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		g.t.Fatal(err)
	}
	return n << 10
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// eventually waits for what is bound to come.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("it did not come to pass that %s", what)
}

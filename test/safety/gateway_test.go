package safety

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	// Imports the program's code, so that the go command does not use a
	// cached test result after a change.
	_ "github.com/caddy-notify/caddy-notify"
	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// program is the path of the gateway, built once for all tests.
var program string

// programVariable is the environment variable with the path of an existing
// build of the gateway.
const programVariable = "SAFETY_PROGRAM"

// full reports whether tests use all their cases. Without it, those whose comments
// name it make fewer repetitions, or use a sample that has each kind of case.
var full = racetest.All()

// busy reports whether the machine does much else while the tests run, as in .ci/run.
var busy = racetest.Enabled || os.Getenv("CI") != ""

// soak reports whether SAFETY_SOAK is set, as .ci/run does. The tests of the
// queue whose comments name it then do more of the same.
var soak = os.Getenv("SAFETY_SOAK") != ""

// amount returns most if all is true, and else few.
func amount(all bool, most, few int) int {
	if all {
		return most
	}
	return few
}

// seconds returns the time, as a Caddyfile has it, after which something is too slow: n
// seconds, and five times as long on a busy machine, where everything else takes longer.
func seconds(n int) string { return strconv.Itoa(amount(busy, 5*n, n)) + "s" }

func TestMain(m *testing.M) {
	// A test that runs itself again in a network namespace passes the program on.
	if program = os.Getenv(programVariable); program != "" {
		if os.Getenv(noSyncVariable) != "" {
			fmt.Fprintln(os.Stderr, runWithoutSync())
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "notify-safety-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "caddy")
	// Unlike go build, go run keeps what it links in the build cache. Like
	// xcaddy.sh, without debugging information, which makes linking slower. Stack
	// traces do not need it. Users have the newest Caddy; the tests of packages have the oldest.
	build := exec.Command("go", "run", "-exec=cp", "-modfile=../../newest.mod", "-ldflags=-s -w",
		"-race="+strconv.FormatBool(racetest.Enabled), "../../cmd/caddy", program)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the gateway:", err)
		os.Exit(1)
	}
	// The tests mostly wait for timeouts: unless -parallel is given, more of
	// them run at once than there are processors.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(amount(busy, 4, 10)*runtime.GOMAXPROCS(0)))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// gateway is a running gateway.
type gateway struct {
	t        *testing.T
	url      string // base URL of the site
	adminURL string
	tmp      string // the folder of its temporary files
	logFile  string // standard error of its processes
	program  string
	config   string // the Caddyfile
	env      []string
	host     string // of 127.0.0.0/8, its own
	port     string
	admin    string       // the admin API accepts requests to no other address of 127.0.0.0/8 by itself
	client   *http.Client // connects to this gateway only
	command  *exec.Cmd
	ended    chan error
}

// start runs a gateway whose notify directive contains block, with
// additional global options and environment variables. SELF in block is
// replaced by the gateway's address.
func start(t *testing.T, options, block string, env ...string) *gateway {
	t.Helper()
	g := prepare(t, options, block, env...)
	g.run()
	return g
}

// prepare returns a gateway that has a configuration but does not run yet.
func prepare(t *testing.T, options, block string, env ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{
		t: t, program: program, host: porttest.Host(), port: porttest.Free(), admin: "127.0.0.1:" + porttest.Free(),
		tmp: filepath.Join(dir, "tmp"), logFile: filepath.Join(dir, "log"),
		client: &http.Client{Transport: new(http.Transport)},
	}
	t.Cleanup(g.client.CloseIdleConnections)
	g.url, g.adminURL = "http://"+g.address(), "http://"+g.admin
	if err := os.Mkdir(g.tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.logFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.config, g.env = filepath.Join(dir, "Caddyfile"), append([]string{
		"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir,
		"TMPDIR=" + g.tmp, "PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"),
	}, env...)
	g.configure(options, block)
	t.Cleanup(func() {
		g.kill()
		if _, race, found := strings.Cut(g.log(), "WARNING: DATA RACE"); found {
			t.Errorf("a data race in the gateway:%.5000s", race)
		}
	})
	return g
}

// address returns the address of the site.
func (g *gateway) address() string { return g.host + ":" + g.port }

// self returns a text in which SELF is the address of the site.
func (g *gateway) self(text string) string { return strings.ReplaceAll(text, "SELF", g.address()) }

// configure writes the configuration that run loads.
func (g *gateway) configure(options, block string) {
	g.t.Helper()
	if err := os.WriteFile(g.config, []byte(g.caddyfile(options, block)), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// begin starts the process. It must not run already.
func (g *gateway) begin() {
	g.t.Helper()
	log, err := os.OpenFile(g.logFile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	defer log.Close()
	g.command = exec.Command(g.program, "run", "--config", g.config)
	g.command.Env = g.env
	g.command.Stdout, g.command.Stderr = log, log
	if err := g.command.Start(); err != nil {
		g.t.Fatal(err)
	}
	command, ended := g.command, make(chan error, 1)
	g.ended = ended
	go func() { ended <- command.Wait() }()
}

// run starts the process and waits until it answers and all apps have started.
// After kill or stop, it starts it again, with the same addresses and folders.
func (g *gateway) run() {
	g.t.Helper()
	g.begin()
	eventually(g.t, "the gateway answers", func() bool {
		select {
		case err := <-g.ended:
			g.ended <- err
			g.t.Fatalf("the gateway ended: %v\n%s", err, g.log())
		default:
		}
		resp, err := g.client.Get(g.url + "/up")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == 200
	})
	// Caddy starts the apps in no fixed order, so the one for HTTP may answer
	// before the others run. It shows the configuration when all have started.
	if status, text := g.get(g.adminURL+"/config/", "application/json"); status != 200 {
		g.t.Fatalf("the gateway's configuration: status %d: %s", status, text)
	}
}

// kill ends the gateway with SIGKILL.
func (g *gateway) kill() {
	if g.command == nil {
		return
	}
	_ = g.command.Process.Kill()
	g.ended <- <-g.ended
}

// caddyfile returns the configuration of the gateway.
func (g *gateway) caddyfile(options, block string) string {
	return fmt.Sprintf(`{
	admin %s
	auto_https off
	persist_config off
	%s
}
http://%s {
	bind %s
	log
	respond /up up
	notify {
		%s
	}
}
`, g.admin, options, g.address(), g.host, g.self(block))
}

// reload loads another configuration. The admin API restarts with each, and may
// close a connection that its old socket has not accepted. A server that the
// configuration replaces closes idle connections, which must not be used again.
func (g *gateway) reload(options, block string) {
	g.t.Helper()
	defer g.client.CloseIdleConnections()
	var resp *http.Response
	eventually(g.t, "the admin API answers", func() bool {
		var err error
		resp, err = g.client.Post(g.adminURL+"/load", "text/caddyfile", strings.NewReader(g.caddyfile(options, block)))
		return err == nil
	})
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		text, err := io.ReadAll(resp.Body)
		g.t.Fatalf("reload: %s %s %v", resp.Status, text, err)
	}
}

// keepConnection opens a connection to the site and keeps it idle. released waits
// until the gateway closes it, which it does after a reload when the old server
// has stopped accepting connections. Later requests of g get responses of the new
// configuration. Once, a request after a reload could be the first one on a
// connection that the old server closed, or was about to close.
func (g *gateway) keepConnection() (released func()) {
	g.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { conn.Close() })
	r, err := http.NewRequest(http.MethodGet, g.url+"/up", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := r.Write(conn); err != nil {
		g.t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, r)
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		g.t.Fatal(err)
	}
	return func() {
		g.t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if _, err := from.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) {
			g.t.Fatal("the old server does not end after a reload")
		}
		g.client.CloseIdleConnections()
	}
}

// stop ends the gateway with SIGTERM, as a service manager does.
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

// reply is a response of the gateway to a request for JSON.
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

// text returns all errors of the response.
func (r reply) text() string {
	text := r.Error
	for _, x := range r.Results {
		text += "\n" + x.Error
	}
	return text
}

// message is the JSON body of a request.
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
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Minute) // no response takes that long
	defer cancel()
	resp, err := g.client.Do(r.WithContext(ctx))
	// The gateway closes the connection after a response to a request that it has
	// not read to its end. The client can miss the response while it still writes.
	for range 5 {
		if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) || r.GetBody == nil {
			break
		}
		if r.Body, err = r.GetBody(); err == nil {
			resp, err = g.client.Do(r.WithContext(ctx))
		}
	}
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
			g.t.Errorf("the response is not JSON: %v\n%s", err, text)
		}
	}
	return out
}

// get requests an address of the site or the admin API, and returns the status
// and the body.
func (g *gateway) get(address, accept string) (int, string) {
	g.t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := g.client.Do(r)
	for n := 0; err != nil && n < 30; n++ { // a reload resets connections that the old server has not accepted
		time.Sleep(50 * time.Millisecond)
		resp, err = g.client.Do(r)
	}
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

// goroutines counts the goroutines of a gateway.
type goroutines struct {
	own  int    // those that run its code or serve its connections
	all  int    // with Caddy's
	text string // their stacks
}

// ownGoroutine matches the stacks of goroutines that belong to the gateway: in
// its code, in libraries that only it uses, or serving a connection that it has
// opened.
var ownGoroutine = regexp.MustCompile(`github\.com/(caddy-notify|eclipse|linxGnu|` +
	`wneessen)/|mellium\.im/|net/http\.\(\*(persistConn|Transport|http2ClientConn)\)|` +
	`net\.\(\*(Dialer|Resolver|sysDialer)\)|crypto/tls\.\(\*Conn\)`)

var goroutineTotal = regexp.MustCompile(`goroutine profile: total (\d+)`)

// goroutines counts the goroutines of the gateway. It first closes the test's
// idle connections, each of which has a goroutine in the gateway.
func (g *gateway) goroutines() (n goroutines) {
	g.t.Helper()
	g.client.CloseIdleConnections()
	_, n.text = g.get(g.adminURL+"/debug/pprof/goroutine?debug=1", "*/*")
	m := goroutineTotal.FindStringSubmatch(n.text)
	if m == nil {
		g.t.Fatalf("no goroutines in %q", n.text)
	}
	n.all = g.number(m[1])
	for stack := range strings.SplitSeq(n.text, "\n\n") { // one stack for all goroutines that share it
		if m := stackSize.FindStringSubmatch(stack); m != nil && ownGoroutine.MatchString(stack) {
			n.own += g.number(m[1])
		}
	}
	return n
}

var stackSize = regexp.MustCompile(`(?m)^(\d+) @ `)

func (g *gateway) number(text string) int {
	g.t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// waitIdle waits until the gateway has no file of a message, and no more of its
// goroutines than before. Caddy may have a few more.
func (g *gateway) waitIdle(before goroutines) {
	g.t.Helper()
	const coming = 3
	var now goroutines
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if now = g.goroutines(); now.own <= before.own && now.all <= before.all+coming && len(g.files()) == 0 {
			return
		}
	}
	g.t.Errorf("the gateway has %d goroutines of its own (%d before) and %d in total (%d before); files: %v\n%s",
		now.own, before.own, now.all, before.all, g.files(), now.text)
}

// files returns the files of messages: those in the gateway's temporary folder,
// and open ones that have no name any more.
func (g *gateway) files() []string {
	g.t.Helper()
	out, err := filepath.Glob(filepath.Join(g.tmp, "*"))
	if err != nil {
		g.t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/fd", g.command.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out // not on Linux
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, g.tmp) {
			out = append(out, to)
		}
	}
	return out
}

var memoryLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peak returns the maximum of the gateway's memory so far, in bytes.
func (g *gateway) peak() int64 {
	g.t.Helper()
	if racetest.Enabled {
		return g.memory().Sys // without the memory of the race detector
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.command.Process.Pid))
	m := memoryLine.FindSubmatch(status)
	if err != nil || m == nil {
		g.t.Skip("the system does not report the memory of a process")
	}
	return int64(g.number(string(m[1]))) << 10
}

// memory returns the memory statistics of the gateway's Go runtime, in bytes.
func (g *gateway) memory() (m struct{ HeapAlloc, Sys int64 }) {
	g.t.Helper()
	// The heap profile first collects garbage.
	if code, _ := g.get(g.adminURL+"/debug/pprof/heap?gc=1", "*/*"); code != 200 {
		g.t.Fatalf("the heap profile has status %d", code)
	}
	_, text := g.get(g.adminURL+"/debug/vars", "*/*")
	vars := struct{ Memstats any }{&m}
	if err := json.Unmarshal([]byte(text), &vars); err != nil || m.Sys == 0 {
		g.t.Fatalf("no memory in %.300q: %v", text, err)
	}
	return m
}

// waitFreed waits until the gateway's heap is at most a little larger than
// before.
func (g *gateway) waitFreed(before int64) {
	g.t.Helper()
	const little = 4 << 20
	eventually(g.t, "the memory returns to where it was", func() bool { return g.memory().HeapAlloc <= before+little })
}

// eventually waits until is returns true. It fails the test after a minute,
// which is long enough for a busy machine.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("timed out; want: %s", what)
}

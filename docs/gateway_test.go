package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// gateway is a Caddy that runs Caddyfile.example, and a second one with the
// site alerts.example.com, which has a key ops. Requests to their addresses in
// the pages go to the ports that they listen on.
type gateway struct {
	dir    string            // the working directory of commands
	config string            // the Caddyfile of the first
	ports  map[string]string // by address in the pages
	client *http.Client

	variables []string // of the environment, besides those that every Caddy has
	*recorder
}

// recorder is the destination of the keys of alerts.example.com.
type recorder struct {
	*httptest.Server
	mu    sync.Mutex
	last  message
	about string           // the incident of last
	tls   *httptest.Server // with an untrusted certificate
}

// message is a message as the service json sends it.
type message struct {
	Title   string `json:"title"`
	Message string `json:"message"`
	Type    string `json:"type"`
}

// newRecorder starts a recorder. Its path /slow answers late, and paths such as
// /401 answer with that status.
func newRecorder(t *testing.T) *recorder {
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var m struct {
			message
			Incident string `json:"incident"`
		}
		if err := json.NewDecoder(req.Body).Decode(&m); err != nil {
			t.Errorf("destination %s: not a message: %v", req.URL.Path, err)
		}
		r.mu.Lock()
		r.last, r.about = m.message, m.Incident
		r.mu.Unlock()
		var status int
		if n, _ := fmt.Sscanf(req.URL.Path, "/%d", &status); n == 1 {
			w.WriteHeader(status)
		}
		if req.URL.Path == "/slow" {
			<-req.Context().Done()
		}
	}))
	t.Cleanup(r.Close)
	r.tls = httptest.NewUnstartedServer(http.NotFoundHandler())
	r.tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.tls.StartTLS()
	t.Cleanup(r.tls.Close)
	return r
}

// take returns the latest message and forgets it.
func (r *recorder) take() (m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, r.last = r.last, m
	return m
}

// incident returns the incident of the latest message.
func (r *recorder) incident() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.about
}

// The addresses in the pages, except https://alerts.example.com.
const (
	exampleAddress = "127.0.0.1:8080"
	prefixAddress  = "127.0.0.1:8081"
	standInAddress = "127.0.0.1:9000"
	mailAddress    = "127.0.0.1:2525"
	adminAddress   = "localhost:2019"
	alertsAddress  = "alerts.example.com"
)

// startGateway starts a gateway that ends with the test.
func startGateway(t *testing.T) *gateway {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Caddyfile.example"))
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{dir: t.TempDir(), recorder: newRecorder(t), ports: map[string]string{}}
	for _, address := range []string{exampleAddress, prefixAddress, standInAddress, mailAddress, adminAddress, alertsAddress} {
		g.ports[address] = "127.0.0.1:" + porttest.Free()
	}
	g.client = &http.Client{Timeout: time.Minute}
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, g.config, g.example(string(content)))
	alerts := filepath.Join(g.dir, "alerts.caddyfile")
	writeFile(t, alerts, g.alerts())
	if err := os.Mkdir(filepath.Join(g.dir, "apprise-config"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"apprise-config/ops.cfg":  "json://127.0.0.1:9000/all\nchat=json://127.0.0.1:9000/chat\ndbus://\n",
		"apprise-config/home.cfg": "me=json://127.0.0.1:9000/me\n",
		"apprise.env":             "PATH=/bin\nAPPRISE_WEBHOOK_URL=https://example.com/\n",
		"backup.log":              "done\n", "disk.log": "91%\n", "graph.png": "\x89PNG\r\n\x1a\n",
		"payload.json": `{"status":"firing","groupLabels":{"alertname":"DiskFull"},` +
			`"commonLabels":{"severity":"critical"},"externalURL":"http://am.example.net","alerts":[` +
			`{"status":"firing","annotations":{"summary":"91% full on db1"}},{"status":"resolved","annotations":{"summary":"db3 is fine again"}}]}`,
		"backup.json": `{"job":"nightly","host":"db1","state":"broken","message":"Disk full"}`,
		"notify.urls": "json://" + g.ports[standInAddress] + "/file # a comment\n",
	} {
		writeFile(t, filepath.Join(g.dir, name), content)
	}
	if err := g.start(t, g.config, g.ports[adminAddress]); err != nil {
		t.Fatal(err)
	}
	if err := g.start(t, alerts, g.ports[alertsAddress]); err != nil {
		t.Fatal(err)
	}
	return g
}

// example returns Caddyfile.example with other ports.
func (g *gateway) example(text string) string {
	var ports []string
	for _, address := range []string{exampleAddress, prefixAddress, standInAddress, mailAddress} {
		_, port, _ := net.SplitHostPort(address)
		_, free, _ := net.SplitHostPort(g.ports[address])
		ports = append(ports, ":"+port, ":"+free)
	}
	text = strings.NewReplacer(ports...).Replace(text)
	return strings.Replace(text, "\n{\n", "\n{\nadmin "+g.ports[adminAddress]+"\n", 1)
}

// alerts returns the Caddyfile of alerts.example.com, and of
// closed.example.com, which accepts fewer requests.
func (g *gateway) alerts() string {
	return strings.NewReplacer(
		"PORT", g.ports[alertsAddress][strings.LastIndexByte(g.ports[alertsAddress], ':'):],
		"TLS", "json"+strings.TrimPrefix(g.tls.URL, "http"),
		"DESTINATION", "json"+strings.TrimPrefix(g.URL, "http"),
	).Replace(`{
	admin off
}
http://alerts.example.comPORT {
	bind 127.0.0.1
	notify {
		key ops {
			url DESTINATION/ chat urgent
		}
		key only {
			url DESTINATION/
			accept direct
		}
		from signed {
			title "{{.title}}"
			sign github secret
		}
		from locked {
			title "{{.title}}"
			token secret
		}
		key slow {
			url DESTINATION/slow
		}
		key 401 {
			url DESTINATION/401
		}
		key 404 {
			url DESTINATION/404
		}
		key 429 {
			url DESTINATION/429
		}
		key refused {
			url json://127.0.0.1:1/
		}
		key tls {
			url TLS
		}
		timeout 500ms
	}
	respond 404
}
http://closed.example.comPORT {
	bind 127.0.0.1
	notify {
		stateless off
		max_body 1KiB
		key ops {
			url DESTINATION/
		}
	}
	respond 404
}
`)
}

// start starts Caddy and waits until it answers at an address.
func (g *gateway) start(t *testing.T, config, address string) error {
	cmd := exec.Command(os.Args[0], "run", "--config", config, "--adapter", "caddyfile")
	cmd.Env = g.environment()
	cmd.Dir = g.dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for {
		if r, err := g.client.Get("http://" + address); err == nil {
			r.Body.Close()
			return nil
		}
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("caddy has ended: %v\n%s", err, output.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// environment returns the environment of Caddy and of the caddy commands.
func (g *gateway) environment() []string {
	env := []string{asCaddy + "=1", "HOME=" + g.dir, "XDG_DATA_HOME=" + g.dir, "XDG_CONFIG_HOME=" + g.dir}
	for _, name := range []string{"PATH", "TMPDIR", "GOCOVERDIR", "GORACE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, g.variables...)
}

// caddy runs a caddy command and returns what it prints.
func (g *gateway) caddy(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Dir, cmd.Stdin = g.environment(), g.dir, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do sends a request to an address from the pages.
func (g *gateway) do(r *http.Request) (*http.Response, string, error) {
	address, ok := g.ports[r.URL.Host]
	if !ok && strings.HasSuffix(r.URL.Host, ".example.com") {
		address, ok = g.ports[alertsAddress]
	}
	if !ok {
		return nil, "", fmt.Errorf("unknown host %s; add it to the test", r.URL.Host)
	}
	if r.URL.Host == adminAddress {
		r.Host = address // the admin API accepts only its own name
	}
	r.URL.Scheme, r.URL.Host = "http", address
	resp, err := g.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

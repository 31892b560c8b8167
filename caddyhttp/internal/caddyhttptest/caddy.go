// Package caddyhttptest runs Caddy for the tests of package caddyhttp and of the packages below
// it.
package caddyhttptest

import (
	"archive/tar"
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // the directives

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// Addresses of the Caddy that StartCaddy runs. No other process has them, so that
// several can run tests at the same time.
var (
	host       = porttest.Host()
	sitePort   = porttest.Free()
	Site       = host + ":" + sitePort // for sites without TLS
	SecurePort = porttest.Free()       // for sites with TLS
	Secure     = host + ":" + SecurePort
	Server     = "http://" + Site               // the URL of Site
	Admin      = "localhost:" + porttest.Free() // of the admin API
)

// StartCaddy runs Caddy with global options and sites until the end of the
// test. If Caddy is running, it is reloaded. With -short, it skips the test.
func StartCaddy(t *testing.T, options, sites string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(`{
	admin `+Admin+`
	skip_install_trust
	default_bind `+host+`
	http_port `+sitePort+`
	https_port `+SecurePort+`
	persist_config off
	`+options+`
}
`+sites), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := caddy.Load(config, false); err != nil {
		t.Fatal(err)
	}
	awaitOneListener(t)
}

// awaitOneListener returns when the servers of the configuration before have closed their
// listeners, which Caddy does not wait for. Until then, they get some of the connections to the
// same addresses, and reset them.
func awaitOneListener(t *testing.T) {
	t.Helper()
	gatewaytest.Eventually(t, func() bool {
		seen := map[string]bool{}
		for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			sockets, err := os.ReadFile(file)
			if err != nil {
				return true // another system
			}
			for line := range strings.Lines(string(sockets)) {
				const local, state, listening = 1, 3, "0A"
				f := strings.Fields(line)
				if f[state] != listening || !isOurs(f[local]) {
					continue
				}
				if seen[f[local]] {
					return false
				}
				seen[f[local]] = true
			}
		}
		return true
	})
}

// isOurs reports whether an address in hexadecimal digits has the port of a site.
func isOurs(address string) bool {
	_, text, _ := strings.Cut(address, ":")
	port, err := strconv.ParseUint(text, 16, 16)
	decimal := strconv.FormatUint(port, 10)
	return err == nil && (decimal == sitePort || decimal == SecurePort)
}

// ReplaceShared gives the gateways of a test that Caddy runs a history, metrics and connections of
// their own. The test cannot be parallel.
func ReplaceShared(t *testing.T) {
	t.Helper()
	outside := process.Pool
	process.Pool = caddy.NewUsagePool()
	t.Cleanup(func() { process.Pool = outside })
}

// Serve runs Caddy with global options and a site with the options of notify,
// also below /prefix.
func Serve(t *testing.T, options, notify string) {
	t.Helper()
	StartCaddy(t, options, Server+` {
	handle_path /prefix/* {
		notify {
			`+notify+`
		}
	}
	notify {
		`+notify+`
	}
	respond next 404
}
`)
}

// ServeQueue runs Caddy with a queue in a folder, until the end of the test.
func ServeQueue(t *testing.T, folder string) {
	t.Helper()
	Serve(t, "notify {\nqueue {\npath \""+folder+"\"\n}\n}", "")
}

// ReadBackup reads a back-up of a queue. It returns the content of its files, and
// checks that only their owner may read them.
func ReadBackup(t *testing.T, backup io.Reader) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	for r := tar.NewReader(backup); ; {
		h, err := r.Next()
		if err == io.EOF {
			return content
		} else if err != nil {
			t.Fatal(err)
		}
		if content[h.Name], err = io.ReadAll(r); err != nil || h.Mode != 0o600 {
			t.Errorf("%s: mode %o, %v", h.Name, h.Mode, err)
		}
	}
}

// Client sends requests to the Caddy that StartCaddy runs. It repeats requests
// that fail, because a reload resets connections that the old server has not
// accepted yet.
var Client = &http.Client{Transport: repeated{}}

type repeated struct{}

func (repeated) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	for n := 0; err != nil && r.Context().Err() == nil && n < 10; n++ {
		again := r.Clone(r.Context())
		if r.GetBody != nil {
			if again.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err = http.DefaultTransport.RoundTrip(again)
	}
	return resp, err
}

// Do sends a request, with headers given as names and values. It follows no redirect.
func Do(t *testing.T, method, url, body string, header ...string) gatewaytest.Reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	resp, err := Client.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return gatewaytest.Reply{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
}

// Send posts a form to a path of Server. It returns the status and the body of
// the response, or 0 and the error.
func Send(ctx context.Context, t *testing.T, path, form string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, Server+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := Client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(body)
}

// ReadLog waits until a log file has a text, and returns its content.
func ReadLog(t *testing.T, file, text string) string {
	t.Helper()
	var log []byte
	gatewaytest.Eventually(t, func() bool {
		log, _ = os.ReadFile(file)
		return strings.Contains(string(log), text)
	})
	return string(log)
}

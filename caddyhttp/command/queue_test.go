package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestQueue checks that the commands of the queue list, retry and drop the
// deliveries of a running server.
func TestQueue(t *testing.T) {
	var status atomic.Int32
	status.Store(http.StatusNotFound)
	destination := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	defer destination.Close()
	dir := serve(t, `
	queue
	key k {
		url json://user:secretsecret@`+strings.TrimPrefix(destination.URL, "http://")+`/
	}
	`, "stateless off")
	config := filepath.Join(dir, "Caddyfile")
	writeFile(t, config, "{\nadmin "+caddyhttptest.Admin+"\n}\n")
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		out, errs, code = command(t, "", append([]string{"queue"}, args...)...)
		if strings.Contains(out+errs, "secretsecret") {
			t.Errorf("a secret shows:\n%s%s", out, errs)
		}
		return out, errs, code
	}
	address := "--address=" + caddyhttptest.Admin
	for _, text := range []string{"one", "two", "three"} { // a repeat would replace the one before
		if got := caddyhttptest.Do(t, http.MethodPost, caddyhttptest.Server+"/notify/k", text,
			"Content-Type", "text/plain", "Prefer", "respond-async"); got.Status != http.StatusAccepted {
			t.Fatalf("status %d", got.Status)
		}
	}
	var ids []string
	gatewaytest.Eventually(t, func() bool {
		out, errs, code := run("list", "--dead", address)
		if code != 0 {
			t.Fatalf("list: exit %d\n%s", code, errs)
		}
		ids = nil
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); strings.Contains(line, "given up") && fields[1] == "k" && strings.Contains(line, "404") {
				ids = append(ids, fields[0])
			}
		}
		return len(ids) == 3
	})
	if out, errs, code := run("list", "--dead", "--config", config); code != 0 || strings.Count(out, "given up") != 3 {
		t.Errorf("list with the address of --config: exit %d\n%s%s", code, out, errs)
	}
	if out, _, code := run("list", "--dead", "--json", address); code != 0 || !strings.Contains(out, `"dead":3`) {
		t.Errorf("list --json: exit %d\n%s", code, out)
	}
	if out, errs, code := run("show", ids[0], address); code != 0 ||
		!strings.HasPrefix(out, "failed, came in at ") || strings.Count(out, "\n") != 2 ||
		!strings.Contains(out, "1 attempt ") || !strings.Contains(out, "404") {
		t.Errorf("show: exit %d\n%s%s", code, out, errs)
	}
	if out, errs, code := run("show", ids[0], "--json", address); code != 0 || !strings.Contains(out, `"id":"`+ids[0]+`"`) {
		t.Errorf("show --json: exit %d\n%s%s", code, out, errs)
	}
	status.Store(http.StatusOK)
	if out, errs, code := run("retry", ids[0], address); code != 0 || out != "1 delivery due now (0 waiting, 1 given up).\n" {
		t.Errorf("retry: exit %d %s%s", code, out, errs)
	}
	givenUp := func(n int) {
		t.Helper()
		gatewaytest.Eventually(t, func() bool {
			out, _, _ := run("list", "--dead", address)
			return strings.Count(out, "given up") == n
		})
	}
	gatewaytest.Eventually(t, func() bool {
		out, _, _ := run("show", ids[0], address)
		return strings.HasPrefix(out, "delivered")
	})
	status.Store(http.StatusServiceUnavailable)
	caddyhttptest.Do(t, http.MethodPost, caddyhttptest.Server+"/notify/k", "waits")
	status.Store(http.StatusNotFound)
	if out, errs, code := run("retry", "--all", address); code != 0 || out != "3 deliveries due now (1 waiting, 2 given up).\n" {
		t.Errorf("retry --all: exit %d %s%s", code, out, errs)
	}
	givenUp(3)
	if out, errs, code := run("destinations", address); code != 0 || len(strings.Fields(out)) < 5 || strings.Fields(out)[2] != "k" {
		t.Errorf("destinations: exit %d %s%s", code, out, errs)
	} else if out, errs, code := run("retry", "--destination", strings.Fields(out)[1], address); code != 0 ||
		!strings.HasSuffix(out, "(0 waiting, 3 given up).\n") {
		t.Errorf("retry --destination: exit %d %s%s", code, out, errs)
	}
	givenUp(3)
	if out, errs, code := run("drop", "--all", address); code != 0 || out != "3 deliveries dropped.\n" {
		t.Errorf("drop --all: exit %d %s%s", code, out, errs)
	}
	if out, errs, code := run("list", "--dead", address); code != 0 || out != "" || errs != "There are none.\n" {
		t.Errorf("an empty list: exit %d %s%s", code, out, errs)
	}
	for args, want := range map[string]string{
		"drop " + address:                        "--all",
		"retry none " + address:                  "no such message",
		"show none " + address:                   "no such message",
		"retry --all --destination x " + address: "alone",
		"retry --destination x " + address:       "no such destination",
		"list --address=127.0.0.1:1":             "no server answers at 127.0.0.1:1; start Caddy, or name its admin API with --address",
	} {
		if _, errs, code := run(strings.Fields(args)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("queue %s: exit %d %s; want %s", args, code, errs, want)
		}
	}
}

// TestQueueOldSecrets checks what the list says about old secrets.
func TestQueueOldSecrets(t *testing.T) {
	for answer, want := range map[string]string{
		`{"deliveries":[]}`:                               "",
		`{"deliveries":[],"old_secrets":"not needed"}`:    "The old secrets of the queue are not needed.\n",
		`{"deliveries":[],"old_secrets":"needed"}`:        "The old secrets of the queue are needed.\n",
		`{"old_secrets":"needed","old_secret_records":1}`: "The old secrets of the queue are needed by 1 record.\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		_, errs, code := command(t, "", "queue", "list", "--address="+server.Listener.Addr().String())
		server.Close()
		if code != 0 || !strings.Contains(errs, want) || want == "" && strings.Contains(errs, "secret") {
			t.Errorf("%s: exit %d, %q, want %q", answer, code, errs, want)
		}
	}
}

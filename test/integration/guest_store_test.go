package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestGuestStore checks that the store of another repository, in modules/journal, is a module that Caddy
// lists and a Caddyfile chooses. What waits in it survives a restart, is not there as text, and can be read
// only with the secret.
func TestGuestStore(t *testing.T) {
	t.Parallel()
	caddy, err := buildModules()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(caddy, "list-modules").Output(); err != nil || !bytes.Contains(out, []byte("\nnotify.queue.journal\n")) {
		t.Fatalf("list-modules does not show notify.queue.journal: %v, %s", err, out)
	}
	const text, first, second = "a text that is not to be read", "the first secret of the queue", "the second secret of the queue"
	var works atomic.Bool
	var mu sync.Mutex
	var got []string
	destination := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !works.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(b))
	}))
	t.Cleanup(destination.Close)
	arrived := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(got, "\n")
	}
	port, file := freePort(t), filepath.Join(t.TempDir(), "queue.journal")
	site := fmt.Sprintf("http://127.0.0.1:%d", port)
	config := func(secrets ...string) string {
		return writeFile(t, "Caddyfile", fmt.Sprintf(`{
	admin off
	persist_config off
	notify {
		queue {
			store journal %s
			secret "%s"
			wait 1s
		}
	}
}
%s {
	notify {
		key ops {
			url json://%s/hook
		}
	}
}
`, file, strings.Join(secrets, `" "`), site, strings.TrimPrefix(destination.URL, "http://")))
	}
	run := func(secrets ...string) *server {
		t.Helper()
		return start(t, port, caddy, "run", "--config", config(secrets...), "--adapter", "caddyfile")
	}
	end := func(s *server) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, s.out.String())
		}
	}

	gateway := run(first)
	message := request(t, http.MethodPost, site+"/notify/ops", "title=Backup&body="+strings.ReplaceAll(text, " ", "+"))
	message.Header.Set("Accept", "application/json")
	status, body := ask(t, message)
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || !strings.Contains(body, `"status":"queued"`) {
		t.Fatalf("%d %s", status, body)
	}
	end(gateway)
	stored, err := os.ReadFile(file)
	if err != nil || len(stored) < 1000 {
		t.Fatalf("the file has %d bytes, %v", len(stored), err)
	}
	for _, secret := range []string{text, "Backup", "/hook", "127.0.0.1", first} {
		if bytes.Contains(stored, []byte(secret)) {
			t.Errorf("the file has %q", secret)
		}
	}

	refused := exec.Command(caddy, "run", "--config", config(second), "--adapter", "caddyfile")
	refused.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	if out, err := refused.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("it was written with another secret")) {
		t.Errorf("with another secret: %v, %s", err, out)
	}

	works.Store(true)
	run(second, first)
	eventually(t, "the message arrives after the restart", func() bool { return strings.Contains(arrived(), text) })
	eventually(t, "the message is delivered", func() bool {
		status, body := ask(t, request(t, http.MethodGet, site+"/notify/messages/"+answer.ID, ""))
		return status == http.StatusOK && strings.Contains(body, "delivered")
	})
	if n := strings.Count(arrived(), text); n != 1 {
		t.Errorf("the message has arrived %d times", n)
	}
}

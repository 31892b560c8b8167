package command

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
)

// TestQueueBackup checks that the command writes the queue of a running server
// and its key into a new file, which only its owner can read.
func TestQueueBackup(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "queue")
	caddyhttptest.ServeQueue(t, folder)
	file := filepath.Join(t.TempDir(), "queue.tar")
	run := func() (out, errs string, code int) {
		return command(t, "", "queue", "backup", file, "--address="+caddyhttptest.Admin)
	}
	if out, errs, code := run(); code != 0 || !strings.Contains(out, file) {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content := caddyhttptest.ReadBackup(t, bytes.NewReader(data))
	key, err := os.ReadFile(filepath.Join(folder, "key"))
	if err != nil || !bytes.Equal(content["key"], key) || len(content["queue.db"]) == 0 {
		t.Errorf("the back-up has %d files; %v", len(content), err)
	}
	if _, errs, code := run(); code != 1 || !strings.Contains(errs, "exists already") {
		t.Errorf("again: exit %d %s", code, errs)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, data) {
		t.Errorf("the file has changed, %v", err)
	}

	// A copy that is not complete is removed.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(data[:1024])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	partial := filepath.Join(t.TempDir(), "partial.tar")
	_, errs, code := command(t, "", "queue", "backup", partial, "--address="+server.Listener.Addr().String())
	if code != 1 || !strings.Contains(errs, "copying the queue") {
		t.Errorf("not complete: exit %d %s", code, errs)
	}
	if _, err := os.Stat(partial); !os.IsNotExist(err) {
		t.Errorf("a part remains: %v", err)
	}
}

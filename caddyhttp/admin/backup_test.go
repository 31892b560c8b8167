package admin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/admin"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
)

// TestQueueBackup checks that the admin API responds with a copy of the queue,
// and names the file of its key, but does not send the key.
func TestQueueBackup(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a folder: 1/2")
	caddyhttptest.ServeQueue(t, folder)
	const address = "/notify/queue/backup"
	got := caddyhttptest.Do(t, http.MethodGet, "http://"+caddyhttptest.Admin+address, "")
	file, err := url.PathUnescape(got.Header.Get(admin.BackupKeyHeader))
	if err != nil || file != filepath.Join(folder, "key") || got.Status != http.StatusOK ||
		got.Header.Get("Content-Type") != "application/x-tar" {
		t.Errorf("status %d, header %v", got.Status, got.Header)
	}
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content := caddyhttptest.ReadBackup(t, strings.NewReader(got.Body))
	for name, data := range content {
		if name == "key" || strings.Contains(string(data), strings.TrimSpace(string(key))) {
			t.Errorf("%s has the key", name)
		}
	}
	if len(content["queue.db"]) == 0 {
		t.Error("the database is missing")
	}

	// With a secret there is no key, and without a queue nothing to back up.
	caddyhttptest.Serve(t, "notify {\nqueue {\npath \""+t.TempDir()+"\"\nsecret \"a secret of the tests\"\n}\n}", "")
	got = caddyhttptest.Do(t, http.MethodGet, "http://"+caddyhttptest.Admin+address, "")
	if got.Status != http.StatusOK || got.Header.Get(admin.BackupKeyHeader) != "" {
		t.Errorf("with a secret: status %d, header %v", got.Status, got.Header)
	}
	caddyhttptest.Serve(t, "", "")
	status, text := ask(t, "GET", address, "")
	var answer struct{ Error string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusNotFound || answer.Error == "" {
		t.Errorf("without a queue: status %d, %s", status, text)
	}
}

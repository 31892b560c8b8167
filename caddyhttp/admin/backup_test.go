package admin_test

import (
	"encoding/json"
	"io"
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
	resp, err := caddyhttptest.Client.Get("http://" + caddyhttptest.Admin + "/notify/queue/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	file, err := url.PathUnescape(resp.Header.Get(admin.BackupKeyHeader))
	if err != nil || file != filepath.Join(folder, "key") || resp.StatusCode != http.StatusOK ||
		resp.Header.Get("Content-Type") != "application/x-tar" {
		t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
	}
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content := caddyhttptest.ReadBackup(t, resp.Body)
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
	resp, err = caddyhttptest.Client.Get("http://" + caddyhttptest.Admin + "/notify/queue/backup")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get(admin.BackupKeyHeader) != "" {
		t.Errorf("with a secret: status %d, header %v, %v", resp.StatusCode, resp.Header, err)
	}
	caddyhttptest.Serve(t, "", "")
	status, text := ask(t, "GET", "/notify/queue/backup", "")
	var answer struct{ Error string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusNotFound || answer.Error == "" {
		t.Errorf("without a queue: status %d, %s", status, text)
	}
}

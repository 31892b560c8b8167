package caddyhttp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only one process can use a folder at a time. The error names the folder.
func TestQueueFolderInUse(t *testing.T) {
	dir := t.TempDir()
	newQueueGateway(t, dir, "", "")
	same := filepath.Join(t.TempDir(), "other name")
	if err := os.Symlink(dir, same); err != nil {
		t.Skip(err)
	}
	h := newGateway(t, "", "queue {\npath \""+same+"\"\n}")
	if err := h.app.Start(); err == nil || !strings.Contains(err.Error(), same) {
		t.Errorf("error %v", err)
	}
	// Messages are refused meanwhile.
	if got := postWith(t, h, "/notify", "body=x&urls=json://127.0.0.1"); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("status %d, %s", got.status, got.body)
	}
}

package caddyhttp

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
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

// A reload keeps the queue open. The new configuration makes the deliveries from then on.
func TestQueueReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		key := "key k {\nurl " + p.NotifyURL() + "\n}"
		h := newQueueGateway(t, dir, "", key)
		id := postWith(t, h, "/notify/k", "body=hello").queued(t).ID
		next := newQueueGateway(t, dir, "", key)
		q := next.app.gateway.Rooms
		if h.app.gateway.Rooms != q || q.Outbox.Current() != &next.app.gateway.Conf {
			t.Error("the configurations do not share the queue, or the old one makes the deliveries")
		}
		stopApp(t, h)
		p.Answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool { s, _ := state(t, next, id); return s == "delivered" })
	})
}

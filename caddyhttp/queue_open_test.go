package caddyhttp

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A delivery whose destination is no longer in the configuration is given up
// after ten minutes, with that reason.
func TestQueueDestinationRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, other := newPager(t, http.StatusBadGateway), newPager(t, http.StatusOK)
	p.header = http.Header{"Retry-After": {"1"}}
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", "timeout 1s\nkey k {\nurl "+p.NotifyURL()+"\n}")
		got := postWith(t, h, "/notify/k", "body=hello", "Prefer", "respond-async")
		id := got.queued(t).ID
		caddyhttptest.Eventually(t, func() bool { _, r := state(t, h, id); return r.Attempts > 0 })
		next := newQueueGateway(t, dir, "", "key k {\nurl "+other.NotifyURL()+"\n}")
		stopApp(t, h)
		time.Sleep(9 * time.Minute) // a gateway that is reloaded next may know it
		if s, _ := state(t, next, id); s != "queued" {
			t.Errorf("the message is %s at once", s)
		}
		time.Sleep(2 * time.Minute)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, next, id); return s == "failed" })
		if _, r := state(t, next, id); other.count() != 0 || r.Error == nil {
			t.Errorf("%+v; another destination got %d", r, other.count())
		}
		caddyhttptest.Eventually(t, func() bool {
			jobs, err := next.app.gateway.Rooms.Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Dead)
			return err == nil && len(jobs) == 1 && strings.Contains(jobs[0].Reason, "the key k of the configuration no longer has this destination")
		})
	})
}

// Messages to URLs of clients are delivered under the egress rules at the time
// of the delivery.
func TestQueueEgressRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, open, "")
		got := postWith(t, h, "/notify", "body=hello&urls="+p.NotifyURL())
		a := got.queued(t)
		if got.status != 200 || a.Results[0].Status != "queued" {
			t.Fatalf("status %d, %s", got.status, got.body)
		}
		n := p.count()
		next := newQueueGateway(t, dir, "", "") // egress does not allow loopback
		stopApp(t, h)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, next, a.ID); return s == "failed" })
		if _, r := state(t, next, a.ID); p.count() != n || r.Error == nil || !strings.Contains(*r.Error, "loopback") {
			t.Errorf("%+v; the destination got %d more", r, p.count()-n)
		}
	})
}

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

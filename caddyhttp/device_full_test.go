package caddyhttp

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestDevicesInFullQueue checks that a full queue refuses invitations and devices, which
// count for max_size, and that receipts, changes and revoking still work.
func TestDevicesInFullQueue(t *testing.T) {
	s, p := newPushService(t), newPager(t, http.StatusBadGateway)
	h := newGateway(t, "", "queue {\npath "+t.TempDir()+"\nmax_size 1MiB\n}\n"+pushOptions("devices open")+"key k\nkey full {\nurl "+p.NotifyURL()+"\n}")
	startApp(t, h)
	phone := s.subscribe(t, h, "phone")
	postWith(t, h, "/notify/k", "body=b")
	receipt := s.all()[0].payload.Receipt
	for _, size := range []int{30_000, 1} {
		text := "body=" + strings.Repeat("x", size)
		for n := 0; postWith(t, h, "/notify/full", text).status != http.StatusServiceUnavailable; n++ {
			if n == 200 {
				t.Fatal("the queue is never full")
			}
		}
	}
	for n := 0; ; n++ {
		if _, _, err := h.app.gateway.Rooms.Devices.Invitations.Make(t.Context(), site.Place{Key: "k"}, nil); errors.Is(err, queue.ErrFull) {
			break
		} else if err != nil || n == 100 {
			t.Fatalf("%d invitations are stored, %v", n, err)
		}
	}
	got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": "two", "subscription": s.subscription("/two")})
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "max_size") || got.header.Get("Retry-After") == "" {
		t.Errorf("another device: status %d %s", got.status, got.body)
	}
	at, bearer := "/notify/k/devices/"+phone.ID, []string{"Authorization", "Bearer " + phone.Secret}
	if got := askJSON(t, h, http.MethodPost, at+"/receipts", map[string]string{"receipt": receipt}); got.status != http.StatusOK {
		t.Errorf("the receipt: status %d %s", got.status, got.body)
	}
	if got := askJSON(t, h, http.MethodPut, at, map[string]any{"subscription": s.subscription("/new")}, bearer...); got.status != http.StatusOK {
		t.Errorf("another subscription: status %d %s", got.status, got.body)
	}
	if got := askJSON(t, h, http.MethodDelete, at, nil, bearer...); got.status != http.StatusOK {
		t.Errorf("revoking: status %d %s", got.status, got.body)
	}
}

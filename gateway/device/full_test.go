package device_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestDevicesInFullQueue checks that a full queue refuses invitations and devices, which
// count for max_size, and that receipts, changes and revoking still work.
func TestDevicesInFullQueue(t *testing.T) {
	t.Parallel()
	s, p := gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusBadGateway)
	o := options(t.TempDir(), keyK, gatewaytest.Key("full", p.NotifyURL()))
	o.Global.Push.Who, o.Queue.MaxSize = "open", 1<<20
	g := gatewaytest.New(t, o)
	phone := s.Subscribe(t, g, "phone")
	g.PostForm("/notify/k", "body=b")
	receipt := s.Got()[0].Payload.Receipt
	for _, size := range []int{30_000, 1} {
		text := "body=" + strings.Repeat("x", size)
		for n := 0; g.PostForm("/notify/full", text).Status != http.StatusServiceUnavailable; n++ {
			if n == 200 {
				t.Fatal("the queue is never full")
			}
		}
	}
	for n := 0; ; n++ {
		if _, _, err := g.Rooms().Devices.Invitations.Make(t.Context(), site.Place{Key: "k"}, nil); message.IsUnavailable(err) &&
			strings.Contains(err.Error(), "max_size") {
			break
		} else if err != nil || n == 100 {
			t.Fatalf("%d invitations are stored, %v", n, err)
		}
	}
	got := g.Ask(http.MethodPost, "/notify/k/devices", map[string]any{"name": "two", "subscription": s.Subscription("/two")})
	if got.Status != http.StatusServiceUnavailable || !strings.Contains(got.Body, "max_size") || got.Header.Get("Retry-After") == "" {
		t.Errorf("another device: status %d %s", got.Status, got.Body)
	}
	at, bearer := "/notify/k/devices/"+phone.ID, []string{"Authorization", "Bearer " + phone.Secret}
	if got := g.Ask(http.MethodPost, at+"/receipts", map[string]string{"receipt": receipt}); got.Status != http.StatusOK {
		t.Errorf("the receipt: status %d %s", got.Status, got.Body)
	}
	if got := g.Ask(http.MethodPut, at, map[string]any{"subscription": s.Subscription("/new")}, bearer...); got.Status != http.StatusOK {
		t.Errorf("another subscription: status %d %s", got.Status, got.Body)
	}
	if got := g.Ask(http.MethodDelete, at, nil, bearer...); got.Status != http.StatusOK {
		t.Errorf("revoking: status %d %s", got.Status, got.Body)
	}
}

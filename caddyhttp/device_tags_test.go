package caddyhttp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestDeviceTakesNoChain checks that a device cannot put itself before the numbers of a tag:
// neither with a tag of its own, nor with one that it had before the key had the numbers.
func TestDeviceTakesNoChain(t *testing.T) {
	s := newPushService(t)
	station := gatewaytest.NewStation(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("devices open")+"key k {\nurl "+station.NotifyURL("/one")+" 1:duty\nurl "+station.NotifyURL("/two")+" 2:duty\n}")
	for _, tag := range []string{"duty", "Duty", "0:duty", "00:duty", "0:new"} {
		got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": "phone", "tags": []string{tag}, "subscription": s.subscription("/p")})
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, "number") {
			t.Errorf("%s: status %d %s", tag, got.status, got.body)
		}
	}
	phone := s.subscribe(t, h, "phone")
	bearer := []string{"Authorization", "Bearer " + phone.Secret}
	if got := askJSON(t, h, http.MethodPut, "/notify/k/devices/"+phone.ID, map[string]any{"tags": []string{"duty"}}, bearer...); got.status != http.StatusBadRequest {
		t.Errorf("the tag later: status %d %s", got.status, got.body)
	}
	// As if the key had got its numbers after the phone had chosen.
	place := h.api.Devices.DevicePlace(h.api.Resolved.Keys["k"])
	err := h.app.gateway.Rooms.Devices.Update(t.Context(), place, false, nil, func(_ time.Time, l *device.List, _ [][]byte) ([]queue.Record, error) {
		l.Find(phone.ID).Own = []string{"duty", "0:duty"}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a := postWith(t, h, "/notify/k", "body=b&tag=duty").queued(t)
	if len(a.Results) != 2 || a.Results[0].Status != "delivered" || len(s.all()) != 0 {
		t.Errorf("%+v, %d pushes", a, len(s.all()))
	}
}

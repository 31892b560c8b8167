package device_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestDeviceTakesNoChain checks that a device cannot put itself before the numbers of a tag, with a
// tag of its own or with one that it had before the key had the numbers.
func TestDeviceTakesNoChain(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	station := gatewaytest.NewStation(t)
	g := newOpenGateway(t, t.TempDir(), gatewaytest.Key("k", station.NotifyURL("/one")+" 1:duty", station.NotifyURL("/two")+" 2:duty"))
	for _, tag := range []string{"duty", "Duty", "0:duty", "00:duty", "0:new"} {
		got := g.Ask(http.MethodPost, "/notify/k/devices",
			map[string]any{"name": "phone", "tags": []string{tag}, "subscription": s.Subscription("/p")})
		if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "number") {
			t.Errorf("%s: status %d %s", tag, got.Status, got.Body)
		}
	}
	phone := s.Subscribe(t, g, "phone")
	bearer := []string{"Authorization", "Bearer " + phone.Secret}
	if got := g.Ask(http.MethodPut, "/notify/k/devices/"+phone.ID, map[string]any{"tags": []string{"duty"}},
		bearer...); got.Status != http.StatusBadRequest {
		t.Errorf("the tag later: status %d %s", got.Status, got.Body)
	}
	// As if the key had got its numbers after the phone had chosen.
	place := g.Devices.DevicePlace(g.Resolved.Keys["k"])
	err := g.Rooms().Devices.Update(t.Context(), place, false, nil, func(_ *queue.Tx, _ time.Time, l *device.List) error {
		l.Find(phone.ID).Own = []string{"duty", "0:duty"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a := g.PostForm("/notify/k", "body=b&tag=duty").JSON(t)
	if len(a.Results) != 2 || a.Results[0].Status != "delivered" || len(s.Got()) != 0 {
		t.Errorf("%+v, %d pushes", a, len(s.Got()))
	}
}

// TestDeviceBesideChain checks that a device is told beside a chain that an expression with an
// AND, or with all, makes of the numbers of several tags. It was number 0 there, so that the
// numbers got nothing.
func TestDeviceBesideChain(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	station := gatewaytest.NewStation(t)
	g := newOpenGateway(t, t.TempDir(), gatewaytest.Key("k", station.NotifyURL("/one")+" 1:duty 1:eu",
		station.NotifyURL("/two")+" 2:duty 2:eu"))
	s.Subscribe(t, g, "phone", "night", "lab")
	for _, tag := range []string{"duty eu, all", "duty eu, night lab"} {
		var got []string
		for _, r := range g.PostForm("/notify/k", url.Values{"body": {"b"}, "tag": {tag}}.Encode()).JSON(t).Results {
			got = append(got, string(r.Status))
		}
		if want := []string{"delivered", "skipped", "delivered"}; !slices.Equal(got, want) { // the last is the device
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}

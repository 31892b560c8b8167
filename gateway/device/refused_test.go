package device_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestDeviceRefused checks that a device whose push service refuses messages fails no message that
// another destination gets, that its key is told once, and that the device can come back.
func TestDeviceRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge} {
		s, chat := gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusOK)
		g := newGateway(t, t.TempDir(), gatewaytest.Key("k", chat.NotifyURL()+" chat"))
		phone := s.Subscribe(t, g, "phone", "phone")
		gatewaytest.Eventually(t, func() bool { return chat.Count() == 1 }) // that there is a new device
		s.Answer(status)
		for range 3 {
			got := g.PostForm("/notify/k", "body=b")
			a := got.JSON(t)
			if got.Status != http.StatusOK || a.Results[1].Status != "failed" || !a.Results[1].Optional || !strings.Contains(got.Body, "answered") {
				t.Errorf("%d: status %d %s", status, got.Status, got.Body)
			}
			gatewaytest.Eventually(t, func() bool { now, _ := g.State(a.ID); return now == "delivered" })
		}
		gatewaytest.Eventually(t, func() bool { return chat.Count() == 5 })
		told := 0
		for _, m := range chat.Got() {
			if m.Title == "No messages for phone" {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%d: the key is told %d times", status, told)
		}
		if got := g.PostForm("/notify/k", "body=b&tag=phone"); got.Status != http.StatusFailedDependency {
			t.Errorf("%d: a message that nobody has: status %d %s", status, got.Status, got.Body)
		}
		if list, err := g.Rooms().Devices.States(t.Context(),
			g.Rooms().Devices.Known(g.Devices.DevicePlace(g.Resolved.Keys["k"])).All); err != nil ||
			!strings.Contains(list[0].Problem(g.Rooms().Outbox.Queue.Now()), "its push service answers") {
			t.Errorf("%d: %v, %v", status, list, err)
		}
		s.Answer(http.StatusCreated)
		if a := g.PostForm("/notify/k", "body=b").JSON(t); a.Results[1].Status != "delivered" ||
			a.Results[1].Destination != "device://"+phone.Name {
			t.Errorf("%d: when it takes messages again: %+v", status, a.Results)
		}
	}
}

// TestDeviceRefusedInChain checks that a device that is refused does not end its chain.
func TestDeviceRefusedInChain(t *testing.T) {
	t.Parallel()
	s, chat, second := gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, t.TempDir(), gatewaytest.Key("k", chat.NotifyURL()+" chat", second.NotifyURL()+" 2:oncall"))
	s.Subscribe(t, g, "phone", "1:oncall")
	gatewaytest.Eventually(t, func() bool { return chat.Count() == 1 })
	before := second.Count()
	s.Answer(http.StatusBadRequest)
	if got := g.PostForm("/notify/k", "body=b&tag=oncall,chat"); got.Status != http.StatusOK {
		t.Errorf("status %d %s", got.Status, got.Body)
	}
	if second.Count() <= before {
		t.Error("the second number was not told")
	}
}

// TestPushServiceRemoved checks that devices at a push service that is not allowed any more
// get no pushes.
func TestPushServiceRemoved(t *testing.T) {
	t.Parallel()
	s, chat, dir := gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	o := options(dir, gatewaytest.Key("k", chat.NotifyURL()+" chat"))
	g := gatewaytest.New(t, o)
	s.Subscribe(t, g, "phone", "phone")
	g.Stop()
	o.Global.Push.Hosts = nil
	g = gatewaytest.New(t, o)
	got := g.PostForm("/notify/k", "body=b&tag=phone")
	if got.Status != http.StatusFailedDependency || !strings.Contains(got.Body, "not allowed any more") || len(s.Got()) != 0 {
		t.Errorf("status %d %s, %d pushes", got.Status, got.Body, len(s.Got()))
	}
	if got := g.PostForm("/notify/k", "body=b"); got.Status != http.StatusOK || len(s.Got()) != 0 {
		t.Errorf("with another destination: status %d %s, %d pushes", got.Status, got.Body, len(s.Got()))
	}
}

package caddyhttp

import (
	"net/http"
	"strings"
	"testing"
)

// TestDeviceRefused checks that a device whose push service refuses messages makes no message
// fail that another destination has, that its key is told once, and that it comes back.
func TestDeviceRefused(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge} {
		s, chat := newPushService(t), newPager(t, http.StatusOK)
		h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k {\nurl "+chat.NotifyURL()+" chat\n}")
		phone := s.subscribe(t, h, "phone", "phone")
		waitUntil(t, func() bool { return chat.count() == 1 }) // that there is a new device
		s.answer(status)
		for range 3 {
			got := postWith(t, h, "/notify/k", "body=b")
			a := got.queued(t)
			if got.status != http.StatusOK || a.Results[1].Status != "failed" || !a.Results[1].Optional || !strings.Contains(got.body, "answered") {
				t.Errorf("%d: status %d %s", status, got.status, got.body)
			}
			waitUntil(t, func() bool { now, _ := state(t, h, a.ID); return now == "delivered" })
		}
		waitUntil(t, func() bool { return chat.count() == 5 })
		told := 0
		chat.mu.Lock()
		for _, m := range chat.got {
			if m.Title == "No messages for phone" {
				told++
			}
		}
		chat.mu.Unlock()
		if told != 1 {
			t.Errorf("%d: the key is told %d times", status, told)
		}
		if got := postWith(t, h, "/notify/k", "body=b&tag=phone"); got.status != http.StatusFailedDependency {
			t.Errorf("%d: a message that nobody has: status %d %s", status, got.status, got.body)
		}
		if list, err := h.app.gateway.Rooms.Devices.States(t.Context(), h.app.gateway.Rooms.Devices.Known(h.api.Devices.DevicePlace(h.api.Resolved.Keys["k"])).All); err != nil || !strings.Contains(list[0].Problem(h.app.gateway.Rooms.Outbox.Queue.Now()), "its push service answers") {
			t.Errorf("%d: %v, %v", status, list, err)
		}
		s.answer(http.StatusCreated)
		if a := postWith(t, h, "/notify/k", "body=b").queued(t); a.Results[1].Status != "delivered" || a.Results[1].Destination != "device://"+phone.Name {
			t.Errorf("%d: when it takes messages again: %+v", status, a.Results)
		}
	}
}

// TestDeviceRefusedInChain checks that a device that is refused does not end its chain.
func TestDeviceRefusedInChain(t *testing.T) {
	s, chat, second := newPushService(t), newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k {\nurl "+chat.NotifyURL()+" chat\nurl "+second.NotifyURL()+" 2:oncall\n}")
	s.subscribe(t, h, "phone", "1:oncall")
	waitUntil(t, func() bool { return chat.count() == 1 })
	before := second.count()
	s.answer(http.StatusBadRequest)
	if got := postWith(t, h, "/notify/k", "body=b&tag=oncall,chat"); got.status != http.StatusOK {
		t.Errorf("status %d %s", got.status, got.body)
	}
	if second.count() <= before {
		t.Error("the second number was not told")
	}
}

// TestPushServiceRemoved checks that devices at a push service that is not allowed any more
// get no pushes.
func TestPushServiceRemoved(t *testing.T) {
	s, chat, dir := newPushService(t), newPager(t, http.StatusOK), t.TempDir()
	key := "key k {\nurl " + chat.NotifyURL() + " chat\n}"
	h := newQueueGateway(t, dir, "", pushOptions("")+key)
	s.subscribe(t, h, "phone", "phone")
	stopApp(t, h)
	h = newQueueGateway(t, dir, "", strings.ReplaceAll(pushOptions(""), "services 127.0.0.1\n", "")+key)
	got := postWith(t, h, "/notify/k", "body=b&tag=phone")
	if got.status != http.StatusFailedDependency || !strings.Contains(got.body, "not allowed any more") || len(s.all()) != 0 {
		t.Errorf("status %d %s, %d pushes", got.status, got.body, len(s.all()))
	}
	if got := postWith(t, h, "/notify/k", "body=b"); got.status != http.StatusOK || len(s.all()) != 0 {
		t.Errorf("with another destination: status %d %s, %d pushes", got.status, got.body, len(s.all()))
	}
}

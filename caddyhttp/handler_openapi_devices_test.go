package caddyhttp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// deviceCalls returns calls that have each answer that is described for devices.
func deviceCalls(t *testing.T) map[string][]describedCall {
	t.Helper()
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), managed, pushOptions("")+"key k")
	full := newQueueGateway(t, t.TempDir(), managed, pushOptions("max_devices 1\ndevices open")+"key k")
	nobody := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k")
	notOpen := newGateway(t, managed, "queue {\npath "+t.TempDir()+"\n}\n"+pushOptions("")+"key k")
	notOpen.app.ready()
	s.subscribe(t, full, "one")
	jo, gone := s.subscribe(t, h, "jo"), s.subscribe(t, h, "gone")
	postWith(t, h, "/notify/k", "body=b")
	receipt := s.Got()[0].Payload
	at := "/notify/k/devices/" + jo.ID
	const list = "/notify/k/devices"
	foreign := http.Header{"Sec-Fetch-Site": {"cross-site"}}
	call := func(h *Handler, target string, body any, header ...string) describedCall {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		c := describedCall{h: h, target: target, contentType: typeJSON, body: string(text), header: http.Header{}, before: func() func() {
			h.app.ready()
			if q := h.app.gateway.Rooms; q != nil {
				q.Devices.Registrations = device.Limiter{}
			}
			return func() {}
		}}
		for i := 0; i < len(header); i += 2 {
			c.header.Set(header[i], header[i+1])
		}
		return c
	}
	with := func(c describedCall, change func(*describedCall)) describedCall {
		change(&c)
		return c
	}
	other := func(c *describedCall) { c.header = foreign }
	text := func(c *describedCall) { c.contentType = "text/plain" }
	large := func(c *describedCall) { c.body = `{"name":"` + strings.Repeat("x", httpapi.MaxDeviceRequest) + `"}` }
	often := func(c *describedCall) {
		c.before = func() func() {
			for r := httptest.NewRequest(http.MethodPost, list, nil); c.h.app.gateway.Rooms.Devices.Registrations.Allow(httpapi.ClientAddress(r), time.Now()); {
			}
			return func() {}
		}
	}
	calls := map[string][]describedCall{"GET " + httpapi.RouteDevices: {call(h, list, nil), call(nobody, list, nil), call(h, "/notify/none/devices", nil), call(notOpen, list, nil)}}
	added := map[string]any{"name": "new", "subscription": s.subscription("/new")}
	add := call(nobody, list, added)
	fresh := with(call(h, list, added), func(c *describedCall) { // each with an invitation of its own
		invite, _, err := h.app.gateway.Rooms.Devices.Invitations.Make(t.Context(), site.Place{Key: "k"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(map[string]any{"name": "new", "subscription": s.subscription("/new"), "invite": invite})
		c.body = string(b)
	})
	opened := newQueueGateway(t, t.TempDir(), "", pushOptions("devices open")+"key k")
	calls["POST "+httpapi.RouteDevices] = []describedCall{
		fresh, call(opened, list, added), call(opened, list, map[string]any{"name": ""}), add, call(full, list, added), with(add, large), with(add, text), with(add, often), call(notOpen, list, added),
	}
	own, no := []string{"Authorization", "Bearer " + jo.Secret}, []string{"Authorization", "Bearer x"}
	calls["GET "+httpapi.RouteDevice] = []describedCall{call(h, at, nil, own...), call(nobody, at, nil, no...), call(notOpen, at, nil, own...)}
	change := call(h, at, map[string]any{"name": "jo"}, own...)
	calls["PUT "+httpapi.RouteDevice] = []describedCall{change, call(h, at, map[string]any{"name": ""}, own...), call(h, at, nil, no...), with(change, other), with(change, large), with(change, text), call(notOpen, at, nil, own...)}
	calls["DELETE "+httpapi.RouteDevice] = []describedCall{
		call(h, "/notify/k/devices/"+gone.ID, nil, "Authorization", "Bearer "+gone.Secret), call(h, "/notify/k/devices/"+gone.ID+"x", nil), call(nobody, at, nil, no...), with(change, other), call(notOpen, at, nil, own...),
	}
	test := call(h, at+"/test", nil, own...)
	refused := with(test, func(c *describedCall) {
		c.before = func() func() {
			h.app.gateway.Rooms.Devices.Registrations = device.Limiter{}
			s.Answer(http.StatusForbidden)
			return func() { s.Answer(http.StatusCreated) }
		}
	})
	calls["POST "+httpapi.RouteDeviceTest] = []describedCall{test, call(h, at+"/test", nil, no...), with(test, other), refused, with(test, often), call(notOpen, at+"/test", nil, own...)}
	confirm := call(h, "/notify/k/devices/"+receipt.Device+"/receipts", map[string]string{"receipt": receipt.Receipt})
	if receipt.Device == gone.ID {
		confirm.target, confirm.body = at+"/receipts", `{"receipt":"`+s.Got()[1].Payload.Receipt+`"}`
	}
	calls["POST "+httpapi.RouteReceipts] = []describedCall{
		confirm, call(h, at+"/receipts", "x"), call(h, at+"/receipts", map[string]string{}), with(confirm, other), with(confirm, large), with(confirm, text), call(notOpen, at+"/receipts", map[string]string{}),
	}
	return calls
}

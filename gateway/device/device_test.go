package device_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestDevices checks the life of a device: it subscribes with an invitation, which is used
// up then, gets messages, confirms them, changes its subscription, and is removed.
func TestDevices(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	g := newGateway(t, t.TempDir(), keyK)
	got := g.PostForm("/notify/k", "body=nobody")
	if got.Status != http.StatusFailedDependency || !strings.Contains(got.Body, "no device has subscribed") {
		t.Errorf("without a device: status %d %s", got.Status, got.Body)
	}
	invite := g.Invite("k", "ops", "always")
	request := map[string]any{"name": "Jo's phone", "tags": []string{"night"}, "subscription": s.Subscription("/jo"), "invite": invite}
	got = g.Ask(http.MethodPost, "/notify/k/devices", request)
	var jo gatewaytest.Phone
	if err := json.Unmarshal([]byte(got.Body), &jo); err != nil || got.Status != http.StatusCreated ||
		got.Header.Get("Location") != "/notify/k/devices/"+jo.ID || !strings.Contains(got.Body, `["ops","always","night"]`) {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	if got := g.Ask(http.MethodPost, "/notify/k/devices", request); got.Status != http.StatusForbidden ||
		!strings.Contains(got.Body, "used up") {
		t.Errorf("the invitation again: status %d %s", got.Status, got.Body)
	}

	a := g.PostForm("/notify/k", "title=Disk&body=full&type=failure&incident=db1&tag=none").JSON(t)
	if len(a.Results) != 1 || a.Results[0].Destination != "device://Jo's phone" || a.Results[0].Status != "delivered" {
		t.Fatalf("%+v", a)
	}
	all := s.Got()
	if len(all) != 1 {
		t.Fatalf("%d pushes", len(all))
	}
	p := all[0].Payload
	if p.Key != "k" || p.Title != "Disk" || p.Text != "full" || p.Type != "failure" || len(p.Incident) != 32 || !p.Renotify ||
		p.Device != jo.ID {
		t.Errorf("payload %+v", p)
	}
	header := all[0].Header
	if header.Get("Urgency") != "high" || header.Get("Topic") != p.Incident || header.Get("Ttl") != "86400" {
		t.Errorf("header %v", header)
	}

	receipts := "/notify/k/devices/" + jo.ID + "/receipts"
	for _, wrong := range []string{"", p.Receipt + "x", "01890000-0000-7000-8000-000000000000" + p.Receipt[36:]} {
		if got := g.Ask(http.MethodPost, receipts, map[string]string{"receipt": wrong}); got.Status != http.StatusUnauthorized {
			t.Errorf("the receipt %q: status %d %s", wrong, got.Status, got.Body)
		}
	}
	if _, r := g.State(a.ID); r.Received != nil {
		t.Error("received without a receipt")
	}
	if got := g.Ask(http.MethodPost, receipts, map[string]string{"receipt": p.Receipt}); got.Status != http.StatusOK {
		t.Errorf("the receipt: status %d %s", got.Status, got.Body)
	}
	if _, r := g.State(a.ID); r.Received == nil {
		t.Error("the result does not tell the receipt")
	}

	bearer := []string{"Authorization", "Bearer " + jo.Secret}
	at := "/notify/k/devices/" + jo.ID
	if got := g.Ask(http.MethodGet, at, nil, bearer...); got.Status != http.StatusOK || !strings.Contains(got.Body, `"seen"`) ||
		strings.Contains(got.Body, jo.Secret) {
		t.Errorf("GET: status %d %s", got.Status, got.Body)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		if got := g.Ask(method, at, map[string]any{"name": "mine"}, "Authorization", "Bearer "+jo.ID); got.Status != http.StatusUnauthorized {
			t.Errorf("%s with another secret: status %d %s", method, got.Status, got.Body)
		}
	}
	if got := g.Ask(http.MethodPut, at, map[string]any{"tags": []string{"always"}}, bearer...); got.Status != http.StatusBadRequest {
		t.Errorf("a device gives itself always: status %d %s", got.Status, got.Body)
	}
	if got := g.Ask(http.MethodPut, at, map[string]any{"name": "Jo", "tags": []string{"day"}, "subscription": s.Subscription("/new")},
		bearer...); got.Status != http.StatusOK || !strings.Contains(got.Body, `"Jo","tags":["ops","always","day"]`) {
		t.Errorf("PUT: status %d %s", got.Status, got.Body)
	}
	if got := g.Ask(http.MethodPost, at+"/test", nil, bearer...); got.Status != http.StatusOK {
		t.Errorf("test: status %d %s", got.Status, got.Body)
	}
	if all := s.Got(); len(all) != 2 || all[1].Path != "/new" {
		t.Errorf("%d pushes, the last one %+v", len(all), all[len(all)-1])
	}
	if got := g.Ask(http.MethodDelete, at, nil, bearer...); got.Status != http.StatusOK {
		t.Errorf("DELETE: status %d %s", got.Status, got.Body)
	}
	if got := g.PostForm("/notify/k", "body=nobody"); got.Status != http.StatusFailedDependency {
		t.Errorf("after it: status %d %s", got.Status, got.Body)
	}
}

// TestDeviceLongText checks that a text is cut so that the payload fits into a push, and
// that as much of it as possible is there.
func TestDeviceLongText(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	g := newGateway(t, t.TempDir(), keyK)
	s.Subscribe(t, g, "phone")
	for _, text := range []string{strings.Repeat("ä", 9000), strings.Repeat(`"\`, 3000), strings.Repeat("<", 3900)} {
		if got := g.Ask(http.MethodPost, "/notify/k",
			map[string]string{"title": strings.Repeat(`"`, 400), "body": text}); got.Status != http.StatusOK {
			t.Fatalf("status %d %s", got.Status, got.Body)
		}
		all := s.Got()
		last := all[len(all)-1]
		if last.Size > 4096 || last.Size < 4080 || !strings.HasSuffix(last.Payload.Text, "…") {
			t.Errorf("%.3q: %d bytes, the text ends with %q", text, last.Size, last.Payload.Text[len(last.Payload.Text)-10:])
		}
	}
}

// TestDeviceRefusals checks what is refused, and that nothing is stored then.
func TestDeviceRefusals(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	o := options(t.TempDir(), keyK, site.KeyOptions{Name: "t", Tokens: []string{"0123456789abcdef"}})
	o.Global.Push.Max = 1
	g := gatewaytest.New(t, o)
	good := func() map[string]any {
		return map[string]any{"name": "phone", "subscription": s.Subscription("/p"), "invite": g.Invite("k")}
	}
	with := func(field string, value any) map[string]any {
		m := good()
		m[field] = value
		return m
	}
	endpoint := func(address string) map[string]any {
		m := s.Subscription("/p")
		m["endpoint"] = address
		return with("subscription", m)
	}
	auth := func(secret string) map[string]any {
		m := s.Subscription("/p")
		keys := maps.Clone(m["keys"].(map[string]string))
		keys["auth"] = secret
		m["keys"] = keys
		return with("subscription", m)
	}
	for _, tt := range []struct {
		name   string
		body   map[string]any
		header []string
		status int
		want   string
	}{
		{"no invitation", with("invite", ""), nil, 403, "needs an invitation"},
		{"a wrong invitation", with("invite", "AAAAAAAAAAAAAAAAAAAAAA"), nil, 403, "used up"},
		{"no name", with("name", " "), nil, 400, "1 to 64 characters"},
		{"a long name", with("name", strings.Repeat("x", 65)), nil, 400, "1 to 64 characters"},
		{"a line break", with("name", "a\nb"), nil, 400, "not shown"},
		{"always", with("tags", []string{"Always"}), nil, 400, "for invitations"},
		{"a number", with("tags", []string{"1:oncall"}), nil, 400, "for invitations"},
		{"no subscription", with("subscription", nil), nil, 400, "it is missing"},
		{"another page", good(), []string{"Sec-Fetch-Site", "cross-site"}, 403, "another site"},
		{"no JSON", good(), []string{"Content-Type", "text/plain"}, 415, "application/json"},
		{"too large", with("name", strings.Repeat("x", 9000)), nil, 413, ""},
		{"a secret of another length", auth("BTBZMqHH6r4Tts7J"), nil, 400, "16 (RFC 8291)"},
		{"http", endpoint("http://fcm.googleapis.com/x"), nil, 400, "https"},
		{"another host", endpoint("https://fcm.googleapis.com.example.com/x"), nil, 400, "not that of a push service"},
		{"the host in the user", endpoint("https://fcm.googleapis.com@example.com/x"), nil, 400, "https"},
		{"the host in the path", endpoint("https://example.com/fcm.googleapis.com"), nil, 400, "not that of a push service"},
		{"another port", endpoint("https://fcm.googleapis.com:22/x"), nil, 400, "not that of a push service"},
		{"a name that ends alike", endpoint("https://evilpush.apple.com.evil.example/x"), nil, 400, "not that of a push service"},
		{"no dot before it", endpoint("https://xfcm.googleapis.com/x"), nil, 400, "not that of a push service"},
	} {
		g.Rooms().Devices.Registrations = device.Limiter{}
		got := g.Ask(http.MethodPost, "/notify/k/devices", tt.body, tt.header...)
		if got.Status != tt.status || !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s: status %d %s", tt.name, got.Status, got.Body)
		}
	}
	for _, path := range []string{"/notify/t/devices", "/notify/nobody/devices"} {
		if got := g.Ask(http.MethodPost, path, with("invite", "")); got.Status != http.StatusForbidden {
			t.Errorf("%s: status %d %s", path, got.Status, got.Body)
		}
	}
	for _, address := range []string{"https://fcm.googleapis.com/x", "https://web.push.apple.com/x", "https://FCM.googleapis.com:443/x"} {
		g.Rooms().Devices.Registrations = device.Limiter{}
		got := g.Ask(http.MethodPost, "/notify/k/devices", endpoint(address))
		if got.Status != http.StatusCreated && got.Status != http.StatusConflict {
			t.Errorf("%s: status %d %s", address, got.Status, got.Body)
		}
	}
	if got := g.Ask(http.MethodPost, "/notify/k/devices", good()); got.Status != http.StatusConflict ||
		!strings.Contains(got.Body, "max_devices") {
		t.Errorf("one more: status %d %s", got.Status, got.Body)
	}
	limited := false
	for range 20 {
		limited = g.Ask(http.MethodPost, "/notify/k/devices", good()).Status == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("devices can be added as fast as somebody likes")
	}
	if got := g.Ask(http.MethodGet, "/notify/k/devices", nil); got.Status != http.StatusForbidden {
		t.Errorf("the list for everybody: status %d %s", got.Status, got.Body)
	}
	if got := g.Ask(http.MethodPost, "/notify",
		map[string]string{"urls": "device://phone", "body": "b"}); got.Status != http.StatusBadRequest {
		t.Errorf("a device as a URL of a client: status %d %s", got.Status, got.Body)
	}
}

// TestDeviceNames checks that names are unique, and that a device that subscribes again
// replaces itself.
func TestDeviceNames(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	g := newOpenGateway(t, t.TempDir(), keyK)
	var names []string
	for _, path := range []string{"/a", "/b", "/c"} {
		got := g.Ask(http.MethodPost, "/notify/k/devices", map[string]any{"name": "Phone", "subscription": s.Subscription(path)})
		var p gatewaytest.Phone
		if err := json.Unmarshal([]byte(got.Body), &p); err != nil || got.Status != http.StatusCreated {
			t.Fatalf("status %d %s", got.Status, got.Body)
		}
		names = append(names, p.Name)
	}
	g.Ask(http.MethodPost, "/notify/k/devices", map[string]any{"name": "Phone", "subscription": s.Subscription("/c")})
	if got := fmt.Sprint(names); got != "[Phone Phone 2 Phone 3]" {
		t.Error(got)
	}
	if n := len(g.PostForm("/notify/k", "body=b").JSON(t).Results); n != 3 {
		t.Errorf("%d destinations", n)
	}
}

// TestDeviceGone checks that a device whose browser has ended the subscription is removed,
// and that its key is told.
func TestDeviceGone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		s, chat := gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusOK)
		g := newGateway(t, t.TempDir(), gatewaytest.Key("k", chat.NotifyURL()+" chat"))
		s.Subscribe(t, g, "phone", "phone")
		gatewaytest.Eventually(t, func() bool { return chat.Count() == 1 }) // that there is a new device
		s.Answer(status)
		if a := g.PostForm("/notify/k", "body=b&tag=phone").JSON(t); a.Results[0].Status != "failed" {
			t.Errorf("%+v", a.Results)
		}
		gatewaytest.Eventually(t, func() bool { return chat.Count() == 2 })
		if title := chat.Got()[1].Title; title != "Device gone: phone" {
			t.Errorf("the key is told %q", title)
		}
		if got := g.PostForm("/notify/k", "body=b&tag=phone"); got.Status != http.StatusFailedDependency {
			t.Errorf("status %d %s", got.Status, got.Body)
		}
	}
}

// TestDevicesLast checks that devices, invitations and the VAPID key survive a restart.
func TestDevicesLast(t *testing.T) {
	t.Parallel()
	s, dir := gatewaytest.NewPushService(t), t.TempDir()
	g := newGateway(t, dir, keyK)
	s.Subscribe(t, g, "phone")
	invite := g.Invite("k")
	before, err := g.Rooms().Devices.PushKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.Stop()
	g = newGateway(t, dir, keyK)
	after, err := g.Rooms().Devices.PushKey(t.Context())
	if err != nil || after.Public() != before.Public() {
		t.Errorf("the VAPID key has changed: %v", err)
	}
	if got := g.Ask(http.MethodPost, "/notify/k/devices",
		map[string]any{"name": "two", "subscription": s.Subscription("/two"), "invite": invite}); got.Status != http.StatusCreated {
		t.Errorf("status %d %s", got.Status, got.Body)
	}
	if a := g.PostForm("/notify/k", "body=b").JSON(t); len(a.Results) != 2 || a.State != "" && a.State != "delivered" {
		t.Errorf("%+v", a)
	}
}

// TestDeviceSilent checks that a key is told when a device confirms nothing.
func TestDeviceSilent(t *testing.T) {
	t.Parallel()
	s, chat, dir := gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		start := func() *gatewaytest.Gateway {
			return newGateway(t, dir, gatewaytest.Key("k", chat.NotifyURL()+" chat"))
		}
		g := start()
		p := s.Subscribe(t, g, "phone", "phone")
		send := func() device.Payload {
			g.PostForm("/notify/k", "body=b&tag=phone")
			all := s.Got()
			return all[len(all)-1].Payload
		}
		confirm := func(m device.Payload) {
			if got := g.Ask(http.MethodPost, "/notify/k/devices/"+p.ID+"/receipts",
				map[string]string{"receipt": m.Receipt}); got.Status != http.StatusOK {
				t.Fatalf("status %d %s", got.Status, got.Body)
			}
		}
		send()
		send()
		gatewaytest.Until(t, "2000-01-01 00:05:00")
		confirm(send())
		gatewaytest.Until(t, "2000-01-01 00:10:00")
		send()
		send()
		gatewaytest.Until(t, "2000-01-01 00:15:00")
		if n := chat.Count(); n != 1 {
			t.Errorf("the key is told %d times after two receipts were missing", n)
		}
		send()
		send()
		gatewaytest.Until(t, "2000-01-01 00:20:00")
		if n := chat.Count(); n != 2 || chat.Got()[1].Title != "No answer from phone" {
			t.Errorf("the key is told %d times after four receipts were missing", n)
		}
		confirm(send())
		g = away(t, g, "2000-01-10 00:00:00", start)
		send()
		g = away(t, g, "2000-01-14 23:00:00", start)
		gatewaytest.Until(t, "2000-01-15 01:00:00")
		if n := chat.Count(); n != 3 || !strings.Contains(chat.Got()[2].Message, "since 1 January") {
			t.Errorf("the key is told %d times after 14 days", n)
		}
		away(t, g, "2000-01-30 23:00:00", start)
		gatewaytest.Until(t, "2000-01-31 01:00:00")
		if n := chat.Count(); n != 3 {
			t.Errorf("the key is told %d times of the same", n)
		}
	})
}

// TestDevicesKnown checks that the first message after a start reaches the devices, and that
// messages are refused while it is not known which devices a key has. Messages in the first
// moments after a start once went to nobody, or to all others.
func TestDevicesKnown(t *testing.T) {
	t.Parallel()
	s, dir := gatewaytest.NewPushService(t), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		start := func() *gatewaytest.Gateway { return newGateway(t, dir, keyK) }
		g := start()
		s.Subscribe(t, g, "phone")
		for range 20 {
			g.Stop()
			g = start()
			if got := g.PostForm("/notify/k", "body=b"); got.Status != http.StatusOK {
				t.Fatalf("after a start: status %d %s", got.Status, got.Body)
			}
		}
		if n := len(s.Got()); n != 20 {
			t.Errorf("the device got %d messages, want 20", n)
		}
		g.Rooms().Devices.ReadAgain() // as if the store had failed
		if got := g.PostForm("/notify/k", "body=b"); got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("devices that are not known: status %d %s", got.Status, got.Body)
		}
		time.Sleep(2 * time.Second)
		if got := g.PostForm("/notify/k", "body=b"); got.Status != http.StatusOK {
			t.Errorf("after the store has answered: status %d %s", got.Status, got.Body)
		}
	})
}

// TestDeviceEscalates checks that a device without a receipt for a minute counts as not
// reached, so that the next step begins, and that one with a receipt counts as reached.
func TestDeviceEscalates(t *testing.T) {
	t.Parallel()
	for _, confirms := range []bool{false, true} {
		s, dir := gatewaytest.NewPushService(t), t.TempDir()
		chat, phone := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
		gatewaytest.InBubble(t, func(t *testing.T) {
			key := gatewaytest.Key("k", chat.NotifyURL()+" chat", phone.NotifyURL()+" 2:oncall")
			key.Rules = &rules.Rules{Escalate: &rules.Escalate{After: []time.Duration{10 * time.Minute}, Repeat: 3, Ack: 24 * time.Hour}}
			g := newGateway(t, dir, key)
			p := s.Subscribe(t, g, "phone", "1:oncall")
			time.Sleep(10 * time.Second) // the others are told that there is a new device
			told := phone.Count()
			g.PostForm("/notify/k", "title=Down&body=b&type=failure&incident=db1")
			all := s.Got()
			m := all[len(all)-1].Payload
			if !m.Acknowledge || !strings.HasPrefix(m.Link, "https://alerts.example.com/notify/incidents/") || m.Badge == nil || *m.Badge != 1 {
				t.Errorf("payload %+v", m)
			}
			outcome := func(want string) {
				t.Helper()
				id := m.Link[strings.LastIndexByte(m.Link, '/')+1:]
				var got struct{ Begun []struct{ Outcome string } }
				if err := json.Unmarshal([]byte(g.Do(gatewaytest.NewRequest(http.MethodGet, site.RouteIncidents+"/"+id, "")).Body), &got); err != nil ||
					len(got.Begun) == 0 || got.Begun[0].Outcome != want {
					t.Errorf("with a receipt %t: the steps that have begun are %+v, want %q, %v", confirms, got.Begun, want, err)
				}
			}
			confirm := func() {
				t.Helper()
				if got := g.Ask(http.MethodPost, "/notify/k/devices/"+p.ID+"/receipts",
					map[string]string{"receipt": m.Receipt}); got.Status != http.StatusOK {
					t.Errorf("the receipt: status %d %s", got.Status, got.Body)
				}
			}
			outcome("sending")
			if confirms {
				gatewaytest.Until(t, "2000-01-01 00:00:40")
				confirm()
				outcome("told")
			}
			gatewaytest.Until(t, "2000-01-01 00:01:05")
			if phone.Count() != told {
				t.Error("the next step has begun before a minute")
			}
			gatewaytest.Until(t, "2000-01-01 00:01:40")
			if n := phone.Count() - told; n == 1 == confirms {
				t.Errorf("with a receipt %t: the next step has %d messages after a minute", confirms, n)
			}
			if !confirms {
				outcome("failed")
				confirm() // the phone was off until now
				outcome("told")
			}
			gatewaytest.Until(t, "2000-01-01 00:10:45")
			if n := phone.Count() - told; n != 1 {
				t.Errorf("with a receipt %t: the next step has %d messages", confirms, n)
			}
		})
	}
}

// TestDevicePolicy checks that what waits for a device is sent under the egress policy that
// held for devices when the message was accepted, and what waits for a URL of the operator
// beside it under none, in any order.
func TestDevicePolicy(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	g := newGateway(t, t.TempDir(), gatewaytest.Key("k", gatewaytest.NewPager(t, http.StatusOK).NotifyURL()))
	s.Subscribe(t, g, "phone")
	k, err := g.Resolved.Key(t.Context(), "k")
	if err != nil || len(k.Targets) != 2 {
		t.Fatalf("%d destinations, %v", len(k.Targets), err)
	}
	url, phone := k.Targets[0], k.Targets[1]
	for _, targets := range [][]notifier.Target{{url, phone}, {phone, url}} {
		d := dispatch.NewDelivery(g.Resolved, site.SourceHTTP, g.Site(), &notifier.Message{Body: "b"}, &message.Selection{Targets: targets}).
			ToKey(k)
		var text queued.Text
		if err := text.Decode(outbox.MessageOf(&d).Body); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", phone.Policy().Key()} {
			if got, err := outbox.PolicyThen(&text, k.Targets[i].Destination); err != nil || got.Key() != want {
				t.Errorf("%s: the policy %q, want %q, %v", k.Targets[i], got.Key(), want, err)
			}
		}
		text.DevicePolicy = new(egress.Policy).Key() // the egress was stricter when the message came in
		for i, want := range []string{"", text.DevicePolicy} {
			got, err := g.Gateway.Conf.QueuedTarget(t.Context(), &text, &queued.State{Hash: k.Targets[i].Hash()})
			if err != nil || got.Target.Policy().Key() != want {
				t.Errorf("%s: the attempt has the policy %q, want %q, %v", k.Targets[i], got.Target.Policy().Key(), want, err)
			}
		}
	}
}

// TestPushKeyDamaged checks that a VAPID key that cannot be read is reported, and is not
// replaced while a device needs it: that would end its subscription.
func TestPushKeyDamaged(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]queue.Record{
		"none":        {},
		"cut":         {Data: outbox.EncodeRecord(device.KindPushKey, []byte("cut"))},
		"another one": {Data: outbox.EncodeRecord(device.KindDevices, make([]byte, 32))},
	} {
		s := gatewaytest.NewPushService(t)
		g := newGateway(t, t.TempDir(), keyK)
		q := g.Rooms()
		phone := s.Subscribe(t, g, "phone")
		before, err := q.Devices.PushKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		store := func(r queue.Record) (old []byte) {
			name := q.Outbox.Queue.Hash("the VAPID key")
			err := q.Outbox.Queue.Records.Apply(t.Context(), &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
				old = slices.Clone(tx.Get(name))
				if len(r.Data) > 0 {
					r.Due = outbox.FarAway(q.Outbox.Queue.Now())
				}
				tx.Put(name, r)
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			q.Devices.ReadAgain() // as after a restart
			q.Devices.Refresh(t.Context(), &g.Gateway.Conf)
			return old
		}
		good := store(record)
		a := g.PostForm("/notify/k", "body=b").JSON(t)
		if len(a.Results) != 1 || a.Results[0].Status != "queued" || a.Results[0].Error == nil ||
			!strings.Contains(*a.Results[0].Error, "restore a back-up") {
			t.Errorf("%s: %+v", name, a.Results)
		}
		if got := g.Ask(http.MethodPost, "/notify/k/devices",
			map[string]any{
				"name": "two", "subscription": s.Subscription("/two"),
				"invite": g.Invite("k"),
			}); got.Status != http.StatusServiceUnavailable || !strings.Contains(got.Body, "the log") {
			t.Errorf("%s: another device: status %d %s", name, got.Status, got.Body)
		}
		store(queue.Record{Data: good})
		if after, err := q.Devices.PushKey(t.Context()); err != nil || after.Public() != before.Public() {
			t.Errorf("%s: after the back-up was restored: %v", name, err)
		}
		store(record)
		if got := g.Ask(http.MethodDelete, "/notify/k/devices/"+phone.ID, nil, "Authorization",
			"Bearer "+phone.Secret); got.Status != http.StatusOK {
			t.Errorf("%s: status %d %s", name, got.Status, got.Body)
		}
		if after, err := q.Devices.PushKey(t.Context()); err != nil || after.Public() == before.Public() {
			t.Errorf("%s: without a device: %v", name, err)
		}
	}
}

// TestReceiptGone checks that a receipt that was removed meanwhile leaves what is known of
// its device as it is.
func TestReceiptGone(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	g := newGateway(t, t.TempDir(), keyK)
	q, phone := g.Rooms(), s.Subscribe(t, g, "phone")
	g.PostForm("/notify/k", "body=b")
	p := s.Got()[0].Payload
	g.Ask(http.MethodPost, "/notify/k/devices/"+phone.ID+"/receipts", map[string]string{"receipt": p.Receipt})
	d, err := q.Devices.Find(t.Context(), g.Devices.DevicePlace(g.Resolved.Keys["k"]), phone.ID)
	if err != nil {
		t.Fatal(err)
	}
	before, err := q.Devices.States(t.Context(), []device.Device{*d})
	if err != nil || before[0].Seen.IsZero() {
		t.Fatalf("%+v, %v", before[0], err)
	}
	if err := q.Devices.Receipts.Due(t.Context(), q.Devices.Records.Receipt(device.Hash(phone.ID), "another"),
		&device.Receipt{Device: phone.ID}); err != nil {
		t.Fatal(err)
	}
	if after, err := q.Devices.States(t.Context(), []device.Device{*d}); err != nil || *after[0] != *before[0] {
		t.Errorf("%+v, want %+v, %v", after[0], before[0], err)
	}
}

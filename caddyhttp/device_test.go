package caddyhttp

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
	"github.com/caddy-notify/caddy-notify/notifier/webpush/webpushtest"
)

// pushCA signs the certificates of the push services of tests.
var pushCA = servicetest.NewTrustedCA()

// pushService is a push service on this machine, and the browsers that subscribe there.
type pushService struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	status   int
	browsers map[string]*webpushtest.Browser // by path
	got      []pushed
}

// pushed is a push as the browser gets it.
type pushed struct {
	path    string
	header  http.Header
	size    int
	payload device.Payload
}

func newPushService(t *testing.T) *pushService {
	s := &pushService{t: t, status: http.StatusCreated, browsers: map[string]*webpushtest.Browser{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.SetKeepAlivesEnabled(false)
	s.TLS = pushCA.Certificate(t, "127.0.0.1")
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *pushService) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.browsers[r.URL.Path]
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	p := pushed{path: r.URL.Path, header: r.Header, size: len(body)}
	if err := json.Unmarshal([]byte(b.Read(s.t, string(body))), &p.payload); err != nil {
		s.t.Error(err)
	}
	if s.status == http.StatusCreated {
		s.got = append(s.got, p)
	}
	w.WriteHeader(s.status)
}

func (s *pushService) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *pushService) all() []pushed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]pushed(nil), s.got...)
}

// subscription returns the subscription of a new browser.
func (s *pushService) subscription(path string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = webpushtest.NewBrowser(s.t)
	return s.browsers[path].Subscription(s.URL + path)
}

// pushOptions are the global options with which devices of tests can subscribe.
func pushOptions(more string) string {
	return "public_url https://alerts.example.com\negress {\nallow 127.0.0.0/8\n}\npush {\ncontact mailto:ops@example.com\nservices 127.0.0.1\n" + more + "\n}\n"
}

// ownPhone is a device that a test has subscribed.
type ownPhone struct{ ID, Secret, Name string }

// askJSON sends a request with JSON.
func askJSON(t *testing.T, h *Handler, method, target string, body any, header ...string) reply {
	t.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	r := httptest.NewRequest(method, target, strings.NewReader(text))
	r.Header.Set("Content-Type", typeJSON)
	r.Header.Set("Accept", typeJSON)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(t, h, r)
}

// invited returns the token of an invitation to the key k of the app.
func invited(t *testing.T, h *Handler, tags ...string) string {
	t.Helper()
	k := h.api.Resolved.Keys["k"]
	token, _, err := h.app.gateway.Rooms.Devices.Invitations.Make(t.Context(), h.api.Devices.DevicePlace(k), tags)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// subscribe subscribes a device to the key k with an invitation.
func (s *pushService) subscribe(t *testing.T, h *Handler, name string, tags ...string) (p ownPhone) {
	t.Helper()
	got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": name, "subscription": s.subscription("/" + url.PathEscape(name)), "invite": invited(t, h, tags...)})
	if got.status != http.StatusCreated {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDevices checks the life of a device: it subscribes with an invitation, which is used
// up then, gets messages, confirms them, changes its subscription, and is removed.
func TestDevices(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k")
	got := postWith(t, h, "/notify/k", "body=nobody")
	if got.status != http.StatusFailedDependency || !strings.Contains(got.body, "no device has subscribed") {
		t.Errorf("without a device: status %d %s", got.status, got.body)
	}
	invite := invited(t, h, "ops", "always")
	request := map[string]any{"name": "Jo's phone", "tags": []string{"night"}, "subscription": s.subscription("/jo"), "invite": invite}
	got = askJSON(t, h, http.MethodPost, "/notify/k/devices", request)
	var jo ownPhone
	if err := json.Unmarshal([]byte(got.body), &jo); err != nil || got.status != http.StatusCreated || got.header.Get("Location") != "/notify/k/devices/"+jo.ID || !strings.Contains(got.body, `["ops","always","night"]`) {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if got := askJSON(t, h, http.MethodPost, "/notify/k/devices", request); got.status != http.StatusForbidden || !strings.Contains(got.body, "used up") {
		t.Errorf("the invitation again: status %d %s", got.status, got.body)
	}

	a := postWith(t, h, "/notify/k", "title=Disk&body=full&type=failure&incident=db1&tag=none").queued(t)
	if len(a.Results) != 1 || a.Results[0].Destination != "device://Jo's phone" || a.Results[0].Status != "delivered" {
		t.Fatalf("%+v", a)
	}
	all := s.all()
	if len(all) != 1 {
		t.Fatalf("%d pushes", len(all))
	}
	p := all[0].payload
	if p.Key != "k" || p.Title != "Disk" || p.Text != "full" || p.Type != "failure" || len(p.Incident) != 32 || !p.Renotify || p.Device != jo.ID {
		t.Errorf("payload %+v", p)
	}
	header := all[0].header
	if header.Get("Urgency") != "high" || header.Get("Topic") != p.Incident || header.Get("Ttl") != "86400" {
		t.Errorf("header %v", header)
	}

	receipts := "/notify/k/devices/" + jo.ID + "/receipts"
	for _, wrong := range []string{"", p.Receipt + "x", "01890000-0000-7000-8000-000000000000" + p.Receipt[36:]} {
		if got := askJSON(t, h, http.MethodPost, receipts, map[string]string{"receipt": wrong}); got.status != http.StatusUnauthorized {
			t.Errorf("the receipt %q: status %d %s", wrong, got.status, got.body)
		}
	}
	if _, r := state(t, h, a.ID); r.Received != nil {
		t.Error("received without a receipt")
	}
	if got := askJSON(t, h, http.MethodPost, receipts, map[string]string{"receipt": p.Receipt}); got.status != http.StatusOK {
		t.Errorf("the receipt: status %d %s", got.status, got.body)
	}
	if _, r := state(t, h, a.ID); r.Received == nil {
		t.Error("the result does not tell the receipt")
	}

	bearer := []string{"Authorization", "Bearer " + jo.Secret}
	at := "/notify/k/devices/" + jo.ID
	if got := askJSON(t, h, http.MethodGet, at, nil, bearer...); got.status != http.StatusOK || !strings.Contains(got.body, `"seen"`) || strings.Contains(got.body, jo.Secret) {
		t.Errorf("GET: status %d %s", got.status, got.body)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		if got := askJSON(t, h, method, at, map[string]any{"name": "mine"}, "Authorization", "Bearer "+jo.ID); got.status != http.StatusUnauthorized {
			t.Errorf("%s with another secret: status %d %s", method, got.status, got.body)
		}
	}
	if got := askJSON(t, h, http.MethodPut, at, map[string]any{"tags": []string{"always"}}, bearer...); got.status != http.StatusBadRequest {
		t.Errorf("a device gives itself always: status %d %s", got.status, got.body)
	}
	if got := askJSON(t, h, http.MethodPut, at, map[string]any{"name": "Jo", "tags": []string{"day"}, "subscription": s.subscription("/new")}, bearer...); got.status != http.StatusOK || !strings.Contains(got.body, `"Jo","tags":["ops","always","day"]`) {
		t.Errorf("PUT: status %d %s", got.status, got.body)
	}
	if got := askJSON(t, h, http.MethodPost, at+"/test", nil, bearer...); got.status != http.StatusOK {
		t.Errorf("test: status %d %s", got.status, got.body)
	}
	if all := s.all(); len(all) != 2 || all[1].path != "/new" {
		t.Errorf("%d pushes, the last one %+v", len(all), all[len(all)-1])
	}
	if got := askJSON(t, h, http.MethodDelete, at, nil, bearer...); got.status != http.StatusOK {
		t.Errorf("DELETE: status %d %s", got.status, got.body)
	}
	if got := postWith(t, h, "/notify/k", "body=nobody"); got.status != http.StatusFailedDependency {
		t.Errorf("after it: status %d %s", got.status, got.body)
	}
}

// TestDeviceLongText checks that a text is cut so that the payload fits into a push, and
// that as much of it as possible is there.
func TestDeviceLongText(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k")
	s.subscribe(t, h, "phone")
	for _, text := range []string{strings.Repeat("ä", 9000), strings.Repeat(`"\`, 3000), strings.Repeat("<", 3900)} {
		if got := askJSON(t, h, http.MethodPost, "/notify/k", map[string]string{"title": strings.Repeat(`"`, 400), "body": text}); got.status != http.StatusOK {
			t.Fatalf("status %d %s", got.status, got.body)
		}
		all := s.all()
		last := all[len(all)-1]
		if last.size > 4096 || last.size < 4080 || !strings.HasSuffix(last.payload.Text, "…") {
			t.Errorf("%.3q: %d bytes, the text ends with %q", text, last.size, last.payload.Text[len(last.payload.Text)-10:])
		}
	}
}

// TestDeviceRefusals checks what is refused, and that nothing is stored then.
func TestDeviceRefusals(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("max_devices 1")+"key k\nkey t {\ntoken 0123456789abcdef\n}")
	good := func() map[string]any {
		return map[string]any{"name": "phone", "subscription": s.subscription("/p"), "invite": invited(t, h)}
	}
	with := func(field string, value any) map[string]any {
		m := good()
		m[field] = value
		return m
	}
	endpoint := func(address string) map[string]any {
		m := s.subscription("/p")
		m["endpoint"] = address
		return with("subscription", m)
	}
	auth := func(secret string) map[string]any {
		m := s.subscription("/p")
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
		h.app.gateway.Rooms.Devices.Registrations = device.Limiter{}
		got := askJSON(t, h, http.MethodPost, "/notify/k/devices", tt.body, tt.header...)
		if got.status != tt.status || !strings.Contains(got.body, tt.want) {
			t.Errorf("%s: status %d %s", tt.name, got.status, got.body)
		}
	}
	for _, path := range []string{"/notify/t/devices", "/notify/nobody/devices"} {
		if got := askJSON(t, h, http.MethodPost, path, with("invite", "")); got.status != http.StatusForbidden {
			t.Errorf("%s: status %d %s", path, got.status, got.body)
		}
	}
	for _, address := range []string{"https://fcm.googleapis.com/x", "https://web.push.apple.com/x", "https://FCM.googleapis.com:443/x"} {
		h.app.gateway.Rooms.Devices.Registrations = device.Limiter{}
		got := askJSON(t, h, http.MethodPost, "/notify/k/devices", endpoint(address))
		if got.status != http.StatusCreated && got.status != http.StatusConflict {
			t.Errorf("%s: status %d %s", address, got.status, got.body)
		}
	}
	if got := askJSON(t, h, http.MethodPost, "/notify/k/devices", good()); got.status != http.StatusConflict || !strings.Contains(got.body, "max_devices") {
		t.Errorf("one more: status %d %s", got.status, got.body)
	}
	limited := false
	for range 20 {
		limited = askJSON(t, h, http.MethodPost, "/notify/k/devices", good()).status == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("devices can be added as fast as somebody likes")
	}
	if got := askJSON(t, h, http.MethodGet, "/notify/k/devices", nil); got.status != http.StatusForbidden {
		t.Errorf("the list for everybody: status %d %s", got.status, got.body)
	}
	if got := askJSON(t, h, http.MethodPost, "/notify", map[string]string{"urls": "device://phone", "body": "b"}); got.status != http.StatusBadRequest {
		t.Errorf("a device as a URL of a client: status %d %s", got.status, got.body)
	}
}

// TestDeviceNames checks that names are unique, and that a device that subscribes again
// replaces itself.
func TestDeviceNames(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("devices open")+"key k")
	var names []string
	for _, path := range []string{"/a", "/b", "/c"} {
		got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": "Phone", "subscription": s.subscription(path)})
		var p ownPhone
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != http.StatusCreated {
			t.Fatalf("status %d %s", got.status, got.body)
		}
		names = append(names, p.Name)
	}
	askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": "Phone", "subscription": s.subscription("/c")})
	if got := fmt.Sprint(names); got != "[Phone Phone 2 Phone 3]" {
		t.Error(got)
	}
	if n := len(postWith(t, h, "/notify/k", "body=b").queued(t).Results); n != 3 {
		t.Errorf("%d destinations", n)
	}
}

// TestDeviceGone checks that a device whose browser has ended the subscription is removed,
// and that its key is told.
func TestDeviceGone(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		s, chat := newPushService(t), newPager(t, http.StatusOK)
		h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k {\nurl "+chat.NotifyURL()+" chat\n}")
		s.subscribe(t, h, "phone", "phone")
		waitUntil(t, func() bool { return chat.count() == 1 }) // that there is a new device
		s.answer(status)
		if a := postWith(t, h, "/notify/k", "body=b&tag=phone").queued(t); a.Results[0].Status != "failed" {
			t.Errorf("%+v", a.Results)
		}
		waitUntil(t, func() bool { return chat.count() == 2 })
		if title := chat.got[1].Title; title != "Device gone: phone" {
			t.Errorf("the key is told %q", title)
		}
		if got := postWith(t, h, "/notify/k", "body=b&tag=phone"); got.status != http.StatusFailedDependency {
			t.Errorf("status %d %s", got.status, got.body)
		}
	}
}

// waitUntil waits until something is true.
func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

// TestDevicesLast checks that devices, invitations and the VAPID key survive a restart.
func TestDevicesLast(t *testing.T) {
	s, dir := newPushService(t), t.TempDir()
	h := newQueueGateway(t, dir, "", pushOptions("")+"key k")
	s.subscribe(t, h, "phone")
	invite := invited(t, h)
	before, err := h.app.gateway.Rooms.Devices.PushKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stopApp(t, h)
	h = newQueueGateway(t, dir, "", pushOptions("")+"key k")
	after, err := h.app.gateway.Rooms.Devices.PushKey(t.Context())
	if err != nil || after.Public() != before.Public() {
		t.Errorf("the VAPID key has changed: %v", err)
	}
	if got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": "two", "subscription": s.subscription("/two"), "invite": invite}); got.status != http.StatusCreated {
		t.Errorf("status %d %s", got.status, got.body)
	}
	if a := postWith(t, h, "/notify/k", "body=b").queued(t); len(a.Results) != 2 || a.State != "" && a.State != "delivered" {
		t.Errorf("%+v", a)
	}
}

// TestDeviceSilent checks that a key is told when a device confirms nothing.
func TestDeviceSilent(t *testing.T) {
	t.Parallel()
	s, chat, dir := newPushService(t), newPager(t, http.StatusOK), t.TempDir()
	inBubble(t, func(t *testing.T) {
		start := func() *Handler {
			return newQueueGateway(t, dir, "", pushOptions("")+"key k {\nurl "+chat.NotifyURL()+" chat\n}")
		}
		h := start()
		p := s.subscribe(t, h, "phone", "phone")
		send := func() device.Payload {
			postWith(t, h, "/notify/k", "body=b&tag=phone")
			all := s.all()
			return all[len(all)-1].payload
		}
		confirm := func(m device.Payload) {
			if got := askJSON(t, h, http.MethodPost, "/notify/k/devices/"+p.ID+"/receipts", map[string]string{"receipt": m.Receipt}); got.status != http.StatusOK {
				t.Fatalf("status %d %s", got.status, got.body)
			}
		}
		send()
		send()
		until(t, "2000-01-01 00:05:00")
		confirm(send())
		until(t, "2000-01-01 00:10:00")
		send()
		send()
		until(t, "2000-01-01 00:15:00")
		if n := chat.count(); n != 1 {
			t.Errorf("the key is told %d times after two receipts were missing", n)
		}
		send()
		send()
		until(t, "2000-01-01 00:20:00")
		if n := chat.count(); n != 2 || chat.got[1].Title != "No answer from phone" {
			t.Errorf("the key is told %d times after four receipts were missing", n)
		}
		confirm(send())
		h = away(t, h, "2000-01-10 00:00:00", start)
		send()
		h = away(t, h, "2000-01-14 23:00:00", start)
		until(t, "2000-01-15 01:00:00")
		if n := chat.count(); n != 3 || !strings.Contains(chat.got[2].Message, "since 1 January") {
			t.Errorf("the key is told %d times after 14 days", n)
		}
		away(t, h, "2000-01-30 23:00:00", start)
		until(t, "2000-01-31 01:00:00")
		if n := chat.count(); n != 3 {
			t.Errorf("the key is told %d times of the same", n)
		}
	})
}

// TestDevicesKnown checks that the first message after a start reaches the devices, and that
// messages are refused while it is not known which devices a key has. Messages in the first
// moments after a start once went to nobody, or to all others.
func TestDevicesKnown(t *testing.T) {
	t.Parallel()
	s, dir := newPushService(t), t.TempDir()
	inBubble(t, func(t *testing.T) {
		start := func() *Handler { return newQueueGateway(t, dir, "", pushOptions("")+"key k {\n}") }
		h := start()
		s.subscribe(t, h, "phone", "")
		for range 20 {
			stopApp(t, h)
			h = start()
			if got := postWith(t, h, "/notify/k", "body=b"); got.status != http.StatusOK {
				t.Fatalf("after a start: status %d %s", got.status, got.body)
			}
		}
		if n := len(s.all()); n != 20 {
			t.Errorf("the device got %d messages, want 20", n)
		}
		h.app.gateway.Rooms.Devices.Forget() // as if the store had failed
		if got := postWith(t, h, "/notify/k", "body=b"); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("devices that are not known: status %d %s", got.status, got.body)
		}
		time.Sleep(2 * time.Second)
		if got := postWith(t, h, "/notify/k", "body=b"); got.status != http.StatusOK {
			t.Errorf("after the store has answered: status %d %s", got.status, got.body)
		}
	})
}

// TestDeviceEscalates checks that a device without a receipt for a minute counts as not
// reached, so that the next step begins, and that one with a receipt counts as reached.
func TestDeviceEscalates(t *testing.T) {
	t.Parallel()
	for _, confirms := range []bool{false, true} {
		s, x, dir := newPushService(t), newTeam(t, 0), t.TempDir()
		phone := newPager(t, http.StatusOK)
		inBubble(t, func(t *testing.T) {
			block := "key k {\nurl " + x.chat.NotifyURL() + " chat\nurl " + phone.NotifyURL() + " 2:oncall\nescalate after 10m\n}"
			h := newQueueGateway(t, dir, "", pushOptions("")+block)
			p := s.subscribe(t, h, "phone", "1:oncall")
			time.Sleep(10 * time.Second) // the others are told that there is a new device
			told := phone.count()
			postWith(t, h, "/notify/k", "title=Down&body=b&type=failure&incident=db1")
			all := s.all()
			m := all[len(all)-1].payload
			if !m.Acknowledge || !strings.HasPrefix(m.Link, "https://alerts.example.com/notify/incidents/") || m.Badge == nil || *m.Badge != 1 {
				t.Errorf("payload %+v", m)
			}
			outcome := func(want string) {
				t.Helper()
				id := m.Link[strings.LastIndexByte(m.Link, '/')+1:]
				var got struct{ Begun []struct{ Outcome string } }
				if err := json.Unmarshal(askIncident(t, h, http.MethodGet, id, "").Body.Bytes(), &got); err != nil || len(got.Begun) == 0 || got.Begun[0].Outcome != want {
					t.Errorf("with a receipt %t: the steps that have begun are %+v, want %q, %v", confirms, got.Begun, want, err)
				}
			}
			confirm := func() {
				t.Helper()
				if got := askJSON(t, h, http.MethodPost, "/notify/k/devices/"+p.ID+"/receipts", map[string]string{"receipt": m.Receipt}); got.status != http.StatusOK {
					t.Errorf("the receipt: status %d %s", got.status, got.body)
				}
			}
			outcome("sending")
			if confirms {
				until(t, "2000-01-01 00:00:40")
				confirm()
				outcome("told")
			}
			until(t, "2000-01-01 00:01:05")
			if phone.count() != told {
				t.Error("the next step has begun before a minute")
			}
			until(t, "2000-01-01 00:01:40")
			if n := phone.count() - told; n == 1 == confirms {
				t.Errorf("with a receipt %t: the next step has %d messages after a minute", confirms, n)
			}
			if !confirms {
				outcome("failed")
				confirm() // the phone was off until now
				outcome("told")
			}
			until(t, "2000-01-01 00:10:45")
			if n := phone.count() - told; n != 1 {
				t.Errorf("with a receipt %t: the next step has %d messages", confirms, n)
			}
		})
	}
}

// TestDevicePolicy checks that what waits for a device is sent under the egress policy that
// held for devices when the message was accepted, and what waits for a URL of the operator
// beside it under none, in any order.
func TestDevicePolicy(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k {\nurl "+newPager(t, http.StatusOK).NotifyURL()+"\n}")
	s.subscribe(t, h, "phone")
	k, err := h.api.Resolved.Key(t.Context(), "k")
	if err != nil || len(k.Targets) != 2 {
		t.Fatalf("%d destinations, %v", len(k.Targets), err)
	}
	url, phone := k.Targets[0], k.Targets[1]
	for _, targets := range [][]notifier.Target{{url, phone}, {phone, url}} {
		d := dispatch.NewDelivery(h.api.Resolved, site.SourceHTTP, h.api.Site(), &notifier.Message{Body: "b"}, &api.Selection{Targets: targets}).ToKey(k)
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
			got, err := h.app.gateway.Engine.QueuedTarget(t.Context(), &text, &queued.State{Hash: k.Targets[i].Hash()})
			if err != nil || got.Target.Policy().Key() != want {
				t.Errorf("%s: the attempt has the policy %q, want %q, %v", k.Targets[i], got.Target.Policy().Key(), want, err)
			}
		}
	}
}

// TestPushKeyDamaged checks that a VAPID key that cannot be read is reported, and is not
// replaced while a device needs it: that would end its subscription.
func TestPushKeyDamaged(t *testing.T) {
	for name, record := range map[string]queue.Record{
		"none":        {},
		"cut":         {Data: outbox.EncodeRecord(outbox.KindPushKey, []byte("cut"))},
		"another one": {Data: outbox.EncodeRecord(outbox.KindDevices, make([]byte, 32))},
	} {
		s := newPushService(t)
		h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k")
		q := h.app.gateway.Rooms
		phone := s.subscribe(t, h, "phone")
		before, err := q.Devices.PushKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		store := func(r queue.Record) (old []byte) {
			err := q.Outbox.Queue.Apply(t.Context(), &queue.Ruled{Names: []queue.Hash{q.Outbox.Queue.Hash("the VAPID key")}, Decide: func(records [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
				old = slices.Clone(records[0])
				if len(r.Data) > 0 {
					r.Due = outbox.FarAway(q.Outbox.Queue.Now())
				}
				return &queue.RuledChange{Records: []queue.Record{r}}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			q.Devices.Forget() // as after a restart
			q.Devices.Refresh(t.Context())
			return old
		}
		good := store(record)
		a := postWith(t, h, "/notify/k", "body=b").queued(t)
		if len(a.Results) != 1 || a.Results[0].Status != "queued" || a.Results[0].Error == nil || !strings.Contains(*a.Results[0].Error, "restore a back-up") {
			t.Errorf("%s: %+v", name, a.Results)
		}
		if got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": "two", "subscription": s.subscription("/two"), "invite": invited(t, h)}); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "the log") {
			t.Errorf("%s: another device: status %d %s", name, got.status, got.body)
		}
		store(queue.Record{Data: good})
		if after, err := q.Devices.PushKey(t.Context()); err != nil || after.Public() != before.Public() {
			t.Errorf("%s: after the back-up was restored: %v", name, err)
		}
		store(record)
		if got := askJSON(t, h, http.MethodDelete, "/notify/k/devices/"+phone.ID, nil, "Authorization", "Bearer "+phone.Secret); got.status != http.StatusOK {
			t.Errorf("%s: status %d %s", name, got.status, got.body)
		}
		if after, err := q.Devices.PushKey(t.Context()); err != nil || after.Public() == before.Public() {
			t.Errorf("%s: without a device: %v", name, err)
		}
	}
}

// TestReceiptGone checks that a receipt that was removed meanwhile leaves what is known of
// its device as it is.
func TestReceiptGone(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k")
	q, phone := h.app.gateway.Rooms, s.subscribe(t, h, "phone")
	postWith(t, h, "/notify/k", "body=b")
	p := s.all()[0].payload
	askJSON(t, h, http.MethodPost, "/notify/k/devices/"+phone.ID+"/receipts", map[string]string{"receipt": p.Receipt})
	d, err := q.Devices.Find(t.Context(), h.api.Devices.DevicePlace(h.api.Resolved.Keys["k"]), phone.ID)
	if err != nil {
		t.Fatal(err)
	}
	before, err := q.Devices.States(t.Context(), []device.Device{*d})
	if err != nil || before[0].Seen.IsZero() {
		t.Fatalf("%+v, %v", before[0], err)
	}
	if err := q.Devices.Receipts.Due(t.Context(), q.Devices.Records.Receipt(device.Hash(phone.ID), "another"), &device.Receipt{Device: phone.ID}); err != nil {
		t.Fatal(err)
	}
	if after, err := q.Devices.States(t.Context(), []device.Device{*d}); err != nil || *after[0] != *before[0] {
		t.Errorf("%+v, want %+v, %v", after[0], before[0], err)
	}
}

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// describedToken is the token of the keys of [describedCall] that have one.
const describedToken = "0psT0ken-0psT0ken"

// describedCall is a request whose answers must be described.
type describedCall struct {
	g           *gatewaytest.Gateway
	target      string
	contentType string
	body        string
	slow        bool // it takes longer than the server allows
	header      http.Header
	before      func() (after func())
}

// newNotOpen starts a gateway whose queue is not open.
func newNotOpen(t *testing.T, o gatewaytest.Options) *gatewaytest.Gateway {
	t.Helper()
	o.Queue = &outbox.Settings{}
	g := gatewaytest.New(t, o)
	g.Stop()
	g.Gateway.Rooms = nil
	return g
}

// describedItems returns the items of a JSON array.
func describedItems(t *testing.T, text string) (items []string) {
	t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		items = append(items, string(x))
	}
	return items
}

// configCalls returns requests to the routes for saved configurations, by
// operation.
func configCalls(t *testing.T, s *gatewaytest.Station) map[string][]describedCall {
	withSaved := func(o gatewaytest.Options) (*gatewaytest.Gateway, *storagetest.Storage) {
		storage := storagetest.New(t.TempDir())
		o.Storage, o.Site.Egress = storage, gatewaytest.Loopback()
		if o.Saved.Manage {
			o.Site.Managers = gatewaytest.Everybody()
		}
		return gatewaytest.New(t, o), storage
	}
	g, _ := withSaved(gatewaytest.Options{Saved: &saved.Options{Manage: true, MaxSize: 1 << 10}})
	broken, storage := withSaved(gatewaytest.Options{Saved: &saved.Options{Manage: true}})
	storage.Down.Store(true)
	locked, _ := withSaved(gatewaytest.Options{Saved: &saved.Options{}})
	guarded, _ := withSaved(gatewaytest.Options{
		Saved:  &saved.Options{},
		Global: site.Options{Keys: []site.KeyOptions{lockedKey("ops", describedToken, s.NotifyURL("/a"))}},
	})
	save := func(g *gatewaytest.Gateway) func() func() {
		return func() func() {
			if r := g.Post("/add/ops", gatewaytest.TypeForm, "urls="+s.NotifyURL("/a")); r.Status != http.StatusOK {
				t.Fatal(r.Body)
			}
			return func() {}
		}
	}
	savedThere := save(g)
	fresh := func() func() { // without tokens
		g.Post("/del/ops", "", "")
		return savedThere()
	}
	full := func() func() { // with as many tokens as a key can have
		done := fresh()
		for range configstore.MaxTokens {
			if r := g.Post("/cfg/ops/token", "", ""); r.Status != http.StatusOK {
				t.Fatal(r.Body)
			}
		}
		return done
	}
	healthy := func(g *gatewaytest.Gateway) func() func() {
		return func() func() {
			g.Saved.Shared.Checked = time.Time{}
			return func() {}
		}
	}
	urls := "urls=" + s.NotifyURL("/a")
	calls := map[string][]describedCall{
		"POST /add/{KEY}": {
			{g: g, target: "/add/ops", contentType: gatewaytest.TypeForm, body: urls},
			{g: g, target: "/add/ops", contentType: gatewaytest.TypeForm, body: "urls=nope"},
			{g: locked, target: "/add/ops", contentType: gatewaytest.TypeForm, body: urls},
			{g: g, target: "/add/a.b", contentType: gatewaytest.TypeForm, body: urls},
			{g: g, target: "/add/ops", contentType: gatewaytest.TypeForm, body: urls + strings.Repeat("x", 1100)},
			{g: broken, target: "/add/ops", contentType: gatewaytest.TypeForm, body: urls},
		},
		"POST /get/{KEY}": {
			{g: g, target: "/get/ops", before: savedThere},
			{g: locked, target: "/get/ops"},
			{g: g, target: "/get/none"},
			{g: broken, target: "/get/ops"},
		},
		"POST /move/{KEY}": {
			{
				g: g, target: "/move/ops", contentType: gatewaytest.TypeForm, body: "to=moved",
				before: func() func() { g.Post("/del/moved", "", ""); return savedThere() },
			},
			{
				g: g, target: "/move/ops", contentType: gatewaytest.TypeForm, body: "to=moved",
				before: func() func() { g.PostForm("/add/moved", urls); return savedThere() },
			},
			{g: g, target: "/move/ops", contentType: gatewaytest.TypeForm, body: "to=a.b", before: savedThere},
			{g: g, target: "/move/ops", contentType: gatewaytest.TypeForm, body: "to=" + strings.Repeat("x", 9000), before: savedThere},
			{g: g, target: "/move/none", contentType: gatewaytest.TypeForm, body: "to=moved"},
			{g: locked, target: "/move/ops", contentType: gatewaytest.TypeForm, body: "to=moved"},
			{g: broken, target: "/move/ops", contentType: gatewaytest.TypeForm, body: "to=moved"},
		},
		"POST /del/{KEY}": {
			{g: g, target: "/del/ops", before: savedThere},
			{g: locked, target: "/del/ops"},
			{g: g, target: "/del/none"},
			{g: broken, target: "/del/ops"},
		},
		"GET /cfg": {
			{g: g, target: "/cfg", before: savedThere}, {g: locked, target: "/cfg"}, {g: broken, target: "/cfg"},
		},
		"POST /cfg/{KEY}": {
			{g: g, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: "destination=1", before: savedThere},
			{g: g, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: "destination=9"},
			{g: locked, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: "destination=1"},
			{g: g, target: "/cfg/none?test", contentType: gatewaytest.TypeForm, body: "destination=1"},
			{g: g, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: "destination=1", slow: true},
			{g: g, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: "destination=1&shown=json://other"},
			{g: g, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: strings.Repeat("x", console.MaxPageForm+1)},
			{g: g, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: "url=" + s.NotifyURL("/refuse")},
			{g: broken, target: "/cfg/ops?test", contentType: gatewaytest.TypeForm, body: "destination=1"},
		},
		"POST /cfg/{KEY}/token": {
			{g: g, target: "/cfg/ops/token", before: fresh},
			{g: locked, target: "/cfg/ops/token"},
			{g: g, target: "/cfg/none/token"},
			{g: g, target: "/cfg/ops/token", before: full},
			{g: broken, target: "/cfg/ops/token"},
		},
		"DELETE /cfg/{KEY}/token": {
			{g: g, target: "/cfg/ops/token", before: full},
			{g: locked, target: "/cfg/ops/token"},
			{g: g, target: "/cfg/none/token"},
			{g: broken, target: "/cfg/ops/token"},
		},
		"GET /json/urls/{KEY}": {
			{g: guarded, target: "/json/urls/ops"},
			{g: g, target: "/json/urls/ops", before: savedThere},
			{g: g, target: "/json/urls/ops?tag=a!b", before: savedThere},
			{g: g, target: "/json/urls/none"},
			{g: broken, target: "/json/urls/ops"},
		},
		"GET /status": {
			{g: g, target: "/status", before: healthy(g)}, {g: broken, target: "/status", before: healthy(broken)},
		},
		"GET /status/{KEY}": {
			{g: g, target: "/status/ops", before: healthy(g)},
			{g: broken, target: "/status/ops", before: healthy(broken)},
			{g: guarded, target: "/status/ops"},
		},
		"GET /qr/{KEY}": {
			{g: g, target: "/qr/ops", before: savedThere}, {g: g, target: "/qr/none"}, {g: guarded, target: "/qr/ops"},
		},
		"GET /details": {{g: g, target: "/details"}},
	}
	return calls
}

// silenceCalls returns requests about silences, with all described answers.
func silenceCalls(t *testing.T, s *gatewaytest.Station) map[string][]describedCall {
	t.Helper()
	keys := []site.KeyOptions{gatewaytest.Key("k", s.NotifyURL("/a"))}
	o := gatewaytest.Options{Site: site.Options{Keys: keys, Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{}}
	g, full := gatewaytest.New(t, o), gatewaytest.New(t, o)
	add := func(g *gatewaytest.Gateway, form string) string {
		resp := g.PostForm("/notify/k/silences", form)
		var made silence.JSON
		if err := json.Unmarshal([]byte(resp.Body), &made); err != nil || resp.Status != http.StatusCreated {
			t.Fatalf("status %d: %s", resp.Status, resp.Body)
		}
		return made.ID
	}
	for range rules.MaxSilences {
		add(full, "for=1h&title=x")
	}
	sunday, err := rules.ParseWindow([]string{"sun", "02:00-04:00"})
	if err != nil {
		t.Fatal(err)
	}
	ruled := o
	ruled.Site.Keys = []site.KeyOptions{gatewaytest.RuledKey("k",
		rules.Rules{Windows: []rules.SilenceWindow{{Window: sunday, Reason: "backups", Tell: true}}}, s.NotifyURL("/a"))}
	configured := gatewaytest.New(t, ruled)
	inConfiguration := "/notify/k/silences/" + ruled.Site.Keys[0].Rules.Windows[0].At(time.Now()).ID.String()
	one, other := "/notify/k/silences/"+add(g, "for=1h&title=x&incident=i&tag=all&reason=r&who=w&tell=yes"),
		"/notify/k/silences/"+add(g, "for=1h&title=x")
	notOpen, nobody := newNotOpen(t, o), siteWith(t, keys...)
	calls := map[string][]describedCall{}
	for op, target := range map[string]string{
		"GET " + httpapi.RouteSilences: "/notify/k/silences", "GET " + httpapi.RouteSilence: one,
		"DELETE " + httpapi.RouteSilence: other, "POST " + httpapi.RouteSilences: "/notify/k/silences",
		"POST " + httpapi.RouteSilence: one,
	} {
		for _, c := range []describedCall{
			{g: g, target: target},
			{g: nobody, target: target},
			{g: g, target: strings.Replace(target, "/k/", "/none/", 1)},
			{g: notOpen, target: target},
		} {
			if c.contentType, c.body = gatewaytest.TypeForm, "for=1h&title=y"; op == "POST "+httpapi.RouteSilence {
				c.body = "for=1h"
			}
			calls[op] = append(calls[op], c)
		}
	}
	calls["GET "+httpapi.RouteSilences] = append(calls["GET "+httpapi.RouteSilences],
		describedCall{g: configured, target: "/notify/k/silences"})
	calls["GET "+httpapi.RouteSilence] = append(calls["GET "+httpapi.RouteSilence], describedCall{g: configured, target: inConfiguration})
	calls["DELETE "+httpapi.RouteSilence] = append(calls["DELETE "+httpapi.RouteSilence],
		describedCall{g: configured, target: inConfiguration})
	op := "POST " + httpapi.RouteSilences
	calls[op] = append(calls[op],
		describedCall{g: g, target: "/notify/k/silences", contentType: gatewaytest.TypeForm, body: "for=1h"},
		describedCall{
			g: g, target: "/notify/k/silences", contentType: gatewaytest.TypeJSON,
			body: `{"from": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `", "for": "2h", "title": "x", "tell": true}`,
		},
		describedCall{g: full, target: "/notify/k/silences", contentType: gatewaytest.TypeForm, body: "for=1h&title=y"},
		describedCall{g: g, target: "/notify/k/silences", contentType: gatewaytest.TypeForm, body: strings.Repeat("x", silence.MaxRequest+1)},
		describedCall{g: g, target: "/notify/k/silences", contentType: "text/plain", body: "x"})
	op = "POST " + httpapi.RouteSilence
	calls[op] = append(calls[op],
		describedCall{g: g, target: one, contentType: gatewaytest.TypeForm, body: "for=1h&title=x"},
		describedCall{g: configured, target: inConfiguration, contentType: gatewaytest.TypeForm, body: "for=1h"},
		describedCall{g: g, target: one, contentType: gatewaytest.TypeForm, body: strings.Repeat("x", silence.MaxRequest+1)},
		describedCall{g: g, target: one, contentType: "text/plain", body: "x"})
	return calls
}

// rulerCalls returns requests of rulers, with all described answers.
func rulerCalls(t *testing.T, s *gatewaytest.Station) map[string][]describedCall {
	t.Helper()
	closed, other := lockedKey("k", describedToken, s.NotifyURL("/a")), lockedKey("other", describedToken, s.NotifyURL("/a"))
	closed.Readers, other.Accept = []string{"reader-of-the-key"}, []string{"grafana"}
	o := gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{closed, other}, MaxBody: 1 << 10}, Queue: &outbox.Settings{}}
	open := gatewaytest.Options{Site: site.Options{
		Keys:     []site.KeyOptions{gatewaytest.Key("k", s.NotifyURL("/a"))},
		Managers: gatewaytest.Everybody(),
	}, Queue: &outbox.Settings{}}
	g, free, notOpen := gatewaytest.New(t, o), gatewaytest.New(t, open), newNotOpen(t, open)
	withoutQueue := open
	withoutQueue.Queue = nil
	unkept := gatewaytest.New(t, withoutQueue)
	const body = `[{"labels":{"alertname":"Disk"}}]`
	calls := map[string][]describedCall{}
	for op, rest := range map[string]string{
		"GET " + httpapi.RouteRulerAlerts: "api/v2/alerts", "POST " + httpapi.RouteRulerAlerts: "api/v2/alerts",
		"GET " + httpapi.RouteRulerStatus: "api/v2/status", "GET " + httpapi.RouteRulerHealthy: "-/healthy",
		"GET " + httpapi.RouteRulerReady: "-/ready",
	} {
		for _, c := range []describedCall{
			{g: free, target: "/notify/k/prometheus/" + rest},
			{g: g, target: "/notify/k/prometheus/" + rest},
			{g: unkept, target: "/notify/k/prometheus/" + rest},
			{g: free, target: "/notify/none/prometheus/" + rest},
			{g: notOpen, target: "/notify/k/prometheus/" + rest},
		} {
			c.contentType, c.body = gatewaytest.TypeJSON, body
			calls[op] = append(calls[op], c)
		}
	}
	op := "POST " + httpapi.RouteRulerAlerts
	calls[op] = append(calls[op],
		describedCall{g: free, target: "/notify/k/prometheus/api/v2/alerts", contentType: gatewaytest.TypeJSON, body: "{}"},
		describedCall{
			g: g, target: "/notify/k/prometheus/api/v2/alerts?token=" + describedToken, contentType: gatewaytest.TypeJSON,
			body: strings.Repeat(" ", 2<<10),
		},
		describedCall{
			g: g, target: "/notify/other/prometheus/api/v2/alerts?token=" + describedToken, contentType: gatewaytest.TypeJSON,
			body: body,
		})
	return calls
}

// inboxCalls returns requests that get each answer about inboxes.
func inboxCalls(t *testing.T) map[string][]describedCall {
	t.Helper()
	o := gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{{
		Name: "k", KeySettings: site.KeySettings{Inbox: 7 * 24 * time.Hour},
		Readers: []string{"reader-of-the-inbox"},
	}}}, Queue: &outbox.Settings{}}
	guarded := gatewaytest.New(t, o)
	o.Site.Managers = gatewaytest.Everybody()
	g, full, notOpen := gatewaytest.New(t, o), gatewaytest.New(t, o), newNotOpen(t, o)
	g.Post("/notify/k", gatewaytest.TypeJSON, `{"body":"x","title":"t","incident":"i","attach":{"base64":"aGVsbG8=","filename":"a.txt"}}`)
	g.Streams.Stop() // so that a stream ends
	for range inbox.MaxListeners {
		if _, _, err := full.Rooms().Inboxes.Listen(t.Context(), "site "+gatewaytest.SiteID+"\x00k"); err != nil {
			t.Fatal(err)
		}
	}
	calls := map[string][]describedCall{}
	for op, target := range map[string]string{
		"GET " + httpapi.RouteInbox:       "/notify/k/messages",
		"GET " + httpapi.RouteInboxStream: "/notify/k/stream", "GET " + httpapi.RouteNtfyInbox: "/notify/k/ntfy/x/json",
	} {
		query := "?since=all"
		calls[op] = []describedCall{
			{g: g, target: target + query},
			{g: guarded, target: target + query},
			{g: g, target: strings.Replace(target, "/k/", "/none/", 1)},
			{g: g, target: target + "?since=x"},
			{g: notOpen, target: target},
		}
		if op != "GET "+httpapi.RouteInbox {
			calls[op] = append(calls[op], describedCall{g: full, target: target})
		}
	}
	op := "GET " + httpapi.RouteInbox
	calls[op] = append(calls[op], describedCall{g: g, target: "/notify/k/messages?format=atom"})
	op = "GET " + httpapi.RouteNtfyInbox
	socket := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Origin": {"https://evil.example"}}
	calls[op] = append(calls[op],
		describedCall{g: g, target: "/notify/k/ntfy/x/auth"}, describedCall{g: g, target: "/notify/k/ntfy/x/sse?poll=1"},
		describedCall{g: g, target: "/notify/k/ntfy/x/raw?poll=1"}, describedCall{g: g, target: "/notify/k/ntfy/x/ws", header: socket})
	return calls
}

// deviceCalls returns requests that get each described answer about devices.
func deviceCalls(t *testing.T) map[string][]describedCall {
	t.Helper()
	s := gatewaytest.NewPushService(t)
	push := func(who string, maximum int, managers *site.Managers) gatewaytest.Options {
		return gatewaytest.Options{
			Global: site.Options{
				Keys: []site.KeyOptions{{Name: "k"}}, PublicURL: "https://alerts.example.com", Egress: gatewaytest.Loopback(),
				Push: &site.Push{Contact: "mailto:ops@example.com", Who: who, Max: maximum, Hosts: []string{"127.0.0.1"}},
			},
			Site:  site.Options{Managers: managers},
			Queue: &outbox.Settings{},
		}
	}
	g := gatewaytest.New(t, push(device.DevicesInvited, 20, gatewaytest.Everybody()))
	full := gatewaytest.New(t, push("open", 1, gatewaytest.Everybody()))
	nobody := gatewaytest.New(t, push(device.DevicesInvited, 20, nil))
	notOpen := newNotOpen(t, push(device.DevicesInvited, 20, gatewaytest.Everybody()))
	s.Subscribe(t, full, "one")
	jo, gone := s.Subscribe(t, g, "jo"), s.Subscribe(t, g, "gone")
	g.PostForm("/notify/k", "body=b")
	receipt := s.Got()[0].Payload
	at := "/notify/k/devices/" + jo.ID
	const list = "/notify/k/devices"
	foreign := http.Header{"Sec-Fetch-Site": {"cross-site"}}
	call := func(g *gatewaytest.Gateway, target string, body any, header ...string) describedCall {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		c := describedCall{
			g: g, target: target, contentType: gatewaytest.TypeJSON, body: string(text), header: http.Header{},
			before: func() func() {
				if q := g.Rooms(); q != nil {
					q.Devices.Registrations = device.Limiter{}
				}
				return func() {}
			},
		}
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
			client := netip.MustParseAddr("192.0.2.1") // from which requests of httptest come
			for c.g.Rooms().Devices.Registrations.Allow(client, time.Now()) {
			}
			return func() {}
		}
	}
	calls := map[string][]describedCall{"GET " + httpapi.RouteDevices: {
		call(g, list, nil), call(nobody, list, nil),
		call(g, "/notify/none/devices", nil), call(notOpen, list, nil),
	}}
	added := map[string]any{"name": "new", "subscription": s.Subscription("/new")}
	add := call(nobody, list, added)
	fresh := with(call(g, list, added), func(c *describedCall) { // each with an invitation of its own
		invite, _, err := g.Rooms().Devices.Invitations.Make(t.Context(), site.Place{Key: "k"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(map[string]any{"name": "new", "subscription": s.Subscription("/new"), "invite": invite})
		c.body = string(b)
	})
	opened := gatewaytest.New(t, push("open", 20, nil))
	calls["POST "+httpapi.RouteDevices] = []describedCall{
		fresh, call(opened, list, added), call(opened, list, map[string]any{"name": ""}), add, call(full, list, added), with(add, large),
		with(add, text), with(add, often), call(notOpen, list, added),
	}
	own, no := []string{"Authorization", "Bearer " + jo.Secret}, []string{"Authorization", "Bearer x"}
	calls["GET "+httpapi.RouteDevice] = []describedCall{call(g, at, nil, own...), call(nobody, at, nil, no...), call(notOpen, at, nil, own...)}
	change := call(g, at, map[string]any{"name": "jo"}, own...)
	calls["PUT "+httpapi.RouteDevice] = []describedCall{
		change, call(g, at, map[string]any{"name": ""}, own...), call(g, at, nil, no...),
		with(change, other), with(change, large), with(change, text), call(notOpen, at, nil, own...),
	}
	calls["DELETE "+httpapi.RouteDevice] = []describedCall{
		call(g, "/notify/k/devices/"+gone.ID, nil, "Authorization", "Bearer "+gone.Secret), call(g, "/notify/k/devices/"+gone.ID+"x", nil),
		call(nobody, at, nil, no...), with(change, other), call(notOpen, at, nil, own...),
	}
	test := call(g, at+"/test", nil, own...)
	refused := with(test, func(c *describedCall) {
		c.before = func() func() {
			g.Rooms().Devices.Registrations = device.Limiter{}
			s.Answer(http.StatusForbidden)
			return func() { s.Answer(http.StatusCreated) }
		}
	})
	calls["POST "+httpapi.RouteDeviceTest] = []describedCall{
		test, call(g, at+"/test", nil, no...), with(test, other), refused,
		with(test, often), call(notOpen, at+"/test", nil, own...),
	}
	confirm := call(g, "/notify/k/devices/"+receipt.Device+"/receipts", map[string]string{"receipt": receipt.Receipt})
	if receipt.Device == gone.ID {
		confirm.target, confirm.body = at+"/receipts", `{"receipt":"`+s.Got()[1].Payload.Receipt+`"}`
	}
	calls["POST "+httpapi.RouteReceipts] = []describedCall{
		confirm, call(g, at+"/receipts", map[string]string{"receipt": "x"}), with(confirm, other),
		call(notOpen, at+"/receipts", map[string]string{"receipt": "x"}),
	}
	return calls
}

package integration

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

// autopush is the other side of a push service for Firefox: the connection of the
// browser, in the protocol of https://mozilla-services.github.io/autopush-rs/.
type autopush struct {
	*httptest.Server
	endpoint string // of the subscriptions that it gives out

	mu      sync.Mutex
	conn    *websocket.Conn
	channel string
}

// newAutopush starts a push service whose subscriptions are at the endpoint.
func newAutopush(t *testing.T, endpoint string) *autopush {
	t.Helper()
	a := &autopush{endpoint: endpoint}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for {
			var m struct{ MessageType, ChannelID string }
			if conn.ReadJSON(&m) != nil {
				return // the browser has ended
			}
			if err := a.answer(conn, m.MessageType, m.ChannelID); err != nil {
				return
			}
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *autopush) answer(conn *websocket.Conn, kind, channel string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
	switch kind {
	case "hello":
		return conn.WriteJSON(map[string]any{
			"messageType": kind, "status": 200, "use_webpush": true, "uaid": strings.Repeat("0123456789abcdef", 2),
		})
	case "register":
		a.channel = channel
		return conn.WriteJSON(map[string]any{"messageType": kind, "status": 200, "channelID": channel, "pushEndpoint": a.endpoint})
	case "unregister":
		return conn.WriteJSON(map[string]any{"messageType": kind, "status": 200, "channelID": channel})
	}
	return nil
}

// deliver hands a push to the browser, which decrypts it.
func (a *autopush) deliver(t *testing.T, p push) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.conn.WriteJSON(map[string]any{
		"messageType": "notification", "channelID": a.channel, "version": rand.Text(), // the browser drops what it knows
		"data": base64.RawURLEncoding.EncodeToString(p.body), "headers": map[string]string{"encoding": p.header.Get("Content-Encoding")},
	}); err != nil {
		t.Fatal(err)
	}
}

// TestDeviceInFirefox subscribes with the browser's own push client. It decrypts the
// message, shows it, posts the receipt, and removes the device.
func TestDeviceInFirefox(t *testing.T) {
	services := newPushService(t)
	address := newDeviceGateway(t, services)
	hub := newAutopush(t, services.URL+"/firefox")
	f := newFirefox(t, map[string]any{
		"dom.push.serverURL": "ws" + strings.TrimPrefix(hub.URL, "http") + "/", "dom.push.testing.allowInsecureServerURL": true,
		// What Firefox does for drivers turns push off.
		"remote.prefs.recommended": false, "dom.push.connection.enabled": true,
		"permissions.default.desktop-notification": 1, "alerts.useSystemBackend": false,
		"app.normandy.enabled": false, "datareporting.policy.dataSubmissionEnabled": false,
		"toolkit.telemetry.server": "", "services.settings.server": "data:,",
	})
	operator, _ := newBrowser(t)
	link := invite(t, operator, address, "ops", "1:oncall")
	f.open(t, link)
	f.shows(t, "#new:not([hidden])", "oncall")
	f.eval(t, "document.getElementById('new').requestSubmit()")
	f.shows(t, "#subscribed:not([hidden])", "Subscribed as Firefox on Linux")
	postForm(t, address+"/notify/ops?token=a-long-token-of-ops&type=failure", http.StatusOK,
		url.Values{"title": {"Disk full"}, "body": {"91% of db1 ü"}, "incident": {"disk db1"}})
	hub.deliver(t, services.take(t))
	var shown []notification
	eventually(t, "Firefox shows the message", func() bool {
		got := f.eval(t,
			`navigator.serviceWorker.ready.then((r) => r.getNotifications()).then((all) => `+
				`JSON.stringify(all.map((n) => ({ title: n.title, body: n.body, tag: n.tag }))))`)
		if err := json.Unmarshal([]byte(got), &shown); err != nil {
			t.Fatal(err)
		}
		return len(shown) == 1
	})
	if n := shown[0]; n.Title != "Disk full" || n.Body != "91% of db1 ü" || n.Tag == "" {
		t.Errorf("the notification is %+v", n)
	}
	run(t, operator, open(address+"/notify/console/keys/ops?tab=devices"))
	eventually(t, "the console shows the receipt", func() bool {
		return strings.Contains(text(t, operator, "#live-devices"), "last receipt")
	})
	f.eval(t, "document.getElementById('test').click()")
	hub.deliver(t, services.take(t))
	f.shows(t, "#tested", "It has arrived.")
	f.eval(t, "document.getElementById('remove').click()")
	f.shows(t, "#refused:not([hidden])", "invitation")
	run(t, operator, open(address+"/notify/console/keys/ops?tab=devices"))
	shows(t, operator, "main", "No browser or phone has subscribed")
}

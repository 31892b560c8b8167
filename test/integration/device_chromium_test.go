package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// phone is a Chromium whose push service is one of the test's own. What that gets, the
// test decrypts and delivers to the service worker.
type phone struct {
	ctx          context.Context
	complaints   func() []string
	origin       string
	subscription *subscription
	worker       context.Context // of the service worker, once the test is attached to it

	mu           sync.Mutex
	registration serviceworker.RegistrationID
}

// newPhone starts a Chromium as wide as a phone. permission is what somebody has said
// to notifications of the origin.
func newPhone(t *testing.T, origin string, s *subscription, permission browser.PermissionSetting) *phone {
	t.Helper()
	p := &phone{origin: origin, subscription: s}
	p.ctx, p.complaints = newBrowser(t)
	chromedp.ListenTarget(p.ctx, func(e any) {
		switch e := e.(type) {
		case *serviceworker.EventWorkerRegistrationUpdated:
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, r := range e.Registrations {
				p.registration = r.RegistrationID
			}
		case *serviceworker.EventWorkerErrorReported:
			t.Errorf("the service worker: %s", e.ErrorMessage.ErrorMessage)
		}
	})
	run(t, p.ctx, serviceworker.Enable(), emulation.SetDeviceMetricsOverride(390,
		844, 1, true), chromedp.ActionFunc(func(ctx context.Context) error {
		if _, err := page.AddScriptToEvaluateOnNewDocument(s.stub()).Do(ctx); err != nil {
			return err
		}
		return browser.SetPermission(&browser.PermissionDescriptor{Name: "notifications"}, permission).WithOrigin(origin).Do(ctx)
	}))
	return p
}

// deliver delivers a push, as the push service of the browser would.
func (p *phone) deliver(t *testing.T, got push) (payload map[string]any) {
	t.Helper()
	text, err := p.subscription.decrypt(got.body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &payload); err != nil {
		t.Fatalf("the push is %q: %v", text, err)
	}
	p.mu.Lock()
	registration := p.registration
	p.mu.Unlock()
	run(t, p.ctx, serviceworker.DeliverPushMessage(p.origin, registration, text))
	return payload
}

// notification is what the system shows.
type notification struct {
	Title    string
	Body     string
	Tag      string
	Renotify bool
	Actions  []string
}

// notifications are those that the system shows.
func (p *phone) notifications(t *testing.T) (all []notification) {
	t.Helper()
	run(t, p.ctx, chromedp.Evaluate(`navigator.serviceWorker.ready.then((r) => r.getNotifications())
		.then((all) => all.map((n) => ({ title: n.title, body: n.body, tag: n.tag,
			renotify: n.renotify, actions: n.actions.map((a) => a.action) })))`,
		&all, awaitPromise))
	return all
}

// inWorker evaluates an expression in the service worker, which runs as long as the
// test is attached to it.
func (p *phone) inWorker(t *testing.T, expression string) {
	t.Helper()
	if p.worker == nil {
		targets, err := chromedp.Targets(p.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range targets {
			if at.Type == "service_worker" {
				ctx, cancel := chromedp.NewContext(p.ctx, chromedp.WithTargetID(at.TargetID))
				t.Cleanup(cancel)
				p.worker = ctx
			}
		}
		if p.worker == nil {
			t.Fatal("no service worker runs")
		}
	}
	var done any
	run(t, p.worker, chromedp.Evaluate(expression, &done, awaitPromise))
}

// click clicks on the notification with the title, or on an action of it. A script
// cannot make an event that the browser trusts, so that waitUntil and openWindow stand
// in for the browser's. The windows that the worker opens are returned.
func (p *phone) click(t *testing.T, title, action string) {
	t.Helper()
	p.inWorker(t, fmt.Sprintf(`(async () => {
		const n = (await self.registration.getNotifications()).find((n) => n.title === %q);
		const e = new NotificationEvent("notificationclick", { notification: n, action: %q });
		let work;
		e.waitUntil = (p) => work = p;
		Object.defineProperty(self.clients, "openWindow", { configurable: true, value: async (address) =>
		self.registration.showNotification("opened", { body: address }) });
		self.dispatchEvent(e);
		await work;
	})()`, title, action))
}

// checkPage checks the page as TestConsoleForEveryone does.
func checkPage(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	source := axe(t)
	for _, width := range []int64{320, 390, 768, 1280} {
		run(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500))
		if wide := eval[int64](t, ctx, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("%s: the page is %d pixels wide in a window of %d", name, wide, width)
		}
	}
	run(t, ctx, emulation.SetDeviceMetricsOverride(390, 844, 1, true))
	for _, scheme := range []string{"light", "dark"} {
		run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		if bad := eval[[]string](t, ctx, strings.Replace(contrast, `"main *"`, `"body *"`, 1)); len(bad) > 0 {
			t.Errorf("%s, %s: too little contrast: %q", name, scheme, bad)
		}
		if source != "" {
			checkAxe(t, ctx, source, name+", "+scheme)
		}
		screenshot(t, ctx, name+"-"+scheme)
	}
	checkNames(t, ctx, name)
	checkTabs(t, ctx, name)
}

// newDeviceGateway runs the gateway with a console below a prefix, and with two keys
// that devices can subscribe to; one has a token.
func newDeviceGateway(t *testing.T, services *pushService) (address string) {
	t.Helper()
	port := freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue {
			wait 300ms
		}
		public_url http://localhost:%[1]d/alerts
		push {
			services localhost
		}
	}
}
http://localhost:%[1]d {
	handle_path /alerts/* {
		notify {
			key ops {
				token a-long-token-of-ops
				url %[2]s 2:oncall
				escalate after 1h
			}
			key home {
			}
			egress {
				allow 127.0.0.1
			}
			configs {
				manage open
			}
		}
	}
}
`, port, newService(t).to("")))
	return fmt.Sprintf("http://localhost:%d/alerts", port)
}

// originOf returns the origin of an address.
func originOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Scheme + "://" + u.Host
}

// invite makes an invitation on the page of a key in the console, and returns its link.
func invite(t *testing.T, ctx context.Context, address, key, tags string) string {
	t.Helper()
	run(t, ctx, open(address+"/notify/console/keys/"+key+"?tab=devices"), chromedp.SendKeys("#device-tags", tags+kb.Enter, chromedp.ByQuery))
	shows(t, ctx, "#invitation", "The invitation")
	return eval[string](t, ctx, "document.querySelector('output').textContent")
}

// scan reads a QR code in the page, as it is on the screen in the dark scheme.
func scan(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	var shot []byte
	run(t, ctx,
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}),
		chromedp.Screenshot(selector, &shot, chromedp.ByQuery))
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		t.Fatal(err)
	}
	found, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil {
		t.Fatalf("the QR code cannot be read: %v", err)
	}
	return found.GetText()
}

// TestDeviceInChromium goes the whole way of a phone: from the invitation in the
// console to a message on it, its receipt, an acknowledgement, a test, a changed
// subscription, and the end.
func TestDeviceInChromium(t *testing.T) {
	services := newPushService(t)
	address := newDeviceGateway(t, services)
	operator, complaints := newBrowser(t)
	link := invite(t, operator, address, "ops", "1:oncall")
	if !strings.HasPrefix(link, address+"/notify/ops?invite=") {
		t.Fatalf("the link is %s", link)
	}
	checkPage(t, operator, "invitation")
	if got := scan(t, operator, ".qr"); got != link {
		t.Errorf("the QR code leads to %s, not to %s", got, link)
	}

	p := newPhone(t, originOf(t, address), newSubscription(t, services, "/first"), browser.PermissionSettingGranted)
	run(t, p.ctx, open(link))
	shows(t, p.ctx, "#new:not([hidden])", "oncall")
	run(t, p.ctx, chromedp.WaitVisible("#new", chromedp.ByQuery),
		chromedp.SetValue("#name", "Ann's phone", chromedp.ByQuery), chromedp.Focus("#name", chromedp.ByQuery),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	shows(t, p.ctx, "#subscribed:not([hidden])", "Subscribed as Ann's phone")
	checkPage(t, p.ctx, "subscribed")

	// An alert, which is acknowledged in the notification.
	postForm(t, address+"/notify/ops?token=a-long-token-of-ops&type=failure", http.StatusOK,
		url.Values{"title": {"Disk full"}, "body": {"91% of db1"}, "incident": {"disk db1"}})
	got := services.take(t)
	if got.path != "/first" || got.header.Get("Urgency") != "high" || got.header.Get("Topic") == "" ||
		got.header.Get("TTL") == "" || !strings.HasPrefix(got.header.Get("Authorization"), "vapid t=") {
		t.Errorf("the push is %s %v", got.path, got.header)
	}
	p.deliver(t, got)
	var shown []notification
	eventually(t, "the notification is shown", func() bool {
		shown = p.notifications(t)
		return len(shown) == 1
	})
	if n := shown[0]; n.Title != "Disk full" || n.Body != "91% of db1" || n.Tag == "" ||
		!n.Renotify || len(n.Actions) != 1 || n.Actions[0] != "acknowledge" {
		t.Errorf("the notification is %+v", n)
	}
	run(t, operator, open(address+"/notify/console/keys/ops?tab=devices"))
	eventually(t, "the console shows the receipt", func() bool {
		return strings.Contains(text(t, operator, "#live-devices"), "last receipt")
	})
	p.click(t, "Disk full", "acknowledge")
	shown = p.notifications(t)
	if len(shown) != 1 || shown[0].Title != "Acknowledged: Disk full" {
		t.Errorf("after the acknowledgement, the notifications are %+v", shown)
	}
	run(t, operator, open(address+"/notify/console/incidents"))
	shows(t, operator, "#live-incidents", "Acknowledged")
	shows(t, operator, "#live-incidents", "Ann's phone")
	p.click(t, "Acknowledged: Disk full", "")
	shown = p.notifications(t)
	if len(shown) != 1 || !strings.HasPrefix(shown[0].Body, address+"/notify/incidents/") {
		t.Errorf("a click opens %+v", shown)
	}

	noErrors(t, errorsOf(append(p.complaints(), complaints()...)))
}

// TestDeviceChanges sends a test, changes the subscription, revokes the device, and
// subscribes the phone to another key.
func TestDeviceChanges(t *testing.T) {
	services := newPushService(t)
	address := newDeviceGateway(t, services)
	operator, complaints := newBrowser(t)
	link := invite(t, operator, address, "ops", "")
	p := newPhone(t, originOf(t, address), newSubscription(t, services, "/first"), browser.PermissionSettingGranted)
	run(t, p.ctx, open(link), chromedp.WaitVisible("#new", chromedp.ByQuery),
		chromedp.SetValue("#name", "Ann's phone", chromedp.ByQuery),
		chromedp.Click("#new button", chromedp.ByQuery))
	shows(t, p.ctx, "#subscribed:not([hidden])", "Subscribed as Ann's phone")

	// A test.
	run(t, p.ctx, chromedp.Click("#test", chromedp.ByQuery))
	p.deliver(t, services.take(t))
	shows(t, p.ctx, "#tested", "It has arrived.")

	// The browser has changed its subscription, as long as the worker runs and while it did not.
	second := newSubscription(t, services, "/second")
	p.inWorker(t, fmt.Sprintf(`(() => {
		const e = new Event("pushsubscriptionchange");
		let work;
		e.waitUntil = (p) => work = p;
		e.newSubscription = { toJSON: () => (%s) };
		self.dispatchEvent(e);
		return work;
	})()`, second.json()))
	postForm(t, address+"/notify/ops?token=a-long-token-of-ops", http.StatusOK, url.Values{"body": {"hello"}})
	if got := services.take(t); got.path != "/second" {
		t.Errorf("after the change, a push goes to %s", got.path)
	}
	run(t, p.ctx, open(link)) // the page that the app opens
	shows(t, p.ctx, "#subscribed:not([hidden])", "Subscribed as Ann's phone")
	eventually(t, "the page tells the subscription", func() bool {
		postForm(t, address+"/notify/ops?token=a-long-token-of-ops", http.StatusOK, url.Values{"body": {"hello"}})
		return services.take(t).path == "/first"
	})

	// The operator revokes the device, whose page says so.
	run(t, operator, open(address+"/notify/console/keys/ops?tab=devices"),
		chromedp.Click("#live-devices summary", chromedp.ByQuery),
		chromedp.Click("#live-devices [action*='?revoke'] button", chromedp.ByQuery))
	shows(t, operator, "main", "No browser or phone has subscribed")
	run(t, p.ctx, open(link))
	shows(t, p.ctx, "#said:not([hidden])", "Somebody has removed this device")
	shows(t, p.ctx, "#refused:not([hidden])", "invitation")

	// Another key, whose page asks to add the device, and to remove it.
	run(t, p.ctx, open(invite(t, operator, address, "home", "")))
	run(t, p.ctx, chromedp.WaitVisible("#new", chromedp.ByQuery), chromedp.Click("#new button", chromedp.ByQuery))
	shows(t, p.ctx, "#subscribed:not([hidden])", "Subscribed as")
	postForm(t, address+"/notify/home", http.StatusOK, url.Values{"body": {"hello"}})
	if m := p.deliver(t, services.take(t)); m["key"] != "home" {
		t.Errorf("the payload is %v", m)
	}
	run(t, p.ctx, chromedp.Click("#subscribed summary", chromedp.ByQuery), chromedp.Click("#remove", chromedp.ByQuery))
	shows(t, p.ctx, "#refused:not([hidden])", "invitation")
	postForm(t, address+"/notify/home", http.StatusFailedDependency, url.Values{"body": {"hello"}})
	refused := func(text string) bool { return strings.Contains(text, "401 (Unauthorized)") } // to the revoked device
	noErrors(t, slices.DeleteFunc(errorsOf(append(p.complaints(), complaints()...)), refused))
}

// TestDevicePageExplains checks what the page says where no device can be added, in
// both colour schemes, at widths from 320 to 1280 pixels and with the keyboard.
func TestDevicePageExplains(t *testing.T) {
	services := newPushService(t)
	address := newDeviceGateway(t, services)
	operator, _ := newBrowser(t)
	link := invite(t, operator, address, "ops", "")
	before := func(script string) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
			return err
		})
	}
	const iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) " +
		"AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1"
	for _, c := range []struct {
		name, link string
		permission browser.PermissionSetting
		first      chromedp.Action
		want       string
	}{
		{"new", link, browser.PermissionSettingPrompt, nil, "Get messages here"},
		{"denied", link, browser.PermissionSettingDenied, nil, "Notifications are blocked here"},
		{"iphone", link, browser.PermissionSettingPrompt, emulation.SetUserAgentOverride(iphone), "Add to Home Screen"},
		{
			"installed", link, browser.PermissionSettingPrompt,
			chromedp.Tasks{emulation.SetUserAgentOverride(iphone), before("navigator.standalone = true")},
			"Get messages here",
		},
		{"unsupported", link, browser.PermissionSettingPrompt, before("delete window.PushManager"), "This browser cannot get messages"},
		{
			"insecure", link, browser.PermissionSettingPrompt,
			before("Object.defineProperty(window, 'isSecureContext', { value: false })"),
			"This page came without HTTPS",
		},
		{"unknown", address + "/notify/ops?invite=AAAAAAAAAAAAAAAAAAAAAA", browser.PermissionSettingPrompt, nil, "This device cannot be added"},
		{
			"no-such-key", address + "/notify/none?invite=AAAAAAAAAAAAAAAAAAAAAA",
			browser.PermissionSettingPrompt, nil, "This device cannot be added",
		},
		{"uninvited", address + "/notify/home?device", browser.PermissionSettingPrompt, nil, "invitation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPhone(t, originOf(t, address), newSubscription(t, services, "/"+c.name), c.permission)
			if c.first != nil {
				run(t, p.ctx, c.first)
			}
			run(t, p.ctx, open(c.link))
			shows(t, p.ctx, "#device", c.want)
			checkPage(t, p.ctx, c.name)
			noErrors(t, errorsOf(p.complaints()))
		})
	}
	ctx, _ := newBrowser(t)
	run(t, ctx, withoutScript, open(link))
	shows(t, ctx, "#device", "This page needs its script")
}

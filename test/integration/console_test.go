package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// service is a destination that answers as it is told.
type service struct {
	*httptest.Server
	status atomic.Int32
	got    atomic.Int32
}

func newService(t *testing.T) *service {
	s := &service{}
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.got.Add(1)
		w.WriteHeader(int(s.status.Load()))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) to(path string) string {
	return "json://" + strings.TrimPrefix(s.URL, "http://") + path
}

// newConsole runs the gateway with a console below a prefix and several keys: one is down, one is
// refused, one is fine and one is silent. It returns the prefix of the routes and the destination
// that is down.
func newConsole(t *testing.T) (address string, down *service) {
	t.Helper()
	down, fine, refusing := newService(t), newService(t), newService(t)
	down.status.Store(http.StatusServiceUnavailable)
	refusing.status.Store(http.StatusUnauthorized)
	port := freePort(t)
	startGateway(t, port, consoleConfig(port, "wait 300ms", fmt.Sprintf(`
			key ops {
				url %s/chat chat
				url %s/phone phone oncall
			}
			key backups {
				url %s/backups
			}
			key billing {
				token a-token-of-billing
				url %s/billing
			}
			key printer {
				url %s/printer
			}
			key network {
				url %s/network
				rate 100/1h
				inbox 7d
			}
			key family {
				inbox 7d
			}
			key oncall {
				url %s/ann 1:oncall
				url %s/bob 2:oncall
				escalate after 1h
			}
`, down.to(""), fine.to(""), fine.to(""), refusing.to(""), fine.to(""), fine.to(""), fine.to(""), fine.to(""))))
	address = fmt.Sprintf("http://localhost:%d/alerts", port)
	for range 4 {
		postForm(t, address+"/notify/ops?type=failure", http.StatusOK, url.Values{"body": {"confidential"}, "incident": {"disk db1"}})
	}
	postForm(t, address+"/notify/ops?type=warning", http.StatusOK, url.Values{"body": {"confidential"}})
	postForm(t, address+"/notify/backups?type=success", http.StatusOK, url.Values{"body": {"confidential"}})
	for _, form := range []string{
		"failure router The router does not answer", "warning nas The backup is late",
		"failure switch Port 7 is down", "success switch Port 7 is up",
	} {
		f := strings.SplitN(form, " ", 3)
		postForm(t, address+"/notify/network",
			http.StatusOK, url.Values{"type": {f[0]}, "incident": {f[1]}, "title": {f[2]}, "body": {"confidential"}})
	}
	postForm(t, address+"/notify/oncall?type=failure", http.StatusOK,
		url.Values{"title": {"The shop is down"}, "incident": {"shop"}, "body": {"confidential"}})
	postForm(t, address+"/notify/billing?token=a-token-of-billing", http.StatusFailedDependency, url.Values{"body": {"confidential"}})
	postForm(t, address+"/notify/backups", http.StatusBadRequest, url.Values{"title": {"x"}})
	phones := newPushService(t)
	for _, name := range []string{"Ann's phone", "Bob's laptop"} {
		addDevice(t, address+"/notify/family/devices", name, newSubscription(t, phones, "/"+url.PathEscape(name)))
	}
	return address, down
}

// consoleConfig returns the Caddyfile of a gateway with a console below the prefix /alerts.
// queue and keys are directives.
func consoleConfig(port int, queue, keys string) string {
	return fmt.Sprintf(`{
	notify {
		queue {
			%[2]s
		}
		public_url http://localhost:%[1]d/alerts
		push {
			devices open
			services localhost
		}
	}
}
http://localhost:%[1]d {
	handle_path /alerts/* {
		notify {
			%[3]s
			egress {
				allow 127.0.0.1
			}
			configs {
				manage open
			}
		}
	}
}
`, port, queue, keys)
}

// addDevice adds a device to a key, as its page does.
func addDevice(t *testing.T, address, name string, s *subscription) {
	t.Helper()
	resp, err := http.Post(address, "application/json", strings.NewReader(fmt.Sprintf(`{"name": %q, "subscription": %s}`, name, s.json())))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s answers %d: %s", address, resp.StatusCode, text)
	}
}

// TestConsoleFindsTheCause goes the way of somebody to whom nothing arrives: from the
// keys to the cause, and from the repaired service to the message. The pages follow
// without being loaded again.
func TestConsoleFindsTheCause(t *testing.T) {
	address, down := newConsole(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, open(address+"/notify/console"))
	shows(t, ctx, "h1", "3 incidents open, 1 destination down")
	shows(t, ctx, "[aria-labelledby=down] .item", "503 Service Unavailable")
	shows(t, ctx, ".top nav .badge", "5")
	if got := eval[string](t, ctx, "document.title"); got != "(5) Now · Notify" {
		t.Errorf("the title is %q", got)
	}
	if got := text(t, ctx, ".item time"); strings.Contains(got, "UTC") || !strings.HasPrefix(got, "for ") {
		t.Errorf("the time is %q", got)
	}
	if got := eval[string](t, ctx, "document.querySelector('svg.bar a:last-child title').textContent"); strings.Contains(got,
		"UTC") || !regexp.MustCompile(`^\d\d:\d\d–\d\d:\d\d: `).MatchString(got) {
		t.Errorf("the tooltip of a bar is %q", got)
	}
	if got := eval[string](t, ctx, "decodeURIComponent(document.querySelector('link[rel=icon]').href)"); !strings.Contains(got, ">5</text>") {
		t.Errorf("the icon is %q", got)
	}
	run(t, ctx, open(address+"/notify/console/keys"))
	shows(t, ctx, ".item:first-child", "ops")
	shows(t, ctx, ".item:first-child", "503 Service Unavailable")
	if got := text(t, ctx, ".tallies"); !strings.Contains(got, "Down") || !strings.Contains(got, "Unused") || !strings.Contains(got, "Fine") {
		t.Errorf("the tallies are %q", got)
	}
	run(t, ctx, chromedp.Click(".item a", chromedp.ByQuery))
	shows(t, ctx, "h1", "Key ops")
	shows(t, ctx, "#destination-1.is-down", "wait")
	if got := text(t, ctx, "main"); strings.Contains(got, "confidential") || strings.Count(got, "503 Service Unavailable") != 1 {
		t.Errorf("an error is not there once: %s", got)
	}
	run(t, ctx, chromedp.Click(".tabs a[href$=messages]", chromedp.ByQuery), chromedp.WaitReady("#live-recent", chromedp.ByQuery))
	run(t, ctx, chromedp.Click("#live-recent .timeline summary", chromedp.ByQuery),
		chromedp.Click("#live-recent .timeline a.button", chromedp.ByQuery))
	shows(t, ctx, "h1", "Message to ops")
	shows(t, ctx, ".row.is-queued .tries", "503 Service Unavailable")
	down.status.Store(http.StatusOK)
	run(t, ctx, chromedp.Click("[action$='?retry'] button", chromedp.ByQuery))
	eventually(t, "the page shows that the message has arrived", func() bool {
		return strings.Contains(text(t, ctx, "#live-message .heading"), "Delivered")
	})
	run(t, ctx, open(address+"/notify/console/queue"))
	if strings.Contains(text(t, ctx, "#live-queue"), "Try all now") {
		run(t, ctx, chromedp.Click("#live-queue form button", chromedp.ByQuery))
		shows(t, ctx, ".done", "being tried")
	}
	eventually(t, "the page shows that nothing waits", func() bool {
		return strings.Contains(text(t, ctx, "#live-queue"), "Nothing waits") || !strings.Contains(text(t, ctx, "#live-queue"), "Down")
	})
	noErrors(t, complaints())
}

// TestConsoleWithoutScript tries a message again, drops what waits, tests a destination
// and makes a token without a script.
func TestConsoleWithoutScript(t *testing.T) {
	address, _ := newConsole(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, withoutScript, open(address+"/notify/console/keys"), chromedp.Click(".tallies .is-down a", chromedp.ByQuery))
	shows(t, ctx, "p[role=status]", "1 key, down")
	run(t, ctx, chromedp.Click("[action$='?hurry'] button", chromedp.ByQuery))
	shows(t, ctx, "h1", "Key ops")
	run(t, ctx, chromedp.Click("#destination-2 .menu > summary", chromedp.ByQuery),
		chromedp.Click("#destination-2 form.test button", chromedp.ByQuery))
	shows(t, ctx, "#destination-2.delivered .result", "Delivered in ")
	run(t, ctx, open(address+"/notify/console/queue"))
	drop := ".list [action$='?drop'] button"
	if eval[bool](t, ctx, fmt.Sprintf("document.querySelector(%q).checkVisibility()", drop)) {
		t.Error("one click drops what waits")
	}
	run(t, ctx, chromedp.Click(".list summary.danger", chromedp.ByQuery), chromedp.Click(drop, chromedp.ByQuery))
	shows(t, ctx, ".done", "dropped")
	run(t, ctx, open(address+"/notify/console/messages?state=cancelled&key=ops"))
	shows(t, ctx, "#live-messages .timeline summary", "cancelled for JSON")
	postForm(t, address+"/add/mine", http.StatusOK, url.Values{"urls": {"json://127.0.0.1:1/"}})
	run(t, ctx, open(address+"/notify/console/keys/mine?tab=settings"), chromedp.Click("[action$='/token'] button", chromedp.ByQuery))
	shows(t, ctx, "#token", "The new token")
	if got := text(t, ctx, "output"); len(got) < 20 {
		t.Errorf("the token is %q", got)
	}
	run(t, ctx, chromedp.Click(".tabs a[href$=send]", chromedp.ByQuery))
	shows(t, ctx, ".lines", "curl")
	if got := eval[string](t, ctx, "document.querySelector('.lines code').textContent"); !strings.Contains(got,
		`-H "Authorization: Bearer $TOKEN"`) || !strings.Contains(got, address+"/notify/mine") {
		t.Errorf("the line for curl is %s", got)
	}
	noErrors(t, complaints())
}

// TestConsoleMessages filters the messages and leaves the page through its links.
func TestConsoleMessages(t *testing.T) {
	address, _ := newConsole(t)
	for range 60 {
		postForm(t, address+"/notify/backups", http.StatusOK, url.Values{"body": {"x"}})
	}
	ctx, complaints := newBrowser(t)
	run(t, ctx, open(address+"/notify/console/messages"))
	eventually(t, "the page has the latest messages", func() bool {
		run(t, ctx, open(address+"/notify/console/messages"))
		return eval[int](t, ctx, "document.querySelectorAll('#live-messages .timeline > li').length") >= 50
	})
	run(t, ctx,
		chromedp.Evaluate("document.getElementById('type').value = 'failure', "+
			"document.getElementById('type').dispatchEvent(new Event('change'))", nil))
	eventually(t, "the page shows failures only", func() bool {
		var types string
		err := chromedp.Run(ctx,
			chromedp.Evaluate("document.readyState == 'complete' ? [...new "+
				"Set([...document.querySelectorAll('#live-messages .about > .soft > "+
				".tag')].map(e => e.textContent))].join() : ''", &types))
		return err == nil && types == "failure" // the expression fails while the page changes
	})
	run(t, ctx, open(address+"/notify/console/messages?state=refused"))
	run(t, ctx, chromedp.Click("#live-messages .timeline summary", chromedp.ByQuery))
	shows(t, ctx, "#live-messages .timeline", "400: the field body is missing")
	noErrors(t, complaints())
}

// TestConsoleIncidents filters the incidents, with a script and without it.
func TestConsoleIncidents(t *testing.T) {
	address, _ := newConsole(t)
	withAndWithoutScript(t, func(ctx context.Context, _ bool) {
		run(t, ctx, open(address+"/notify/console"))
		shows(t, ctx, "[aria-labelledby=open]", "The router does not answer")
		run(t, ctx, chromedp.Click("a[href$='console/incidents']", chromedp.ByQuery))
		shows(t, ctx, "#live-incidents li:first-child", "The shop is down")
		if got := text(t, ctx, "#live-incidents"); !strings.Contains(got, "The backup is late") ||
			!strings.Contains(got, "Resolved") || strings.Contains(got, "confidential") {
			t.Errorf("the page lists %q", got)
		}
		run(t, ctx,
			chromedp.SetAttributeValue("#state option[value=resolved]", "selected", "selected", chromedp.ByQuery),
			chromedp.Click(".filters button", chromedp.ByQuery))
		shows(t, ctx, "#live-incidents li:first-child", "Port 7 is up")
		run(t, ctx, open(address+"/notify/console/incidents?key=ops"))
		shows(t, ctx, "#live-incidents", "No incident fits")
	})
}

// TestConsoleSilences makes a silence for a night from the page of a key, and ends it,
// with a script and without it.
func TestConsoleSilences(t *testing.T) {
	address, _ := newConsole(t)
	withAndWithoutScript(t, func(ctx context.Context, _ bool) {
		run(t, ctx, open(address+"/notify/console/keys/ops"),
			chromedp.Click("a[href$='silences?key=ops&tag=all']", chromedp.ByQuery))
		shows(t, ctx, "#silence", "It matches")
		run(t, ctx,
			chromedp.Click("details.card summary", chromedp.ByQuery),
			chromedp.SendKeys("#title", "disk", chromedp.ByQuery), chromedp.Click("details.card button", chromedp.ByQuery))
		shows(t, ctx, "#silence", "disk…")
		run(t, ctx,
			chromedp.Click("#silence summary", chromedp.ByQuery),
			chromedp.SetAttributeValue("#for option[value='8h']", "selected", "selected", chromedp.ByQuery),
			chromedp.SendKeys("#reason", "the night", chromedp.ByQuery),
			chromedp.Click("#silence details button", chromedp.ByQuery))
		shows(t, ctx, ".done", "The silence is made.")
		shows(t, ctx, "#live-silences", "the night")
		if got := text(t, ctx, "#live-silences"); !strings.Contains(got, "disk…") || !strings.Contains(got, "0 messages") {
			t.Errorf("the page lists %q", got)
		}
		run(t, ctx, chromedp.Click("#live-silences form[action$='?end'] button", chromedp.ByQuery))
		shows(t, ctx, "#live-silences", "Nothing is silent")
	})
}

// TestConsoleTitles finds messages by their titles, with a script and without it, and
// goes on to the text of one.
func TestConsoleTitles(t *testing.T) {
	address, _ := newConsole(t)
	withAndWithoutScript(t, func(ctx context.Context, _ bool) {
		run(t, ctx, open(address+"/notify/console/messages"))
		shows(t, ctx, "#live-messages", "The backup is late")
		if got := text(t, ctx, "#live-messages"); strings.Contains(got, "The shop is down") || strings.Contains(got, "confidential") {
			t.Errorf("the page has a text that no inbox keeps: %s", got)
		}
		run(t, ctx, chromedp.SendKeys("#title", "PORT 7"+kb.Enter, chromedp.ByQuery))
		eventually(t, "the page shows what has the title", func() bool {
			var rows int
			err := chromedp.Run(ctx,
				chromedp.Evaluate("document.readyState == 'complete' ? document.querySelectorAll('#live-messages .timeline > li').length : 0", &rows))
			return err == nil && rows == 2 // the expression fails while the page changes
		})
		shows(t, ctx, "#live-messages li:first-child", "Port 7 is up")
		run(t, ctx, chromedp.Click("#live-messages li:first-child summary", chromedp.ByQuery),
			chromedp.Click("#live-messages li:first-child a.button", chromedp.ByQuery))
		shows(t, ctx, "h1", "Port 7 is up")
		run(t, ctx, chromedp.Click("main a[href*='/network/messages?since=']", chromedp.ByQuery))
		shows(t, ctx, "#live-messages", "confidential")
	})
}

// consolePages returns the addresses of all pages, with a message that waits.
func consolePages(t *testing.T, ctx context.Context, address string) map[string]string {
	t.Helper()
	run(t, ctx, open(address+"/notify/console/messages?state=queued"))
	message := eval[string](t, ctx, "document.querySelector('#live-messages .timeline a.button').href")
	run(t, ctx, open(address+"/notify/console/messages?title=port"))
	kept := eval[string](t, ctx, "document.querySelector('#live-messages .timeline a.button').href")
	incident := func(key string) string {
		run(t, ctx, open(address+"/notify/console/incidents?state=open&key="+key))
		return eval[string](t, ctx, "document.querySelector('#live-incidents .row a').href")
	}
	for _, title := range []string{"disk", "The backup"} {
		postForm(t, address+"/notify/network/silences", http.StatusCreated,
			url.Values{"for": {"2h"}, "title": {title}, "reason": {"new disks"}, "who": {"Ann"}})
	}
	return map[string]string{
		"now": address + "/notify/console", "keys": address + "/notify/console/keys",
		"key":          address + "/notify/console/keys/ops",
		"key_messages": address + "/notify/console/keys/ops?tab=messages",
		"key_send":     address + "/notify/console/keys/ops?send",
		"key_settings": address + "/notify/console/keys/ops?tab=settings",
		"new":          address + "/notify/console/keys/new",
		"messages":     address + "/notify/console/messages",
		"nothing":      address + "/notify/console/messages?key=none",
		"titles":       address + "/notify/console/messages?title=port", "kept": kept,
		"inbox":   address + "/notify/family/messages",
		"devices": address + "/notify/console/keys/family?tab=devices",
		"device":  address + "/notify/family?device", "message": message,
		"queue": address + "/notify/console/queue", "incidents": address + "/notify/console/incidents",
		"silences": address + "/notify/console/silences?key=ops", "incident": incident("network"),
		"steps": incident("oncall"), "send": address + "/notify/ops",
		"services": address + "/notify/console/keys/new?build", "form": address + "/notify/console/keys/new?build=discord",
		"error": address + "/notify/console/messages/none", "about": address + "/notify",
	}
}

// awaitPromise lets an expression be a promise.
func awaitPromise(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams {
	return p.WithAwaitPromise(true)
}

// axe returns the source of axe-core, which AXE names, or "". The tests that run
// without it check names, order, contrast and width by themselves.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("AXE")
	if path == "" {
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkAxe reports what axe-core, whose source it gets, finds wrong with the page.
func checkAxe(t *testing.T, ctx context.Context, source, name string) {
	t.Helper()
	eval[bool](t, ctx, source+"; true")
	var found []string
	run(t, ctx,
		chromedp.Evaluate(`axe.run({ rules: { "label-content-name-mismatch": `+
			`{ enabled: true } } }).then((r) => r.violations.map((v) => v.id + ": `+
			`" + v.nodes.map((n) => n.html.slice(0, 100)).join(" | ")))`, &found, awaitPromise))
	for _, v := range found {
		t.Errorf("%s: axe: %s", name, v)
	}
}

// smallTargets lists what is touched on a page and is less than 44 pixels high. A link in a
// text is as high as its line; one that stands alone in its paragraph or item is not in a text.
const smallTargets = `[...document.querySelectorAll("button, .button, summary, select, textarea, .choice, " +
		"nav a, a.name, a.brand, input:not([type=hidden], [type=radio], [type=checkbox])"),
	...[...document.querySelectorAll("a")].filter((e) => e.parentElement.matches("p, dd, dt, li") &&
		e.textContent.trim() === e.parentElement.textContent.trim())]
	.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height > 1 && Math.round(e.getBoundingClientRect().height) < 44)
	.map((e) => e.outerHTML.slice(0, 90) + " " + e.getBoundingClientRect().height)`

// gluedCards lists the cards and lists that touch the one above.
const gluedCards = `(() => {
	const all = [...document.querySelectorAll("main .card, main .list, main .timeline")].filter((e) =>
		e.checkVisibility() && !e.parentElement.closest(".card, .list"));
	return all.filter((b) => all.some((a) => {
		const gap = b.getBoundingClientRect().top - a.getBoundingClientRect().bottom;
		return a !== b && gap > -1 && gap < 8;
	})).map((e) => e.outerHTML.slice(0, 90));
})()`

// hiddenMenus lists the menus that do not open inside the window.
const hiddenMenus = `[...document.querySelectorAll("details.menu")].filter((m) => {
	m.open = true;
	for (const d of m.querySelectorAll("details")) d.open = true;
	const r = m.querySelector(":scope > div").getBoundingClientRect();
	m.open = false;
	return r.left < 0 || r.right > document.documentElement.clientWidth;
}).map((m) => m.outerHTML.slice(0, 90))`

// TestConsoleForEveryone checks each page in both colour schemes, at widths from 320 to
// 1280 pixels, with the keyboard and with a screen reader. With AXE=axe.min.js in the
// environment, axe-core checks them, too.
func TestConsoleForEveryone(t *testing.T) {
	address, _ := newConsole(t)
	ctx, _ := newBrowser(t)
	source := axe(t)
	for name, at := range consolePages(t, ctx, address) {
		forEveryone(t, source, name, at)
	}
}

// forEveryone checks a page as [TestConsoleForEveryone] says.
func forEveryone(t *testing.T, source, name, at string) {
	t.Helper()
	ctx, _ := newBrowser(t) // each page has the time of a browser for itself
	for _, width := range []int64{320, 390, 768, 1280} {
		run(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, false), open(at))
		if wide := eval[int64](t, ctx, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("%s: the page is %d pixels wide in a window of %d: %s", name, wide, width,
				eval[string](t, ctx,
					fmt.Sprintf("[...document.querySelectorAll('body *')].filter(e => "+
						"e.getBoundingClientRect().right > %d + 1).map(e => e.outerHTML.slice(0, "+
						"80)).join('\\n')", width)))
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		if bad := eval[[]string](t, ctx, strings.Replace(contrast, `"main *"`, `"body *"`, 1)); len(bad) > 0 {
			t.Errorf("%s, %s: too little contrast: %q", name, scheme, bad)
		}
		if source != "" {
			checkAxe(t, ctx, source, name+", "+scheme)
		}
	}
	checkNames(t, ctx, name)
	checkTabs(t, ctx, name)
	run(t, ctx, emulation.SetDeviceMetricsOverride(390, 844, 2, true), emulation.SetTouchEmulationEnabled(true), open(at))
	if small := eval[[]string](t, ctx, smallTargets); len(small) > 0 {
		t.Errorf("%s: smaller than 44 pixels on a phone: %q", name, small)
	}
	if glued := eval[[]string](t, ctx, gluedCards); len(glued) > 0 {
		t.Errorf("%s: touches the card above: %q", name, glued)
	}
	if hidden := eval[[]string](t, ctx, hiddenMenus); len(hidden) > 0 {
		t.Errorf("%s: not inside the window of a phone: %q", name, hidden)
	}
}

// TestConsoleScreenshots makes the pictures of docs/console.md if UPDATE_SCREENSHOTS is
// set, and otherwise checks that they are there. They are not compared.
func TestConsoleScreenshots(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "console")
	shots := []string{
		"now", "keys", "key", "key_messages", "key_send", "key_settings", "messages", "message", "inbox",
		"queue", "incidents", "silences", "steps", "devices", "device", "send", "services", "form", "error",
	}
	sizes := []struct{ width, height int64 }{{390, 844}, {768, 900}, {1280, 800}}
	name := func(shot string, width int64, scheme string) string {
		return filepath.Join(folder, fmt.Sprintf("%s-%d-%s.webp", shot, width, scheme))
	}
	if os.Getenv("UPDATE_SCREENSHOTS") == "" {
		for _, shot := range shots {
			for _, size := range sizes {
				for _, scheme := range []string{"light", "dark"} {
					if _, err := os.Stat(name(shot, size.width, scheme)); err != nil {
						t.Errorf("%v; make the pictures with UPDATE_SCREENSHOTS=1", err)
					}
				}
			}
		}
		return
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	address := newPictured(t)
	ctx, _ := newBrowser(t)
	pages := consolePages(t, ctx, address)
	for _, shot := range shots {
		for _, size := range sizes {
			run(t, ctx, emulation.SetDeviceMetricsOverride(size.width, size.height, 1, false), open(pages[shot]))
			for _, scheme := range []string{"light", "dark"} {
				var picture []byte
				run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
					chromedp.ActionFunc(func(ctx context.Context) (err error) {
						picture, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(60).Do(ctx)
						return err
					}))
				if err := os.WriteFile(name(shot, size.width, scheme), picture, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

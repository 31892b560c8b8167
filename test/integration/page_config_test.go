package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// newKeyPages runs the gateway with saved keys and a queue, below a prefix. It
// returns the address below which the routes are, and the destination.
func newKeyPages(t *testing.T) (string, *webhook) {
	t.Helper()
	hook := newWebhook(t)
	port := freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue {
			wait 500ms
		}
	}
}
http://localhost:%[1]d {
	handle_path /alerts/* {
		notify {
			key fixed {
				url %[2]s
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
`, port, hook.to("/fixed")))
	return fmt.Sprintf("http://localhost:%d/alerts", port), hook
}

// postForm sends a form, and fails unless the answer has the status.
func postForm(t *testing.T, address string, status int, form url.Values) {
	t.Helper()
	resp, err := http.PostForm(address, form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != status {
		t.Fatalf("%s answers %d, want %d: %s", address, resp.StatusCode, status, text)
	}
}

// withoutScript turns scripts off in the browser.
var withoutScript = emulation.SetScriptExecutionDisabled(true)

// open opens a page.
func open(address string) chromedp.Action {
	return chromedp.Tasks{chromedp.Navigate(address), chromedp.WaitReady("h1", chromedp.ByQuery)}
}

// answerLeaving answers the browser's question whether to leave a page with a changed
// form. The channel it returns gets a value for each question.
func answerLeaving(ctx context.Context, leave bool) (asked chan struct{}) {
	asked = make(chan struct{}, 100)
	chromedp.ListenTarget(ctx, func(e any) {
		if e, ok := e.(*page.EventJavascriptDialogOpening); ok && e.Type == page.DialogTypeBeforeunload {
			asked <- struct{}{}
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(leave)) }()
		}
	})
	return asked
}

// TestKeyPageKeepsWhatIsTyped checks that the browser asks before a changed
// configuration is lost, and not when it is saved.
func TestKeyPageKeepsWhatIsTyped(t *testing.T) {
	address, hook := newKeyPages(t)
	ctx, _ := newBrowser(t)
	asked := answerLeaving(ctx, false)
	run(t, ctx, open(address+"/notify/console/keys/ops?tab=settings"), chromedp.SendKeys("#config", hook.to("/ops"), chromedp.ByQuery))
	run(t, ctx, chromedp.Evaluate("setTimeout(() => document.querySelector('.above a').click())", nil))
	<-asked
	if got := eval[string](t, ctx, "document.getElementById('config').value"); got != hook.to("/ops") {
		t.Errorf("the editor has %q", got)
	}
	run(t, ctx, chromedp.Click("#editor button.primary", chromedp.ByQuery))
	eventually(t, "the key is saved", func() bool {
		var saved bool
		err := chromedp.Run(ctx, chromedp.Evaluate(`location.pathname.includes("/add/") && document.readyState == "complete"`, &saved))
		return err == nil && saved // the expression fails while the page changes
	})
	if len(asked) > 0 {
		t.Error("the browser asks although the configuration is saved")
	}
}

// TestKeyPageMistakes checks that the editor marks the lines with mistakes while a
// configuration is written, and that a link leads to each line.
func TestKeyPageMistakes(t *testing.T) {
	address, hook := newKeyPages(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, open(address+"/notify/console/keys/ops?tab=settings"),
		chromedp.SendKeys("#config", hook.to("/ops")+"\nnope://t0ken\n\nnonsense", chromedp.ByQuery))
	shows(t, ctx, "#checked .outcome", "2 mistakes.")
	if got := eval[string](t, ctx, "[...document.querySelectorAll('#lines .wrong')].map(e => e.textContent).join()"); got != "2,4" {
		t.Errorf("the marked lines are %s, want 2,4", got)
	}
	if got := text(t, ctx, "#checked"); !strings.Contains(got, "Line 4") || strings.Contains(got, "t0ken") {
		t.Errorf("the mistakes are %q", got)
	}
	run(t, ctx, chromedp.Click("[data-line='4']", chromedp.ByQuery))
	if got := eval[string](t, ctx, "document.activeElement.id + ' ' + window.getSelection()"); got != "config nonsense" {
		t.Errorf("the link to a line selects %q", got)
	}
	run(t, ctx, chromedp.KeyEvent("# a comment"))
	shows(t, ctx, "#checked .outcome", "1 mistake.")
	eval[string](t, ctx, `document.getElementById("config").value = ""`)
	run(t, ctx, chromedp.SendKeys("#config", hook.to("/ops"), chromedp.ByQuery), chromedp.Click("#check", chromedp.ByQuery))
	shows(t, ctx, "#checked .outcome", "No mistakes; 1 URL. Not saved yet.")
	if got := eval[string](t, ctx, "location.pathname"); got != "/alerts/notify/console/keys/ops" {
		t.Errorf("the check leads to %s", got)
	}
	run(t, ctx, chromedp.Click("button.primary", chromedp.ByQuery))
	shows(t, ctx, "h1", "Saved")
	run(t, ctx, chromedp.Click("p a", chromedp.ByQuery))
	shows(t, ctx, "#live-destinations", "JSON")
	noErrors(t, complaints())
}

// TestKeyPageMistakesWithoutScript checks that, without scripts, Check and Save
// show the mistakes and keep the text.
func TestKeyPageMistakesWithoutScript(t *testing.T) {
	address, hook := newKeyPages(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, withoutScript, open(address+"/notify/console/keys/ops?tab=settings"),
		chromedp.SendKeys("#config", "nope://t0ken\n\nnonsense", chromedp.ByQuery))
	for _, button := range []string{"#check", "button.primary"} {
		// Without the text of the page before, the outcome comes from the next page.
		run(t, ctx, chromedp.Evaluate(`document.getElementById("checked").textContent = ""`, nil), chromedp.Click(button, chromedp.ByQuery))
		shows(t, ctx, "#checked .outcome", "correct 2 mistakes")
		shows(t, ctx, "#line-3.wrong", "3")
		if got := eval[string](t, ctx, "document.getElementById('config').value"); got != "nope://t0ken\n\nnonsense" {
			t.Errorf("the editor has %q", got)
		}
	}
	run(t, ctx, chromedp.Click("[data-line='3']", chromedp.ByQuery))
	if got := eval[string](t, ctx, "document.querySelector(':target').textContent"); got != "3" {
		t.Errorf("the link to a line leads to %q", got)
	}
	eval[string](t, ctx, `document.getElementById("config").value = ""`)
	run(t, ctx, chromedp.SendKeys("#config", hook.to("/ops"), chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery))
	shows(t, ctx, "h1", "Saved")
	for _, said := range complaints() {
		if !strings.Contains(said, "400") { // the status of what was not saved
			t.Errorf("an error on the browser console: %q", said)
		}
	}
}

// TestKeyPageQueue checks that a delivery that was given up can be tried again and
// dropped on the page of its key, and that dropping takes two steps.
func TestKeyPageQueue(t *testing.T) {
	address, _ := newKeyPages(t)
	var status atomic.Int32
	status.Store(http.StatusNotFound)
	destination := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(destination.Close)
	postForm(t, address+"/add/ops", http.StatusOK, url.Values{"urls": {"json://" + strings.TrimPrefix(destination.URL, "http://")}})
	ctx, complaints := newBrowser(t)
	run(t, ctx, withoutScript)
	giveUp := func() {
		t.Helper()
		r := request(t, http.MethodPost, address+"/notify/ops", "body=confidential")
		r.Header.Set("Prefer", "respond-async")
		ask(t, r)
		eventually(t, "the message is given up", func() bool {
			run(t, ctx, open(address+"/notify/console/keys/ops?tab=messages"))
			return strings.Contains(text(t, ctx, "#queue + ul"), "Given up") && strings.Contains(text(t, ctx, "#live-recent"), "Failed")
		})
	}
	giveUp()
	if got := text(t, ctx, "main"); !strings.Contains(got, "404") || strings.Contains(got, "confidential") {
		t.Errorf("the page has no reason, or the text of a message: %s", got)
	}
	status.Store(http.StatusOK)
	run(t, ctx, chromedp.Click("[action$='?retry'] button", chromedp.ByQuery))
	eventually(t, "the browser is back on the page", func() bool { return eval[string](t, ctx, "location.hash") == "#queue" })
	eventually(t, "the message is delivered", func() bool {
		run(t, ctx, open(address+"/cfg/ops?tab=messages")) // which leads there
		return strings.Contains(text(t, ctx, "#live-recent"), "Delivered") && strings.Contains(text(t, ctx, "#queue + p"), "No message")
	})
	status.Store(http.StatusNotFound)
	giveUp()
	drop := "[action$='?drop'] button"
	if eval[bool](t, ctx, fmt.Sprintf("document.querySelector(%q).checkVisibility()", drop)) {
		t.Error("one click drops a message")
	}
	run(t, ctx, chromedp.Click("#queue + ul .menu > summary", chromedp.ByQuery),
		chromedp.Click("#queue + ul summary.danger", chromedp.ByQuery), chromedp.Click(drop, chromedp.ByQuery))
	shows(t, ctx, "#queue + p", "No message")
	if got := eval[string](t, ctx, "location.pathname + location.hash"); got != "/alerts/notify/console/keys/ops#queue" {
		t.Errorf("dropping leads to %s", got)
	}
	noErrors(t, complaints())
}

// TestKeyListPages checks that the list of keys has pages and a search.
func TestKeyListPages(t *testing.T) {
	address, hook := newKeyPages(t)
	for i := range 60 {
		postForm(t, fmt.Sprintf("%s/add/key%02d", address, i), http.StatusOK, url.Values{"urls": {hook.to("/ops")}})
	}
	ctx, complaints := newBrowser(t)
	run(t, ctx, withoutScript, open(address+"/cfg"))
	shows(t, ctx, "p[role=status]", "Keys 1 to 50 of 61")
	run(t, ctx, chromedp.Click("a[rel=next]", chromedp.ByQuery))
	shows(t, ctx, "p[role=status]", "Keys 51 to 61 of 61")
	run(t, ctx, chromedp.SendKeys("#search", "KEY59"+kb.Enter, chromedp.ByQuery))
	shows(t, ctx, "p[role=status]", "1 key with “KEY59”")
	run(t, ctx, chromedp.Click("#live-keys .item a", chromedp.ByQuery))
	shows(t, ctx, "h1", "Key key59")
	run(t, ctx, open(address+"/cfg"), chromedp.SendKeys("#new", "fresh"+kb.Enter, chromedp.ByQuery))
	shows(t, ctx, "h1", "Key fresh")
	noErrors(t, complaints())
}

// contrast is a script that returns the visible texts whose contrast with what
// is behind them is lower than WCAG 2.2 asks for (section 1.4.3): 4.5 to 1.
const contrast = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const light = (c) => {
		const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0) return c.slice(0, 3);
		}
		return [255, 255, 255];
	};
	const bad = [];
	for (const e of document.querySelectorAll("main *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.value;
		if (!own || !e.checkVisibility()) continue;
		const a = light(parse(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) bad.push(e.tagName + " " + ratio.toFixed(2) + " " + e.textContent.slice(0, 40));
	}
	return bad;
})()`

// TestKeyPagesForEveryone checks that every control has a name, that the tab key
// reaches the controls in order, that the contrast is high enough in both colour
// schemes, and that the pages fit a phone.
func TestKeyPagesForEveryone(t *testing.T) {
	address, hook := newKeyPages(t)
	postForm(t, address+"/add/ops", http.StatusOK, url.Values{"urls": {hook.to("/" + strings.Repeat("long", 50)), hook.to("/refuse")}})
	postForm(t, address+"/notify/ops", http.StatusOK, url.Values{"body": {"x"}})
	postForm(t, address+"/notify/ops", http.StatusBadRequest, url.Values{"title": {"x"}})
	ctx, _ := newBrowser(t)
	answerLeaving(ctx, true)
	for _, phone := range []bool{false, true} {
		if phone {
			run(t, ctx, emulation.SetDeviceMetricsOverride(390, 844, 2, true), emulation.SetTouchEmulationEnabled(true))
		}
		for _, path := range []string{"/cfg", "/cfg/ops", "/cfg/ops?tab=settings", "/cfg/ops?tab=messages", "/cfg/fixed", "/cfg/new"} {
			run(t, ctx, open(address+path))
			switch path {
			case "/cfg/ops?tab=settings":
				run(t, ctx, chromedp.SendKeys("#config", strings.Repeat("wide", 100)+"\nnope://\nmsteams://x\n", chromedp.ByQuery))
				shows(t, ctx, "#checked .outcome", "mistakes")
			case "/cfg/ops?tab=messages":
				shows(t, ctx, "#live-recent", "Refused")
				shows(t, ctx, "#queue + ul", "Waiting")
			}
			for _, scheme := range []string{"light", "dark"} {
				run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
				if bad := eval[[]string](t, ctx, contrast); len(bad) > 0 {
					t.Errorf("%s, %s: too little contrast: %q", path, scheme, bad)
				}
			}
			if wide := eval[bool](t, ctx, "document.documentElement.scrollWidth > document.documentElement.clientWidth"); wide {
				t.Errorf("%s: the page is wider than the window", path)
			}
			checkNames(t, ctx, path)
			checkTabs(t, ctx, path)
		}
	}
}

// checkNames checks that every control of the page has an accessible name. It
// returns the roles of the controls.
func checkNames(t *testing.T, ctx context.Context, path string) (roles map[string]bool) {
	t.Helper()
	roles = map[string]bool{}
	var tree struct {
		Nodes []struct {
			Ignored bool `json:"ignored"`
			Role    struct {
				Value any `json:"value"`
			} `json:"role"`
			Name struct {
				Value any `json:"value"`
			} `json:"name"`
		} `json:"nodes"`
	}
	run(t, ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &tree)
	}))
	for _, n := range tree.Nodes {
		switch role, _ := n.Role.Value.(string); role {
		case "textbox", "checkbox", "radio", "button", "link", "DisclosureTriangle", "combobox", "Iframe":
			if roles[role] = true; !n.Ignored && (n.Name.Value == nil || n.Name.Value == "") {
				t.Errorf("%s: a %s has no name", path, role)
			}
		}
	}
	return roles
}

// checkTabs checks that the tab key reaches the controls in the order of the
// page. A radio group is one stop, and so is a field for a time.
func checkTabs(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	want := eval[[]int](t, ctx, `(() => {
		window.stops = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, select, summary, pre[tabindex]")]
			.filter((e) => e.checkVisibility() && e.tabIndex >= 0 && (e.type !== "radio" || e.checked));
		document.activeElement.blur();
		window.getSelection().removeAllRanges();
		document.body.tabIndex = -1;
		document.body.focus();
		return stops.map((_, i) => i);
	})()`)
	for _, i := range want {
		run(t, ctx, chromedp.KeyEvent(kb.Tab))
		// The parts of a time are stops of their own, as is the button of its calendar.
		for range 8 {
			if i == 0 || !eval[bool](t, ctx,
				fmt.Sprintf("document.activeElement === stops[%d] && document.activeElement.type === 'datetime-local'", i-1)) {
				break
			}
			run(t, ctx, chromedp.KeyEvent(kb.Tab))
		}
		// A page that refreshes itself may have replaced the control. The new one has the focus
		// then.
		if !eval[bool](t, ctx,
			fmt.Sprintf("document.activeElement === stops[%d] || document.activeElement.outerHTML === stops[%d].outerHTML", i, i)) {
			t.Errorf("%s: the tab key leads to control %d, %s, want %d: %s",
				path, eval[int](t, ctx, "stops.indexOf(document.activeElement)"),
				eval[string](t, ctx, "document.activeElement.outerHTML.slice(0, 100)"), i,
				eval[string](t, ctx, fmt.Sprintf("stops[%d].outerHTML.slice(0, 100)", i)))
			return
		}
	}
}

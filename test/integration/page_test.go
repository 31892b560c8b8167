package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// posted is a message that a webhook has received.
type posted struct {
	Path        string `json:"-"`
	Title       string `json:"title"`
	Message     string `json:"message"`
	Type        string `json:"type"`
	Incident    string `json:"incident"`
	Attachments []struct {
		Filename string `json:"filename"`
		Base64   []byte `json:"base64"`
	} `json:"attachments"`
}

// webhook collects messages. Those to /slow are answered when they are released.
type webhook struct {
	*httptest.Server
	release func()
	mu      sync.Mutex
	got     []posted
}

func newWebhook(t *testing.T) *webhook {
	released := make(chan struct{})
	w := &webhook{release: sync.OnceFunc(func() { close(released) })}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p := posted{Path: r.URL.Path}
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/slow" {
			<-released
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got = append(w.got, p)
		if strings.HasPrefix(r.URL.Path, "/refuse") {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(w.Close)
	t.Cleanup(w.release)
	return w
}

// take returns the only message that has arrived at path.
func (w *webhook) take(t *testing.T, path string) posted {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	if len(got) != 1 || got[0].Path != path {
		t.Fatalf("messages %+v, want one at %s", got, path)
	}
	return got[0]
}

// next waits for a message, and returns it if it is the only one.
func (w *webhook) next(t *testing.T) posted {
	t.Helper()
	eventually(t, "a message arrives", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.got) > 0
	})
	return w.take(t, "/hook")
}

// newPage runs the gateway below a prefix. It returns the address of its page and
// the destination of its keys.
func newPage(t *testing.T) (string, *webhook) {
	t.Helper()
	return newPageWith(t, "")
}

// newPageWith is newPage with global options.
func newPageWith(t *testing.T, options string) (string, *webhook) {
	t.Helper()
	hook := newWebhook(t)
	to := "json://" + strings.TrimPrefix(hook.URL, "http://")
	port := freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	%[3]s
}
http://localhost:%[1]d {
	handle_path /alerts/* {
		notify {
			key ops {
				url %[2]s/chat chat
				url %[2]s/slow slow
				url %[2]s/refuse refuse
				url %[2]s/refuse?optional=yes optional
				default_tag chat
			}
			egress {
				allow 127.0.0.1
			}
		}
	}
}
`, port, to, options))
	return fmt.Sprintf("http://localhost:%d/alerts/notify", port), hook
}

// newBrowser starts a browser, and collects the errors of its console.
func newBrowser(t *testing.T) (ctx context.Context, complaints func() []string) {
	t.Helper()
	profile, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the browser's other processes may still write there
		for range 50 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program(t, "chromium", "chromium")), chromedp.UserDataDir(profile), chromedp.WindowSize(800, 1100), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	var mu sync.Mutex
	var said []string
	chromedp.ListenTarget(ctx, func(e any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := e.(type) {
		case *cdplog.EventEntryAdded:
			said = append(said, e.Entry.Text)
		case *cdpruntime.EventExceptionThrown:
			said = append(said, e.ExceptionDetails.Error())
		}
	})
	run(t, ctx, cdplog.Enable())
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
}

// noErrors checks that a browser has written no errors to its console.
func noErrors(t *testing.T, complaints []string) {
	t.Helper()
	if len(complaints) > 0 {
		t.Errorf("errors on the browser console: %q", complaints)
	}
}

// withAndWithoutScript runs a test in a browser with scripts and in one without, and
// checks that they have written no errors.
func withAndWithoutScript(t *testing.T, test func(ctx context.Context, script bool)) {
	t.Helper()
	for _, script := range []bool{true, false} {
		ctx, complaints := newBrowser(t)
		if !script {
			run(t, ctx, withoutScript)
		}
		test(ctx, script)
		noErrors(t, complaints())
	}
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](t *testing.T, ctx context.Context, expression string) (v T) {
	t.Helper()
	run(t, ctx, chromedp.Evaluate(expression, &v))
	return v
}

func text(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	return eval[string](t, ctx, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// shows waits until the element has the text.
func shows(t *testing.T, ctx context.Context, selector, want string) {
	t.Helper()
	eventually(t, selector+" shows "+want, func() bool {
		var got string
		err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &got))
		return err == nil && strings.Contains(got, want) // the expression fails while the page changes
	})
}

// TestPageByKeyboard checks that a message can be written and sent with the
// keyboard alone, and that the results appear one by one.
func TestPageByKeyboard(t *testing.T) {
	address, hook := newPage(t)
	ctx, complaints := newBrowser(t)
	for _, slash := range []string{"", "/"} {
		run(t, ctx, chromedp.Navigate(address+"/ops"+slash), chromedp.WaitReady("form", chromedp.ByQuery))
		// The tags in their order. A radio group is one tab stop.
		run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(" "))
		run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab),
			chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
		run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("Disk"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("91 % full"))
		if got := eval[string](t, ctx,
			"new URLSearchParams(new FormData(document.forms[0])).toString()"); !strings.HasPrefix(got,
			"tags=refuse&type=warning&title=Disk&body=91+%25+full&incident=&format=text") {
			t.Fatalf("the form holds %s", got)
		}
		run(t, ctx, chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(2))) // Ctrl
		shows(t, ctx, "#outcome", "1 of 1 notifications could not be sent.")
		shows(t, ctx, "#results li.failed", "JSON (refuse) failed: the service answered 500")
		if got := hook.take(t, "/refuse"); got.Title != "Disk" || got.Message != "91 % full" || got.Type != "warning" {
			t.Errorf("%+v", got)
		}
		// The text is still there. Enter in the title sends again.
		run(t, ctx, chromedp.Click(`[value=refuse]`, chromedp.ByQuery), chromedp.Focus("#title", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
		shows(t, ctx, "#outcome", "Sent.")
		shows(t, ctx, "#results li.delivered", "JSON (chat) delivered in <0.1 s")
		if got := hook.take(t, "/chat"); got.Message != "91 % full" {
			t.Errorf("%+v", got)
		}
		if got := eval[string](t, ctx, "document.getElementById('body').value"); got != "" {
			t.Errorf("the message that was sent is still in the form: %q", got)
		}
	}
	run(t, ctx, chromedp.Click(`[value=slow]`, chromedp.ByQuery), chromedp.Click(`[value=chat]`, chromedp.ByQuery),
		chromedp.SendKeys("#body", "x", chromedp.ByQuery), chromedp.Click("#send", chromedp.ByQuery))
	shows(t, ctx, "#results li:nth-child(1)", "delivered")
	shows(t, ctx, "#results li:nth-child(2)", "JSON (slow) sending…")
	if got := text(t, ctx, "#outcome"); got != "Sending…" {
		t.Errorf("the outcome is %q before all messages are sent", got)
	}
	hook.release()
	shows(t, ctx, "#results li:nth-child(2)", "delivered")
	shows(t, ctx, "#outcome", "Sent.")
	noErrors(t, complaints())
}

// TestPageFollowsQueue checks that the page shows that a message is queued, and
// then its outcome.
func TestPageFollowsQueue(t *testing.T) {
	address, hook := newPageWith(t, fmt.Sprintf("notify {\nqueue {\npath %q\nwait 500ms\n}\n}", t.TempDir()))
	ctx, complaints := newBrowser(t)
	for _, page := range []string{"/ops", "/ops/"} {
		run(t, ctx, chromedp.Navigate(address+page), chromedp.WaitReady("form", chromedp.ByQuery),
			chromedp.Click(`[value=slow]`, chromedp.ByQuery),
			chromedp.SendKeys("#body", "x", chromedp.ByQuery), chromedp.Click("#send", chromedp.ByQuery))
		if page == "/ops" {
			shows(t, ctx, "#outcome", "Queued: the gateway keeps trying.")
			shows(t, ctx, "#results", "JSON (slow) queued")
			hook.release()
			shows(t, ctx, "#outcome", "Delivered.")
		} else {
			shows(t, ctx, "#outcome", "Sent.")
		}
		shows(t, ctx, "#results li.delivered", "JSON (slow) delivered")
		hook.take(t, "/slow")
	}
	noErrors(t, complaints())
}

func TestPageWithoutKey(t *testing.T) {
	address, hook := newPage(t)
	ctx, _ := newBrowser(t)
	to := "json://" + strings.TrimPrefix(hook.URL, "http://") + "/chat"
	run(t, ctx, chromedp.Navigate(address), chromedp.WaitReady("form", chromedp.ByQuery),
		chromedp.SendKeys("#urls", "nonsense://x\n"+to, chromedp.ByQuery),
		chromedp.SendKeys("#body", "x", chromedp.ByQuery), chromedp.Click("#send", chromedp.ByQuery))
	shows(t, ctx, "#outcome", "1 of 2 notifications could not be sent.")
	shows(t, ctx, "#results li:nth-child(1)", "URL not sent: URL 1 of 2")
	shows(t, ctx, "#results li:nth-child(2)", "JSON delivered")
	hook.take(t, "/chat")
	eval[string](t, ctx, `document.getElementById("body").value = ""`)
	run(t, ctx, chromedp.Click("#send", chromedp.ByQuery))
	shows(t, ctx, "#outcome", "The message was not sent: the field body is missing")
	shows(t, ctx, "label[for=body]", "Body")
}

// TestPageFiles checks that files can be chosen, dropped and removed.
func TestPageFiles(t *testing.T) {
	address, hook := newPage(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, chromedp.Navigate(address+"/ops"), chromedp.WaitReady("form", chromedp.ByQuery),
		chromedp.SetUploadFiles("#files", []string{writeFile(t, "one.txt", "1"), writeFile(t, "two.txt", "2")}, chromedp.ByQuery))
	shows(t, ctx, "#chosen", "two.txt (1 B)")
	eval[bool](t, ctx, `(() => {
		const t = new DataTransfer();
		t.items.add(new File(["3"], "<b>three.txt"));
		return document.getElementById("body").dispatchEvent(new DragEvent("drop", { dataTransfer: t, bubbles: true, cancelable: true }));
	})()`)
	shows(t, ctx, "#chosen", "<b>three.txt")
	run(t, ctx, chromedp.Click(`[aria-label="Remove two.txt"]`, chromedp.ByQuery), chromedp.Click("#send", chromedp.ByQuery))
	shows(t, ctx, "#outcome", "Sent.")
	got := hook.take(t, "/chat")
	if len(got.Attachments) != 2 || got.Attachments[0].Filename != "one.txt" || string(got.Attachments[1].Base64) != "3" {
		t.Errorf("%+v", got.Attachments)
	}
	if got := text(t, ctx, "#chosen"); got != "" {
		t.Errorf("files that were sent are still chosen: %s", got)
	}
	noErrors(t, complaints())
}

// TestPagePreview checks that the preview follows the text, and that nothing in it
// runs or is loaded.
func TestPagePreview(t *testing.T) {
	address, hook := newPage(t)
	var loaded []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { loaded = append(loaded, r.URL.Path) }))
	ctx, _ := newBrowser(t)
	evil := `<script>parent.document.title = "bad"; top.location = "` + elsewhere.URL +
		`/top"</script><img src="` + elsewhere.URL + `/img" onerror="parent.document.title = 'bad'">` +
		`<link rel=stylesheet href="` + elsewhere.URL + `/css"><iframe src="` + elsewhere.URL +
		`/frame"></iframe><meta http-equiv=refresh content="0;url=` + elsewhere.URL + `/refresh">`
	run(t, ctx, chromedp.Navigate(address+"/ops"), chromedp.WaitReady("form", chromedp.ByQuery),
		chromedp.Click("#preview summary", chromedp.ByQuery),
		chromedp.Click("details.more summary", chromedp.ByQuery),
		chromedp.Click("[value=markdown]", chromedp.ByQuery),
		chromedp.SendKeys("#title", "a <b>", chromedp.ByQuery),
		chromedp.SendKeys("#body", "**bold**", chromedp.ByQuery))
	document := func(want string) {
		t.Helper()
		eventually(t, "the preview shows "+want, func() bool {
			return strings.Contains(eval[string](t, ctx, "document.querySelector('iframe').srcdoc"), want)
		})
	}
	document("<h1>a &lt;b&gt;</h1>\n<p><strong>bold</strong></p>")
	run(t, ctx, chromedp.Click("[value=html]", chromedp.ByQuery), chromedp.SendKeys("#body", evil+"<i>end</i>", chromedp.ByQuery))
	document("<i>end</i>")
	time.Sleep(time.Second) // time in which something could load or run
	if got := eval[string](t, ctx, "document.title + location.pathname"); got != "Send a message to ops/alerts/notify/ops" {
		t.Errorf("the page has become %s", got)
	}
	elsewhere.Close()
	if len(loaded) > 0 {
		t.Errorf("the preview has loaded %q", loaded)
	}
	if len(hook.got) > 0 {
		t.Errorf("previews were sent: %+v", hook.got)
	}
}

// TestPageWithoutScript checks that, without scripts, the page is a form and the
// response is a page with a link back.
func TestPageWithoutScript(t *testing.T) {
	address, hook := newPage(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(address+"/ops/"), chromedp.WaitReady("form", chromedp.ByQuery),
		chromedp.Click("#preview summary", chromedp.ByQuery), chromedp.SendKeys("#body", "*hi*", chromedp.ByQuery),
		chromedp.Click("details.more summary", chromedp.ByQuery),
		chromedp.Click("[value=markdown]", chromedp.ByQuery),
		chromedp.Click("#preview button", chromedp.ByQuery))
	eventually(t, "the preview is shown", func() bool {
		frames, err := chromedp.Targets(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(frames, func(f *target.Info) bool { return strings.HasSuffix(f.URL, "/alerts/notify/ops/?preview") })
	})
	run(t, ctx, chromedp.Click("#send", chromedp.ByQuery), chromedp.WaitReady("ul.logs", chromedp.ByQuery))
	shows(t, ctx, "ul.logs", "Sent to JSON")
	if got := hook.take(t, "/chat"); got.Message != "*hi*" {
		t.Errorf("%+v", got)
	}
	run(t, ctx, chromedp.Click("p a", chromedp.ByQuery), chromedp.WaitReady("form", chromedp.ByQuery))
	run(t, ctx, chromedp.Click("[value=optional]", chromedp.ByQuery),
		chromedp.SendKeys("#body", "x", chromedp.ByQuery), chromedp.Click("#send", chromedp.ByQuery),
		chromedp.WaitReady("ul.logs", chromedp.ByQuery))
	shows(t, ctx, ".logs .optional", "Failed to send to JSON")
	if got := colour(t, ctx, ".logs .optional"); got != warningColour {
		t.Errorf("an optional failure has the colour %s", got)
	}
	noErrors(t, complaints())
}

// TestPageForEveryone checks that every control has an accessible name, and that
// the page uses the colour scheme that the reader prefers.
func TestPageForEveryone(t *testing.T) {
	address, _ := newPage(t)
	ctx, _ := newBrowser(t)
	for _, path := range []string{"", "/ops"} {
		run(t, ctx, chromedp.Navigate(address+path), chromedp.WaitReady("form", chromedp.ByQuery),
			chromedp.Click("details.more summary", chromedp.ByQuery),
			chromedp.Click("#preview summary", chromedp.ByQuery))
		seen := checkNames(t, ctx, path)
		if !seen["textbox"] || !seen["radio"] || !seen["button"] || !seen["Iframe"] {
			t.Errorf("%s: the page has %v", path, seen)
		}
		colours := map[string]string{}
		for _, scheme := range []string{"light", "dark"} {
			run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
			colours[scheme] = eval[string](t, ctx, "getComputedStyle(document.body).backgroundColor")
		}
		if colours["light"] != "rgb(246, 247, 249)" || colours["dark"] != "rgb(17, 22, 28)" {
			t.Errorf("backgrounds %v", colours)
		}
		if wide := eval[bool](t, ctx, "document.documentElement.scrollWidth > document.documentElement.clientWidth"); wide {
			t.Error("the page is wider than the window")
		}
	}
}

// The colours of results on the light page.
const (
	successColour = "rgb(31, 122, 61)"
	warningColour = "rgb(138, 90, 0)"
	failureColour = "rgb(179, 38, 30)"
)

// colour returns the colour at the left of a result.
func colour(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	return eval[string](t, ctx, fmt.Sprintf("getComputedStyle(document.querySelector(%q)).borderLeftColor", selector))
}

// TestPageOptionalFailure checks that the failure of an optional destination does
// not have the colour of a failure.
func TestPageOptionalFailure(t *testing.T) {
	address, _ := newPage(t)
	ctx, _ := newBrowser(t)
	run(t, ctx, chromedp.Navigate(address+"/ops"), chromedp.WaitReady("form", chromedp.ByQuery),
		chromedp.Click("[value=all]", chromedp.ByQuery), chromedp.Click("[value=slow]", chromedp.ByQuery),
		chromedp.Click("[value=all]", chromedp.ByQuery), chromedp.Click("[value=slow]", chromedp.ByQuery),
		chromedp.Click("[value=chat]", chromedp.ByQuery), chromedp.Click("[value=optional]", chromedp.ByQuery),
		chromedp.SendKeys("#body", "x", chromedp.ByQuery), chromedp.Click("#send", chromedp.ByQuery))
	shows(t, ctx, "#outcome", "Sent.")
	shows(t, ctx, "#results li.optional", "JSON (optional) failed (optional): the service answered 500")
	if delivered, optional := colour(t, ctx, "#results li.delivered"),
		colour(t, ctx, "#results li.optional"); delivered != successColour || optional != warningColour {
		t.Errorf("delivered is %s and an optional failure %s", delivered, optional)
	}
	run(t, ctx, chromedp.Click("[value=optional]", chromedp.ByQuery),
		chromedp.Click("[value=refuse]", chromedp.ByQuery), chromedp.SendKeys("#body", "x", chromedp.ByQuery),
		chromedp.Click("#send", chromedp.ByQuery))
	shows(t, ctx, "#outcome", "1 of 2 notifications could not be sent.")
	if got := colour(t, ctx, "#results li.failed"); got != failureColour {
		t.Errorf("a failure is %s", got)
	}
}

// TestPageOnPhone checks that, on a phone, the button is in view and the page has
// no hints about a keyboard or dropping files.
func TestPageOnPhone(t *testing.T) {
	address, _ := newPage(t)
	ctx, _ := newBrowser(t)
	hints := func() string {
		t.Helper()
		return eval[string](t, ctx,
			"[...document.querySelectorAll('.hint')].filter((e) => e.getClientRects().length).map((e) => e.innerText).join(' ')")
	}
	run(t, ctx, chromedp.Navigate(address+"/ops"), chromedp.WaitReady("form", chromedp.ByQuery))
	if got := hints(); !strings.Contains(got, "Ctrl") || !strings.Contains(got, "drop") {
		t.Errorf("hints for a keyboard and a mouse: %s", got)
	}
	run(t, ctx, emulation.SetDeviceMetricsOverride(390, 844, 2, true), emulation.SetTouchEmulationEnabled(true))
	for _, path := range []string{"/ops", ""} {
		run(t, ctx, chromedp.Navigate(address+path), chromedp.WaitReady("form", chromedp.ByQuery))
		if got := hints(); strings.Contains(got, "Ctrl") || strings.Contains(got, "drop") {
			t.Errorf("%s: hints without a keyboard and a mouse: %s", path, got)
		}
		if end := eval[float64](t, ctx, "document.getElementById('send').getBoundingClientRect().bottom"); end > 844 {
			t.Errorf("%s: the button ends at %.0f of 844 pixels", path, end)
		}
		// The button is there because of the layout, and not only because it sticks.
		if end := eval[float64](t, ctx,
			"document.querySelector('.send').style.position = 'static', document.getElementById('send').getBoundingClientRect().bottom"); end > 844 {
			t.Errorf("%s: the button's own place ends at %.0f of 844 pixels", path, end)
		}
		if wide := eval[bool](t, ctx, "document.documentElement.scrollWidth > 390"); wide {
			t.Errorf("%s: the page is wider than the window", path)
		}
	}
}

// TestPageOfErrors checks that error pages have the style of the form.
func TestPageOfErrors(t *testing.T) {
	address, _ := newPage(t)
	ctx, complaints := newBrowser(t)
	const look = "['body', 'h1', '.card'].map((s) => { const c = getComputedStyle(document.querySelector(s)); " +
		"return [c.backgroundColor, c.fontFamily, c.fontSize, c.borderRadius, c.padding].join(' ') }).join('; " +
		"') + document.querySelector('link[rel=icon]').href.length"
	run(t, ctx, chromedp.Navigate(address+"/ops"), chromedp.WaitReady("form", chromedp.ByQuery))
	want := eval[string](t, ctx, look)
	noErrors(t, complaints())
	run(t, ctx, chromedp.Navigate(address+"/nobody"), chromedp.WaitReady(".reason", chromedp.ByQuery))
	if got := eval[string](t, ctx, look); got != want {
		t.Errorf("the page of an error has the look %s, want %s", got, want)
	}
	shows(t, ctx, ".reason", "There is no such key; ")
	shows(t, ctx, "a.button", "Start page")
}

// TestPageOfAnotherSite checks that a page of another site cannot send a message
// with its reader's browser.
func TestPageOfAnotherSite(t *testing.T) {
	address, hook := newPage(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<form method="post" action="`+address+
			`/ops"><input name="body" value="x"></form><script>document.forms[0].submit()</script>`)
	}))
	defer other.Close()
	ctx, _ := newBrowser(t)
	run(t, ctx, chromedp.Navigate(other.URL))
	shows(t, ctx, "ul.logs", "a page of another site sent this message")
	if len(hook.got) > 0 {
		t.Errorf("%+v", hook.got)
	}
}

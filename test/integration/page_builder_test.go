package integration

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// errorsOf returns what a browser complains about, except its advice on forms
// with passwords.
func errorsOf(complaints []string) []string {
	return slices.DeleteFunc(slices.Clone(complaints), func(text string) bool { return strings.HasPrefix(text, "[DOM]") })
}

// saveKey presses the button that saves the key, and waits for the answer.
func saveKey(t *testing.T, ctx context.Context) {
	t.Helper()
	run(t, ctx, chromedp.Focus("#editor button.primary", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	eventually(t, "the key is saved", func() bool {
		var saved bool
		err := chromedp.Run(ctx, chromedp.Evaluate(`location.pathname.includes("/add/") && document.readyState == "complete"`, &saved))
		return err == nil && saved // the expression fails while the page changes
	})
}

// TestBuilderByKeyboard makes a URL, tests it, adds it to a key and saves it with
// the keyboard, and then tests the destination on the page of the key.
func TestBuilderByKeyboard(t *testing.T) {
	address, hook := newKeyPages(t)
	at, err := url.Parse(hook.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, complaints := newBrowser(t)
	run(t, ctx, open(address+"/cfg/ops?build"), chromedp.SendKeys("#search", "JSON"+kb.Enter, chromedp.ByQuery), chromedp.WaitReady("#p-host", chromedp.ByQuery))
	run(t, ctx, chromedp.Focus("#scheme", chromedp.ByQuery), chromedp.KeyEvent("without"),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("me"), // user
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("p@ss/w:rd #1"))
	if shown := eval[string](t, ctx, "document.activeElement.type"); shown != "password" {
		t.Fatalf("the field of the password is one of %s", shown)
	}
	run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(" ")) // Show
	if shown := eval[string](t, ctx, "document.getElementById('p-password').type + document.activeElement.ariaPressed"); shown != "texttrue" {
		t.Errorf("after Show, the field is %s", shown)
	}
	run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(at.Hostname()), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(at.Port()),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("/chat"), chromedp.KeyEvent(kb.Enter), chromedp.WaitReady("textarea[readonly]", chromedp.ByQuery))
	made := "json://me:p%40ss%2Fw%3Ard%20%231@" + at.Host + "/chat"
	if got := eval[string](t, ctx, "document.getElementById('url').value"); got != made {
		t.Errorf("the URL is %s, want %s", got, made)
	}
	if where := eval[string](t, ctx, "location.href"); strings.Contains(where, "ss") {
		t.Errorf("the address is %s", where)
	}
	run(t, ctx, chromedp.Focus("#destination-1 button", chromedp.ByQuery), chromedp.KeyEvent(" "))
	shows(t, ctx, "#destination-1", "Delivered in ")
	if got := hook.take(t, "/chat"); got.Title != "Test from Caddy" || got.Type != "info" {
		t.Errorf("%+v", got)
	}
	run(t, ctx, chromedp.Focus("button.primary", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter), chromedp.WaitReady("#config", chromedp.ByQuery))
	shows(t, ctx, "#checked", "No mistakes; 1 URL. Not saved yet.")
	if got := eval[string](t, ctx, "document.getElementById('config').value"); got != made+"\n" {
		t.Errorf("the editor has %q", got)
	}
	saveKey(t, ctx)
	shows(t, ctx, "h1", "Saved")

	postForm(t, address+"/add/ops", http.StatusOK, url.Values{"urls": {hook.to("/chat"), hook.to("/refuse"), hook.to("/slow")}})
	run(t, ctx, open(address+"/cfg/ops"), chromedp.Evaluate("window.same = true", nil))
	run(t, ctx, chromedp.Focus("#destination-2 button", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	shows(t, ctx, "#destination-2.failed [role=status]", "Failed: the service answered 500 Internal Server Error.")
	hook.take(t, "/refuse")
	run(t, ctx, chromedp.Click("#destination-3 button", chromedp.ByQuery))
	shows(t, ctx, "#destination-3", "Testing…")
	run(t, ctx, chromedp.Click("#destination-3 button", chromedp.ByQuery)) // it is busy
	hook.release()
	shows(t, ctx, "#destination-3.delivered", "Delivered in ")
	hook.take(t, "/slow")
	run(t, ctx, open(address+"/cfg/fixed"), chromedp.Click("#destination-1 button", chromedp.ByQuery))
	shows(t, ctx, "#destination-1.delivered", "Delivered in ")
	hook.take(t, "/fixed")
	if got := errorsOf(complaints()); len(got) > 0 {
		t.Errorf("errors on the browser console: %q", got)
	}
}

// TestBuilderWithoutScript checks that, without scripts, the address of a webhook
// fills in a form, a mistake is shown at its field, and a test is a page with the
// result.
func TestBuilderWithoutScript(t *testing.T) {
	address, hook := newKeyPages(t)
	ctx, complaints := newBrowser(t)
	run(t, ctx, withoutScript, open(address+"/cfg/ops?build"),
		chromedp.SendKeys("#url", "https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", chromedp.ByQuery), chromedp.Click("[value=read]", chromedp.ByQuery), chromedp.WaitReady("#p-webhook_id", chromedp.ByQuery))
	shows(t, ctx, "h1", "Add Discord to ops")
	run(t, ctx, chromedp.Click("[value=show]", chromedp.ByQuery), chromedp.WaitReady("#p-webhook_token[type=text]", chromedp.ByQuery))
	if got := eval[string](t, ctx, "document.getElementById('p-webhook_token').value"); got != "JHMHI8qBe7bk2ZwO5U711o3dV_js" {
		t.Errorf("the token is %q", got)
	}
	run(t, ctx, chromedp.SetValue("#own-tags", "a.b", chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery), chromedp.WaitReady("#own-tags-problem", chromedp.ByQuery))
	shows(t, ctx, ".problems", "the tag is malformed")

	run(t, ctx, open(address+"/cfg/ops?build"), chromedp.SendKeys("#url", hook.to("/refuse"), chromedp.ByQuery), chromedp.Click("[value=read]", chromedp.ByQuery), chromedp.WaitReady("#p-host", chromedp.ByQuery))
	run(t, ctx, chromedp.SetValue("#own-tags", "crew", chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery), chromedp.WaitReady("textarea[readonly]", chromedp.ByQuery))
	run(t, ctx, chromedp.Click("#destination-1 button", chromedp.ByQuery), chromedp.WaitReady("#destination-1.failed", chromedp.ByQuery))
	shows(t, ctx, "#destination-1", "Failed: the service answered 500")
	hook.take(t, "/refuse")
	run(t, ctx, chromedp.Click("button.primary", chromedp.ByQuery), chromedp.WaitReady("#config", chromedp.ByQuery))
	if got := eval[string](t, ctx, "document.getElementById('config').value"); got != "crew="+hook.to("/refuse")+"\n" {
		t.Errorf("the editor has %q", got)
	}
	saveKey(t, ctx)
	run(t, ctx, open(address+"/cfg/ops"), chromedp.Click("#destination-1 button", chromedp.ByQuery), chromedp.WaitReady("#destination-1.failed", chromedp.ByQuery))
	hook.take(t, "/refuse")
	if got := errorsOf(complaints()); len(got) > 0 {
		t.Errorf("errors on the browser console: %q", got)
	}
}

// TestBuilderForEveryone checks that the pages of the builder can be used in both
// colour schemes, on a phone, with the keyboard and with a screen reader.
func TestBuilderForEveryone(t *testing.T) {
	address, hook := newKeyPages(t)
	ctx, _ := newBrowser(t)
	for _, phone := range []bool{false, true} {
		if phone {
			run(t, ctx, emulation.SetDeviceMetricsOverride(390, 844, 2, true), emulation.SetTouchEmulationEnabled(true))
		}
		for _, page := range []string{"list", "form", "mistakes", "URL"} {
			switch page {
			case "list":
				run(t, ctx, open(address+"/cfg/ops?build=&search=sms"))
			case "form":
				run(t, ctx, open(address+"/cfg/ops?build=json"), chromedp.Evaluate("document.querySelectorAll('details').forEach((e) => e.open = true)", nil))
			case "mistakes":
				run(t, ctx, open(address+"/cfg/ops?build=matrix&form=2"), chromedp.Evaluate("document.forms[0].noValidate = true", nil),
					chromedp.SendKeys("#p-port", "99999", chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery), chromedp.WaitReady(".problems", chromedp.ByQuery))
				eventually(t, "the focus is on the first field with a mistake", func() bool {
					return eval[string](t, ctx, "document.activeElement.id") == "p-user"
				})
			case "URL":
				run(t, ctx, open(address+"/cfg/ops?build"), chromedp.SendKeys("#url", hook.to("/"+strings.Repeat("long", 50)), chromedp.ByQuery), chromedp.Click("[value=read]", chromedp.ByQuery),
					chromedp.WaitReady("#p-host", chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery), chromedp.WaitReady("textarea[readonly]", chromedp.ByQuery),
					chromedp.Click("#destination-1 button", chromedp.ByQuery))
				shows(t, ctx, "#destination-1.delivered", "Delivered")
			}
			for _, scheme := range []string{"light", "dark"} {
				run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
				if bad := eval[[]string](t, ctx, contrast); len(bad) > 0 {
					t.Errorf("%s, %s: too little contrast: %q", page, scheme, bad)
				}
			}
			if wide := eval[bool](t, ctx, "document.documentElement.scrollWidth > document.documentElement.clientWidth"); wide {
				t.Errorf("%s: the page is wider than the window", page)
			}
			checkNames(t, ctx, page)
			checkTabs(t, ctx, page)
		}
	}
}

package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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

// paste does what pasting a text into the focused field does.
func paste(text string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`(() => {
		const field = document.activeElement;
		field.value = %q;
		field.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertFromPaste" }));
	})()`, text), nil)
}

// screenshot writes a picture of the page to the folder of the variable SCREENSHOTS,
// if it is set.
func screenshot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	run(t, ctx, chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFirstDestination adds the first destination of a new key from the list of keys:
// with three clicks, a name and a pasted address, it is tested and saved.
func TestFirstDestination(t *testing.T) {
	address, hook := newKeyPages(t)
	ctx, complaints := newBrowser(t)
	clicks := 0
	click := func(selector string) chromedp.Action {
		clicks++
		return chromedp.Click(selector, chromedp.ByQuery)
	}
	run(t, ctx, open(address+"/cfg"), chromedp.SendKeys("#new", "fresh"+kb.Enter, chromedp.ByQuery))
	shows(t, ctx, "h1", "Key fresh") // the list of keys has such a link, too
	// The page may be renewing what follows events, so the link is found and clicked at once.
	clicks++
	run(t, ctx, chromedp.WaitReady("a[href$='?build']", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector("a[href$='?build']").click()`, nil),
		chromedp.WaitReady("#text", chromedp.ByQuery), chromedp.Focus("#text", chromedp.ByQuery), paste(" "+hook.to("/chat")+" "))
	run(t, ctx, chromedp.WaitReady("#p-host", chromedp.ByQuery))
	shows(t, ctx, ".recognized", "What you pasted is a notification URL.")
	run(t, ctx, click("[value=test]"))
	shows(t, ctx, "#outcome-of-form .delivered", "Delivered in ")
	hook.take(t, "/chat")
	run(t, ctx, click("button.primary"))
	shows(t, ctx, "[role=status]", "The destination is saved: JSON.")
	if where := eval[string](t, ctx,
		"location.href"); !strings.HasSuffix(where, "/alerts/notify/console/keys/fresh?added=json#destination-1") {
		t.Errorf("the page is %s", where)
	}
	if clicks != 3 {
		t.Errorf("%d clicks", clicks)
	}
	postForm(t, address+"/notify/fresh", http.StatusOK, url.Values{"body": {"hello"}})
	hook.take(t, "/chat")
	noErrors(t, errorsOf(complaints()))
}

// TestBuilderByKeyboard finds a service while it is typed, fills in its form, tests the
// destination and saves it with the keyboard.
func TestBuilderByKeyboard(t *testing.T) {
	address, hook := newKeyPages(t)
	at, err := url.Parse(hook.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, complaints := newBrowser(t)
	run(t, ctx, open(address+"/notify/console/keys/ops?build"), chromedp.Focus("#text", chromedp.ByQuery), chromedp.KeyEvent("webho"))
	shows(t, ctx, "#services-found", "services for webho")
	run(t, ctx, chromedp.KeyEvent("ok"))
	shows(t, ctx, "#summary", " services found.")
	shows(t, ctx, "#found .tile", "known for \"webhook\"")
	// Behind the field and its button, the next stops are what is found.
	run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	if name := eval[string](t, ctx, "document.activeElement.querySelector('strong').textContent"); name != "JSON" {
		t.Errorf("the second service is %s", name)
	}
	screenshot(t, ctx, "found")
	run(t, ctx, chromedp.KeyEvent(kb.Enter), chromedp.WaitReady("#p-host", chromedp.ByQuery))
	run(t, ctx, chromedp.Focus("#scheme", chromedp.ByQuery), chromedp.KeyEvent("without"),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(at.Hostname()), // what is required comes first
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("me"), // user
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("p@ss/w:rd #1"))
	if shown := eval[string](t, ctx, "document.activeElement.type"); shown != "password" {
		t.Fatalf("the field of the password is one of %s", shown)
	}
	run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(" ")) // Show
	if shown := eval[string](t, ctx, "document.getElementById('p-password').type + document.activeElement.ariaPressed"); shown != "texttrue" {
		t.Errorf("after Show, the field is %s", shown)
	}
	run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(at.Port()),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("/refuse"))
	run(t, ctx, chromedp.Focus("#destination [value=test]", chromedp.ByQuery), chromedp.KeyEvent(" "))
	shows(t, ctx, "#outcome-of-form .failed", "Failed: the service answered 500")
	hook.take(t, "/refuse")
	run(t, ctx, chromedp.Evaluate("document.getElementById('p-path').select()", nil), chromedp.KeyEvent("/chat"))
	if left := text(t, ctx, "#outcome-of-form"); left != "" {
		t.Errorf("the result %q is still there although the address is another", left)
	}
	run(t, ctx, chromedp.KeyEvent(kb.Enter)) // saves
	shows(t, ctx, "[role=status]", "The destination is saved: JSON.")
	made := "json://me:p%40ss%2Fw%3Ard%20%231@" + at.Host + "/chat"
	run(t, ctx, open(address+"/notify/console/keys/ops?tab=settings"))
	if got := eval[string](t, ctx, "document.getElementById('config').value"); got != made+"\n" {
		t.Errorf("the key has %q", got)
	}

	postForm(t, address+"/add/ops", http.StatusOK, url.Values{"urls": {hook.to("/chat"), hook.to("/refuse"), hook.to("/slow")}})
	run(t, ctx, open(address+"/notify/console/keys/ops"), chromedp.Evaluate("window.same = true", nil))
	run(t, ctx, chromedp.Focus("#destination-2 button", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	shows(t, ctx, "#destination-2.failed [role=status]", "Failed: the service answered 500 Internal Server Error.")
	hook.take(t, "/refuse")
	run(t, ctx, chromedp.Click("#destination-3 button", chromedp.ByQuery))
	shows(t, ctx, "#destination-3", "Testing…")
	run(t, ctx, chromedp.Click("#destination-3 button", chromedp.ByQuery)) // it is busy
	hook.release()
	shows(t, ctx, "#destination-3.delivered", "Delivered in ")
	hook.take(t, "/slow")
	run(t, ctx, open(address+"/notify/console/keys/fixed"), chromedp.Click("#destination-1 button", chromedp.ByQuery))
	shows(t, ctx, "#destination-1.delivered", "Delivered in ")
	hook.take(t, "/fixed")
	noErrors(t, errorsOf(complaints()))
}

// TestBuilderKeepsWhatIsTyped checks that the browser asks before a form is left that
// is not saved, that a mistake keeps the values, and that a text that is not
// recognised stays in the field.
func TestBuilderKeepsWhatIsTyped(t *testing.T) {
	address, _ := newKeyPages(t)
	ctx, complaints := newBrowser(t)
	asked := answerLeaving(ctx, false)
	run(t, ctx, open(address+"/notify/console/keys/ops?build=discord"), chromedp.SendKeys("#address", "4174216298", chromedp.ByQuery))
	run(t, ctx, chromedp.Evaluate("setTimeout(() => document.querySelector('.above a').click())", nil))
	<-asked
	if got := eval[string](t, ctx, "document.getElementById('address').value"); got != "4174216298" {
		t.Errorf("the field has %q", got)
	}
	run(t, ctx, chromedp.Evaluate("document.getElementById('destination').noValidate = true", nil),
		chromedp.Click("[value=test]", chromedp.ByQuery))
	shows(t, ctx, "#address-problem", "no address that Discord gives out")
	if got := eval[string](t, ctx, "document.getElementById('address').value"); got != "4174216298" {
		t.Errorf("the field has %q", got)
	}
	// A page with no values is left without a question.
	ctx2, stop := chromedp.NewContext(ctx)
	defer stop()
	run(t, ctx2, open(address+"/notify/console/keys/ops?build"), chromedp.Focus("#text", chromedp.ByQuery), paste("t0ken of something"))
	shows(t, ctx2, "#text-problem", "No service gives out a text of this form")
	if got := eval[string](t, ctx2, "document.getElementById('text').value"); got != "t0ken of something" {
		t.Errorf("the field has %q", got)
	}
	run(t, ctx2, open(address+"/notify/console/keys/ops?build=discord"), chromedp.Click(".above a", chromedp.ByQuery))
	shows(t, ctx2, "h1", "Key ops")
	if got := errorsOf(complaints()); len(got) > 0 || len(asked) > 0 {
		t.Errorf("errors on the browser console: %q, and %d questions", got, len(asked))
	}
}

// TestBuilderWithoutScript checks that, without scripts, the address of a webhook
// fills in a form, a mistake is shown at its field, a test is a page with the result,
// and the destination is saved.
func TestBuilderWithoutScript(t *testing.T) {
	address, hook := newKeyPages(t)
	ctx, complaints := newBrowser(t)
	find := chromedp.Click("#find button", chromedp.ByQuery)
	run(t, ctx, withoutScript, open(address+"/notify/console/keys/ops?build"),
		chromedp.SendKeys("#text", "https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
			chromedp.ByQuery), find, chromedp.WaitReady("#address", chromedp.ByQuery))
	shows(t, ctx, "h1", "Add Discord to ops")
	run(t, ctx, chromedp.Click("[value=show]", chromedp.ByQuery), chromedp.WaitReady("#address[type=text]", chromedp.ByQuery))
	if got := eval[string](t, ctx, "document.getElementById('address').value"); got != "https:/"+
		"/discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js" {
		t.Errorf("the address is %q", got)
	}
	run(t, ctx, chromedp.SetValue("#own-tags", "a.b", chromedp.ByQuery),
		chromedp.Click("button.primary", chromedp.ByQuery),
		chromedp.WaitReady("#own-tags-problem", chromedp.ByQuery))
	shows(t, ctx, ".problems", "the tag is malformed")

	run(t, ctx, open(address+"/notify/console/keys/ops?build"), chromedp.SendKeys("#text", "teams", chromedp.ByQuery), find)
	shows(t, ctx, "#found", "known for \"teams\"")
	run(t, ctx, chromedp.SetValue("#text", "alice@gmail.com", chromedp.ByQuery), find)
	shows(t, ctx, "#found", "It may be")
	run(t, ctx, chromedp.Click("[name=as][value=mailto]", chromedp.ByQuery), chromedp.WaitReady("#account", chromedp.ByQuery))
	if got := eval[string](t, ctx, "document.getElementById('account').value"); got != "alice@gmail.com" {
		t.Errorf("the address is %q", got)
	}

	run(t, ctx, open(address+"/notify/console/keys/ops?build"), chromedp.SendKeys("#text", hook.to("/refuse"), chromedp.ByQuery),
		find, chromedp.WaitReady("#p-host", chromedp.ByQuery))
	run(t, ctx, chromedp.SetValue("#own-tags", "crew", chromedp.ByQuery),
		chromedp.Click("[value=test]", chromedp.ByQuery),
		chromedp.WaitReady("#outcome-of-form .failed", chromedp.ByQuery))
	shows(t, ctx, "#outcome-of-form", "Failed: the service answered 500")
	hook.take(t, "/refuse")
	run(t, ctx, chromedp.Click("[value=line]", chromedp.ByQuery), chromedp.WaitReady("#line", chromedp.ByQuery))
	shows(t, ctx, "#line", "url "+hook.to("/refuse")+" crew")
	run(t, ctx, chromedp.Click("button.primary", chromedp.ByQuery), chromedp.WaitReady("#destination-1", chromedp.ByQuery))
	shows(t, ctx, "[role=status]", "The destination is saved: JSON.")
	run(t, ctx, open(address+"/notify/console/keys/ops?tab=settings"))
	if got := eval[string](t, ctx, "document.getElementById('config').value"); got != "crew="+hook.to("/refuse")+"\n" {
		t.Errorf("the key has %q", got)
	}
	run(t, ctx, open(address+"/notify/console/keys/ops"),
		chromedp.Click("#destination-1 button", chromedp.ByQuery), chromedp.WaitReady("#destination-1.failed", chromedp.ByQuery))
	hook.take(t, "/refuse")
	noErrors(t, errorsOf(complaints()))
}

// TestBuilderForEveryone checks that the pages of the builder can be used in both
// colour schemes, on a phone, with the keyboard and with a screen reader.
func TestBuilderForEveryone(t *testing.T) {
	address, hook := newKeyPages(t)
	for _, width := range []int64{1280, 320} {
		t.Run(fmt.Sprint(width), func(t *testing.T) { builderForEveryone(t, address, hook, width) })
	}
}

func builderForEveryone(t *testing.T, address string, hook *webhook, width int64) {
	ctx, _ := newBrowser(t)
	answerLeaving(ctx, true)
	run(t, ctx, emulation.SetDeviceMetricsOverride(width, 844, 1, width < 500), emulation.SetTouchEmulationEnabled(width < 500))
	for _, step := range []string{"list", "found", "guesses", "form", "mistakes", "recognised", "line"} {
		switch step {
		case "list":
			run(t, ctx, open(address+"/notify/console/keys/ops?build"))
		case "found":
			run(t, ctx, open(address+"/notify/console/keys/ops?build=&search=sms"))
		case "guesses":
			run(t, ctx, open(address+"/notify/console/keys/ops?build"),
				chromedp.SendKeys("#text", "@ops_bot"+kb.Enter, chromedp.ByQuery),
				chromedp.WaitReady("#guesses", chromedp.ByQuery))
		case "form":
			run(t, ctx, open(address+"/notify/console/keys/ops?build=json"),
				chromedp.Evaluate("document.querySelectorAll('details').forEach((e) => e.open = true)", nil))
		case "mistakes":
			run(t, ctx, open(address+"/notify/console/keys/ops?build=matrix&form=2"),
				chromedp.Evaluate("document.getElementById('destination').noValidate = true", nil),
				chromedp.SendKeys("#p-port", "99999", chromedp.ByQuery),
				chromedp.Click("button.primary", chromedp.ByQuery),
				chromedp.WaitReady(".problems", chromedp.ByQuery))
			eventually(t, "the focus is on the first field with a mistake", func() bool {
				return eval[string](t, ctx, "document.activeElement.id") == "p-user"
			})
		case "recognised":
			run(t, ctx, open(address+"/notify/console/keys/ops?build"), chromedp.Focus("#text", chromedp.ByQuery),
				paste(hook.to("/"+strings.Repeat("long", 50))),
				chromedp.WaitReady("#p-host", chromedp.ByQuery), chromedp.Click("[value=test]", chromedp.ByQuery))
			shows(t, ctx, "#outcome-of-form", "Delivered")
		case "line":
			run(t, ctx, chromedp.Click("[value=line]", chromedp.ByQuery), chromedp.WaitReady("#line", chromedp.ByQuery))
		}
		for _, scheme := range []string{"light", "dark"} {
			run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
			if bad := eval[[]string](t, ctx, contrast); len(bad) > 0 {
				t.Errorf("%s, %s: too little contrast: %q", step, scheme, bad)
			}
			if source := axe(t); source != "" {
				checkAxe(t, ctx, source, step+", "+scheme)
			}
			screenshot(t, ctx, fmt.Sprintf("%s-%d-%s", step, width, scheme))
		}
		if wide := eval[bool](t, ctx, "document.documentElement.scrollWidth > document.documentElement.clientWidth"); wide {
			t.Errorf("%s, %d: the page is wider than the window", step, width)
		}
		checkNames(t, ctx, step)
		checkTabs(t, ctx, step)
	}
}

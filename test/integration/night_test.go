package integration

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// newNight serves the console of the worst night, all of which happens now, and returns its address.
func newNight(t *testing.T) (address string) {
	t.Helper()
	n := gatewaytest.NewNight(t)
	n.Begin(t, t.TempDir(), func(time.Duration) {})
	s := httptest.NewServer(n)
	t.Cleanup(s.Close)
	return s.URL + "/notify/console"
}

// TestNight goes the way of somebody whom the worst night wakes, with a script and without it: what
// is about to happen is first, 200 equal incidents are one row that unfolds, and one click
// acknowledges them.
func TestNight(t *testing.T) {
	withAndWithoutScript(t, func(ctx context.Context, _ bool) {
		address := newNight(t)
		run(t, ctx, open(address))
		shows(t, ctx, "h1", "202 incidents open, 2 more silenced, 2 destinations down, 1 destination failing")
		shows(t, ctx, "[aria-labelledby=open] .item:nth-child(3)", "many: 200 open")
		first := text(t, ctx, "[aria-labelledby=open] .item:first-child")
		if !strings.Contains(first, "in 5 min") {
			t.Errorf("the first incident is %q", first)
		}
		unfolded := "document.querySelector('.equal .row').checkVisibility()"
		if eval[bool](t, ctx, unfolded) {
			t.Error("the row is unfolded")
		}
		run(t, ctx, chromedp.Click(".equal summary", chromedp.ByQuery))
		if !eval[bool](t, ctx, unfolded) {
			t.Error("the row does not unfold")
		}
		if n := eval[int](t, ctx, "document.querySelectorAll('.equal .row').length"); n != 20 {
			t.Errorf("it shows %d incidents", n)
		}
		run(t, ctx, chromedp.Click("button[aria-label='Acknowledge all 200 of many']", chromedp.ByQuery))
		shows(t, ctx, ".done", "You take care of 200 incidents.")
		shows(t, ctx, "h1", "2 incidents open, 2 more silenced")
		run(t, ctx, open(address+"/messages?key=everyone"))
		shows(t, ctx, "#live-messages", "17 of 20 delivered; failed: ntfy phone-17")
	})
}

// TestNightBar follows a link of a bar by the keyboard alone, and a mark of the bar with the mouse: both
// lead to the messages of that half hour, whose filter a click removes.
func TestNightBar(t *testing.T) {
	withAndWithoutScript(t, func(ctx context.Context, _ bool) {
		row := "[aria-labelledby=keys] .item:has(a[href$='/keys/everyone']) "
		run(t, ctx, open(newNight(t)), chromedp.Focus(row+".bars summary", chromedp.ByQuery),
			chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
		name := eval[string](t, ctx, "document.activeElement.innerText.replace(/\\s+/g, ' ')")
		if !regexp.MustCompile(`^\d\d:\d\d–\d\d:\d\d 3 failed, 6 waited, 51 delivered$`).MatchString(name) {
			t.Errorf("the first link is %q", name)
		}
		if style := eval[string](t, ctx, "getComputedStyle(document.activeElement).outlineStyle"); style != "solid" {
			t.Errorf("the focus is %q", style)
		}
		at := eval[string](t, ctx, "document.activeElement.href")
		mark := eval[string](t, ctx, "new URL(document.querySelector(\""+row+"svg.bar a:last-child\").href.baseVal, location).href")
		if at != mark {
			t.Errorf("the mark leads to %s, the link to %s", mark, at)
		}
		run(t, ctx, chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".chips", chromedp.ByQuery))
		shows(t, ctx, ".chips", "–")
		shows(t, ctx, "#live-messages", "Storm warning 1")
		if text := text(t, ctx, "#live-messages"); strings.Contains(text, "Payments fail") {
			t.Errorf("it has messages of another key: %s", text)
		}
		run(t, ctx, chromedp.Click(".chips a", chromedp.ByQuery), chromedp.WaitNotPresent(".chips", chromedp.ByQuery))
		shows(t, ctx, "#live-messages", "Storm warning 1")
	})
}

// TestNightSilence silences one destination in two clicks from where it is shown.
func TestNightSilence(t *testing.T) {
	ctx, _ := newBrowser(t)
	address := newNight(t)
	for _, from := range []string{"", "/queue", "/keys/everyone"} {
		run(t, ctx, open(address+from), chromedp.Click(".item a.button[href*='key=everyone']", chromedp.ByQuery),
			chromedp.WaitVisible("#offer", chromedp.ByQuery))
		shows(t, ctx, "#silence", "ntfy phone-07")
		run(t, ctx, chromedp.Click("#silence button.primary", chromedp.ByQuery))
		shows(t, ctx, ".done", "The silence is made.")
	}
}

// nightPages returns the addresses of pages of the worst night.
func nightPages(t *testing.T, ctx context.Context, address string) map[string]string {
	t.Helper()
	link := func(at, selector string) string {
		run(t, ctx, open(address+at))
		return eval[string](t, ctx, "document.querySelector(\""+selector+"\").href")
	}
	return map[string]string{
		"now": address, "incidents": address + "/incidents", "many": address + "/incidents?key=many&state=open",
		"incident": link("", "[aria-labelledby=open] a.name"), "messages": address + "/messages",
		"question": link("", "[aria-labelledby=questions] a.name"), "queue": address + "/queue", "keys": address + "/keys",
		"key": address + "/keys/everyone", "key_duty": address + "/keys/duty", "key_lab": address + "/keys/lab",
		"key_messages": address + "/keys/duty?tab=messages", "key_beats": address + "/keys/backups", "silences": address + "/silences",
		"silence": address + "/silences?key=many&title=Disk", "settings": address + "/keys/duty?tab=settings",
		"beats": address + "/beats", "key_many": address + "/keys/many", "beat": address + "/beats?beat=nightly&key=backups",
		"form": address + "/keys/duty?build=discord",
	}
}

// TestNightForEveryone checks the pages of the worst night as [TestConsoleForEveryone] does others.
func TestNightForEveryone(t *testing.T) {
	address, source := newNight(t), axe(t)
	ctx, _ := newBrowser(t)
	for name, at := range nightPages(t, ctx, address) {
		forEveryone(t, source, name, at)
	}
}

// TestNightPictures makes pictures of the worst night in the folder PICTURES, which nobody compares.
func TestNightPictures(t *testing.T) {
	folder := os.Getenv("PICTURES")
	if folder == "" {
		t.Skip("PICTURES names no folder")
	}
	address := newNight(t)
	ctx, _ := newBrowser(t)
	for name, at := range nightPages(t, ctx, address) {
		ctx, _ := newBrowser(t) // each has a time of its own
		for size, width := range map[string]int64{"phone": 390, "wide": 1280} {
			run(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, false), open(at))
			for _, scheme := range []string{"light", "dark"} {
				var picture []byte
				run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
					chromedp.ActionFunc(func(ctx context.Context) (err error) {
						picture, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).Do(ctx)
						return err
					}))
				if err := os.WriteFile(filepath.Join(folder, name+"-"+size+"-"+scheme+".png"), picture, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

package integration

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// The login of a site, and the hash of its password, which is cheap to compare.
var (
	basicLogin = "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:correct horse"))
	basicHash  = "$2a$04$rdCUKKRhTl1gBSOArNM7jO/ErbfVDmbBNr.aIaHJYEGM62o3tTv9u"
)

// documentedMatcher returns the matcher that docs/phone.md has for sites with a login.
func documentedMatcher(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "phone.md"))
	if err != nil {
		t.Fatal(err)
	}
	matcher := regexp.MustCompile(`(?ms)^@login \{$.*?^\}$`).Find(b)
	if matcher == nil {
		t.Fatal("docs/phone.md has no matcher")
	}
	return string(matcher)
}

// accessed is a request in an access log.
type accessed struct {
	Status  int
	Request struct {
		Method, URI string
		Headers     http.Header
	}
}

// readAccessLog returns the requests in an access log.
func readAccessLog(t *testing.T, path string) (all []accessed) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var a accessed
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, a)
	}
	return all
}

// TestDeviceBehindALogin checks that a phone works behind basic_auth with the matcher of
// the documentation and without an account: whatever it asks for needs no login.
func TestDeviceBehindALogin(t *testing.T) {
	services := newPushService(t)
	port, log := freePort(t), filepath.Join(t.TempDir(), "access.log")
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue {
			wait 300ms
		}
		public_url http://localhost:%[1]d
		push {
			services localhost
		}
	}
}
http://localhost:%[1]d {
	log {
		output file %[2]q
		format json
	}
	%[3]s
	basic_auth @login {
		ann %[4]s
	}
	notify {
		stateless off
		key ops {
			url %[5]s 2:oncall
			escalate after 1h
		}
		egress {
			allow 127.0.0.1
		}
		console
	}
}
`, port, log, documentedMatcher(t), basicHash, newService(t).to("")))
	address := fmt.Sprintf("http://localhost:%d", port)
	operator, complaints := newBrowser(t)
	run(t, operator, network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Authorization": basicLogin}))
	link := invite(t, operator, address, "ops", "1:oncall")

	p := newPhone(t, originOf(t, address), newSubscription(t, services, "/first"), browser.PermissionSettingGranted)
	run(t, p.ctx, open(link))
	run(t, p.ctx, chromedp.WaitVisible("#new", chromedp.ByQuery),
		chromedp.SetValue("#name", "Ann's phone", chromedp.ByQuery),
		chromedp.Click("#new button", chromedp.ByQuery))
	shows(t, p.ctx, "#subscribed:not([hidden])", "Subscribed as Ann's phone")
	run(t, p.ctx, chromedp.Click("#test", chromedp.ByQuery))
	p.deliver(t, services.take(t))
	shows(t, p.ctx, "#tested", "It has arrived.")

	// What the system asks for when the page goes to the home screen.
	run(t, p.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		_, problems, _, _, err := page.GetAppManifest().Do(ctx)
		if len(problems) > 0 {
			t.Errorf("the manifest: %s", problems[0].Message)
		}
		return err
	}))
	icons := `(async () => {
		const link = document.querySelector("link[rel=manifest]").href, m = await (await fetch(link, { credentials: "omit" })).json();
		const all = [...m.icons.map((i) => i.src), "badge.png"].map((src) => new URL(src, link).href);
		all.push(document.querySelector("link[rel=apple-touch-icon]").href);
		return Promise.all(all.map(async (a) => (await fetch(a, { credentials: "omit" })).status + " " + a));
	})()`
	var loaded []string
	run(t, p.ctx, chromedp.Evaluate(icons, &loaded, awaitPromise))
	for _, got := range loaded {
		if got[:3] != "200" {
			t.Errorf("an icon: %s", got)
		}
	}
	if len(loaded) < 4 {
		t.Errorf("the icons are %q", loaded)
	}

	// An alert that is confirmed and acknowledged in the background.
	r := request(t, http.MethodPost, address+"/notify/ops?type=failure", "title=Disk+full&incident=disk&body=x")
	r.Header.Set("Authorization", basicLogin)
	if status, answer := ask(t, r); status != http.StatusOK {
		t.Fatalf("the alert: %d %s", status, answer)
	}
	p.deliver(t, services.take(t))
	eventually(t, "the notification is shown", func() bool {
		return slices.ContainsFunc(p.notifications(t), func(n notification) bool { return n.Title == "Disk full" })
	})
	p.click(t, "Disk full", "acknowledge")
	run(t, operator, open(address+"/notify/console/incidents"))
	shows(t, operator, "#live-incidents", "Ann's phone")
	run(t, operator, open(address+"/notify/console/keys/ops?tab=devices"))
	shows(t, operator, "#live-devices", "last receipt")

	// The browser changes its subscription, and the device goes.
	run(t, p.ctx, open(link))
	shows(t, p.ctx, "#subscribed:not([hidden])", "Subscribed as Ann's phone")
	run(t, p.ctx, chromedp.Click("#subscribed summary", chromedp.ByQuery), chromedp.Click("#remove", chromedp.ByQuery))
	shows(t, p.ctx, "#refused:not([hidden])", "invitation")

	without := map[string]bool{}
	for _, a := range readAccessLog(t, log) {
		u, err := url.Parse(a.Request.URI)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == http.StatusUnauthorized && u.Path != "/favicon.ico" {
			t.Errorf("%s %s needs a login", a.Request.Method, u.Path)
		}
		if len(a.Request.Headers["Authorization"]) == 0 {
			without[a.Request.Method+" "+u.Path] = true
		}
	}
	for _, want := range []string{
		"GET /notify/ops", "GET /notify/push.js", "GET /notify/app.webmanifest", "GET /notify/icon-192.png",
		"GET /notify/icon-512.png", "GET /notify/icon.svg", "GET /notify/badge.png", "POST /notify/ops/devices",
	} {
		if !without[want] {
			t.Errorf("the phone has not asked for %s without a login: %v", want, without)
		}
	}
	noErrors(t, errorsOf(append(p.complaints(), complaints()...)))
}

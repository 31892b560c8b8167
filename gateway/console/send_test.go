package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// withKeys returns the options of a site with keys.
func withKeys(keys ...site.KeyOptions) gatewaytest.Options {
	return gatewaytest.Options{Site: site.Options{Keys: keys}}
}

// before is the environment of a request whose target the server has changed.
func before(original string) environment.Environment {
	u := httptest.NewRequest(http.MethodGet, original, nil).URL
	return environment.Environment{Original: func(*http.Request) *url.URL { return u }}
}

func TestPageIsForBrowsers(t *testing.T) {
	t.Parallel()
	key := gatewaytest.Key("ops", "json://h")
	on := gatewaytest.New(t, withKeys(key))
	o := withKeys(key)
	o.Site.Page = new(false)
	off := gatewaytest.New(t, o)
	o = withKeys(key)
	o.Site.Stateless = new(false)
	keysOnly := gatewaytest.New(t, o)
	for _, tt := range []struct {
		g                    *gatewaytest.Gateway
		method, path, accept string
		status               int
		allow                string
	}{
		{on, "GET", "/notify", browser, 200, ""},
		{on, "GET", "/notify/", browser, 200, ""},
		{on, "GET", "/notify/ops", browser, 200, ""},
		{on, "HEAD", "/notify/ops/", browser, 200, ""},
		{on, "GET", "/notify/none", browser, 404, ""},
		{on, "GET", "/notify/ops", "*/*", 406, ""},
		{on, "GET", "/notify/ops", "application/json, text/html;q=0.5", 406, ""},
		{on, "PUT", "/notify/ops", browser, 405, "GET, HEAD, POST"},
		{keysOnly, "GET", "/notify", browser, 200, ""},
		{keysOnly, "GET", "/notify", "*/*", 406, ""},
		{keysOnly, "GET", "/notify/ops", browser, 200, ""},
		{off, "GET", "/notify/ops", browser, 405, "POST"},
		{off, "GET", "/notify/none", browser, 405, "POST"},
		{off, "POST", "/notify/ops?preview", browser, 403, ""},
		{on, "POST", "/notify/none?preview", browser, 404, ""},
		{off, "GET", "/notify/openapi.json", "*/*", 200, ""},
		{on, "HEAD", "/notify/openapi.json", "*/*", 200, ""},
		{on, "POST", "/notify/openapi.json", "*/*", 405, "GET, HEAD"},
		{on, "GET", "/notify/openapi.json/", "*/*", 404, ""},
	} {
		got := browse(tt.g, tt.method, tt.path, tt.accept)
		if got.Status != tt.status || got.Header.Get("Allow") != tt.allow {
			t.Errorf("%s %s for %s: status %d, Allow %q, want %d, %q", tt.method, tt.path, tt.accept, got.Status, got.Header.Get("Allow"),
				tt.status, tt.allow)
		}
		if tt.method == "GET" && tt.status != 200 && tt.accept == browser && !strings.Contains(got.Body, "<h1>There is no page here</h1>") {
			t.Errorf("GET %s: %s", tt.path, got.Body)
		}
		if tt.method == "HEAD" && got.Body != "" {
			t.Errorf("HEAD %s has a body", tt.path)
		}
	}
}

// TestPageShowsChoices checks that the page shows tags and services, and
// nothing else of the URLs.
func TestPageShowsChoices(t *testing.T) {
	t.Parallel()
	ops := gatewaytest.Key(
		"ops",
		"json://user:secretsecret@host.example/path Chat always",
		"xml://host.example chat OnCall",
		"xml://host.example oncall",
		"form://host.example mail",
	)
	ops.DefaultTag = "oncall"
	o := withKeys(ops, gatewaytest.Key("plain", "json://host.example"), gatewaytest.Key("tagged", "json://host.example a"))
	o.Site.DefaultURLs = gatewaytest.URLs("form://host.example")
	g := gatewaytest.New(t, o)
	for path, want := range map[string][]string{
		"/notify/ops": {
			`value="chat"><span>chat <small>JSON, XML</small>`,
			`value="oncall"><span>oncall <small>JSON, 2 × XML</small>`,
			`value="all"><span>all <small>JSON, 2 × XML, Form</small>`,
			`Without a tag it goes to JSON, 2 × XML.`,
			`Send a message to <span class="key">ops</span>`,
		},
		"/notify/plain":  {`It goes to JSON.`},
		"/notify/tagged": {`value="a"`, `Without a tag it goes to all: JSON.`},
		"/notify":        {`<textarea id="urls"`, `Without a URL it goes to Form.`},
	} {
		got := browse(g, "GET", path, browser)
		for _, text := range want {
			if !strings.Contains(got.Body, text) {
				t.Errorf("%s does not show %s\n%s", path, text, got.Body)
			}
		}
		for _, text := range []string{"secret", "host.example", `value="always"`} {
			if strings.Contains(got.Body, text) {
				t.Errorf("%s shows %s", path, text)
			}
		}
	}
	if got := browse(g, "GET", "/notify/plain", browser); strings.Contains(got.Body, `name="tags"`) {
		t.Error("a choice of tags where there are none")
	}
}

func TestPageWithoutAttachments(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Files: &site.FileOptions{MaxCount: new(0)}}})
	if got := browse(g, "GET", "/notify", browser); strings.Contains(got.Body, `type="file"`) {
		t.Error("a choice of files where they are turned off")
	}
}

// TestPageBelowPrefix checks that all addresses are relative to the page's
// address as the client sees it.
func TestPageBelowPrefix(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, withKeys(gatewaytest.Key("ops", "json://h")))
	for original, want := range map[string]string{
		"/notify/ops": "./ops", "/alerts/notify/ops": "./ops", "/alerts/notify/ops/": "./",
		"/send%20it": "./send%20it", "/a:b?:body=urls": "./a:b",
	} {
		r := httptest.NewRequest("GET", "/notify/ops", nil)
		r.Header.Set("Accept", browser)
		got := g.DoIn(before(original), r)
		if !strings.Contains(got.Body, ` action="`+want+`"`) || !strings.Contains(got.Body, ` formaction="`+want+`?preview"`) {
			t.Errorf("%s: the form does not lead to %s", original, want)
		}
	}
}

// TestErrorBelowPrefix checks that errors name the addresses that the client used.
func TestErrorBelowPrefix(t *testing.T) {
	t.Parallel()
	o := withKeys(gatewaytest.Key("ops", "json://h"))
	o.Site.Stateless = new(false)
	g := gatewaytest.New(t, o)
	for original, want := range map[string]string{
		"/notify": "post to /notify/{KEY}", "/alerts/notify": "post to /alerts/notify/{KEY}", "/rewritten": "post to /notify/{KEY}",
	} {
		r := httptest.NewRequest("POST", "/notify", nil)
		r.Header.Set("Accept", browser)
		got := g.DoIn(before(original), r)
		if got.Status != 403 || !strings.Contains(got.Body, want+"<") {
			t.Errorf("%s %s: status %d, want %q in %s", "POST", original, got.Status, want, got.Body)
		}
	}
}

// TestAbout checks that a browser at /notify learns what this address is if messages need a key,
// and that managers are led to the console.
func TestAbout(t *testing.T) {
	t.Parallel()
	o := withKeys(gatewaytest.Key("ops", "json://h"))
	o.Site.Stateless, o.Site.Managers = new(false), &site.Managers{}
	g := gatewaytest.New(t, o)
	r := httptest.NewRequest("GET", "/notify", nil)
	r.Header.Set("Accept", browser)
	below := before("/alerts/notify")
	if got := g.DoIn(below, r); got.Status != 200 || !strings.Contains(got.Body, "http://example.com/alerts/notify/KEY") ||
		strings.Contains(got.Body, "ops") || strings.Contains(got.Body, "/console") {
		t.Errorf("a stranger gets %d %s", got.Status, got.Body)
	}
	if got := g.DoIn(below, gatewaytest.As(r, "ann")); got.Status != 303 || got.Header.Get("Location") != "./notify/console" {
		t.Errorf("a user gets %d %s", got.Status, got.Header)
	}
}

// TestPageHeaders checks that the page and the responses in HTML come with a
// policy, and that only the response to a form leads back to it.
func TestPageHeaders(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, withKeys(gatewaytest.Key("ops", "json://10.0.0.1")))
	r := httptest.NewRequest("POST", "/notify/ops", strings.NewReader("title=x"))
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	r.Header.Set("Accept", browser)
	for what, got := range map[string]gatewaytest.Reply{
		"the page":       browse(g, "GET", "/notify/ops", browser),
		"an unknown key": browse(g, "GET", "/notify/none", browser), "no body": g.Do(r),
	} {
		if policy := got.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%s: the policy is %q", what, policy)
		}
		if got := got.Header.Get("Referrer-Policy"); what == "the page" && got != "same-origin" {
			t.Errorf("Referrer-Policy %q", got)
		}
		if back := strings.Contains(got.Body, "Write another message"); back != (what == "no body") {
			t.Errorf("%s: a link to the form is %t", what, back)
		}
	}
}

// TestPageLabels checks that the fields have the same names in labels and errors.
func TestPageLabels(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, withKeys(gatewaytest.Key("ops", "json://h a")))
	for path, labels := range map[string][]string{
		"/notify": {
			`<label for="urls">Notification URLs`, `<label for="title">Title `, `<label for="body">Body<`,
			`<label for="files">Attachments `,
		},
		"/notify/ops": {`<legend>Tags<`, `<legend>Type<`, `<legend>Format<`},
	} {
		got := browse(g, "GET", path, browser)
		for _, label := range labels {
			if !strings.Contains(got.Body, label) {
				t.Errorf("%s has no %s", path, label)
			}
		}
	}
	if got := g.PostForm("/notify/ops", "title=x"); !strings.Contains(got.Body,
		"the field body is missing; send a body, an attachment or both") {
		t.Error(got.Body)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, withKeys(gatewaytest.Key("ops", s.NotifyURL("/"))))
	confirm, err := os.ReadFile("../source/programs/testdata/sns/confirm.json")
	if err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]string{
		"body=**x**&format=markdown&title=a%3Cb": "<h1>a&lt;b</h1>\n<p><strong>x</strong></p>",
		"body=%3Ci%3Ex%3C/i%3E&format=html":      "<i>x</i>",
		"body=%3Ci%3E%0Ax&format=text":           "&lt;i&gt;<br/>x",
		"":                                       "<body>\n\n</body>",
		// the message that a source makes of a payload
		"source=proxmox&payload=" + url.QueryEscape(`{"title":"a<b","message":"x<y","severity":"error"}`): "<h1>a&lt;b</" +
			"h1>\n<p><small>failure</small></p>\nx&lt;y",
		"source=sns&payload=" + url.QueryEscape(string(confirm)): "<p><small>nothing to " +
			"send</small></p>",
	} {
		got := g.PostForm("/notify/ops?preview", form)
		if got.Status != 200 || got.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(got.Body, want) {
			t.Errorf("%s: status %d\n%s", form, got.Status, got.Body)
		}
		policy := got.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "; sandbox;") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") {
			t.Errorf("policy %q", policy)
		}
	}
	if got := g.PostForm("/notify/ops?preview", "body=x&format=rtf"); got.Status != 400 {
		t.Errorf("unknown format: status %d", got.Status)
	}
	for form, want := range map[string]string{
		"source=nobody&payload=x":  "there is no such source",
		"source=proxmox&payload=x": "the payload of Proxmox VE and Backup Server must be JSON",
		"source=proxmox":           "the payload has nothing",
	} {
		if got := g.PostForm("/notify/ops?preview", form); got.Status/100 != 4 || !strings.Contains(got.Body, want) {
			t.Errorf("%s: status %d: %s", form, got.Status, got.Body)
		}
	}
	if got := s.Take(); len(got) != 0 {
		t.Errorf("previews were sent: %+v", got)
	}
	// A query string requests a preview only if it has nothing else.
	if got := g.PostForm("/notify/ops?preview=1", "body=x"); got.Status != 200 || len(s.Take()) != 1 {
		t.Errorf("?preview=1: status %d", got.Status)
	}
}

// TestPlainForm checks that the form works without a script, and that the
// response leads back to it.
func TestPlainForm(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, withKeys(gatewaytest.Key("ops", s.NotifyURL("/a")+" a", s.NotifyURL("/b")+" b")))
	const boundary = "----x"
	part := func(head, text string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=" + head + "\r\n\r\n" + text + "\r\n"
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/ops/", strings.NewReader(
		part(`"tags"`, "b")+part(`"type"`, "warning")+part(`"title"`, "")+part(`"body"`, "hello")+part(`"format"`, "text")+
			part("\"attach\"; filename=\"\"\r\nContent-Type: application/octet-stream", "")+"--"+boundary+"--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	r.Header.Set("Accept", browser)
	got := g.Do(r)
	if got.Status != 200 || !strings.Contains(got.Body, `<a class="button primary" href="./">Write another message</a>`) {
		t.Errorf("status %d\n%s", got.Status, got.Body)
	}
	if a := s.One(t); a.Path != "/b" || a.Message != "hello" || a.Type != "warning" || len(a.Attachments) != 0 {
		t.Errorf("%+v", a)
	}
}

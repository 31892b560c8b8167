package caddyhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func browse(t *testing.T, h *Handler, method, path, accept string) reply {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Accept", accept)
	return do(t, h, r)
}

func TestPageIsForBrowsers(t *testing.T) {
	const key = "key ops {\nurl json://h\n}\n"
	on, off, keysOnly := newGateway(t, key, ""), newGateway(t, key+"page off", ""), newGateway(t, key+"stateless off", "")
	for _, tt := range []struct {
		h                    *Handler
		method, path, accept string
		status               int
		allow                string
	}{
		{on, "GET", "/notify", browser, 200, ""},
		{on, "GET", "/notify/", browser, 200, ""},
		{on, "GET", "/notify/ops", browser, 200, ""},
		{on, "HEAD", "/notify/ops/", browser, 200, ""},
		{on, "GET", "/notify/none", browser, 404, ""},
		{on, "GET", "/notify/ops", "*/*", 405, "GET, HEAD, POST"},
		{on, "GET", "/notify/ops", "application/json, text/html;q=0.5", 405, "GET, HEAD, POST"},
		{on, "PUT", "/notify/ops", browser, 405, "GET, HEAD, POST"},
		{keysOnly, "GET", "/notify", browser, 200, ""},
		{keysOnly, "GET", "/notify", "*/*", 405, "GET, HEAD, POST"},
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
		got := browse(t, tt.h, tt.method, tt.path, tt.accept)
		if got.status != tt.status || got.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s for %s: status %d, Allow %q, want %d, %q", tt.method, tt.path, tt.accept, got.status, got.header.Get("Allow"), tt.status, tt.allow)
		}
		if tt.method == "GET" && tt.status != 200 && tt.accept == browser && !strings.Contains(got.body, "<h1>There is no page here</h1>") {
			t.Errorf("GET %s: %s", tt.path, got.body)
		}
		if tt.method == "HEAD" && got.body != "" {
			t.Errorf("HEAD %s has a body", tt.path)
		}
	}
}

// TestPageShowsChoices checks that the page shows tags and services, and
// nothing else of the URLs.
func TestPageShowsChoices(t *testing.T) {
	h := newGateway(t, `
key ops {
	url json://user:secretsecret@host.example/path Chat always
	url xml://host.example chat OnCall
	url xml://host.example oncall
	url form://host.example mail
	default_tag oncall
}
key plain {
	url json://host.example
}
key tagged {
	url json://host.example a
}
default_urls form://host.example
`, "")
	for path, want := range map[string][]string{
		"/notify/ops": {
			`value="chat"><span>chat <small>JSON, XML</small>`,
			`value="oncall"><span>oncall <small>JSON, XML ×2</small>`,
			`value="all"><span>all <small>JSON, XML ×2, Form</small>`,
			`Without a tag it goes to JSON, XML ×2.`,
			`Send a message to <span class="key">ops</span>`,
		},
		"/notify/plain":  {`It goes to JSON.`},
		"/notify/tagged": {`value="a"`, `Without a tag it goes to all: JSON.`},
		"/notify":        {`<textarea id="urls"`, `Without a URL it goes to Form.`},
	} {
		got := browse(t, h, "GET", path, browser)
		for _, text := range want {
			if !strings.Contains(got.body, text) {
				t.Errorf("%s does not show %s\n%s", path, text, got.body)
			}
		}
		for _, text := range []string{"secret", "host.example", `value="always"`} {
			if strings.Contains(got.body, text) {
				t.Errorf("%s shows %s", path, text)
			}
		}
	}
	if got := browse(t, h, "GET", "/notify/plain", browser); strings.Contains(got.body, `name="tags"`) {
		t.Error("a choice of tags where there are none")
	}
}

func TestPageWithoutAttachments(t *testing.T) {
	h := newGateway(t, "attachments {\nmax_count 0\n}", "")
	if got := browse(t, h, "GET", "/notify", browser); strings.Contains(got.body, `type="file"`) {
		t.Error("a choice of files where they are turned off")
	}
}

// TestPageBelowPrefix checks that all addresses are relative to the page's
// address as the client sees it.
func TestPageBelowPrefix(t *testing.T) {
	h := newGateway(t, "key ops {\nurl json://h\n}", "")
	for original, want := range map[string]string{
		"/notify/ops": "./ops", "/alerts/notify/ops": "./ops", "/alerts/notify/ops/": "./",
		"/send%20it": "./send%20it", "/a:b?:body=urls": "./a:b",
	} {
		r := httptest.NewRequest("GET", "/notify/ops", nil)
		r.Header.Set("Accept", browser)
		first := httptest.NewRequest("GET", original, nil)
		got := do(t, h, r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, *first)))
		if !strings.Contains(got.body, ` action="`+want+`"`) || !strings.Contains(got.body, ` formaction="`+want+`?preview"`) {
			t.Errorf("%s: the form does not lead to %s", original, want)
		}
	}
}

// TestErrorBelowPrefix checks that errors name the addresses that the client used.
func TestErrorBelowPrefix(t *testing.T) {
	h := newGateway(t, "stateless off\nkey ops {\nurl json://h\n}", "")
	for original, want := range map[string]string{
		"/notify": "post to /notify/{KEY}", "/alerts/notify": "post to /alerts/notify/{KEY}", "/rewritten": "post to /notify/{KEY}",
	} {
		r := httptest.NewRequest("POST", "/notify", nil)
		r.Header.Set("Accept", browser)
		first := httptest.NewRequest("POST", original, nil)
		got := do(t, h, r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, *first)))
		if got.status != 403 || !strings.Contains(got.body, want+"<") {
			t.Errorf("%s %s: status %d, want %q in %s", "POST", original, got.status, want, got.body)
		}
	}
}

// TestAbout checks that a browser at /notify is told what this is where messages need
// a key, and that who may manage is led to the console.
func TestAbout(t *testing.T) {
	h := newGateway(t, "stateless off\nconsole\nkey ops {\nurl json://h\n}", "")
	r := httptest.NewRequest("GET", "/notify", nil)
	r.Header.Set("Accept", browser)
	first := httptest.NewRequest("GET", "/alerts/notify", nil)
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, *first))
	if got := do(t, h, r); got.status != 200 || !strings.Contains(got.body, "http://example.com/alerts/notify/KEY") || strings.Contains(got.body, "ops") || strings.Contains(got.body, "/console") {
		t.Errorf("a stranger gets %d %s", got.status, got.body)
	}
	if got := do(t, h, asUser(r, "ann")); got.status != 303 || got.header.Get("Location") != "./notify/console" {
		t.Errorf("a user gets %d %s", got.status, got.header)
	}
}

// TestPageHeaders checks that the page and the responses in HTML come with a
// policy, and that only the response to a form leads back to it.
func TestPageHeaders(t *testing.T) {
	h := newGateway(t, "key ops {\nurl json://10.0.0.1\n}", "")
	r := httptest.NewRequest("POST", "/notify/ops", strings.NewReader("title=x"))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("Accept", browser)
	for what, got := range map[string]reply{"the page": browse(t, h, "GET", "/notify/ops", browser), "an unknown key": browse(t, h, "GET", "/notify/none", browser), "no body": do(t, h, r)} {
		if policy := got.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%s: the policy is %q", what, policy)
		}
		if got := got.header.Get("Referrer-Policy"); what == "the page" && got != "same-origin" {
			t.Errorf("Referrer-Policy %q", got)
		}
		if back := strings.Contains(got.body, "Write another message"); back != (what == "no body") {
			t.Errorf("%s: a link to the form is %t", what, back)
		}
	}
}

// TestPageLabels checks that the fields have the same names in labels and errors.
func TestPageLabels(t *testing.T) {
	h := newGateway(t, "key ops {\nurl json://h a\n}", "")
	for path, labels := range map[string][]string{
		"/notify":     {`<label for="urls">Notification URLs`, `<label for="title">Title `, `<label for="body">Body<`, `<label for="files">Attachments `},
		"/notify/ops": {`<legend>Tags<`, `<legend>Type<`, `<legend>Format<`},
	} {
		got := browse(t, h, "GET", path, browser)
		for _, label := range labels {
			if !strings.Contains(got.body, label) {
				t.Errorf("%s has no %s", path, label)
			}
		}
	}
	if got := post(t, h, "/notify/ops", typeForm, "title=x"); !strings.Contains(got.body, "the field body is missing; send a body, an attachment or both") {
		t.Error(got.body)
	}
}

func TestPreview(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/")+"\n}", "")
	for form, want := range map[string]string{
		"body=**x**&format=markdown&title=a%3Cb": "<h1>a&lt;b</h1>\n<p><strong>x</strong></p>",
		"body=%3Ci%3Ex%3C/i%3E&format=html":      "<i>x</i>",
		"body=%3Ci%3E%0Ax&format=text":           "&lt;i&gt;<br/>x",
		"":                                       "<body>\n\n</body>",
		// the message that a source makes of a payload
		"source=proxmox&payload=" + url.QueryEscape(`{"title":"a<b","message":"x<y","severity":"error"}`): "<h1>a&lt;b</h1>\n<p><small>failure</small></p>\nx&lt;y",
		"source=sns&payload=" + url.QueryEscape(sample(t, "sns/confirm")):                                 "<p><small>nothing to send</small></p>",
	} {
		got := post(t, h, "/notify/ops?preview", typeForm, form)
		if got.status != 200 || got.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(got.body, want) {
			t.Errorf("%s: status %d\n%s", form, got.status, got.body)
		}
		policy := got.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "; sandbox;") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") {
			t.Errorf("policy %q", policy)
		}
	}
	if got := post(t, h, "/notify/ops?preview", typeForm, "body=x&format=rtf"); got.status != 400 {
		t.Errorf("unknown format: status %d", got.status)
	}
	for form, want := range map[string]string{
		"source=nobody&payload=x":  "there is no such source",
		"source=proxmox&payload=x": "the payload of Proxmox VE and Backup Server must be JSON",
		"source=proxmox":           "the payload has nothing",
	} {
		if got := post(t, h, "/notify/ops?preview", typeForm, form); got.status/100 != 4 || !strings.Contains(got.body, want) {
			t.Errorf("%s: status %d: %s", form, got.status, got.body)
		}
	}
	if got := s.Take(); len(got) != 0 {
		t.Errorf("previews were sent: %+v", got)
	}
	// A query string requests a preview only if it has nothing else.
	if got := post(t, h, "/notify/ops?preview=1", typeForm, "body=x"); got.status != 200 || len(s.Take()) != 1 {
		t.Errorf("?preview=1: status %d", got.status)
	}
}

// TestPlainForm checks that the form works without a script, and that the
// response leads back to it.
func TestPlainForm(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/a")+" a\nurl "+s.NotifyURL("/b")+" b\n}", "")
	const boundary = "----x"
	part := func(head, text string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=" + head + "\r\n\r\n" + text + "\r\n"
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/ops/", strings.NewReader(
		part(`"tags"`, "b")+part(`"type"`, "warning")+part(`"title"`, "")+part(`"body"`, "hello")+part(`"format"`, "text")+
			part("\"attach\"; filename=\"\"\r\nContent-Type: application/octet-stream", "")+"--"+boundary+"--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	r.Header.Set("Accept", browser)
	got := do(t, h, r)
	if got.status != 200 || !strings.Contains(got.body, `<p><a href="./">Write another message</a></p>`) {
		t.Errorf("status %d\n%s", got.status, got.body)
	}
	if a := s.One(t); a.Path != "/b" || a.Message != "hello" || a.Type != "warning" || len(a.Attachments) != 0 {
		t.Errorf("%+v", a)
	}
}

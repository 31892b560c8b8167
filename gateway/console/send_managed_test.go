package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestSendManaged checks that managers send from the console to a key with a token, without the
// token, and that nobody else can: strangers, pages of other sites, and clients at any other
// address.
func TestSendManaged(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	secret := gatewaytest.Key("secret", s.NotifyURL("/secret"))
	secret.Tokens = []string{"a-token-of-the-key"}
	o := withKeys(secret, gatewaytest.Key("plain", s.NotifyURL("/plain")))
	o.Site.Managers, o.Site.TrustedOrigins = &site.Managers{Named: []string{"ann"}}, []string{"https://trusted.example"}
	g := gatewaytest.New(t, o)
	const address = "/notify/console/keys/secret?send"
	request := func(method, target, user, origin string) *http.Request {
		r := httptest.NewRequest(method, target, strings.NewReader(url.Values{"body": {"hello"}}.Encode()))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		r.Header.Set("Accept", browser)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		return gatewaytest.As(r, user)
	}
	for name, c := range map[string]struct {
		method, target, user, origin string
		status                       int
		sent                         string
	}{
		"the page":               {"GET", address, "ann", "", 200, ""},
		"a message":              {"POST", address, "ann", "http://example.com", 200, "secret"},
		"to a key without one":   {"POST", "/notify/console/keys/plain?send", "ann", "", 200, "plain"},
		"a preview":              {"POST", address + "&preview", "ann", "http://example.com", 200, ""},
		"a key that is not":      {"POST", "/notify/console/keys/none?send", "ann", "", 404, ""},
		"the page of none":       {"GET", "/notify/console/keys/none?send", "ann", "", 404, ""},
		"nobody":                 {"POST", address, "", "", 403, ""},
		"the page for nobody":    {"GET", address, "", "", 403, ""},
		"another user":           {"POST", address, "bob", "", 403, ""},
		"another user's preview": {"POST", address + "&preview", "bob", "", 403, ""},
		"another site":           {"POST", address, "ann", "https://evil.example", 403, ""},
		"a trusted origin":       {"POST", address, "ann", "https://trusted.example", 403, ""},
		"a preview for another":  {"POST", address + "&preview", "ann", "https://evil.example", 403, ""},
		"outside the console":    {"POST", "/notify/secret", "ann", "", 401, ""},
		"its page there":         {"GET", "/notify/secret", "ann", "", 401, ""},
		"a source":               {"POST", "/notify/secret/ntfy/x?send", "ann", "", 401, ""},
	} {
		got := g.Do(request(c.method, c.target, c.user, c.origin))
		if paths := s.Paths(); got.Status != c.status || paths != c.sent {
			t.Errorf("%s: %d, sent to %q, want %d and %q: %s", name, got.Status, paths, c.status, c.sent, got.Body)
		}
	}
	page := g.Do(request("GET", address, "ann", ""))
	for _, want := range []string{
		`Key <span class="key">secret</span>`, `action="./secret?send"`, `data-preview="./secret?send&amp;preview"`,
		`It goes to JSON 127.0.0.1:`, `<a href="../../../notify/console"`,
	} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("the page does not have %s: %s", want, page.Body)
		}
	}
	if sent := g.Do(request("POST", address, "ann", "")); !strings.Contains(sent.Body,
		`<a class="button primary" href="./secret?send">Back</a>`) {
		t.Error(sent.Body)
	}
	// The script of the page reads the results as they come in.
	r := request("POST", address, "ann", "http://example.com")
	r.Header.Set("Accept", "application/x-ndjson")
	if lines := g.Do(r); lines.Status != 200 || !strings.Contains(lines.Body, `{"sending":`) || !strings.Contains(lines.Body, `"status":200`) {
		t.Errorf("%d %s", lines.Status, lines.Body)
	}
	s.Take()
	if key := g.Do(request("GET", "/notify/console/keys/secret", "ann", "")); !strings.Contains(key.Body,
		`href="../../../notify/console/keys/secret?send">Send a message</a>`) {
		t.Error(key.Body)
	}
	key := g.Do(request("GET", "/notify/console/keys/secret?send", "ann", ""))
	for _, want := range []string{
		`aria-current="page">Send</a>`, `keys/secret?tab=settings">Settings</a>`,
		`curl -f -u USER:PASSWORD -H &#34;X-Gotify-Key: $TOKEN&#34; -d &#34;backup done&#34; http://example.com/notify/secret<`,
		`<code>USER</code> and <code>PASSWORD</code> stand for a login`,
	} {
		if !strings.Contains(key.Body, want) {
			t.Errorf("the page of the key does not have %s: %s", want, key.Body)
		}
	}
	list := g.Do(request("GET", "/notify/console/keys", "ann", ""))
	if !strings.Contains(list.Body, `notify/console/keys/secret?send"`) {
		t.Error(list.Body)
	}
	g.Logins = func() map[string]bool { return map[string]bool{"secret": false} }
	if key := g.Do(request("GET", "/notify/console/keys/secret?send", "ann", "")); strings.Contains(key.Body, "USER") ||
		!strings.Contains(key.Body, "Authorization: Bearer $TOKEN") {
		t.Error(key.Body)
	}
}

package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestKeyPageInbox checks that the page of a key leads to its inbox for clients that may read it,
// with lines for reading it, and that a key that is only read has lines for sending.
func TestKeyPageInbox(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	const reader, token = "reader-of-the-inbox", "token-of-another-key"
	both := gatewaytest.Key("both", s.NotifyURL(""))
	both.Inbox = 36 * time.Hour
	g := gatewaytest.New(t, queued(openConsole(
		site.KeyOptions{
			Name: "kept", KeySettings: site.KeySettings{Inbox: 7 * 24 * time.Hour}, Readers: []string{reader},
			Tokens: []string{token},
		},
		both, gatewaytest.Key("fine", s.NotifyURL("")),
	)))
	page := func(key string) string {
		t.Helper()
		r := get(g, "/notify/console/keys/"+key+"?tab=messages", browser)
		if r.Status != http.StatusOK || strings.Contains(r.Body, reader) || strings.Contains(r.Body, token) {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		return r.Body
	}
	body := page("kept")
	for _, want := range []string{
		`href="../../../notify/kept/messages"`, "are kept for 7 days",
		"curl -N -H &#34;Authorization: Bearer $READER&#34; http://example.com/notify/kept/stream",
		`<code>http://example.com/notify/kept/ntfy</code>`, "ntfy subscribe --token &#34;$READER&#34; http://example.com/notify/kept/ntfy/phone",
		"stands for a <code>reader</code> of the key",
		`href="../../../notify/console/keys/kept?send"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page of kept lacks %q: %s", want, body)
		}
	}
	if body := get(g, "/notify/console/keys/kept", browser).
		Body; !strings.Contains(body, `kept in its <a href="../../../notify/kept/messages">inbox</a>`) ||
		!strings.Contains(body, `href="../../../notify/console/keys/kept?send"`) {
		t.Errorf("the state of kept: %s", body)
	}
	if body := page("both"); !strings.Contains(body, "are kept for 36 hours") ||
		!strings.Contains(body, "The key has no <code>reader</code>") || strings.Contains(body, "below.</p>\n<p class=\"buttons\">") {
		t.Errorf("the page of both: %s", body)
	}
	if body := page("fine"); strings.Contains(body, `id="inbox"`) || strings.Contains(body, "$READER") {
		t.Errorf("the page of a key without an inbox: %s", body)
	}
}

// TestDevicePageInbox checks that the page of a device leads to the inbox for clients that may read
// it, and for nobody else: the invitation does not open it.
func TestDevicePageInbox(t *testing.T) {
	t.Parallel()
	const reader = "reader-of-the-inbox"
	for manage, want := range map[string]bool{"open": true, "ann": false} {
		managers := gatewaytest.Everybody()
		if manage != "open" {
			managers = &site.Managers{Named: []string{manage}}
		}
		g := gatewaytest.New(t, devicePages(managers, "open",
			site.KeyOptions{Name: "ops", KeySettings: site.KeySettings{Inbox: 7 * 24 * time.Hour}, Readers: []string{reader}},
			site.KeyOptions{Name: "home"}))
		for key, want := range map[string]bool{"ops": want, "home": false, "none": false} {
			body := get(g, "/notify/"+key+"?device", browser).Body
			if got := strings.Contains(body, `href="../notify/`+key+`/messages"`); got != want {
				t.Errorf("manage %s, %s: a link to the inbox is %v: %s", manage, key, got, body)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/notify/ops?device", nil)
		r.Header.Set("Authorization", "Bearer "+reader)
		r.Header.Set("Accept", browser)
		if body := g.Do(r).Body; !strings.Contains(body, `href="../notify/ops/messages"`) {
			t.Errorf("the reader gets no link: %s", body)
		}
	}
}

// TestInboxAlone checks that the pages say of a message which only an inbox has that it is kept there.
// They said that it was not needed.
func TestInboxAlone(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, queued(openConsole(site.KeyOptions{Name: "kept", KeySettings: site.KeySettings{Inbox: time.Hour}})))
	g.PostForm("/notify/kept", "title=Laundry&body=b")
	for _, address := range []string{"/messages", "/messages?state=delivered", "/keys/kept?tab=messages"} {
		wantTexts(t, g, "/notify/console"+address, "Laundry", "Kept in the inbox")
	}
	if text := plain(get(g, "/notify/console/messages?state=skipped", browser).Body); strings.Contains(text, "Laundry") {
		t.Errorf("it is not needed: %s", text)
	}
}

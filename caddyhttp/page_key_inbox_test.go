package caddyhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestKeyPageInbox checks that the page of a key leads to its inbox, with lines that read
// it, for who may read it, and that a key that is only read has lines that send.
func TestKeyPageInbox(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	h := newQueueGateway(t, t.TempDir(), "console {\nmanage open\n}\nkey kept {\ninbox 7d\nreader "+testReader+"\ntoken "+otherToken+"\n}\nkey both {\nurl "+s.NotifyURL("")+"\ninbox 36h\n}\nkey fine {\nurl "+s.NotifyURL("")+"\n}", "")
	page := func(key string) string {
		t.Helper()
		r := get(t, h, "/notify/console/keys/"+key, browser)
		if r.status != http.StatusOK || strings.Contains(r.body, testReader) || strings.Contains(r.body, otherToken) {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r.body
	}
	body := page("kept")
	for _, want := range []string{
		`href="../../../notify/kept/messages"`, "can be read for 7d", "curl -N -H &#34;Authorization: Bearer $READER&#34; http://example.com/notify/kept/stream",
		`<code>http://example.com/notify/kept/ntfy</code>`, "ntfy subscribe --token &#34;$READER&#34; http://example.com/notify/kept/ntfy/phone", "stands for a <code>reader</code> of the key",
		"kept in its inbox, below", `href="../../../notify/kept"`, "backup done",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page of kept lacks %q: %s", want, body)
		}
	}
	if body := page("both"); !strings.Contains(body, "can be read for 36h") || !strings.Contains(body, "The key has no <code>reader</code>") || strings.Contains(body, "below.</p>\n<p class=\"buttons\">") {
		t.Errorf("the page of both: %s", body)
	}
	if body := page("fine"); strings.Contains(body, `id="inbox"`) || strings.Contains(body, "$READER") {
		t.Errorf("the page of a key without an inbox: %s", body)
	}
}

// TestDevicePageInbox checks that the page of a device leads to the inbox for who may read
// it, and for nobody else: the invitation does not open it.
func TestDevicePageInbox(t *testing.T) {
	t.Parallel()
	for manage, want := range map[string]bool{"open": true, "ann": false} {
		h := newQueueGateway(t, t.TempDir(), "console {\nmanage "+manage+"\n}", "public_url https://alerts.example.com/x\npush {\ndevices open\n}\nkey ops {\ninbox 7d\nreader "+testReader+"\n}\nkey home\n")
		for key, want := range map[string]bool{"ops": want, "home": false, "none": false} {
			body := get(t, h, "/notify/"+key+"?device", browser).body
			if got := strings.Contains(body, `href="../notify/`+key+`/messages"`); got != want {
				t.Errorf("manage %s, %s: a link to the inbox is %v: %s", manage, key, got, body)
			}
		}
		r := asReader(t, "/notify/ops?device")
		r.Header.Set("Accept", browser)
		if body := do(t, h, r).body; !strings.Contains(body, `href="../notify/ops/messages"`) {
			t.Errorf("the reader gets no link: %s", body)
		}
	}
}

package caddyhttp

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// newDevicePages returns a gateway with push that says who can subscribe, and with keys
// with a token and without one.
func newDevicePages(t *testing.T, block, who string) *Handler {
	t.Helper()
	return newQueueGateway(t, t.TempDir(), block, "public_url https://alerts.example.com/x\npush {\ndevices "+who+"\n}\nkey ops {\ntoken "+opsToken+"\n}\nkey home\n")
}

// subscribeBody is the body of a request to subscribe a device.
func subscribeBody(t *testing.T, invite string) string {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	body, err := json.Marshal(map[string]any{"name": "Ann's phone", "invite": invite, "subscription": map[string]any{
		"endpoint": "https://fcm.googleapis.com/fcm/send/x", "keys": map[string]string{"p256dh": b64(key.PublicKey().Bytes()), "auth": b64(make([]byte, 16))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// inviteInConsole makes an invitation on the page of a key, and returns its token.
func inviteInConsole(t *testing.T, h *Handler, key, tags string) string {
	t.Helper()
	got := postPage(t, h, "/notify/console/keys/"+key+"?invite", url.Values{"tags": {tags}})
	m := regexp.MustCompile(`<output>https://alerts\.example\.com/x/notify/` + key + `\?invite=([^<]+)</output>`).FindStringSubmatch(got.body)
	if got.status != http.StatusOK || m == nil {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if !strings.Contains(got.body, `<path fill="#000" d="M4 4h7v1h-7z`) {
		t.Error("the page has no QR code")
	}
	return m[1]
}

// postPage posts a form of the pages as a browser.
func postPage(t *testing.T, h *Handler, target string, form url.Values) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("Accept", browser)
	return do(t, h, r)
}

// TestDevicePageAccess checks who can subscribe on the page of a device, and that whoever
// has no invitation cannot tell a key from a name that no key has.
func TestDevicePageAccess(t *testing.T) {
	const refused = "This device cannot be added"
	ready := regexp.MustCompile(`data-server-key="[A-Za-z0-9_-]{87}"`)
	for _, tt := range []struct {
		who, path  string
		anon, user bool
	}{
		{"invited", "/notify/home?device", false, false},
		{"invited", "/notify/home?invite=x", false, false},
		{"users", "/notify/home?device", false, true},
		{"open", "/notify/home?device", true, true},
		{"open", "/notify/home?invite=x", true, true},
		{"open", "/notify/ops?device", false, false}, // it has a token
		{"open", "/notify/none?device", false, false},
	} {
		h := newDevicePages(t, "", tt.who)
		for name, want := range map[string]bool{"": tt.anon, "ann": tt.user} {
			r := httptest.NewRequest(http.MethodGet, tt.path, nil)
			r.Header.Set("Accept", browser)
			if name != "" {
				r = asUser(r, name)
			}
			got := do(t, h, r)
			if got.status != http.StatusOK || ready.MatchString(got.body) != want {
				t.Errorf("%s, %s as %q: %d, and a device can subscribe: %v", tt.who, tt.path, name, got.status, !want)
			}
			if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s: %v", tt.path, got.header)
			}
		}
	}
	h := newDevicePages(t, "", "invited")
	none, ops := browse(t, h, http.MethodGet, "/notify/none?invite=x", browser), browse(t, h, http.MethodGet, "/notify/ops?invite=x", browser)
	if strings.ReplaceAll(none.body, "none", "ops") != strings.ReplaceAll(ops.body, "none", "ops") || !strings.Contains(ops.body, refused) {
		t.Error("the page tells whether there is a key")
	}
	if got := browse(t, h, http.MethodGet, "/notify/a%20b?invite=x", browser); got.status != http.StatusNotFound {
		t.Errorf("the page of a name that no key can have: %d", got.status)
	}
	if got := browse(t, h, http.MethodGet, "/notify/ops?invite=x", "application/json"); got.status != http.StatusMethodNotAllowed {
		t.Errorf("the page for a program: %d", got.status)
	}
	off := newGateway(t, "key home {\nurl json://h\n}", "")
	if got := browse(t, off, http.MethodGet, "/notify/home?device", browser); strings.Contains(got.body, refused) {
		t.Error("there is a page of devices without push")
	}
}

// TestInvitationInConsole makes an invitation in the console, uses it, and revokes the
// device.
func TestInvitationInConsole(t *testing.T) {
	h := newDevicePages(t, "console {\nmanage open\n}", "invited")
	invite := inviteInConsole(t, h, "ops", "1:oncall, night")
	page := browse(t, h, http.MethodGet, "/notify/ops?invite="+invite, browser)
	for _, want := range []string{`<span class="tag">1:oncall</span> <span class="tag">night</span>`, `data-invite="` + invite + `"`, `href="../notify/app.webmanifest?key=ops&amp;invite=` + invite + `"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %s: %s", want, page.body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/ops/devices", strings.NewReader(subscribeBody(t, invite)))
	r.Header.Set("Content-Type", typeJSON)
	if got := do(t, h, r); got.status != http.StatusCreated {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if page := browse(t, h, http.MethodGet, "/notify/ops?invite="+invite, browser); !strings.Contains(page.body, "The invitation is used up") || !strings.Contains(page.body, `data-server-key=""`) {
		t.Errorf("a used invitation: %s", page.body)
	}
	key := browse(t, h, http.MethodGet, "/notify/console/keys/ops", browser).body
	for _, want := range []string{html.EscapeString("Ann's phone"), "fcm.googleapis.com", "no receipt yet", `<span class="tag">1:oncall</span>`} {
		if !strings.Contains(key, want) {
			t.Errorf("the page of the key lacks %s", want)
		}
	}
	id := regexp.MustCompile(`name="device" value="([^"]+)"`).FindStringSubmatch(key)
	if id == nil {
		t.Fatal("the device cannot be revoked")
	}
	if got := postPage(t, h, "/notify/console/keys/ops?revoke", url.Values{"device": {"other"}}); got.status != http.StatusNotFound {
		t.Errorf("revoking another one: %d", got.status)
	}
	if got := postPage(t, h, "/notify/console/keys/ops?revoke", url.Values{"device": {id[1]}}); got.status != http.StatusSeeOther {
		t.Errorf("revoking: %d %s", got.status, got.body)
	}
	if key := browse(t, h, http.MethodGet, "/notify/console/keys/ops", browser).body; !strings.Contains(key, "No browser or phone has subscribed") {
		t.Error("the device is still there")
	}
}

// TestInvitationRefused checks who cannot make an invitation, and which.
func TestInvitationRefused(t *testing.T) {
	h := newDevicePages(t, "console", "invited")
	form := url.Values{"tags": {"x"}}
	if got := postPage(t, h, "/notify/console/keys/ops?invite", form); got.status != http.StatusForbidden {
		t.Errorf("a stranger: %d", got.status)
	}
	open := newDevicePages(t, "console {\nmanage open\n}", "invited")
	if got := postPage(t, open, "/notify/console/keys/ops?invite", url.Values{"tags": {"a=b"}}); got.status != http.StatusBadRequest {
		t.Errorf("a malformed tag: %d", got.status)
	}
	if got := postPage(t, open, "/notify/console/keys/none?invite", form); got.status != http.StatusNotFound {
		t.Errorf("a key that does not exist: %d", got.status)
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/console/keys/ops?invite", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := do(t, open, r); got.status != http.StatusForbidden {
		t.Errorf("another site: %d", got.status)
	}
}

// TestDeviceButton checks that the page of a key leads to that of a device where no
// invitation is needed.
func TestDeviceButton(t *testing.T) {
	const button = `<a class="button" href="./home?device">Messages on this device</a>`
	for who, want := range map[string]bool{"invited": false, "open": true} {
		h := newDevicePages(t, "", who)
		if got := browse(t, h, http.MethodGet, "/notify/home", browser); strings.Contains(got.body, button) != want {
			t.Errorf("%s: the page has the button: %v", who, !want)
		}
	}
}

// TestAppFiles checks what browsers fetch for the page: types, that HEAD has no body, and
// that nothing is there without push.
func TestAppFiles(t *testing.T) {
	h, off := newDevicePages(t, "", "invited"), newGateway(t, "key home {\nurl json://h\n}", "")
	for path, mediaType := range map[string]string{
		"/notify/push.js": "text/javascript; charset=utf-8", "/notify/icon.svg": "image/svg+xml", "/notify/icon-192.png": "image/png",
		"/notify/icon-512.png": "image/png", "/notify/badge.png": "image/png", "/notify/app.webmanifest?key=ops": "application/manifest+json",
	} {
		got, head := browse(t, h, http.MethodGet, path, "*/*"), browse(t, h, http.MethodHead, path, "*/*")
		if got.status != http.StatusOK || got.header.Get("Content-Type") != mediaType || got.header.Get("X-Content-Type-Options") != "nosniff" || got.body == "" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
		if head.body != "" || head.header.Get("Content-Length") != got.header.Get("Content-Length") {
			t.Errorf("HEAD %s: %v", path, head.header)
		}
		if got := browse(t, h, http.MethodPost, path, "*/*"); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d", path, got.status)
		}
		if got := browse(t, off, http.MethodGet, path, "*/*"); got.status == http.StatusOK {
			t.Errorf("%s is there without push", path)
		}
		before, query, _ := strings.Cut(path, "?")
		if got := browse(t, h, http.MethodGet, before+"/?"+query, "*/*"); got.status != http.StatusNotFound {
			t.Errorf("%s/: %d", path, got.status)
		}
	}
	if got := browse(t, h, http.MethodGet, "/notify/app.webmanifest?key=a%20b", "*/*"); got.status != http.StatusNotFound {
		t.Errorf("the manifest of no key: %d", got.status)
	}
}

// TestManifest checks that the app opens the page with its invitation, and is
// the same app for each invitation.
func TestManifest(t *testing.T) {
	h := newDevicePages(t, "", "invited")
	for query, start := range map[string]string{"key=ops&invite=a_-1": "ops?invite=a_-1", "key=ops&device": "ops?device", "key=ops": "ops?device"} {
		var m struct {
			ID, Scope, Display string
			Start              string `json:"start_url"`
			Icons              []struct{ Src string }
		}
		if err := json.Unmarshal([]byte(browse(t, h, http.MethodGet, "/notify/app.webmanifest?"+query, "*/*").body), &m); err != nil {
			t.Fatal(err)
		}
		if m.ID != "/notify/ops" || m.Start != start || m.Scope != "./" || m.Display != "standalone" {
			t.Errorf("%s: %+v", query, m)
		}
		for _, icon := range m.Icons {
			if got := browse(t, h, http.MethodGet, "/notify/"+icon.Src, "*/*"); got.status != http.StatusOK {
				t.Errorf("%s: %d", icon.Src, got.status)
			}
		}
	}
}

package console_test

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

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// newDevicePages returns a gateway with push that says who can subscribe, and with keys
// with a token and without one.
func newDevicePages(t *testing.T, managers *site.Managers, who string) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, devicePages(managers, who, site.KeyOptions{Name: "ops", Tokens: []string{"0psT0ken-0psT0ken"}},
		site.KeyOptions{Name: "home"}))
}

// devicePages returns the options of a gateway with push that says who can subscribe.
func devicePages(managers *site.Managers, who string, keys ...site.KeyOptions) gatewaytest.Options {
	return queued(gatewaytest.Options{
		Global: site.Options{Keys: keys, PublicURL: "https://alerts.example.com/x", Push: &site.Push{Who: who, Max: 20}},
		Site:   site.Options{Managers: managers},
	})
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
		"endpoint": "https://fcm.googleapis.com/fcm/send/x",
		"keys":     map[string]string{"p256dh": b64(key.PublicKey().Bytes()), "auth": b64(make([]byte, 16))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// inviteInConsole makes an invitation on the page of a key, and returns its token.
func inviteInConsole(t *testing.T, g *gatewaytest.Gateway, key, tags string) string {
	t.Helper()
	got := submit(g, "/notify/console/keys/"+key+"?invite", url.Values{"tags": {tags}})
	m := regexp.MustCompile(`<output>https://alerts\.example\.com/x/notify/` + key + `\?invite=([^<]+)</output>`).FindStringSubmatch(got.Body)
	if got.Status != http.StatusOK || m == nil {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if !strings.Contains(got.Body, `<path fill="#000" d="M4 4h7v1h-7z`) {
		t.Error("the page has no QR code")
	}
	return m[1]
}

// TestDevicePageAccess checks who can subscribe on the page of a device, and that a client without
// an invitation cannot tell a key from a name that no key has.
func TestDevicePageAccess(t *testing.T) {
	t.Parallel()
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
		g := newDevicePages(t, nil, tt.who)
		for name, want := range map[string]bool{"": tt.anon, "ann": tt.user} {
			r := httptest.NewRequest(http.MethodGet, tt.path, nil)
			r.Header.Set("Accept", browser)
			if name != "" {
				r = gatewaytest.As(r, name)
			}
			got := g.Do(r)
			if got.Status != http.StatusOK || ready.MatchString(got.Body) != want {
				t.Errorf("%s, %s as %q: %d, and a device can subscribe: %v", tt.who, tt.path, name, got.Status, !want)
			}
			if got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s: %v", tt.path, got.Header)
			}
		}
	}
	g := newDevicePages(t, nil, "invited")
	none, ops := browse(g, http.MethodGet, "/notify/none?invite=x", browser), browse(g, http.MethodGet, "/notify/ops?invite=x", browser)
	if strings.ReplaceAll(none.Body, "none", "ops") != strings.ReplaceAll(ops.Body, "none", "ops") || !strings.Contains(ops.Body, refused) {
		t.Error("the page tells whether there is a key")
	}
	if got := browse(g, http.MethodGet, "/notify/a%20b?invite=x", browser); got.Status != http.StatusNotFound {
		t.Errorf("the page of a name that no key can have: %d", got.Status)
	}
	if got := browse(g, http.MethodGet, "/notify/ops?invite=x", "application/json"); got.Status != http.StatusNotAcceptable {
		t.Errorf("the page for a program: %d", got.Status)
	}
	off := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("home", "json://h")}}})
	if got := browse(off, http.MethodGet, "/notify/home?device", browser); strings.Contains(got.Body, refused) {
		t.Error("there is a page of devices without push")
	}
}

// TestInvitationInConsole makes an invitation in the console, uses it, and revokes the
// device.
func TestInvitationInConsole(t *testing.T) {
	t.Parallel()
	g := newDevicePages(t, gatewaytest.Everybody(), "invited")
	invite := inviteInConsole(t, g, "ops", "1:oncall, night")
	page := browse(g, http.MethodGet, "/notify/ops?invite="+invite, browser)
	for _, want := range []string{
		`<span class="tag">1:oncall</span> <span class="tag">night</span>`, `data-invite="` + invite + `"`,
		`href="../notify/app.webmanifest?key=ops&amp;invite=` + invite + `"`,
	} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("the page lacks %s: %s", want, page.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/ops/devices", strings.NewReader(subscribeBody(t, invite)))
	r.Header.Set("Content-Type", gatewaytest.TypeJSON)
	if got := g.Do(r); got.Status != http.StatusCreated {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if page := browse(g, http.MethodGet, "/notify/ops?invite="+invite, browser); !strings.Contains(page.Body, "The invitation is used up") ||
		!strings.Contains(page.Body, `data-server-key=""`) {
		t.Errorf("a used invitation: %s", page.Body)
	}
	key := browse(g, http.MethodGet, "/notify/console/keys/ops?tab=devices", browser).Body
	for _, want := range []string{
		html.EscapeString("Ann's phone"), "fcm.googleapis.com", "no receipt yet",
		`<span class="tag">1:oncall</span>`,
	} {
		if !strings.Contains(key, want) {
			t.Errorf("the page of the key lacks %s", want)
		}
	}
	id := regexp.MustCompile(`name="device" value="([^"]+)"`).FindStringSubmatch(key)
	if id == nil {
		t.Fatal("the device cannot be revoked")
	}
	if got := submit(g, "/notify/console/keys/ops?revoke", url.Values{"device": {"other"}}); got.Status != http.StatusNotFound {
		t.Errorf("revoking another one: %d", got.Status)
	}
	if got := submit(g, "/notify/console/keys/ops?revoke", url.Values{"device": {id[1]}}); got.Status != http.StatusSeeOther {
		t.Errorf("revoking: %d %s", got.Status, got.Body)
	}
	if key := browse(g, http.MethodGet, "/notify/console/keys/ops?tab=devices", browser).
		Body; !strings.Contains(key, "No browser or phone has subscribed") {
		t.Error("the device is still there")
	}
}

// TestInvitationRefused checks who cannot make an invitation, and which invitations cannot be made.
func TestInvitationRefused(t *testing.T) {
	t.Parallel()
	g := newDevicePages(t, &site.Managers{}, "invited")
	form := url.Values{"tags": {"x"}}
	if got := submit(g, "/notify/console/keys/ops?invite", form); got.Status != http.StatusForbidden {
		t.Errorf("a stranger: %d", got.Status)
	}
	open := newDevicePages(t, gatewaytest.Everybody(), "invited")
	if got := submit(open, "/notify/console/keys/ops?invite", url.Values{"tags": {"a=b"}}); got.Status != http.StatusBadRequest {
		t.Errorf("a malformed tag: %d", got.Status)
	}
	if got := submit(open, "/notify/console/keys/none?invite", form); got.Status != http.StatusNotFound {
		t.Errorf("a key that does not exist: %d", got.Status)
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/console/keys/ops?invite", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := open.Do(r); got.Status != http.StatusForbidden {
		t.Errorf("another site: %d", got.Status)
	}
}

// TestDeviceButton checks that the page of a key leads to the page of a device where no invitation
// is needed.
func TestDeviceButton(t *testing.T) {
	t.Parallel()
	const button = `<a class="button" href="./home?device">Messages on this device</a>`
	for who, want := range map[string]bool{"invited": false, "open": true} {
		g := newDevicePages(t, nil, who)
		if got := browse(g, http.MethodGet, "/notify/home", browser); strings.Contains(got.Body, button) != want {
			t.Errorf("%s: the page has the button: %v", who, !want)
		}
	}
}

// TestAppFiles checks what browsers fetch for the page: types, that HEAD has no body, and
// that nothing is there without push.
func TestAppFiles(t *testing.T) {
	t.Parallel()
	g, off := newDevicePages(t, nil, "invited"),
		gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("home", "json://h")}}})
	for path, mediaType := range map[string]string{
		"/notify/push.js": "text/javascript; charset=utf-8", "/notify/icon.svg": "image/svg+xml", "/notify/icon-192.png": "image/png",
		"/notify/icon-512.png": "image/png", "/notify/badge.png": "image/png", "/notify/app.webmanifest?key=ops": "application/manifest+json",
	} {
		got, head := browse(g, http.MethodGet, path, "*/*"), browse(g, http.MethodHead, path, "*/*")
		if got.Status != http.StatusOK || got.Header.Get("Content-Type") != mediaType || got.Header.Get("X-Content-Type-Options") != "nosniff" ||
			got.Body == "" {
			t.Errorf("%s: %d %v", path, got.Status, got.Header)
		}
		if head.Body != "" || head.Header.Get("Content-Length") != got.Header.Get("Content-Length") {
			t.Errorf("HEAD %s: %v", path, head.Header)
		}
		if got := browse(g, http.MethodPost, path, "*/*"); got.Status != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d", path, got.Status)
		}
		if got := browse(off, http.MethodGet, path, "*/*"); got.Status == http.StatusOK {
			t.Errorf("%s is there without push", path)
		}
		before, query, _ := strings.Cut(path, "?")
		if got := browse(g, http.MethodGet, before+"/?"+query, "*/*"); got.Status != http.StatusNotFound {
			t.Errorf("%s/: %d", path, got.Status)
		}
	}
	if got := browse(g, http.MethodGet, "/notify/app.webmanifest?key=a%20b", "*/*"); got.Status != http.StatusNotFound {
		t.Errorf("the manifest of no key: %d", got.Status)
	}
}

// TestManifest checks that the app opens the page with its invitation, and is
// the same app for each invitation.
func TestManifest(t *testing.T) {
	t.Parallel()
	g := newDevicePages(t, nil, "invited")
	for query, start := range map[string]string{
		"key=ops&invite=a_-1": "ops?invite=a_-1", "key=ops&device": "ops?device",
		"key=ops": "ops?device",
	} {
		var m struct {
			ID, Scope, Display string
			Start              string `json:"start_url"`
			Icons              []struct{ Src string }
		}
		if err := json.Unmarshal([]byte(browse(g, http.MethodGet, "/notify/app.webmanifest?"+query, "*/*").Body), &m); err != nil {
			t.Fatal(err)
		}
		if m.ID != "/notify/ops" || m.Start != start || m.Scope != "./" || m.Display != "standalone" {
			t.Errorf("%s: %+v", query, m)
		}
		for _, icon := range m.Icons {
			if got := browse(g, http.MethodGet, "/notify/"+icon.Src, "*/*"); got.Status != http.StatusOK {
				t.Errorf("%s: %d", icon.Src, got.Status)
			}
		}
	}
}

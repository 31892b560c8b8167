package caddyhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/device"
)

// TestInvitationTellsNoKey checks that a wrong invitation is answered alike whether the key
// exists or not.
func TestInvitationTellsNoKey(t *testing.T) {
	s := newPushService(t)
	for _, who := range []string{"invited", "users", "open"} {
		h := newQueueGateway(t, t.TempDir(), "", pushOptions("devices "+who)+"key k\nkey t {\ntoken 0123456789abcdef\n}")
		for name, invite := range map[string]string{"wrong": device.NewSecret(), "of another key": invited(t, h)} {
			var answers []string
			for _, key := range []string{"t", "none"} {
				h.app.gateway.Rooms.Devices.Registrations = device.Limiter{}
				got := askJSON(t, h, http.MethodPost, "/notify/"+key+"/devices", map[string]any{"name": "phone", "subscription": s.subscription("/p"), "invite": invite})
				if got.status != http.StatusForbidden {
					t.Errorf("devices %s, %s, %s: status %d %s", who, name, key, got.status, got.body)
				}
				answers = append(answers, got.body)
			}
			if answers[0] != answers[1] || !strings.Contains(answers[0], "used up") {
				t.Errorf("devices %s, %s: %q", who, name, answers)
			}
		}
		h.app.gateway.Rooms.Devices.Registrations = device.Limiter{}
		if got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"invite": device.NewSecret()}); got.status != http.StatusForbidden {
			t.Errorf("devices %s: a wrong invitation to a key that needs none: %d %s", who, got.status, got.body)
		}
	}
}

// TestInvitationInAccessLog checks that Caddy's access log has no invitation that can still
// be used, and all other requests.
func TestInvitationInAccessLog(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k\nkey other")
	logged := func(method, target string) bool {
		t.Helper()
		r := httptest.NewRequest(method, target, nil)
		vars := map[string]any{}
		do(t, h, r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars)))
		return vars[caddyhttp.LogSkipVar] == nil
	}
	invite := invited(t, h)
	targets := []string{"/notify/k?invite=" + invite, "/notify/k/?tag=a&invite=" + invite, "/notify/other?invite=" + invite, "/notify/none?invite=" + invite, "/notify/app.webmanifest?key=k&invite=" + invite, "/notify/k/devices?invite=" + invite, "/notify/k?%69nvite=" + invite}
	for _, target := range targets {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			if logged(method, target) {
				t.Errorf("%s %s is in the access log", method, target)
			}
		}
	}
	for _, target := range []string{"/notify/k", "/notify/k?invite", "/notify/k?invite=" + device.NewSecret()} {
		if !logged(http.MethodGet, target) {
			t.Errorf("%s is not in the access log", target)
		}
	}
	if got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{"name": "phone", "subscription": s.subscription("/p"), "invite": invite}); got.status != http.StatusCreated {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for _, target := range targets {
		if !logged(http.MethodGet, target) {
			t.Errorf("%s is not in the access log, although the invitation is used up", target)
		}
	}
	stopApp(t, h)
	if logged(http.MethodGet, "/notify/k?"+url.Values{"invite": {device.NewSecret()}}.Encode()) {
		t.Error("what may be an invitation is in the access log while the store cannot be asked")
	}
}

package caddyhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/device"
)

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

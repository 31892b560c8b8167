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
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// isLogged makes a request and reports whether it is in Caddy's access log.
func isLogged(t *testing.T, h *Handler, method, target string) bool {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	vars := map[string]any{}
	do(t, h, r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars)))
	return vars[caddyhttp.LogSkipVar] == nil
}

// TestLinksInAccessLog checks that Caddy's access log has all requests except those to the link of
// an incident or a question, at any address: whoever has the link can acknowledge or answer.
func TestLinksInAccessLog(t *testing.T) {
	x := gatewaytest.NewTeam(t, 1)
	k := "key k {\nurl " + x.Phones[0].NotifyURL() + " 1:oncall\nescalate after 5m\n}\n"
	h := newQueueGateway(t, t.TempDir(), "console {\nmanage open\n}", "public_url https://alerts.example.com\n"+k)
	send := func(form string) (m gatewaytest.Arrived) {
		t.Helper()
		before := x.Phones[0].Count()
		postWith(t, h, "/notify/k", form)
		gatewaytest.Eventually(t, func() bool { return x.Phones[0].Count() > before })
		return x.Phones[0].Got()[before]
	}
	incident := strings.TrimPrefix(send("type=failure&incident=disk&body=full").AcknowledgeURL, "https://alerts.example.com")
	open := strings.TrimPrefix(send("body=Deploy?&ask=a&ask=b").AnswerURL, "https://alerts.example.com")
	login := strings.TrimPrefix(send("body=Deploy?&ask=a&ask=b&ask_login=true").AnswerURL, "https://alerts.example.com")
	console := func(path string) string { return strings.Replace(path, "/notify/", "/notify/console/", 1) }
	client := func(path string) string { return strings.Replace(path, "/notify/", "/notify/-/", 1) }
	for _, path := range []string{
		incident, console(incident), client(incident), open, console(open), client(open), login,
		strings.Replace(login, "/console", "", 1),
	} {
		for _, target := range []string{
			path, path + "/", path + "?answer=a", path + ".", path + "%20",
			path + "%29,", path + ";a=b", path + "%22%3Ehere",
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
				if isLogged(t, h, method, target) {
					t.Errorf("%s %s is in the access log", method, target)
				}
			}
		}
	}
	last := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
	none := strings.Repeat("a", len(last(open)))
	for _, target := range []string{
		"/notify/incidents", "/notify/incidents/" + rules.NewIncidentID(), "/notify/incidents/" + last(open),
		"/notify/asks/" + none, "/notify/asks/x", "/notify/-/asks/" + none, "/notify/console/asks/" + last(incident), "/notify/status",
	} {
		if !isLogged(t, h, http.MethodGet, target) {
			t.Errorf("%s is not in the access log", target)
		}
	}
	stopApp(t, h)
	for _, target := range []string{"/notify/incidents/" + rules.NewIncidentID(), "/notify/asks/" + none} {
		if isLogged(t, h, http.MethodGet, target) {
			t.Errorf("%s is in the access log while the store cannot be asked", target)
		}
	}
}

// TestInvitationInAccessLog checks that Caddy's access log has no invitation that can still
// be used, and all other requests.
func TestInvitationInAccessLog(t *testing.T) {
	s := gatewaytest.NewPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k\nkey other")
	logged := func(method, target string) bool { return isLogged(t, h, method, target) }
	invite := invited(t, h)
	targets := []string{
		"/notify/k?invite=" + invite, "/notify/k/?tag=a&invite=" + invite, "/notify/other?invite=" + invite,
		"/notify/none?invite=" + invite, "/notify/app.webmanifest?key=k&invite=" + invite,
		"/notify/k/devices?invite=" + invite, "/notify/k?%69nvite=" + invite,
		"/notify/k?invite=" + invite + ".", "/notify/k?invite=" + invite + "%22%3Ehere",
	}
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
	if got := askJSON(t, h, http.MethodPost, "/notify/k/devices", map[string]any{
		"name": "phone", "subscription": s.Subscription("/p"), "invite": invite,
	}); got.status != http.StatusCreated {
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

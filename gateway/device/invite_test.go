package device_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestInvitationTellsNoKey checks that a wrong invitation is answered alike whether the key
// exists or not.
func TestInvitationTellsNoKey(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	for _, who := range []string{"invited", "users", "open"} {
		o := options(t.TempDir(), keyK, site.KeyOptions{Name: "t", Tokens: []string{"0123456789abcdef"}})
		o.Global.Push.Who = who
		g := gatewaytest.New(t, o)
		for name, invite := range map[string]string{"wrong": device.NewSecret(), "of another key": g.Invite("k")} {
			var answers []string
			for _, key := range []string{"t", "none"} {
				g.Rooms().Devices.Registrations = device.Limiter{}
				got := g.Ask(http.MethodPost, "/notify/"+key+"/devices",
					map[string]any{"name": "phone", "subscription": s.Subscription("/p"), "invite": invite})
				if got.Status != http.StatusForbidden {
					t.Errorf("devices %s, %s, %s: status %d %s", who, name, key, got.Status, got.Body)
				}
				answers = append(answers, got.Body)
			}
			if answers[0] != answers[1] || !strings.Contains(answers[0], "used up") {
				t.Errorf("devices %s, %s: %q", who, name, answers)
			}
		}
		g.Rooms().Devices.Registrations = device.Limiter{}
		if got := g.Ask(http.MethodPost, "/notify/k/devices", map[string]any{"invite": device.NewSecret()}); got.Status != http.StatusForbidden {
			t.Errorf("devices %s: a wrong invitation to a key that needs none: %d %s", who, got.Status, got.Body)
		}
	}
}

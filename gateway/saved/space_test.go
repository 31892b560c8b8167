package saved_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// newSharing returns a gateway of a site whose saved keys are in a space.
func newSharing(t testing.TB, in *saved.Spaces, space string, o site.Options) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{Site: o, Spaces: in, Saved: &saved.Options{Space: space, Manage: o.Managers != nil}})
}

// TestRulesOfSharedSpace checks that the URLs of a shared space follow the rules of
// the site that sends and of those that save, but not of others.
func TestRulesOfSharedSpace(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	spaces := &saved.Spaces{Storage: &certmagic.FileStorage{Path: t.TempDir()}}
	deny, err := egress.NewPolicy(nil, []string{"8.8.8.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	saver := newSharing(t, spaces, "team", site.Options{Managers: gatewaytest.Everybody()})
	sender := newSharing(t, spaces, "team", site.Options{Egress: gatewaytest.Loopback()})
	strict := newSharing(t, spaces, "team", site.Options{Egress: deny, Services: &site.ServiceRule{Deny: []string{"json"}}})
	alone := newSharing(t, spaces, "alone", site.Options{Egress: gatewaytest.Loopback()})
	// The URL stands for one with a name that has a forbidden address only when the
	// message is sent.
	for _, other := range []*gatewaytest.Gateway{saver, alone} {
		if err := other.Saved.Store.Save(t.Context(), "ops", configstore.FormatText, s.NotifyURL("/x"), 10); err != nil {
			t.Fatal(err)
		}
	}
	for name, other := range map[string]*gatewaytest.Gateway{"that saves": saver, "that may send to the address": sender} {
		if r := other.Post("/notify/ops", gatewaytest.TypeForm, "body=x"); r.Status < 400 {
			t.Errorf("a site %s: %d %s", name, r.Status, r.Body)
		}
	}
	if n := len(s.Take()); n > 0 {
		t.Errorf("%d messages reach an address that is forbidden where the URL was saved", n)
	}
	if r := alone.Post("/notify/ops", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusOK {
		t.Errorf("a site of another space: %d %s", r.Status, r.Body)
	}
	if r := saver.Post("/add/ops", gatewaytest.TypeForm, "urls=json://8.8.8.8"); r.Status != http.StatusOK {
		t.Errorf("the rules of a site that saves nothing apply: %s", r.Body)
	}
	if r := strict.Post("/notify/ops", gatewaytest.TypeForm, "body=x"); r.Status != http.StatusFailedDependency ||
		!strings.Contains(r.Body, "the setting services forbids it") {
		t.Errorf("the rules of the site that sends do not apply: %d %s", r.Status, r.Body)
	}
}

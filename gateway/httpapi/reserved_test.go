package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestReservedSavedName checks that a saved key cannot have a reserved name in any case, and that
// an earlier key with such a name gets no messages, but can be read and deleted.
func TestReservedSavedName(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{})
	for _, name := range []string{"Incidents", "ASKS", "Console"} {
		if got := g.Post("/add/"+name, "text/plain", s.NotifyURL("")); got.Status != http.StatusNotFound ||
			!strings.Contains(got.Body, "address of the gateway itself") {
			t.Errorf("/add/%s: %d %s", name, got.Status, got.Body)
		}
		if err := g.Saved.Store.Save(t.Context(), name, configstore.FormatText, s.NotifyURL(""), 9); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/notify/" + name, "/notify/" + name + "/", "/notify/" + name + "/grafana", "/notify/" + name + "/ntfy/t"} {
			if got := g.Post(path, gatewaytest.TypeJSON, `{"title":"x","body":"x","message":"x"}`); got.Status != http.StatusNotFound &&
				got.Status != gatewaytest.NotServed {
				t.Errorf("%s: %d %s", path, got.Status, got.Body)
			}
		}
		if got := g.Post("/get/"+name, gatewaytest.TypeJSON, ""); got.Status != http.StatusOK || !strings.Contains(got.Body, s.NotifyURL("")) {
			t.Errorf("/get/%s: %d %s", name, got.Status, got.Body)
		}
		if got := g.Post("/del/"+name, gatewaytest.TypeJSON, ""); got.Status != http.StatusOK {
			t.Errorf("/del/%s: %d %s", name, got.Status, got.Body)
		}
	}
	if got := s.Paths(); got != "" {
		t.Errorf("messages have arrived at %q", got)
	}
}

// TestIncidentsSlash checks that the list of incidents has no address that matches
// /notify/incidents/*, which the matcher in docs/on-call.md leaves out.
func TestIncidentsSlash(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:  site.Options{Managers: gatewaytest.Everybody(), Keys: []site.KeyOptions{gatewaytest.Key("k", "json://h")}},
		Queue: &outbox.Settings{},
	})
	for target, want := range map[string]int{
		"/notify/incidents": 200, "/notify/incidents/": 404, "/notify/incidents//": gatewaytest.NotServed,
		"/notify/incidents/?all": 404,
	} {
		if got := getAccepting(g, target, gatewaytest.TypeJSON); got.Status != want {
			t.Errorf("%s: %d %s, want %d", target, got.Status, got.Body, want)
		}
	}
}

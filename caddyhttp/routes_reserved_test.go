package caddyhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestReservedNames checks that no key and no source has the name of an address of the
// gateway in any case: Caddy's path matchers ignore case, so that a key Incidents was open
// behind a matcher that leaves out /notify/incidents/*.
func TestReservedNames(t *testing.T) {
	for block, want := range map[string]string{
		"key incidents {\nurl json://h\n}":     "/notify/incidents is an address of the gateway itself",
		"key Incidents {\nurl json://h\n}":     "a key cannot have the name Incidents, because /notify/incidents is an address",
		"key MESSAGES {\nurl json://h\n}":      "/notify/messages is an address",
		"key asks {\nurl json://h\n}":          "/notify/asks is an address",
		"key Asks {\nurl json://h\n}":          "/notify/asks is an address",
		"from Devices {\ntitle x\n}":           "Devices cannot be the name of a source, because /notify/{KEY}/devices is an address",
		"from Messages {\ntitle x\n}":          "/notify/{KEY}/messages is an address",
		"from STREAM {\ntitle x\n}":            "/notify/{KEY}/stream is an address",
		"from mcp {\ntitle x\n}":               "/notify/{KEY}/mcp is an address",
		"from Prometheus {\ntitle x\n}":        "/notify/{KEY}/prometheus is an address",
		"from SMTP {\ntitle x\n}":              "it stands for mails",
		"from Direct {\ntitle x\n}":            "it stands for messages to /notify/{KEY} itself",
		"from Expect {\ntitle x\n}":            "it stands for the gateway's own messages",
		"key k {\nurl json://h\naccept MCP\n}": "/notify/{KEY}/mcp is an address",
	} {
		if _, err := provision(t, block, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", block, err, want)
		}
	}
	for name, s := range map[string]*Settings{
		"a key":    {Keys: map[string]*Key{"Incidents": {URLs: []KeyURL{{URL: "json://h"}}}}},
		"a source": {Sources: map[string]*Source{"Devices": {Title: "x"}}},
	} {
		h := newGateway(t, "", "")
		if _, err := s.resolve(h.app.settled, nil, h.shared.Parse, h.api.Log); err == nil || !strings.Contains(err.Error(), "is an address of the gateway itself") {
			t.Errorf("%s in JSON: %v", name, err)
		}
	}
}

// TestReservedSavedName checks that a saved key cannot have a reserved name in any case,
// and that one from before gets no messages, but can be read and deleted.
func TestReservedSavedName(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "")
	for _, name := range []string{"Incidents", "ASKS", "Console"} {
		if got := post(t, h, "/add/"+name, "text/plain", s.NotifyURL("")); got.status != http.StatusNotFound || !strings.Contains(got.body, "address of the gateway itself") {
			t.Errorf("/add/%s: %d %s", name, got.status, got.body)
		}
		if err := h.api.Saved.Store.Save(t.Context(), name, configstore.FormatText, s.NotifyURL(""), 9); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/notify/" + name, "/notify/" + name + "/", "/notify/" + name + "/grafana", "/notify/" + name + "/ntfy/t"} {
			if got := post(t, h, path, typeJSON, `{"title":"x","body":"x","message":"x"}`); got.status != http.StatusNotFound && got.status != nextStatus {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
		if got := post(t, h, "/get/"+name, typeJSON, ""); got.status != http.StatusOK || !strings.Contains(got.body, s.NotifyURL("")) {
			t.Errorf("/get/%s: %d %s", name, got.status, got.body)
		}
		if got := post(t, h, "/del/"+name, typeJSON, ""); got.status != http.StatusOK {
			t.Errorf("/del/%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.Paths(); got != "" {
		t.Errorf("messages have arrived at %q", got)
	}
}

// TestIncidentsSlash checks that the list of incidents has no address that the matcher of
// docs/on-call.md, which ends with /notify/incidents/*, leaves out.
func TestIncidentsSlash(t *testing.T) {
	t.Parallel()
	h := newQueueGateway(t, t.TempDir(), "console {\nmanage open\n}\nkey k {\nurl json://h\n}", "")
	for target, want := range map[string]int{"/notify/incidents": 200, "/notify/incidents/": 404, "/notify/incidents//": nextStatus, "/notify/incidents/?all": 404} {
		if got := get(t, h, target, typeJSON); got.status != want {
			t.Errorf("%s: %d %s, want %d", target, got.status, got.body, want)
		}
	}
}

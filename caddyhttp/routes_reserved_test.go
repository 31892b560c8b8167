package caddyhttp

import (
	"strings"
	"testing"
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
		"from NTFY {\ntitle x\n}":              "/notify/{KEY}/ntfy is an address",
		"from silences {\ntitle x\n}":          "/notify/{KEY}/silences is an address",
		"key console {\nurl json://h\n}":       "/notify/console is an address",
		"key Status {\nurl json://h\n}":        "/notify/status is an address",
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
		if _, err := s.resolve(h.app.settled, nil, h.shared.Parse, h.api.Log); err == nil ||
			!strings.Contains(err.Error(), "is an address of the gateway itself") {
			t.Errorf("%s in JSON: %v", name, err)
		}
	}
}

package services

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestAcknowledge checks that each service sends the address to acknowledge an incident, unless it
// declares that it shows it nowhere, and only with messages of open incidents.
func TestAcknowledge(t *testing.T) {
	racetest.SkipIfSlow(t)
	// Their requests encode or encrypt the address.
	encoded := map[string]bool{"AWS SES": true, "Pushjet": true, "Session Open Group Server": true, "Web Push": true}
	tried, sends := map[string]bool{}, map[string]bool{}
	for _, file := range servicetest.Files(t, ".") {
		for _, c := range servicetest.ReadCases(t, file) {
			s := serviceOf(c.URL)
			if s == nil || !strings.Contains(c.Want, "\ndelivered") {
				continue
			}
			has := func(name string) bool {
				m := servicetest.Message(t, name)
				m.Link = notifier.Link{Label: notifier.AcknowledgeLabel, URL: servicetest.AcknowledgeURL}
				return strings.Contains(requests(c, m), servicetest.AcknowledgeURL)
			}
			for _, name := range []string{"plain", "resolved", "acknowledged"} {
				if has(name) {
					t.Errorf("%s: %s sends the address with the message %q, which has nothing to acknowledge", file, c.URL, name)
				}
			}
			tried[s.Name], sends[s.Name] = true, sends[s.Name] || has("open")
		}
	}
	for _, s := range notifier.Services() {
		if want := s.Acknowledge != notifier.AcknowledgeNowhere; tried[s.Name] && !encoded[s.Name] && sends[s.Name] != want {
			t.Errorf("%s: it sends the address: %t, and Describe declares %q", s.Name, sends[s.Name], s.Acknowledge)
		}
	}
}

package services

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestIncidents checks that services send something of their own for the states of
// an incident that they declare, and what they send for any message for others.
func TestIncidents(t *testing.T) {
	racetest.SkipIfSlow(t)
	messages := map[notifier.IncidentState]string{
		notifier.Open: "open", notifier.Updated: "updated", notifier.Acknowledged: "acknowledged", notifier.Resolved: "resolved",
	}
	told := map[string][]notifier.IncidentState{} // by service
	for _, file := range servicetest.Files(t, ".") {
		for _, c := range servicetest.ReadCases(t, file) {
			s := serviceOf(c.URL)
			if s == nil {
				continue
			}
			for state, name := range messages {
				with, without := servicetest.Message(t, name), servicetest.Message(t, name)
				without.Incident = notifier.Incident{}
				if requests(c, with) == requests(c, without) || slices.Contains(told[s.Name], state) {
					continue
				}
				told[s.Name] = append(told[s.Name], state)
				if !slices.Contains(s.Incidents, state) {
					t.Errorf("%s: %s sends something else if an incident is %s, which Describe does not declare with Incidents", file, c.URL, state)
				}
			}
		}
	}
	// The cases cannot show what these do.
	elsewhere := map[string]string{
		"E-Mail": "TestThread", "AWS SES": "TestSESMail", "Growl": "TestGrowlIncident",
		// Their first message is what it would be without an incident.
		"Discord": "TestDiscordUpdate", "Slack": "TestUpdate", "Telegram": "TestUpdate",
	}
	for _, s := range notifier.Services() {
		if elsewhere[s.Name] != "" {
			continue
		}
		for _, state := range s.Incidents {
			if !slices.Contains(told[s.Name], state) {
				t.Errorf("%s declares that it tells if an incident is %s, but sends what it sends without an incident", s.Name, state)
			}
		}
	}
}

// requests returns what the service of a case sends for m.
func requests(c servicetest.Case, m *notifier.Message) string {
	r := c.Recorder()
	result, err := r.Deliver(c.URL, m)
	if err != nil {
		return "refused"
	}
	return anyUUID.ReplaceAllString(strings.Join(append(r.Requests, string(result.Status)), "\n"), "UUID")
}

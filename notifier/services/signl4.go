package services

import (
	"cmp"
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[signl4]()

// signl4 raises alerts in SIGNL4.
type signl4 struct {
	secret, service, location, scenario, id, status string
	filtering                                       bool
}

func (p *signl4) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SIGNL4", "https://docs.signl4.com/integrations/webhook/webhook.html"
	s.Setup = "Copy the team secret of your SIGNL4 team, the last part of its webhook URL, " +
		"which is in the e-mail that SIGNL4 sends after the sign-up."
	s.Groups(notifier.GroupIncident, notifier.GroupPhone)
	s.Words("derdack", "on-call")
	s.URL("signl4://{secret}")
	s.Incidents(notifier.Open, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&p.secret, "secret", "team or integration secret").Match(`\S`).Example("AbCdEf0123")
	s.String(&p.service, "service", "", "service or category of the alert")
	s.String(&p.location, "location", "", "latitude and longitude, as in 40.64,-73.77")
	s.String(&p.scenario, "alerting_scenario", "", "single_ack, multi_ack or emergency")
	s.Bool(&p.filtering, "filtering", false, "apply the team's filters before an alert is raised")
	s.String(&p.id, "external_id", "", "ID of the alert in your system; default: by the incident")
	s.String(&p.status, "status", "", "new, acknowledged or resolved; default: the state of the incident")
}

func (p *signl4) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{"title": m.Title, "body": m.Body, "X-S4-SourceSystem": m.Identity.Name}
	if m.Title == "" {
		payload["title"] = m.Identity.Description
	}
	id, status := p.id, p.status
	if s := signl4Statuses[m.Incident.State]; s != "" && m.Incident.ID != "" {
		id, status = cmp.Or(id, m.Incident.ID), cmp.Or(status, s)
	}
	for name, value := range map[string]string{
		"X-S4-Service": p.service, "X-S4-Location": p.location, "X-S4-AlertingScenario": p.scenario,
		"X-S4-ExternalID": id, "X-S4-Status": status,
	} {
		if value != "" {
			payload[name] = value
		}
	}
	if p.filtering {
		payload["X-S4-Filtering"] = true
	}
	return c.PostJSON(ctx, "https://connect.signl4.com/webhook"+notifier.Path(p.secret)+"/", payload)
}

// signl4Statuses are the statuses for the states of an incident. There is none
// that adds to an alert.
var signl4Statuses = map[notifier.IncidentState]string{
	notifier.Open: "new", notifier.Acknowledged: "acknowledged", notifier.Resolved: "resolved",
}

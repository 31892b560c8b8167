package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[ilert]()

// ilert opens, accepts and resolves alerts at ilert.
type ilert struct{ integration, key string }

func (i *ilert) Describe(s *notifier.Schema) {
	s.Name, s.Site = "ilert", "https://docs.ilert.com/developer-docs/rest-api/api-reference/events"
	s.Setup = "In ilert open Alert sources, create one of the type API, " +
		"and add ?integrationKey= with its integration key to the address of the event API."
	s.Groups(notifier.GroupIncident)
	s.Words("uptime")
	s.URL("https://api.ilert.com/api/events")
	s.Native("https://api.ilert.com/api/v1/events", "https://api.ilert.com/api/events/{integrationkey}",
		"https://api.ilert.com/api/v1/events/{integrationkey}")
	s.Hints(
		notifier.Hint{Text: `(?<integrationkey>il1api[0-9a-f]{12,})`, Is: "the integration key of an alert source"},
		notifier.Hint{
			Text: `https://api\.ilert\.com/api/(?:v1/)?events/[\w-]+/\S+`,
			Is:   "the address of an alert source for one program",
			Note: "ilert reads messages of that program only there; create an alert source of the type API and copy its integration key",
		},
	)
	s.Acknowledge = notifier.AcknowledgeByLink
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&i.integration, "integrationkey", "integration key of the alert source").
		Match(`^\S+$`).Required().Example("il1api0460d849fcdc753d4f")
	s.String(&i.key, "alertkey", "", "name of the alert, which a success resolves; default: by the incident").Example("backup")
}

func (i *ilert) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	key, over := alertKey(i.key, m)
	event := map[string]any{"integrationKey": i.integration, "eventType": "ALERT", "summary": alertSummary(m, 250), "details": m.Body}
	if key != "" {
		event["alertKey"] = key
	}
	switch {
	case over:
		event["eventType"] = "RESOLVE"
	case m.Incident.State == notifier.Acknowledged:
		event["eventType"] = "ACCEPT"
	}
	if m.Link.URL != "" {
		event["links"] = []map[string]string{{"href": m.Link.URL, "text": m.Link.Label}}
	}
	return c.PostJSON(ctx, "https://api.ilert.com/api/events", event)
}

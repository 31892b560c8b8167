package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[squadcast]()

// squadcast triggers and resolves incidents at Squadcast.
type squadcast struct{ token, key string }

// squadcastBody is the max number of bytes of a text. A request has at most 30 KB.
const squadcastBody = 20000

func (q *squadcast) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Squadcast", "https://developers.squadcast.com/incoming-webhooks/payload-format/"
	s.Setup = "In Squadcast open Services, the alert sources of the service, choose Incident Webhook and copy its address."
	s.Groups(notifier.GroupIncident)
	s.Words("solarwinds incident response")
	s.URL("https://api.squadcast.com/v2/incidents/api/{token}")
	s.Limits = markup.Limits{Title: 250, Body: squadcastBody, Unit: markup.UTF8Bytes}
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&q.token, "token", "token in the address of the webhook").Match(`^[\w-]+$`).Example("0123456789abcdef0123456789abcdef01234567")
	s.String(&q.key, "event_id", "", "name of the incident, which a success resolves; default: by the incident").Example("backup")
}

func (q *squadcast) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	key, over := alertKey(q.key, m)
	if m.Incident.ID != "" && m.Incident.State == notifier.Acknowledged {
		c.Skip("Squadcast cannot be told that somebody has acknowledged an incident")
		return nil
	}
	event := map[string]string{"message": alertSummary(m, 250), "description": m.Body, "status": "trigger"}
	if key != "" {
		event["event_id"] = key
	}
	if over {
		event["status"] = "resolve"
	}
	return c.PostJSON(ctx, "https://api.squadcast.com/v2/incidents/api"+notifier.Path(q.token), event)
}

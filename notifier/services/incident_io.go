package services

import (
	"context"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[incidentIO]()

// incidentIO fires and resolves alerts at incident.io.
type incidentIO struct{ source, token, key string }

func (i *incidentIO) Describe(s *notifier.Schema) {
	s.Name, s.Site = "incident.io", "https://docs.incident.io/api-reference/alert-events-v2/createhttp"
	s.Setup = "In incident.io open Alerts, add an HTTP alert source of the default type, " +
		"and add ?token= with the token of its Authorization header to its address."
	s.Groups(notifier.GroupIncident)
	s.Words("alert source")
	s.URL("https://api.incident.io/v2/alert_events/http/{source}")
	s.Format = notifier.Markdown
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.String(&i.source, "source", "", "ID of the alert source").Match(`^[a-z0-9-]+$`).Example("01GW2G3V0S59R238FAHPDS1R66")
	s.Secret(&i.token, "token", "token of the alert source").Match(`^\S+$`).Required().Example("0a1b2c3d4e5f60718293a4b5c6d7e8f9")
	s.String(&i.key, "deduplication_key", "", "name of the alert, which a success resolves; default: by the incident").Example("backup")
}

func (i *incidentIO) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	key, over := alertKey(i.key, m)
	if key == "" {
		// Alerts without a key are refused. A retry has the key of the first attempt.
		var err error
		if key, err = notifier.OnceValue(c.Steps, "key", func() (string, error) { return uuid.NewString(), nil }); err != nil {
			return err
		}
	}
	status := "firing"
	if over {
		status = "resolved"
	}
	return c.PostJSON(ctx, "https://api.incident.io/v2/alert_events/http"+notifier.Path(i.source), map[string]string{
		"title": alertSummary(m, 250), "description": m.Body, "status": status, "deduplication_key": key,
	}, "Authorization", "Bearer "+i.token)
}

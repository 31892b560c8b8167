package services

import (
	"cmp"
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/kept"
)

var _ = notifier.Register[spike]()

// spike opens and resolves incidents at Spike.
type spike struct {
	token, mode string
	titles      kept.Values[string] // of open incidents
}

const (
	spikeAlerts  = "alerts"
	spikeWebhook = "webhook"

	spikeTitle = 200 // max characters of a title that identifies an incident
)

func (k *spike) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Spike.sh", "https://docs.spike.sh/integrations-guideline/integrating-with-webhooks"
	s.Setup = "Create a webhook integration for a service in Spike and copy the token in its webhook URL."
	s.Groups(notifier.GroupIncident)
	s.Words("on-call")
	s.URL("spike://{token}")
	s.Native("https://api.spike.sh/v1/alerts/{token}", "https://hooks.spike.sh/{token}/push-events?mode="+spikeWebhook)
	s.Incidents(notifier.Open, notifier.Resolved)
	s.Secret(&k.token, "token", "key of the integration").Match(`^[a-z0-9]{32}$`).Example("1234567890abcdef1234567890abcdef")
	s.Choice(&k.mode, "mode", spikeAlerts, []string{spikeAlerts, spikeWebhook},
		"API to use: webhook, at hooks.spike.sh, also resolves incidents")
}

func (k *spike) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	if k.mode != spikeWebhook {
		return c.PostJSON(ctx, "https://api.spike.sh/v1/alerts"+notifier.Path(k.token),
			map[string]string{"message": cmp.Or(m.Title, m.Body), "description": m.Body})
	}
	event := map[string]string{"title": cmp.Or(m.Title, m.Body), "body": m.Body}
	id, resolved := m.Incident.ID, m.Incident.State == notifier.Resolved
	if id != "" {
		event["title"] = k.title(ctx, c, m)
		if resolved {
			event["status"] = "resolve"
		}
	}
	err := c.PostJSON(ctx, "https://hooks.spike.sh"+notifier.Path(k.token, "push-events"), event)
	if err == nil && id != "" && resolved {
		k.titles.Delete(ctx, c, id)
	}
	return err
}

// title returns the title of the incident of m, by which Spike knows it: the title of the message
// that opened it, with a part of its ID, because other incidents may have the same title.
func (k *spike) title(ctx context.Context, c *notifier.Client, m *notifier.Message) string {
	if title, ok := k.titles.Get(ctx, c, m.Incident.ID); ok {
		return title
	}
	title, _, _ := strings.Cut(cmp.Or(m.Title, strings.TrimSpace(m.Body)), "\n")
	if m.Incident.State != notifier.Open {
		return title // Spike does not know the incident
	}
	title = markup.Truncate(title, spikeTitle) + " #" + m.Incident.ID[:6]
	k.titles.Set(ctx, c, m.Incident.ID, title)
	return title
}

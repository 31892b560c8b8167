package services

import (
	"cmp"
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[trigv]()

// trigv sends events to channels of Trigv, or of another server with the same API.
type trigv struct {
	notifier.Server
	key, link, image, urgency, event string
	channels                         []string
	priority                         int
}

func (t *trigv) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Trigv", "https://trigv.com/"
	s.Setup = "Create an API key (trgv_…) for your workspace at app.trigv.com."
	s.Groups(notifier.GroupPhone)
	s.URL("trigv[s]://{api_key}[/{targets...}]", "trigv[s]://{api_key}@{host}[:{port}][/{targets...}]")
	s.Way(1, "through trigv.com")
	s.Way(2, "with another server")
	s.Hints(
		notifier.Hint{Text: `(?<api_key>trgv_[a-z0-9]{8}_[a-z0-9]{32})`, Is: "an API key"},
	)
	s.Limits = markup.Limits{Title: 255, Body: 1000}
	s.Server(&t.Server)
	s.Secret(&t.key, "api_key", "API key").Match(`^trgv_[a-z0-9]{8}_[a-z0-9]{32}$`).
		Example("trgv_a1b2c3d4_0123456789abcdef0123456789abcdef")
	s.List(&t.channels, "targets", "channels; default: general").Alias("to").Match(`^[a-z0-9][a-z0-9_-]{0,119}$`)
	s.String(&t.link, "url", "", "URL to open from the event")
	s.String(&t.image, "image_url", "", "URL of a picture")
	s.Choice(&t.urgency, "urgency", "standard", []string{"standard", "time_sensitive"}, "urgency; a failure is always time_sensitive")
	s.String(&t.event, "event_type", "", "type of the event")
	s.Int(&t.priority, "priority", 0, "priority as in Pushover; from 1 on the event is time_sensitive").Range(-100, 100).Lenient()
}

var trigvLevels = map[notifier.Type]string{
	notifier.Info: "info", notifier.Success: "success", notifier.Warning: "warning", notifier.Failure: "error",
}

func (t *trigv) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	address := "https://api.trigv.com"
	if t.Host != "" {
		address = t.URL()
	}
	urgency := t.urgency
	if t.priority >= 1 || m.Type == notifier.Failure {
		urgency = "time_sensitive"
	}
	channels := t.channels
	if len(channels) == 0 {
		channels = []string{"general"}
	}
	return c.Steps.Each(ctx, channels, func(ctx context.Context, channel string) error {
		event := omitEmpty(map[string]any{
			"channel": channel, "level": trigvLevels[m.Type], "delivery_urgency": urgency,
			"title": cmp.Or(m.Title, m.Identity.Description), "description": m.Body,
			"url": t.link, "image_url": t.image, "event_type": t.event,
		})
		return c.PostJSON(ctx, address+"/api/v1/events", event, "Authorization", "Bearer "+t.key)
	})
}

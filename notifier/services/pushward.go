package services

import (
	"cmp"
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushward]()

// pushward pushes to the PushWard app on iOS.
type pushward struct {
	key    string
	level  string // for all types, if set
	levels struct{ info, success, warning, failure string }
	volume float64
}

const pushwardDeviceVolume = -1

func (p *pushward) Describe(s *notifier.Schema) {
	s.Name, s.Site = "PushWard", "https://pushward.app/"
	s.Setup = "Copy the integration key (hlk_…) from the settings of the PushWard app, or create one there that permits notifications."
	s.Groups(notifier.GroupPhone)
	s.Words("iphone", "ios", "apple", "live activities")
	s.URL("pushward://{apikey}")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>hlk_\w+)`, Is: "an integration key"},
	)
	s.Limits.Title, s.Limits.Body = 256, 3000
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	levels := []string{"passive", "active", "time-sensitive", "critical"}
	s.Secret(&p.key, "apikey", "integration key").Match("^hlk_[a-z0-9]+$").Example("hlk_1234567890abcdef")
	s.Choice(&p.level, "level", "", levels, "urgency of messages of all types")
	s.Choice(&p.levels.info, "info", "active", levels, "urgency of messages of type info")
	s.Choice(&p.levels.success, "success", "active", levels, "urgency of messages of type success")
	s.Choice(&p.levels.warning, "warning", "time-sensitive", levels, "urgency of messages of type warning")
	s.Choice(&p.levels.failure, "failure", "time-sensitive", levels, "urgency of messages of type failure")
	s.Float(&p.volume, "volume", pushwardDeviceVolume, "volume of a critical alert, from 0 to 1").Range(0, 1).NoDefault()
}

func (p *pushward) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	level := cmp.Or(p.level, p.levelOf(m.Type))
	payload := map[string]any{
		"title": cmp.Or(m.Title, m.Identity.Description, m.Identity.Name),
		"body":  m.Body,
		"level": level,
	}
	if icon := m.Icon(128); icon != "" {
		payload["icon_url"] = icon
	}
	if id := m.NotificationID(); id != "" {
		payload["collapse_id"] = id
	}
	if level == "critical" && p.volume != pushwardDeviceVolume {
		payload["volume"] = p.volume
	}
	return c.PostJSON(ctx, "https://api.pushward.app/notifications", payload, "Authorization", "Bearer "+p.key)
}

func (p *pushward) levelOf(t notifier.Type) string {
	switch t {
	case notifier.Success:
		return p.levels.success
	case notifier.Warning:
		return p.levels.warning
	case notifier.Failure:
		return p.levels.failure
	}
	return p.levels.info
}

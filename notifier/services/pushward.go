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
	levels map[notifier.Type]*string
	volume float64
}

const pushwardDeviceVolume = -1

func (p *pushward) Describe(s *notifier.Schema) {
	s.Name, s.Site = "PushWard", "https://pushward.app/"
	s.Setup = "Copy the integration key (hlk_…) from the settings of the PushWard app, or create one there that permits notifications."
	s.URL("pushward://{apikey}")
	s.Limits.Title, s.Limits.Body = 256, 3000
	levels := []string{"passive", "active", "time-sensitive", "critical"}
	s.Secret(&p.key, "apikey", "integration key").Match("^hlk_[a-z0-9]+$").Example("hlk_1234567890abcdef")
	s.Choice(&p.level, "level", "", levels, "urgency of messages of all types")
	p.levels = map[notifier.Type]*string{}
	for _, t := range []struct {
		of  notifier.Type
		def string
	}{{notifier.Info, "active"}, {notifier.Success, "active"}, {notifier.Warning, "time-sensitive"}, {notifier.Failure, "time-sensitive"}} {
		p.levels[t.of] = new(string)
		s.Choice(p.levels[t.of], string(t.of), t.def, levels, "urgency of messages of type "+string(t.of))
	}
	s.Float(&p.volume, "volume", pushwardDeviceVolume, "volume of a critical alert, from 0 to 1").Range(0, 1).NoDefault()
}

func (p *pushward) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	level := cmp.Or(p.level, *p.levels[m.Type])
	payload := map[string]any{
		"title": cmp.Or(m.Title, m.Identity.Description, m.Identity.Name),
		"body":  m.Body,
		"level": level,
	}
	if icon := m.Icon(128); icon != "" {
		payload["icon_url"] = icon
	}
	if level == "critical" && p.volume != pushwardDeviceVolume {
		payload["volume"] = p.volume
	}
	return c.PostJSON(ctx, "https://api.pushward.app/notifications", payload, "Authorization", "Bearer "+p.key)
}

package services

import (
	"cmp"
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[revolt]()

// revolt posts as a bot to channels of Revolt, now Stoat.
type revolt struct {
	token      string
	channels   []string
	icon, link string
}

func (r *revolt) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Revolt", "https://developers.stoat.chat/api-reference"
	s.Setup = "Create a bot in Revolt, invite it to your server, and copy its token " +
		"and the IDs of the channels; its documentation is at developers.stoat.chat."
	s.Groups(notifier.GroupChat)
	s.Words("stoat", "discord alternative")
	s.URL("revolt://{bot_token}/{targets...}")
	s.Format = notifier.Markdown
	s.Limits.Title, s.Limits.Body = 100, 2000
	s.Foreign = &notifier.ForeignText{Markdown: true, Title: true, Mentions: chattext.BreakAll}
	s.Secret(&r.token, "bot_token", "token of the bot").Match(`\S`).Example("AbCdEf0123456789GhIjKlMnOpQrStUvAbCdEf0123456789GhIjKlMnOpQrStUv")
	s.List(&r.channels, "targets", "IDs of the channels to post to").
		Alias("to", "channel").Match(`^[a-z0-9_-]+$`).Example("01H0ABCDEFGHJKMNPQRSTVWXYZ")
	s.String(&r.icon, "icon_url", "", "URL of the picture; default: by the message's type")
	s.String(&r.link, "url", "", "URL that the title links to")
}

func (r *revolt) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{"content": m.Text("\n")}
	if m.Format == notifier.Markdown {
		embed := map[string]any{"title": nil, "description": m.Body, "colour": m.Type.Color(), "replies": nil}
		if m.Title != "" {
			embed["title"] = m.Title
		}
		if icon := cmp.Or(r.icon, m.Icon(256)); icon != "" {
			embed["icon_url"] = icon
		}
		if r.link != "" {
			embed["url"] = r.link
		}
		payload = map[string]any{"embeds": []any{embed}}
	}
	return c.Steps.Each(ctx, r.channels, func(ctx context.Context, channel string) error {
		return c.PostJSON(ctx, "https://api.revolt.chat/channels"+notifier.Path(channel, "messages"), payload, "X-Bot-Token", r.token)
	})
}

package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[guilded]()

// guilded posts to a Guilded channel through a webhook. Its webhooks are like Discord's.
type guilded struct{ discordHook }

func (g *guilded) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Guilded", "https://www.guilded.gg/docs/api/webhook/RunWebhook"
	s.Setup = "Create a webhook for the channel in Guilded and copy its URL, whose last two parts are webhook_id and webhook_token."
	s.Groups(notifier.GroupChat)
	s.Words("gaming")
	s.URL("guilded://[{botname}@]{webhook_id}/{webhook_token}")
	s.Native(
		"https://media.guilded.gg/webhooks/{webhook_id}/{webhook_token}",
		"https://guilded.gg/webhooks/{webhook_id}/{webhook_token}",
	)
	g.describe(s)
	s.Foreign = &notifier.ForeignText{Markdown: true, Title: true, Mentions: chattext.BreakMentions}
	g.describeBatch(s)
	g.describeTemplate(s)
	s.Param("webhook_id").Example("01234567-89ab-cdef-0123-456789abcdef")
}

func (g *guilded) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return g.send(ctx, c, m, "https://media.guilded.gg/webhooks"+notifier.Path(g.id, g.token))
}

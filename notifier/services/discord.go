package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[discord]()

// discord posts to a Discord channel through a webhook.
type discord struct{ discordHook }

func (d *discord) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Discord", "https://discord.com/developers/docs/resources/webhook#execute-webhook"
	s.Setup = "Open the settings of the channel in Discord, choose Integrations, Webhooks, New Webhook, and copy the webhook URL, whose last two parts are webhook_id and webhook_token."
	s.URL("discord://[{botname}@]{webhook_id}/{webhook_token}")
	s.Native(
		"https://discord.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://discordapp.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://ptb.discord.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://canary.discord.com/api/webhooks/{webhook_id}/{webhook_token}",
	)
	d.describe(s)
	d.describeBatch(s)
	d.describeTemplate(s)
}

func (d *discord) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return d.send(ctx, c, m, "https://discord.com/api/webhooks"+notifier.Path(d.id, d.token))
}

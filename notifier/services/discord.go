package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[discord]()

// discord posts to a Discord channel through a webhook.
type discord struct{ discordHook }

func (d *discord) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Discord", "https://discord.com/developers/docs/resources/webhook#execute-webhook"
	s.Setup = "Open the settings of the channel in Discord, choose Integrations, Webhooks, " +
		"New Webhook, and copy the webhook URL, whose last two parts are webhook_id and webhook_token."
	s.Groups(notifier.GroupChat)
	s.Words("gaming")
	s.URL("discord://[{botname}@]{webhook_id}/{webhook_token}")
	s.Native(
		"https://discord.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://discordapp.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://ptb.discord.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://canary.discord.com/api/webhooks/{webhook_id}/{webhook_token}",
	)
	s.Hints(
		notifier.Hint{
			Text: `https://(?:discord\.gg/|discord\.com/(?:invite|channels)/)\S+`,
			Is:   "an invitation, or the address of a channel",
			Note: "Discord needs the address of a webhook, which the settings of the channel show under Integrations",
		},
		notifier.Hint{
			Text: `[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}`, Is: "the token of a bot",
			Note: "messages go to Discord through a webhook and not through a bot; make one in the settings of the channel, under Integrations",
		},
	)
	d.describe(s)
	s.Dialect(markup.DialectDiscord)
	d.describeBatch(s)
	d.describeTemplate(s)
	s.Acknowledge = notifier.AcknowledgeByButton
	s.Bool(&d.update, "update", false, "change the first message about an incident instead of adding one")
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // with update
}

func (d *discord) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return d.send(ctx, c, m, "https://discord.com/api/webhooks"+notifier.Path(d.id, d.token))
}

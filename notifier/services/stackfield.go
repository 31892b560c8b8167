package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[stackfield]()

// stackfield posts to a room of Stackfield through its webhook.
type stackfield struct{ token string }

func (k *stackfield) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Stackfield", "https://www.stackfield.com/developer-api"
	s.Setup = "Add a webhook under Integrations in the settings of the Stackfield room, and copy its URL, whose last part is the token."
	s.Groups(notifier.GroupChat)
	s.Words("germany")
	s.URL("stackfield://{token}")
	s.Native("https://[www.]stackfield.com/apiwh/{token}")
	s.Limits = markup.Limits{Body: 4000}
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMentions}
	s.Secret(&k.token, "token", "last part of the webhook's URL").
		Match(`^[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}$`).Example("11111111-2222-3333-4444-555555555555")
}

func (k *stackfield) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostJSON(ctx, "https://www.stackfield.com/apiwh"+notifier.Path(k.token), map[string]string{"Title": m.Body})
}

package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[chime]()

// chime posts to an Amazon Chime chat room through a webhook.
type chime struct{ id, token string }

func (h *chime) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Amazon Chime", "https://docs.aws.amazon.com/chime/latest/ug/webhooks.html"
	s.Setup = "In the menu of the chat room choose Manage webhooks and bots, Add webhook, and copy its URL, " +
		"which ends in {webhook_id}?token={token}; AWS announced the end of Amazon Chime for February 20, 2026."
	s.Groups(notifier.GroupChat)
	s.Words("aws chime")
	s.URL("chime://{webhook_id}/{token}")
	s.Native("https://hooks.chime.aws/incomingwebhooks/{webhook_id}")
	s.Format = notifier.Markdown
	s.Limits.Title, s.Limits.Body = 0, 4096
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chimeMentions}
	s.Secret(&h.id, "webhook_id", "ID of the webhook").Match(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`).Example("01234567-89ab-cdef-0123-456789abcdef")
	s.Secret(&h.token, "token", "token of the webhook").Match(`\S`).Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
}

func (h *chime) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	_, err := c.Do(ctx, &notifier.Request{
		URL:   "https://hooks.chime.aws/incomingwebhooks" + notifier.Path(h.id),
		Query: notifier.Fields("token", h.token),
		Body:  notifier.JSON(map[string]string{"Content": m.Body}),
	})
	return err
}

// chimeMentions breaks @All and @Present, and the mark of Markdown, which begins a
// message.
func chimeMentions(text string) string {
	if strings.HasPrefix(strings.TrimSpace(text), "/md") {
		text = chattext.Separator + text
	}
	return chattext.BreakMentions(text)
}

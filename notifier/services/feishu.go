package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[feishu]()

// feishu posts to a Feishu group through the webhook of a custom bot.
type feishu struct{ token string }

func (f *feishu) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Feishu", "https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot"
	s.Setup = "Add a custom bot in the settings of the Feishu group and copy its webhook URL, whose last part is the token."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("飞书", "bytedance", "china")
	s.URL("feishu://{token}")
	s.Native("https://open.feishu.cn/open-apis/bot/v2/hook/{token}")
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Body: larkText}
	// A mention is <at user_id="all">.
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMarkup}
	s.Secret(&f.token, "token", "token of the bot's webhook").Match(`^[A-Z0-9_-]+$`).Example("01234567-89ab-cdef-0123-456789abcdef")
}

func (f *feishu) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return larkPost(ctx, c, "https://open.feishu.cn/open-apis/bot/v2/hook"+notifier.Path(f.token)+"/", m.Body)
}

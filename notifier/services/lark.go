package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[lark]()

// larkText is the max size of a text in bytes. A request may have 20 KB.
const larkText = 19985

// lark posts to a group of Lark, the international edition of Feishu.
type lark struct{ token string }

func (l *lark) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Lark", "https://open.larksuite.com/document/client-docs/bot-v3/add-custom-bot"
	s.Setup = "Open the settings of the group in Lark, add a custom bot and copy its webhook URL, whose last part is the token."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("larksuite", "bytedance", "asia")
	s.URL("lark://{token}")
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Title: 1000, Body: larkText, InBody: true}
	// A mention is <at user_id="all">.
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMarkup}
	s.Native("https://open.larksuite.com/open-apis/bot/v2/hook/{token}")
	s.Secret(&l.token, "token", "token of the bot's webhook").Match(`^[a-z0-9_-]+$`).Example("01234567-89ab-cdef-0123-456789abcdef")
}

func (l *lark) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return larkPost(ctx, c, "https://open.larksuite.com/open-apis/bot/v2/hook"+notifier.Path(l.token), m.Text("\n"))
}

// larkPost sends a text to a webhook of Lark or Feishu.
func larkPost(ctx context.Context, c *notifier.Client, address, text string) error {
	payload := map[string]any{"msg_type": "text", "content": map[string]string{"text": text}}
	err := checkedDo(ctx, c, &notifier.Request{URL: address, Body: notifier.JSON(payload)}, "code", "msg", 0)
	return unlessBusy(err, 9499, 11232, 11233) // too many messages
}

package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[serverchan]()

// serverchan pushes to WeChat through ServerChan.
type serverchan struct{ token string }

func (h *serverchan) Describe(s *notifier.Schema) {
	s.Name, s.Site = "ServerChan", "https://sct.ftqq.com/"
	s.Setup = "Log in at sct.ftqq.com and copy your SendKey from sct.ftqq.com/sendkey."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("server酱", "方糖", "微信", "weixin", "china")
	s.URL("schan://{token}")
	s.Hints(
		notifier.Hint{Text: `(?<token>SC[TU][A-Za-z0-9]{10,})`, Is: "a SendKey"},
	)
	// The page of a message shows Markdown.
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMarkup}
	s.Secret(&h.token, "token", "SendKey of the account").Match(`^[a-z0-9-]+$`).Example("SCT12345TAbCdEf0123456789")
}

func (h *serverchan) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return checkedDo(ctx, c, &notifier.Request{
		URL:  "https://sctapi.ftqq.com" + notifier.Path(h.token+".send"),
		Body: notifier.Form(notifier.Fields("title", m.Title, "desp", m.Body)),
	}, "code", "message", 0)
}

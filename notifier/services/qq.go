package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[qq]()

// qq sends to QQ through Qmsg.
type qq struct{ token string }

func (q *qq) Describe(s *notifier.Schema) {
	s.Name, s.Site = "QQ Push", "https://qmsg.zendee.cn/docs/api/"
	s.Setup = "In the console at qmsg.zendee.cn, choose a bot, add the QQ number that " +
		"gets the messages, add the bot as a friend of that number, and copy your KEY."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("qmsg", "tencent", "china")
	s.URL("qq://{token}")
	s.Native("https://qmsg.zendee.cn/send/{token}")
	// A mention is @at=number@.
	s.Foreign = &notifier.ForeignText{Title: true, Mentions: chattext.BreakMentions}
	s.Secret(&q.token, "token", "key of the account").Match(`^[a-z0-9]{24,64}$`).Example("abc123def456ghi789jkl012mno345pq")
}

func (q *qq) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return checkedDo(ctx, c, &notifier.Request{
		URL:  "https://qmsg.zendee.cn/send" + notifier.Path(q.token),
		Body: notifier.Form(notifier.Fields("msg", m.Text("\n"))),
	}, "code", "reason", 0)
}

package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[wecombot]()

// wecombot posts to a group of WeCom through the webhook of its robot.
type wecombot struct{ key string }

func (w *wecombot) Describe(s *notifier.Schema) {
	s.Name, s.Site = "WeCom Bot", "https://developer.work.weixin.qq.com/document/path/91770"
	s.Setup = "Add a group robot to the WeCom group and copy the key in its webhook URL."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("企业微信", "wechat work", "tencent", "china")
	s.URL("wecombot://{key}")
	s.Native("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={key}")
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Body: 2048}
	// A mention is <@userid>.
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMarkup}
	s.Secret(&w.key, "key", "key of the robot's webhook").Match(`^[a-z0-9_-]+$`).Required().Example("01234567-89ab-cdef-0123-456789abcdef")
}

func (w *wecombot) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	err := checkedDo(ctx, c, &notifier.Request{
		URL:   "https://qyapi.weixin.qq.com/cgi-bin/webhook/send",
		Query: notifier.Fields("key", w.key),
		Body:  notifier.JSON(map[string]any{"msgtype": "text", "text": map[string]string{"content": m.Body}}),
	}, "errcode", "errmsg", 0)
	return unlessBusy(err, wechatBusy...)
}

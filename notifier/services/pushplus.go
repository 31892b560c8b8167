package services

import (
	"cmp"
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[pushplus]()

// pushplus sends to WeChat and other channels through Pushplus.
type pushplus struct {
	token   string
	topics  []string
	webhook string
	channel string
	wecom   bool // the scheme is wecom
}

func (p *pushplus) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushplus", "https://www.pushplus.plus/doc/"
	s.Setup = "The token is the user token of your account at www.pushplus.plus, see PushPlus's documentation."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("推送加", "微信", "weixin", "china")
	s.URL("pushplus|wecom://[{name}@]{token}[/{targets...}]")
	s.Native("https://www.pushplus.plus/send?token={token}")
	s.Format = notifier.HTML
	s.Limits = markup.Limits{Title: 200, Body: 20000}
	s.Secret(&p.token, "token", "token of the user").Match(`^[a-z0-9_-]{32,64}$`).Example("abc123def456ghi789jkl012mno345pq").Required()
	s.List(&p.topics, "targets", "codes of the groups to send to").Alias("to", "topic").Match(`^[a-z0-9_-]{1,50}$`).DropInvalid()
	s.String(&p.webhook, "name", "", "code of the webhook for the channel webhook")
	s.Choice(&p.channel, "channel", "", []string{"wechat", "webhook", "cp", "mail", "sms", "wecom"},
		"channel to use; default: webhook with a name, cp with wecom://, else wechat").Alias("mode")
}

func (p *pushplus) Finish(s *notifier.Schema) error {
	p.wecom = s.Scheme == "wecom"
	return nil
}

// channelName returns the channel in the URL, or the default.
func (p *pushplus) channelName() string {
	switch {
	case p.channel == "wecom":
		return "cp"
	case p.channel != "":
		return p.channel
	case p.webhook != "":
		return "webhook"
	case p.wecom:
		return "cp"
	}
	return "wechat"
}

var pushplusTemplates = map[notifier.Format]string{notifier.Text: "txt", notifier.Markdown: "markdown", notifier.HTML: "html"}

func (p *pushplus) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	topics := p.topics
	if len(topics) == 0 {
		topics = []string{""}
	}
	return c.Steps.Each(ctx, topics, func(ctx context.Context, topic string) error {
		payload := map[string]string{
			"token": p.token, "title": cmp.Or(m.Title, m.Body), "content": m.Body,
			"template": pushplusTemplates[m.Format], "channel": p.channelName(),
		}
		if topic != "" {
			payload["topic"] = topic
		}
		if p.channelName() == "webhook" && p.webhook != "" {
			payload["webhook"] = p.webhook
		}
		var answer struct {
			Code int
			Msg  string
		}
		err := c.DoJSON(ctx, &notifier.Request{URL: "https://www.pushplus.plus/send", Body: notifier.JSON(payload)}, &answer)
		if err == nil && answer.Code != 200 {
			err = refusedError(answer.Code, answer.Msg)
		}
		return err
	})
}

package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[plivo]()

// plivo sends text messages through Plivo.
type plivo struct {
	sms
	id, token, from string
}

func (p *plivo) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Plivo", "https://www.plivo.com/docs/messaging/api/message/send-a-message"
	s.Setup = "Auth ID and auth token are at the top of the home page of the Plivo console; source is one of your Plivo numbers."
	s.Groups(notifier.GroupSMS)
	s.URL("plivo://{auth_id}@{token|targets}/{source}[/{targets...}]")
	p.describe(s, smsPlus)
	p.describeBatch(s)
	p.toSelf = true
	s.Limits.Body = 140
	s.String(&p.id, "auth_id", "", "auth ID of the account").Alias("id").Match(`^[a-z0-9]{20,30}$`).
		Example("MAXXXXXXXXXXXXXXXXXX")
	s.Secret(&p.token, "token", "auth token of the account").Match(`^[a-z0-9]{30,50}$`).
		Example("abcdefghijklmnopqrstuvwxyz0123456789abcd")
	s.String(&p.from, "source", "", "telephone number to send from").Alias("from").Normalize(smsPlus).Example("15557654321")
}

func (p *plivo) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return p.each(ctx, c, p.or(p.from), 20, func(ctx context.Context, numbers []string) error {
		_, err := c.Do(ctx, &notifier.Request{
			URL:  "https://api.plivo.com" + notifier.Path("v1", "Account", p.id, "Message") + "/",
			User: p.id, Password: p.token,
			Body: notifier.JSON(map[string]string{"src": p.from, "dst": strings.Join(numbers, "<"), "text": m.Body}),
		})
		return err
	})
}

package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[messageBird]()

// messageBird sends text messages through MessageBird.
type messageBird struct {
	sms
	key, from string
}

func (b *messageBird) Describe(s *notifier.Schema) {
	s.Name, s.Site = "MessageBird", "https://developers.messagebird.com/api/sms-messaging/"
	s.Setup = "Create a live access key for the API in the MessageBird dashboard; source is one of your numbers."
	s.Groups(notifier.GroupSMS)
	s.Words("bird")
	s.URL("msgbird://{apikey}/{source}[/{targets...}]")
	b.describe(s, notifier.FullPhone)
	b.toSelf = true
	s.Secret(&b.key, "apikey", "API key").Match(`^[a-z0-9]{25}$`).Example("abcdefghijklmnopqrstuvwxy")
	smsSender(s, &b.from, "source").Alias("from")
}

func (b *messageBird) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, b.or(b.from), func(ctx context.Context, number string) error {
		form := notifier.Fields("originator", "+"+b.from, "recipients", "+"+number, "body", m.Body)
		if smsUnicode(m.Body) {
			form.Set("datacoding", "unicode")
		}
		return c.PostForm(ctx, "https://rest.messagebird.com/messages", form, "Authorization", "AccessKey "+b.key)
	})
}

package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[eight00com]()

// eight00com sends text messages and files through 800.com.
type eight00com struct {
	sms
	token, from string
}

func (e *eight00com) Describe(s *notifier.Schema) {
	s.Name, s.Site = "800.com", "https://www.800.com"
	s.Setup = "The token is an API token of your 800.com account (see the documentation of 800.com); " +
		"from_phone is a number of the account that can send text messages."
	s.Groups(notifier.GroupSMS)
	s.Words("toll-free", "united states")
	s.URL("eight00com://{token}@{from_phone|targets}[/{targets...}]")
	e.describe(s, notifier.FullPhone)
	e.toSelf = true
	s.Limits.Body, s.Attachments = 600, true
	s.Secret(&e.token, "token", "personal access token").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	smsSender(s, &e.from, "from_phone").Alias("from")
}

func (e *eight00com) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, e.or(e.from), func(ctx context.Context, number string) error {
		header := map[string]string{"Authorization": "Bearer " + e.token}
		const address = "https://api.800.com/message"
		if len(m.Attachments) == 0 {
			return c.Post(ctx, address, notifier.JSON(map[string]string{
				"sender": "+" + e.from, "recipient": "+" + number, "message": m.Body,
			}), header)
		}
		parts := []notifier.FormPart{
			{Name: "sender", Value: "+" + e.from}, {Name: "recipient", Value: "+" + number}, {Name: "message", Value: m.Body},
		}
		for _, a := range m.Attachments {
			parts = append(parts, notifier.FormPart{Name: "media[]", File: a})
		}
		return c.Post(ctx, address, notifier.Multipart(parts...), header)
	})
}

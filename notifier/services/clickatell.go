package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[clickatell]()

// clickatell sends text messages through Clickatell's One API over HTTP.
type clickatell struct {
	sms
	key, from string
}

func (x *clickatell) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Clickatell", "https://docs.clickatell.com/channels/sms-channels/sms-api-reference/"
	s.Setup = "Create an SMS integration for the HTTP API in the Clickatell portal and copy its API key."
	s.Groups(notifier.GroupSMS)
	s.Words("south africa")
	s.URL("clickatell://[{source}@]{apikey}/{targets...}")
	x.describe(s, notifier.FullPhone)
	s.Limits.Body = 32768
	s.Secret(&x.key, "apikey", "API key").Example("AbCdEf0123456789GhIj")
	smsSender(s, &x.from, "source").Alias("from")
}

func (x *clickatell) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, x.targets, func(ctx context.Context, number string) error {
		query := notifier.Fields("apiKey", x.key, "content", m.Body, "to", number)
		if x.from != "" {
			query.Set("from", x.from)
		}
		var answer struct {
			Messages []struct {
				Accepted         *bool
				ErrorDescription string
			}
			ErrorDescription string
		}
		err := smsAsk(ctx, c, &notifier.Request{
			URL: "https://platform.clickatell.com/messages/http/send", Query: query,
			Header: map[string]string{"Accept": "application/json", "Content-Type": "application/json"},
		}, &answer)
		if err == nil && answer.ErrorDescription != "" {
			err = smsRefused(answer.ErrorDescription)
		}
		for _, r := range answer.Messages {
			if err == nil && r.Accepted != nil && !*r.Accepted {
				err = smsRefused(r.ErrorDescription)
			}
		}
		return err
	})
}

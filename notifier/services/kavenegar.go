package services

import (
	"context"
	"net/http"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[kavenegar]()

// kavenegar sends text messages through Kavenegar.
type kavenegar struct {
	sms
	key, from string
}

func (k *kavenegar) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Kavenegar", "https://kavenegar.com/rest.html"
	s.Setup = "The API key is in your Kavenegar account, see Kavenegar's REST documentation; source is one of the lines of the account."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("iran")
	s.URL("kavenegar://[{source}@]{apikey}/{targets...}")
	k.describe(s, notifier.FullPhone)
	s.Secret(&k.key, "apikey", "API key").Match(`^[a-z0-9]+$`).Example("0123456789ABCDEF0123456789ABCDEF")
	smsSender(s, &k.from, "source").Alias("from")
}

func (k *kavenegar) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, k.targets, func(ctx context.Context, number string) error {
		query := notifier.Fields("receptor", number, "message", m.Body)
		if k.from != "" {
			query.Set("sender", k.from)
		}
		var answer struct {
			Return struct {
				Status  int
				Message string
			}
		}
		err := smsAsk(ctx, c, &notifier.Request{
			Method: http.MethodPost, Query: query,
			URL:    "http://api.kavenegar.com" + notifier.Path("v1", k.key, "sms", "send.json"),
			Header: map[string]string{"Accept": "application/json"},
		}, &answer)
		if status := answer.Return.Status; err == nil && status != 0 && status != 200 {
			err = smsRefused(answer.Return.Message)
		}
		return err
	})
}

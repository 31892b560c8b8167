package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[httpSMS]()

// httpSMS sends text messages through an Android phone that runs httpSMS.
type httpSMS struct {
	sms
	key, from string
}

func (h *httpSMS) Describe(s *notifier.Schema) {
	s.Name, s.Site = "httpSMS", "https://docs.httpsms.com/"
	s.Setup = "Install the httpSMS app on an Android phone, sign in, " +
		"and copy the API key from httpsms.com/settings; from_phone is the number of that phone."
	s.Groups(notifier.GroupSMS)
	s.Words("android", "own phone")
	s.URL("httpsms://{apikey}@{from_phone|targets}[/{targets...}]")
	h.describe(s, notifier.FullPhone)
	h.toSelf = true
	s.Secret(&h.key, "apikey", "API key").Alias("key").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	smsSender(s, &h.from, "from_phone").Alias("from")
}

func (h *httpSMS) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, h.or(h.from), func(ctx context.Context, number string) error {
		return c.PostJSON(ctx, "https://api.httpsms.com/v1/messages/send",
			map[string]string{"from": "+" + h.from, "to": "+" + number, "content": m.Body}, "x-api-key", h.key)
	})
}

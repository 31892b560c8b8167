package services

import (
	"context"
	"strconv"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[vonage]()

// vonage sends text messages through Vonage, formerly Nexmo.
type vonage struct {
	sms
	key, secret, from string
	ttl               int
}

func (v *vonage) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Vonage", "https://developer.vonage.com/en/api/sms"
	s.Setup = "API key and API secret are in the Vonage API dashboard under API Settings."
	s.Groups(notifier.GroupSMS)
	s.Words("sms")
	s.URL("vonage|nexmo://{apikey}:{secret}@{from_phone}[/{targets...}]")
	v.describe(s, notifier.FullPhone).DropInvalid()
	v.toSelf = true
	s.Secret(&v.key, "apikey", "API key").Alias("key").Match(`^[a-z0-9]+$`).Example("0a1b2c3d")
	s.Secret(&v.secret, "secret", "API secret").Match(`^[a-z0-9]+$`).Example("AbCdEf0123456789")
	smsSender(s, &v.from, "from_phone").Alias("from", "source")
	s.Int(&v.ttl, "ttl", 900000, "milliseconds to try delivery for").Range(20000, 604800000)
}

func (v *vonage) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, v.or(v.from), func(ctx context.Context, number string) error {
		var answer struct {
			Messages []struct {
				Status string
				Error  string `json:"error-text"`
			}
		}
		form := notifier.Fields("api_key", v.key, "api_secret", v.secret, "ttl", strconv.Itoa(v.ttl),
			"from", v.from, "text", m.Body, "to", number)
		if smsUnicode(m.Body) {
			form.Set("type", "unicode")
		}
		err := smsAsk(ctx, c, &notifier.Request{URL: "https://rest.nexmo.com/sms/json", Body: notifier.Form(form)}, &answer)
		for _, r := range answer.Messages {
			if err == nil && r.Status != "0" && r.Status != "" {
				err = smsRefused(r.Error, "status "+r.Status)
			}
		}
		return err
	})
}

package services

import (
	"context"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[burstSMS]()

// burstSMS sends text messages through Burst SMS (TransmitSMS).
type burstSMS struct {
	sms
	key, secret, from, country string
	validity                   int
}

func (b *burstSMS) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Burst SMS", "https://developer.transmitsms.com/"
	s.Setup = "The API key is in the settings of the Burst SMS account, " +
		"where you also choose the API secret; sender_id is a number or name of the account."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("australia", "transmitsms", "kudosity")
	s.URL("burstsms://{apikey}:{secret}@{sender_id}/{targets...}")
	b.describe(s, notifier.FullPhone)
	b.describeBatch(s)
	s.Secret(&b.key, "apikey", "API key").Match(`^[a-z0-9]+$`).Alias("key").Example("0123456789abcdef0123456789abcdef")
	s.Secret(&b.secret, "secret", "API secret").Match(`^[a-z0-9]+$`).Example("s3cret")
	s.String(&b.from, "sender_id", "", "number or name to send from").Alias("from", "source").Example("15557654321")
	s.Choice(&b.country, "country", "us", []string{"au", "nz", "gb", "us"}, "country of numbers without a country code")
	s.Int(&b.validity, "validity", 0, "minutes to try delivery; 0 for no limit").Range(0, 1e5)
}

func (b *burstSMS) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return b.each(ctx, c, b.targets, 500, func(ctx context.Context, numbers []string) error {
		form := notifier.Fields("countrycode", b.country, "message", m.Body, "from", b.from, "to", strings.Join(numbers, ","))
		if b.validity > 0 {
			form.Set("validity", strconv.Itoa(b.validity))
		}
		var answer struct {
			Error struct{ Code, Description string }
		}
		err := smsAsk(ctx, c, &notifier.Request{
			URL:    "https://api.transmitsms.com/send-sms.json",
			Header: map[string]string{"Accept": "application/json"},
			User:   b.key, Password: b.secret,
			Body: notifier.Form(form),
		}, &answer)
		if err == nil && answer.Error.Code != "" && answer.Error.Code != "SUCCESS" {
			err = smsRefused(answer.Error.Description, answer.Error.Code)
		}
		return err
	})
}

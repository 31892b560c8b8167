package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[smsManager]()

// smsManager sends text messages through SMS Manager.
type smsManager struct {
	sms
	key, from, gateway string
}

func (x *smsManager) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SMS Manager", "https://smsmanager.cz/api/http"
	s.Setup = "Create an API key in your SMS Manager account."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("czech", "czechia", "slovakia")
	s.URL("smsmanager|smsmgr://{apikey}@{targets...}")
	x.describe(s, smsAsWritten(9))
	x.describeBatch(s)
	s.Secret(&x.key, "apikey", "API key").Alias("key").Example("0123456789abcdef0123456789abcdef01234567")
	s.String(&x.from, "from", "", "number or name to send from").Alias("sender")
	s.Choice(&x.gateway, "gateway", "high", []string{"high", "economy", "low", "direct"}, "quality of the route")
}

func (x *smsManager) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return x.each(ctx, c, x.targets, 4000, func(ctx context.Context, numbers []string) error {
		query := notifier.Fields(
			"apikey", x.key, "gateway", x.gateway, "number", strings.Join(numbers, ";"), "message", m.Body)
		if from := []rune(x.from); len(from) > 0 {
			// Networks show 11 characters of a sender.
			query.Set("sender", string(from[:min(len(from), 11)]))
		}
		answer, err := c.Do(ctx, &notifier.Request{URL: "https://http-api.smsmanager.cz/Send", Query: query})
		if err == nil && strings.HasPrefix(string(answer.Body), "ERROR") {
			err = smsRefused(string(answer.Body))
		}
		return err
	})
}

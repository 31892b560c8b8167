package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[bulkVS]()

// bulkVS sends text messages through BulkVS.
type bulkVS struct {
	sms
	user, password, from string
}

func (b *bulkVS) Describe(s *notifier.Schema) {
	s.Name, s.Site = "BulkVS", "https://portal.bulkvs.com/api/v1.0/documentation"
	s.Setup = "User and password are the API credentials of the BulkVS account (see the " +
		"documentation of its API); from_phone is a number of the account that can send text messages."
	s.Groups(notifier.GroupSMS)
	s.Words("bulk solutions", "united states")
	s.URL("bulkvs://{user}:{password}@{from_phone|targets}[/{targets...}]")
	b.describe(s, notifier.FullPhone)
	b.describeBatch(s)
	b.toSelf = true
	s.String(&b.user, "user", "", "API user name").Example("alice")
	s.Secret(&b.password, "password", "API password").Alias("pass").Example("pa55word")
	smsSender(s, &b.from, "from_phone").Alias("from")
}

func (b *bulkVS) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return b.each(ctx, c, b.or(b.from), 4000, func(ctx context.Context, numbers []string) error {
		payload := map[string]any{"From": b.from, "To": numbers, "Message": m.Body}
		if !b.batch {
			payload["To"] = numbers[0]
		}
		var answer struct {
			Results []struct{ To, Status string }
		}
		err := smsAsk(ctx, c, &notifier.Request{
			URL:    "https://portal.bulkvs.com/api/v1.0/messageSend",
			Header: map[string]string{"Accept": "application/json"},
			User:   b.user, Password: b.password, Body: notifier.JSON(payload),
		}, &answer)
		for _, r := range answer.Results {
			if err == nil && r.Status == "FAILED" {
				err = smsRefused("sending to " + r.To + " failed")
			}
		}
		return err
	})
}

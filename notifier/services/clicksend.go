package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[clickSend]()

// clickSend sends text messages through ClickSend.
type clickSend struct {
	sms
	user, key string
}

func (x *clickSend) Describe(s *notifier.Schema) {
	s.Name, s.Site = "ClickSend", "https://developers.clicksend.com/docs/rest/v3/"
	s.Setup = "User name and API key are in the ClickSend dashboard under API Credentials."
	s.Groups(notifier.GroupSMS)
	s.Words("australia")
	s.URL("clicksend://{user}:{apikey}@{targets...}")
	x.describe(s, smsPlus)
	x.describeBatch(s)
	s.String(&x.user, "user", "", "user name").Example("alice")
	s.Secret(&x.key, "apikey", "API key").Alias("key", "password", "pass").Example("01234567-89AB-CDEF-0123-456789ABCDEF")
}

func (x *clickSend) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return x.each(ctx, c, x.targets, 1000, func(ctx context.Context, numbers []string) error {
		messages := make([]map[string]string, len(numbers))
		for i, number := range numbers {
			// source is the language of the client. "php" is an example in the
			// API's documentation.
			messages[i] = map[string]string{"source": "php", "body": m.Body, "to": number}
		}
		var answer struct {
			Data struct {
				Messages []struct{ Status string }
			}
		}
		err := smsAsk(ctx, c, &notifier.Request{
			URL: "https://rest.clicksend.com/v3/sms/send", User: x.user, Password: x.key,
			Body: notifier.JSON(map[string]any{"messages": messages}),
		}, &answer)
		for _, r := range answer.Data.Messages {
			if err == nil && r.Status != "" && r.Status != "SUCCESS" {
				err = smsRefused(r.Status)
			}
		}
		return err
	})
}

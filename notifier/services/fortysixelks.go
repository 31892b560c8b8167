package services

import (
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[fortySixElks]()

// fortySixElks sends text messages through 46elks.
type fortySixElks struct {
	sms
	user, password, from string
}

func (e *fortySixElks) Describe(s *notifier.Schema) {
	s.Name, s.Site = "46elks", "https://46elks.com/docs/send-sms"
	s.Setup = "API user name and API password are in the dashboard at dashboard.46elks.com; from_phone is a number of the account or a name."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("sweden")
	s.URL("46elks|elks://{user}:{password}@{from_phone}[/{targets...}]")
	s.Native("https://{user}:{password}@api.46elks.com/a1/sms")
	e.describe(s, smsAsWritten(10))
	e.toSelf = true
	s.String(&e.user, "user", "", "API user name").Example("u0123456789abcdef")
	s.Secret(&e.password, "password", "API password").Alias("pass").Example("0123456789ABCDEF")
	s.String(&e.from, "from_phone", "", "number or name to send from").Alias("from").Example("+15557654321")
}

func (e *fortySixElks) Finish(s *notifier.Schema) error {
	if _, err := smsAsWritten(10)(e.from); err != nil && len(e.targets) == 0 {
		return errors.New("a name cannot receive messages; add a telephone number to send to")
	}
	return e.sms.Finish(s)
}

func (e *fortySixElks) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	self, _ := smsAsWritten(10)(e.from)
	return c.Steps.Each(ctx, e.or(self), func(ctx context.Context, number string) error {
		_, err := c.Do(ctx, &notifier.Request{
			URL:  "https://api.46elks.com/a1/sms",
			User: e.user, Password: e.password,
			Body: notifier.Form(notifier.Fields("to", number, "from", e.from, "message", m.Body)),
		})
		return err
	})
}

package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[freeMobile]()

// freeMobile sends a text message to the telephone of a Free Mobile customer.
type freeMobile struct{ user, password string }

func (f *freeMobile) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Free-Mobile", "https://mobile.free.fr/"
	s.Setup = "In your account at mobile.free.fr turn on the option Notifications par SMS, " +
		"which shows the key for the password; user is the number that you log in with."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("free", "iliad", "france")
	s.URL("freemobile://{user}@{password}")
	s.Limits.Title, s.Limits.Body = 0, 160
	s.String(&f.user, "user", "", "number that you log in with").Example("12345678")
	s.Secret(&f.password, "password", "key of the option Notifications par SMS").Alias("pass").Example("AbCdEf01234567")
}

func (f *freeMobile) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostJSON(ctx, "https://smsapi.free-mobile.fr/sendmsg",
		map[string]string{"user": f.user, "pass": f.password, "msg": m.Body})
}

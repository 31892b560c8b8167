package services

import (
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[threema]()

// threema sends through Threema Gateway in basic mode: the gateway encrypts the
// message.
type threema struct {
	id, secret string
	targets    []string
}

func (t *threema) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Threema Gateway", "https://gateway.threema.ch/en/developer/api"
	s.Setup = "Open an account for basic mode at gateway.threema.ch: gateway_id is its API identity, " +
		"8 characters that usually begin with *, and secret is its API secret."
	s.Groups(notifier.GroupChat, notifier.GroupPhone)
	s.Words("switzerland", "encrypted")
	s.URL("threema://{gateway_id}@{secret}/{targets...}")
	s.Hints(
		notifier.Hint{Text: `(?<gateway_id>\*[A-Z0-9]{7})`, Is: "the ID of a gateway"},
	)
	s.Limits = markup.Limits{Body: 3500}
	s.Secret(&t.id, "gateway_id", "gateway ID: a * and 7 characters").Alias("from", "gwid").
		Match(`^.{8}$`).Example("*GATEWAY")
	s.Secret(&t.secret, "secret", "API secret").Example("AbCdEf0123456789")
	s.Phones(&t.targets, "targets", "Threema IDs, telephone numbers and e-mail addresses").Alias("to").
		Normalize(func(text string) (string, error) { _, target, err := threemaTarget(text); return target, err })
}

var threemaID = lazyregexp.New(`(?i)^[*a-z0-9][a-z0-9]{7}$`)

// threemaTarget returns the gateway's parameter for a target, and its value.
func threemaTarget(text string) (kind, target string, err error) {
	if threemaID.MatchString(text) {
		return "to", text, nil
	}
	if _, err := notifier.Email(text); err == nil {
		return "email", text, nil
	}
	if phone, err := notifier.FullPhone(text); err == nil {
		return "phone", phone, nil
	}
	return "", "", errors.New("is not a Threema ID, a telephone number with its country code or an e-mail address")
}

func (t *threema) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, t.targets, func(ctx context.Context, target string) error {
		kind, target, err := threemaTarget(target)
		if err != nil {
			return err
		}
		_, err = c.Do(ctx, &notifier.Request{
			Method: "POST",
			URL:    "https://msgapi.threema.ch/send_simple",
			Query:  notifier.Fields("from", t.id, "secret", t.secret, kind, target, "text", m.Body),
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
		})
		return err
	})
}

package services

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[octopush]()

// octopush sends text messages through Octopush.
type octopush struct {
	sms
	login, mailbox, domain, key, from string
	replies                           bool
	kind                              int
	purpose                           string
}

func (o *octopush) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Octopush", "https://dev.octopush.com/en/sms-gateway-api-documentation/"
	s.Setup = "Copy the API key from your Octopush account; api_login is the e-mail address of that account."
	s.Groups(notifier.GroupSMS)
	s.Words("france")
	s.URL(
		"octopush://{sender}:{mailbox}@{domain}/{api_key}[/{targets...}]",
		"octopush://{mailbox}@{domain}/{api_key}[/{targets...}]",
		"octopush://{api_login}/{api_key}[/{targets...}]",
	)
	s.Way(3, "with the account's e-mail address in one field")
	s.Way(2, "with the account's e-mail address in two fields")
	s.Way(1, "with a name to send from")
	o.describe(s, smsPlus)
	o.describeBatch(s)
	s.Limits.Body = 1224
	s.Secret(&o.login, "api_login", "e-mail address of the account").Alias("login").Example("user@example.com")
	s.Secret(&o.mailbox, "mailbox", "part of the e-mail address before the @").Example("user")
	s.String(&o.domain, "domain", "", "part of the e-mail address after the @").Example("example.com")
	s.Secret(&o.key, "api_key", "API key").Alias("key").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.String(&o.from, "sender", "", "name to send from; default: the sender's name").Example("Alerts")
	s.Bool(&o.replies, "replies", false, "allow replies to the message")
	s.Choice(&o.purpose, "purpose", "alert", []string{"alert", "wholesale"}, "what the message is for")
	s.Enum(&o.kind, "type", "sms_premium", []notifier.Choice{
		{Name: "sms_premium", Value: 0, Synonyms: []string{"premium", "p", "smsp", "+"}},
		{Name: "sms_low_cost", Value: 1, Synonyms: []string{"low_cost", "low", "l", "smsl", "-"}},
	}, "quality of the message's route")
}

var octopushTypes = []string{"sms_premium", "sms_low_cost"}

func (o *octopush) Finish(s *notifier.Schema) error {
	if _, err := notifier.Email(o.account()); err != nil {
		return errors.New("api_login is not an e-mail address; write octopush://user@example.com/api_key/number")
	}
	return o.sms.Finish(s)
}

// account returns the e-mail address of the account, from api_login or from
// mailbox and domain.
func (o *octopush) account() string {
	if o.login != "" {
		return o.login
	}
	return o.mailbox + "@" + o.domain
}

func (o *octopush) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	from := o.from
	if from == "" {
		from = m.Identity.Name
	}
	return o.each(ctx, c, o.targets, 500, func(ctx context.Context, numbers []string) error {
		recipients := make([]map[string]string, len(numbers))
		for i, number := range numbers {
			recipients[i] = map[string]string{"phone_number": number}
		}
		_, err := c.Do(ctx, &notifier.Request{
			URL: "https://api.octopush.com/v1/public/sms-campaign/send",
			Header: map[string]string{
				"Accept": "application/json", "api-key": o.key, "api-login": o.account(), "cache-control": "no-cache",
			},
			Body: notifier.JSON(map[string]any{
				"recipients": recipients, "text": m.Body, "type": octopushTypes[o.kind], "purpose": o.purpose,
				"sender": from, "with_replies": o.replies,
			}),
			Accept: func(code int) bool { return code == http.StatusCreated },
		})
		return err
	})
}

package services

import (
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[voipMS]()

// voipMS sends text messages through VoIP.ms, within North America.
type voipMS struct {
	sms
	password, mailbox, domain, from string
}

func (v *voipMS) Describe(s *notifier.Schema) {
	s.Name, s.Site = "VoIPms", "https://voip.ms/m/apidocs.php"
	s.Setup = "Set the API password under Main Menu, SOAP and REST/JSON API at voip.ms, " +
		"enable the API there for the gateway's IP address, and enable SMS for the number to send from."
	s.Groups(notifier.GroupSMS)
	s.Words("canada", "united states")
	s.URL("voipms://{password}:{mailbox}@{domain}/{from_phone}[/{targets...}]")
	v.describe(s, smsNorthAmerica)
	v.toSelf = true
	s.Secret(&v.password, "password", "password of the API").Example("pa55word")
	s.String(&v.mailbox, "mailbox", "", "the account's e-mail address before the @").Example("user")
	s.String(&v.domain, "domain", "", "the account's e-mail address after the @").Example("example.com")
	s.String(&v.from, "from_phone", "", "telephone number to send from").Alias("from").
		Normalize(smsNorthAmerica).Example("15557654321")
}

func (v *voipMS) Finish(s *notifier.Schema) error {
	if _, err := notifier.Email(v.mailbox + "@" + v.domain); err != nil {
		return errors.New("mailbox and domain are not an e-mail address; write voipms://password:user@example.com/from/to")
	}
	return v.sms.Finish(s)
}

func (v *voipMS) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, v.or(v.from), func(ctx context.Context, number string) error {
		var answer struct{ Status, Message string }
		err := smsAsk(ctx, c, &notifier.Request{
			URL: "https://voip.ms/api/v1/rest.php",
			Query: notifier.Fields("api_username", v.mailbox+"@"+v.domain, "api_password", v.password,
				"did", v.from, "dst", number, "message", m.Body, "method", "sendSMS"),
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
		}, &answer)
		if err == nil && answer.Status != "" && answer.Status != "success" {
			err = smsRefused(answer.Message, answer.Status)
		}
		return err
	})
}

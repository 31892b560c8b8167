package services

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[ses]()

// ses sends e-mail through Amazon Simple Email Service.
type ses struct {
	aws
	mailAPI
}

func (e *ses) Describe(s *notifier.Schema) {
	s.Name, s.Site = "AWS SES", "https://docs.aws.amazon.com/ses/latest/APIReference/API_SendRawEmail.html"
	s.Setup = "Create an access key for an IAM user with the permission ses:SendRawEmail, " +
		"and verify the sender's address or domain in the Amazon SES console."
	s.Groups(notifier.GroupMail)
	s.Words("amazon ses", "simple email service")
	s.URL(
		"ses://{user}[:{token}]@{host}/{access_key_id}/{secret_access_key...}/{region}[/{targets...}]",
		"ses://{from}/{access_key_id}/{secret_access_key...}/{region}[/{targets...}]",
	)
	s.Way(2, "with the sender's address in one field")
	s.Way(1, "with the sender's address in two fields")
	s.Hints(
		notifier.Hint{Text: `(?<access_key_id>AKIA[A-Z0-9]{16})`, Is: "the ID of an access key", Guess: true},
	)
	e.aws.describe(s)
	e.describeMail(s)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	e.describeName(s)
	e.describeReply(s)
}

func (e *ses) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	sender := e.sender
	reply, _ := mail.ParseAddress(e.replyTo)
	sender.Name = cmp.Or(sender.Name, reply.Name, mail.OneLine(m.Identity.Description))
	return e.each(ctx, c, 1, func(ctx context.Context, rcpt mail.Recipients) error {
		message, err := sesMail(m, sender, reply, rcpt)
		if err != nil {
			return fmt.Errorf("writing the message: %w", err)
		}
		form := notifier.Fields(
			"Action", "SendRawEmail", "Version", "2010-12-01",
			"Source", sender.Header(), "RawMessage.Data", notifier.Base64(message),
		)
		for i, address := range mail.Addresses(slices.Concat(rcpt.To, rcpt.BCC, rcpt.CC)) {
			form.Set(fmt.Sprintf("Destinations.member.%d", i+1), address)
		}
		_, err = e.post(ctx, c, "email", "ses", form, message)
		return err
	})
}

package services

import (
	"context"
	"maps"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[resend]()

// resend sends e-mail through Resend.
type resend struct {
	mailAPI
	reply []string
}

func (r *resend) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Resend", "https://resend.com/docs/api-reference/emails/send-email"
	s.Setup = "Create an API key under API Keys in Resend, and verify the sender's domain under Domains."
	s.Groups(notifier.GroupMail)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	r.describeKeyFirst(s, "resend").Match(`^[a-z0-9._-]+$`)
	s.Hints(
		notifier.Hint{Text: `(?<apikey>re_\w{16,})`, Is: "an API key"},
	)
	r.describeName(s)
	mail.Copies(s, &r.reply, "reply", "addresses that replies go to")
	s.Param("apikey").Example("re_AbCdEf12_GhIjKlMnOpQr")
}

func (r *resend) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := "text"
	if m.Format == notifier.HTML {
		text = "html"
	}
	payload := map[string]any{"from": r.sender.Header(), "subject": mailSubject(m), text: m.Body}
	if files := mailFiles(m.Attachments); files != nil {
		payload["attachments"] = files
	}
	if header := r.threadHeader(m, nil); header != nil {
		payload["headers"] = header
	}
	return r.each(ctx, c, 1, func(ctx context.Context, rcpt mail.Recipients) error {
		p := maps.Clone(payload)
		p["to"] = rcpt.To[0].Address
		if len(rcpt.CC) > 0 {
			p["cc"] = mail.Headers(rcpt.CC)
		}
		if len(rcpt.BCC) > 0 {
			p["bcc"] = mail.Addresses(rcpt.BCC)
		}
		if reply := mail.Without(mail.ParseList(r.reply), rcpt.To); len(reply) > 0 {
			p["reply_to"] = mail.Headers(reply)
		}
		return c.Post(ctx, "https://api.resend.com/emails", notifier.JSON(p, m.Attachments...),
			map[string]string{"Authorization": "Bearer " + r.apikey})
	})
}

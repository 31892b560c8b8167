package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[mailersend]()

// mailersend sends e-mail through MailerSend.
type mailersend struct{ mailAPI }

func (e *mailersend) Describe(s *notifier.Schema) {
	s.Name, s.Site = "MailerSend", "https://developers.mailersend.com/api/v1/email.html"
	s.Setup = "Create an API token in MailerSend; the domain of the sender must be verified there."
	s.Groups(notifier.GroupMail)
	s.Words("mailerlite")
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	e.describeKeyFirst(s, "mailersend").Match(`^[a-z0-9._-]+$`)
	s.Hints(
		notifier.Hint{Text: `(?<apikey>mlsn\.\w{32,})`, Is: "an API token"},
	)
	e.describeReply(s)
	s.Param("apikey").Example("mlsn.0123456789abcdef")
}

func (e *mailersend) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	html, text := mailBodies(m)
	payload := map[string]any{
		"from": mailObject(e.sender), "subject": mailSubject(m),
		"html": html,
		"text": text,
	}
	if r, ok := mail.ParseAddress(e.replyTo); ok {
		payload["reply_to"] = map[string]string{"email": r.Address}
	}
	if thread := mail.Thread(m, e.sender.Address); thread != "" {
		payload["in_reply_to"], payload["references"] = thread, []string{thread}
	}
	var files []map[string]string
	for _, a := range m.Attachments {
		files = append(files, map[string]string{
			"filename": a.Name, "content": notifier.Base64(a), "disposition": "attachment",
		})
	}
	if files != nil {
		payload["attachments"] = files
	}
	return e.each(ctx, c, 1, func(ctx context.Context, rcpt mail.Recipients) error {
		return c.Post(ctx, "https://api.mailersend.com/v1/email",
			notifier.JSON(mailRecipients(rcpt, payload, "to", "cc", "bcc"), m.Attachments...),
			map[string]string{"Authorization": "Bearer " + e.apikey})
	})
}

package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[mailersend]()

// mailersend sends e-mail through MailerSend.
type mailersend struct{ mailAPI }

func (e *mailersend) Describe(s *notifier.Schema) {
	s.Name, s.Site = "MailerSend", "https://developers.mailersend.com/api/v1/email.html"
	e.describeKeyFirst(s, "mailersend").Match(`^[a-z0-9._-]+$`)
	e.describeReply(s)
}

func (e *mailersend) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{
		"from": e.sender.named(), "subject": mailSubject(m),
		"html": markup.Convert(m.Body, m.Format, notifier.HTML),
		"text": markup.Convert(m.Body, m.Format, notifier.Text),
	}
	if r, ok := parseMailbox(e.replyTo); ok {
		payload["reply_to"] = map[string]string{"email": r.address}
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
	return e.each(ctx, c, 1, func(ctx context.Context, l letter) error {
		return c.Post(ctx, "https://api.mailersend.com/v1/email",
			notifier.JSON(l.emails(payload, "to", "cc", "bcc"), m.Attachments...),
			map[string]string{"Authorization": "Bearer " + e.apikey})
	})
}

package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[postmark]()

// postmark sends e-mail through Postmark.
type postmark struct {
	mailAPI
	reply []string
}

func (p *postmark) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Postmark", "https://postmarkapp.com/developer/api/email-api"
	p.describeKeyFirst(s, "postmark")
	p.describeName(s)
	mailList(s, &p.reply, "reply", "addresses that answers go to")
}

func (p *postmark) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := "TextBody"
	if m.Format == notifier.HTML {
		text = "HtmlBody"
	}
	files := mailFilesAs(m.Attachments, "Name", "ContentType", "Content")
	return p.each(ctx, c, 1, func(ctx context.Context, l letter) error {
		payload := map[string]any{
			"From": p.sender.header(), "To": l.to[0].address, "Subject": mailSubject(m), text: m.Body,
		}
		for name, value := range map[string]string{
			"Cc":      strings.Join(mailHeaders(l.cc), ","),
			"Bcc":     strings.Join(mailAddresses(l.bcc), ","),
			"ReplyTo": strings.Join(mailHeaders(mailWithout(mailboxes(p.reply), l.to)), ","),
		} {
			if value != "" {
				payload[name] = value
			}
		}
		if files != nil {
			payload["Attachments"] = files
		}
		return verdict(ctx, c, &notifier.Request{
			URL:    "https://api.postmarkapp.com/email",
			Header: map[string]string{"X-Postmark-Server-Token": p.apikey, "Accept": "application/json"},
			Body:   notifier.JSON(payload, m.Attachments...),
		}, "ErrorCode", "Message", 0)
	})
}

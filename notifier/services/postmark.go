package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[postmark]()

// postmark sends e-mail through Postmark.
type postmark struct {
	mailAPI
	reply []string
}

func (p *postmark) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Postmark", "https://postmarkapp.com/developer/api/email-api"
	s.Setup = "Open your server in Postmark and copy its Server API token from API Tokens; " +
		"the sender must be a verified sender signature or domain."
	s.Groups(notifier.GroupMail)
	s.Words("activecampaign")
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	p.describeKeyFirst(s, "postmark")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`, Is: "a server API token", Guess: true},
	)
	p.describeName(s)
	mail.Copies(s, &p.reply, "reply", "addresses that replies go to")
	s.Param("apikey").Example("01234567-89ab-cdef-0123-456789abcdef")
}

func (p *postmark) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := "TextBody"
	if m.Format == notifier.HTML {
		text = "HtmlBody"
	}
	files := mailFilesAs(m.Attachments, "Name", "ContentType", "Content")
	var header []map[string]string
	if thread := mail.Thread(m, p.sender.Address); thread != "" {
		for _, name := range mail.ThreadFields {
			header = append(header, map[string]string{"Name": name, "Value": thread})
		}
	}
	return p.each(ctx, c, 1, func(ctx context.Context, rcpt mail.Recipients) error {
		payload := map[string]any{
			"From": p.sender.Header(), "To": rcpt.To[0].Address, "Subject": mailSubject(m), text: m.Body,
		}
		for name, value := range map[string]string{
			"Cc":      strings.Join(mail.Headers(rcpt.CC), ","),
			"Bcc":     strings.Join(mail.Addresses(rcpt.BCC), ","),
			"ReplyTo": strings.Join(mail.Headers(mail.Without(mail.ParseList(p.reply), rcpt.To)), ","),
		} {
			if value != "" {
				payload[name] = value
			}
		}
		if files != nil {
			payload["Attachments"] = files
		}
		if header != nil {
			payload["Headers"] = header
		}
		return checkedDo(ctx, c, &notifier.Request{
			URL:    "https://api.postmarkapp.com/email",
			Header: map[string]string{"X-Postmark-Server-Token": p.apikey, "Accept": "application/json"},
			Body:   notifier.JSON(payload, m.Attachments...),
		}, "ErrorCode", "Message", 0)
	})
}

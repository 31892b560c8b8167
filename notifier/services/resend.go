package services

import (
	"context"
	"maps"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[resend]()

// resend sends e-mail through Resend.
type resend struct {
	mailAPI
	reply []string
}

func (r *resend) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Resend", "https://resend.com/docs/api-reference/emails/send-email"
	r.describeKeyFirst(s, "resend").Match(`^[a-z0-9._-]+$`)
	r.describeName(s)
	mailList(s, &r.reply, "reply", "addresses that answers go to")
}

func (r *resend) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := "text"
	if m.Format == notifier.HTML {
		text = "html"
	}
	payload := map[string]any{"from": r.sender.header(), "subject": mailSubject(m), text: m.Body}
	if files := mailFiles(m.Attachments); files != nil {
		payload["attachments"] = files
	}
	return r.each(ctx, c, 1, func(ctx context.Context, l letter) error {
		p := maps.Clone(payload)
		p["to"] = l.to[0].address
		if len(l.cc) > 0 {
			p["cc"] = mailHeaders(l.cc)
		}
		if len(l.bcc) > 0 {
			p["bcc"] = mailAddresses(l.bcc)
		}
		if reply := mailWithout(mailboxes(r.reply), l.to); len(reply) > 0 {
			p["reply_to"] = mailHeaders(reply)
		}
		return c.Post(ctx, "https://api.resend.com/emails", notifier.JSON(p, m.Attachments...),
			map[string]string{"Authorization": "Bearer " + r.apikey})
	})
}

package services

import (
	"context"
	"maps"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[sendgrid]()

// sendgrid sends e-mail through Twilio SendGrid.
type sendgrid struct {
	mailAPI
	template string
	data     map[string]string
}

func (g *sendgrid) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SendGrid", "https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send"
	s.Setup = "Create an API key with the permission Mail Send under Settings, " +
		"API Keys, and verify the sender under Settings, Sender Authentication."
	s.Groups(notifier.GroupMail)
	s.Words("twilio sendgrid")
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	g.describeKeyFirst(s, "sendgrid").Match(`^[a-z0-9._-]+$`)
	s.Hints(
		notifier.Hint{Text: `(?<apikey>SG\.[\w-]{16,32}\.[\w-]{32,64})`, Is: "an API key"},
	)
	s.String(&g.template, "template", "", "ID of a dynamic template")
	s.Map(&g.data, "+", "template_data", "value for the template")
	s.Param("apikey").Example("SG.AbCdEf0123456789.GhIjKlMnOpQrStUv")
}

func (g *sendgrid) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	kind := "text/plain"
	if m.Format == notifier.HTML {
		kind = "text/html"
	}
	payload := map[string]any{
		"from": mailObject(g.sender), "subject": mailSubject(m),
		"content": []map[string]string{{"type": kind, "value": m.Body}},
	}
	if header := g.threadHeader(m, nil); header != nil {
		payload["headers"] = header
	}
	personal := map[string]any{}
	if g.template != "" {
		payload["template_id"] = g.template
		if len(g.data) > 0 {
			personal["dynamic_template_data"] = g.data
		}
	}
	if files := mailFiles(m.Attachments); files != nil {
		payload["attachments"] = files
	}
	return g.each(ctx, c, 1, func(ctx context.Context, rcpt mail.Recipients) error {
		p := maps.Clone(payload)
		p["personalizations"] = []any{mailRecipients(rcpt, personal, "to", "cc", "bcc")}
		return c.Post(ctx, "https://api.sendgrid.com/v3/mail/send", notifier.JSON(p, m.Attachments...),
			map[string]string{"Authorization": "Bearer " + g.apikey})
	})
}

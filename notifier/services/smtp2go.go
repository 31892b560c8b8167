package services

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[smtp2go]()

// smtp2go sends e-mail through SMTP2GO.
type smtp2go struct{ mailBulk }

// smtp2goBatch is the maximum number of recipients of a message.
const smtp2goBatch = 100

func (g *smtp2go) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SMTP2GO", "https://developers.smtp2go.com/reference/send-standard-email"
	s.Setup = "Create an API key under Sending, API Keys in SMTP2GO, and verify the sender under Sending, Verified Senders."
	s.Groups(notifier.GroupMail)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	g.describe(s, "smtp2go")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>api-[0-9A-F]{32})`, Is: "an API key"},
	)
	s.Param("apikey").Example("api-0123456789ABCDEF")
}

func (g *smtp2go) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := "text_body"
	if m.Format == notifier.HTML {
		text = "html_body"
	}
	payload := map[string]any{"api_key": g.apikey, "sender": g.sender.Header(), "subject": m.Title, text: m.Body}
	var header []map[string]string
	fields := g.threadHeader(m, g.header)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		header = append(header, map[string]string{"header": name, "value": fields[name]})
	}
	if files := mailFilesAs(m.Attachments, "filename", "mimetype", "fileblob"); files != nil {
		payload["attachments"] = files
	}
	if header != nil {
		payload["custom_headers"] = header
	}
	return g.eachBatch(ctx, c, smtp2goBatch, func(ctx context.Context, rcpt mail.Recipients) error {
		p := maps.Clone(payload)
		p["to"] = mail.Headers(rcpt.To)
		if len(rcpt.CC) > 0 {
			p["cc"] = mail.Headers(rcpt.CC)
		}
		if len(rcpt.BCC) > 0 {
			p["bcc"] = mail.Addresses(rcpt.BCC)
		}
		resp, err := c.Do(ctx, &notifier.Request{
			URL: "https://api.smtp2go.com/v3/email/send", Body: notifier.JSON(p, m.Attachments...),
		})
		if err != nil {
			return err
		}
		var answer struct {
			Data struct {
				Failed   int      `json:"failed"`
				Failures []string `json:"failures"`
			} `json:"data"`
		}
		if resp.JSON(&answer) == nil && answer.Data.Failed > 0 {
			return fmt.Errorf("the service did not send to %d: %s", answer.Data.Failed, strings.Join(answer.Data.Failures, "; "))
		}
		return nil
	})
}

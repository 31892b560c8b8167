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

var _ = notifier.Register[mailgun]()

// mailgun sends e-mail through Mailgun.
type mailgun struct {
	mailBulk
	region string
	tokens map[string]string
}

// mailgunBatch is the max number of recipients of one message.
const mailgunBatch = 1000

func (g *mailgun) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Mailgun", "https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/messages"
	s.Setup = "Create a sending key for your domain, or an API key for the account, in Mailgun; host is that domain."
	s.Groups(notifier.GroupMail)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	g.describe(s, "mailgun")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>key-[0-9a-f]{32})`, Is: "an API key"},
		notifier.Hint{Text: `(?<apikey>[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})`, Is: "a sending key or an API key"},
	)
	mailRegion(s, &g.region)
	s.Map(&g.tokens, ":", "tokens", "variable to attach to the e-mail")
	s.Param("apikey").Example("key-0123456789abcdef")
}

func (g *mailgun) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return g.eachBatch(ctx, c, mailgunBatch, func(ctx context.Context, rcpt mail.Recipients) error {
		_, err := c.Do(ctx, &notifier.Request{
			URL:  mailHost(g.region, "mailgun.net") + notifier.Path("v3", g.host, "messages"),
			User: "api", Password: g.apikey,
			Body: mailgunBody(g.form(c, m, rcpt), m.Attachments),
		})
		return err
	})
}

// form returns the fields of the request, without files, as names and values.
func (g *mailgun) form(c *notifier.Client, m *notifier.Message, rcpt mail.Recipients) (form [][2]string) {
	add := func(name, value string) { form = append(form, [2]string{name, value}) }
	sender := g.sender
	if sender.Name == "" && g.from == "" {
		sender.Name = m.Identity.Name
	}
	skip := "False"
	if !c.Verify() {
		skip = "True"
	}
	add("o:skip-verification", skip)
	add("from", sender.Header())
	add("subject", m.Title)
	if m.Format == notifier.HTML {
		add("html", m.Body)
	} else {
		add("text", m.Body)
	}
	add("to", strings.Join(mail.Headers(rcpt.To), ","))
	if len(rcpt.CC) > 0 {
		add("cc", strings.Join(mail.Headers(rcpt.CC), ","))
	}
	if len(rcpt.BCC) > 0 {
		add("bcc", strings.Join(mail.Addresses(rcpt.BCC), ","))
	}
	for _, name := range slices.Sorted(maps.Keys(g.tokens)) {
		add("v:"+name, g.tokens[name])
	}
	header := g.threadHeader(m, g.header)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		add("h:"+name, header[name])
	}
	return form
}

func mailgunBody(form [][2]string, files []*notifier.Attachment) *notifier.Body {
	fields := notifier.Fields()
	var parts []notifier.FormPart
	for _, f := range form {
		fields.Add(f[0], f[1])
		parts = append(parts, notifier.FormPart{Name: f[0], Value: f[1]})
	}
	if len(files) == 0 {
		return notifier.Form(fields)
	}
	for i, f := range files {
		parts = append(parts, notifier.FormPart{Name: fmt.Sprintf("attachment[%d]", i), File: f, NoType: true})
	}
	return notifier.Multipart(parts...)
}

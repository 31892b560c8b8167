package services

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[sendpulse]()

// sendpulse sends e-mail through SendPulse.
type sendpulse struct {
	mailAPI
	id, secret string
	template   int
	data       map[string]string
	token      notifier.Cached[string]
}

const sendpulseAPI = "https://api.sendpulse.com"

func (p *sendpulse) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SendPulse", "https://sendpulse.com/integrations/api/smtp"
	s.Setup = "Client ID and client secret are on the tab API of the account settings, and the sender must be verified in SendPulse."
	s.Groups(notifier.GroupMail)
	s.URL(
		"sendpulse://{user}@{host}/{client_id}/{client_secret}[/{targets...}]",
		"sendpulse://[{from}@]{client_id}/{client_secret}[/{targets...}]",
	)
	s.Way(2, "with the sender's address in one field")
	s.Way(1, "with the sender's address in two fields")
	p.describeMail(s).DropInvalid() // without a valid target the sender gets the message
	s.Secret(&p.id, "client_id", "client ID").Match(`^[a-z0-9._-]+$`).Alias("id").Example("0123456789abcdef0123456789abcdef")
	s.Secret(&p.secret, "client_secret", "client secret").Match(`^[a-z0-9._-]+$`).Alias("secret").Example("fedcba9876543210fedcba9876543210")
	s.Int(&p.template, "template", 0, "ID of the template to use")
	s.Map(&p.data, "+", "template_data", "value for the template")
}

// sendpulseSender is the sender of URLs that Apprise prints: Chris<chris@example.com>.
var sendpulseSender = lazyregexp.New(`^(\s*[^:/]+://)[^<>/?@]*<([^<>/?@]+@[^<>/?@]+)>`)

// Rewrite leaves the name out that Apprise prints with the sender's address. The
// parameter from has it, too.
func (p *sendpulse) Rewrite(url string) string {
	return sendpulseSender.ReplaceAllString(url, "$1$2")
}

func (p *sendpulse) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	sender := p.sender
	if sender.Name == "" {
		sender.Name = m.Identity.Name
	}
	return p.each(ctx, c, 1, func(ctx context.Context, rcpt mail.Recipients) error {
		if rcpt.To[0] == (mail.Address{Address: sender.Address}) {
			rcpt.To[0] = sender
		}
		_, text := mailBodies(m)
		email := map[string]any{"from": mailObject(sender), "subject": mailSubject(m), "text": text}
		if m.Format == notifier.HTML {
			email["html"] = base64.StdEncoding.EncodeToString([]byte(sendpulseHTML(m)))
		}
		for name, list := range map[string][]mail.Address{"to": rcpt.To, "cc": rcpt.CC, "bcc": rcpt.BCC} {
			var boxes []map[string]string
			for _, b := range list {
				boxes = append(boxes, mailObject(b))
			}
			if boxes != nil {
				email[name] = boxes
			}
		}
		if len(m.Attachments) > 0 {
			email["attachments_binary"] = sendpulseFiles(m.Attachments)
		}
		if p.template != 0 {
			data := p.data
			if data == nil {
				data = map[string]string{}
			}
			email["template"] = map[string]any{"id": p.template, "variables": data}
		}
		return p.post(ctx, c, notifier.JSON(map[string]any{"email": email}, m.Attachments...))
	})
}

// post sends an e-mail. If the access token has expired, it gets a new one and
// sends the e-mail again.
func (p *sendpulse) post(ctx context.Context, c *notifier.Client, body *notifier.Body) error {
	for try := 0; ; try++ {
		token, err := p.token.Get(ctx, notifier.Saved(c, savedToken, func(ctx context.Context) (string, time.Duration, error) {
			return p.login(ctx, c)
		}))
		if err != nil {
			return err
		}
		err = c.Post(ctx, sendpulseAPI+"/smtp/emails", body, map[string]string{"Authorization": "Bearer " + token})
		status, ok := errors.AsType[*notifier.StatusError](err)
		if try > 0 || !ok || status.Code != http.StatusUnauthorized {
			return err
		}
		p.token.DropSaved(ctx, c, savedToken)
	}
}

func (p *sendpulse) login(ctx context.Context, c *notifier.Client) (token string, life time.Duration, err error) {
	var answer struct {
		Token   string `json:"access_token"`
		Expires int    `json:"expires_in"` // seconds
	}
	err = c.DoJSON(ctx, &notifier.Request{URL: sendpulseAPI + "/oauth/access_token", Body: notifier.JSON(map[string]string{
		"grant_type": "client_credentials", "client_id": p.id, "client_secret": p.secret,
	})}, &answer)
	if err == nil && answer.Token == "" {
		err = errors.New("the service returned no access token")
	}
	if answer.Expires <= 0 {
		answer.Expires = 3600
	}
	return answer.Token, time.Duration(answer.Expires) * time.Second, err
}

// sendpulseSpaces replaces spaces with non-breaking ones and numeric character
// references with names.
var sendpulseSpaces = strings.NewReplacer(" ", "&nbsp;", "\u00a0", "&nbsp;", "&#34;", "&quot;", "&#39;", "&apos;")

// sendpulseHTML returns the text of a message in HTML. It applies sendpulseSpaces
// to plain text, for compatibility with existing e-mails.
func sendpulseHTML(m *notifier.Message) string {
	if m.Source == notifier.Text {
		return sendpulseSpaces.Replace(m.Body)
	}
	return m.Body
}

// sendpulseFiles returns the encoded attachments by name. It makes the names
// unique.
func sendpulseFiles(attachments []*notifier.Attachment) map[string]string {
	files := map[string]string{}
	for _, a := range attachments {
		name := a.Name
		for files[name] != "" {
			name = "_" + name
		}
		files[name] = notifier.Base64(a)
	}
	return files
}

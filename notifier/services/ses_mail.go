package services

import (
	"bytes"
	netmail "net/mail"
	"strings"

	gomail "github.com/wneessen/go-mail"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// sesMail returns the message as an e-mail (RFC 5322), with a Reply-To header
// if reply is set. It does not contain the recipients in rcpt.BCC. Attachments
// are encoded when the result is read.
func sesMail(m *notifier.Message, from, reply mail.Address, rcpt mail.Recipients) (*notifier.Attachment, error) {
	addresses := func(list []mail.Address) (out []*netmail.Address) {
		for _, a := range list {
			out = append(out, &netmail.Address{Name: a.Name, Address: a.Address})
		}
		return out
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&netmail.Address{Name: from.Name, Address: from.Address})
	msg.ToMailAddress(addresses(rcpt.To)...)
	msg.CcMailAddress(addresses(rcpt.CC)...)
	if reply.Address != "" && reply.Address != from.Address {
		msg.ReplyToMailAddress(&netmail.Address{Name: from.Name, Address: reply.Address})
	}
	msg.Subject(m.Title)
	msg.SetDateWithValue(m.Time)
	msg.SetGenHeader("X-Application", mail.OneLine(m.Identity.Name))
	if m.Format == notifier.HTML {
		msg.SetBodyString(gomail.TypeTextPlain, markup.Convert(m.Body, notifier.HTML, notifier.Text))
		msg.AddAlternativeString(gomail.TypeTextHTML, m.Body)
	} else {
		msg.SetBodyString(gomail.TypeTextPlain, m.Body)
	}
	for _, a := range m.Attachments {
		err := msg.AttachReader(a.Name, strings.NewReader(notifier.Base64(a)), gomail.WithFileContentType(gomail.ContentType(a.ContentType)))
		if err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	if _, err := msg.WriteTo(&out); err != nil {
		return nil, err
	}
	return notifier.ComposedAttachment("", notifier.MIME(out.Bytes(), m.Attachments...)), nil
}

package services

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// sesMail returns the message as an e-mail (RFC 5322), with a Reply-To header if
// reply is set. It does not contain the recipients in rcpt.BCC. Attachments are
// encoded when the result is read.
func sesMail(m *notifier.Message, from, reply mail.Address, rcpt mail.Recipients) (*notifier.Attachment, error) {
	var head strings.Builder
	field := func(name, value string) {
		if value != "" {
			head.WriteString(mail.FoldField(name, value))
		}
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	field("Date", m.Time.Format(time.RFC1123Z))
	field("From", mail.AddressField([]mail.Address{from}))
	field("To", mail.AddressField(rcpt.To))
	field("Cc", mail.AddressField(rcpt.CC))
	if reply.Address != "" && reply.Address != from.Address {
		field("Reply-To", mail.AddressField([]mail.Address{{Name: from.Name, Address: reply.Address}}))
	}
	field("Message-ID", "<"+strings.ToLower(rand.Text())+"@"+domain+">")
	field("Subject", mail.EncodeText(m.Title))
	field("X-Application", mail.EncodeText(m.Identity.Name))
	field("MIME-Version", "1.0")

	content := mail.TextPart("plain", m.Body)
	if m.Format == notifier.HTML {
		content = mail.Multipart("alternative",
			mail.TextPart("plain", markup.Convert(m.Body, notifier.HTML, notifier.Text)), mail.TextPart("html", m.Body))
	}
	if len(m.Attachments) > 0 {
		parts := []mail.Part{content}
		for _, a := range m.Attachments {
			parts = append(parts, mail.FilePart(a, "", func() io.Reader { return strings.NewReader(notifier.Base64(a)) }))
		}
		content = mail.Multipart("mixed", parts...)
	}
	var out bytes.Buffer
	out.WriteString(head.String())
	if err := content.Write(&out); err != nil {
		return nil, err
	}
	return notifier.ComposedAttachment("", notifier.MIME(out.Bytes(), m.Attachments...)), nil
}

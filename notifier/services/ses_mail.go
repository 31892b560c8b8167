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
	var replyTo string
	if reply.Address != "" && reply.Address != from.Address {
		replyTo = mail.AddressField([]mail.Address{{Name: from.Name, Address: reply.Address}})
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	var out bytes.Buffer
	for _, field := range []struct{ name, value string }{
		{"Date", m.Time.Format(time.RFC1123Z)},
		{"From", mail.AddressField([]mail.Address{from})},
		{"To", mail.AddressField(rcpt.To)},
		{"Cc", mail.AddressField(rcpt.CC)},
		{"Reply-To", replyTo},
		{"Message-ID", "<" + strings.ToLower(rand.Text()) + "@" + domain + ">"},
		{"Subject", mail.EncodeText(m.Title)},
		{"X-Application", mail.EncodeText(m.Identity.Name)},
		{"MIME-Version", "1.0"},
		{mail.ThreadFields[0], mail.Thread(m, from.Address)},
		{mail.ThreadFields[1], mail.Thread(m, from.Address)},
	} {
		if field.value != "" {
			out.WriteString(mail.FoldField(field.name, field.value))
		}
	}

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
	if err := content.Write(&out); err != nil {
		return nil, err
	}
	return notifier.ComposedAttachment("", notifier.MIME(out.Bytes(), m.Attachments...)), nil
}

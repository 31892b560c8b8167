package services

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// mailAPI holds the sender and the recipients of an e-mail. It is embedded by
// services that send e-mail through the API of a provider.
type mailAPI struct {
	apikey     string
	user, host string // of the sender's address
	from, name string
	targets    []string
	cc, bcc    []string
	replyTo    string

	sender mail.Address // from user, host, from and name
	to     []string     // the targets or, if there are none, the sender
}

// describeMail binds the sender and the recipients. It returns the parameter
// targets.
func (m *mailAPI) describeMail(s *notifier.Schema) *notifier.Param {
	s.Format, s.Attachments, s.TextRequired = notifier.HTML, true, true
	s.String(&m.user, "user", "", "part of the sender's address before the @").Example("alerts")
	s.Host(&m.host, "host", "domain of the sender's address")
	s.String(&m.from, "from", "", "sender's address, name or both").Example("me@example.com")
	targets := mail.List(s, &m.targets, "targets", "addresses to send to; the sender's if none is given").
		Alias("to").Example("you@example.com")
	mail.Copies(s, &m.cc, "cc", "addresses that get a copy")
	mail.Copies(s, &m.bcc, "bcc", "addresses that get a blind copy")
	return targets
}

// describeKeyFirst is describeMail for URLs that begin with the API key.
func (m *mailAPI) describeKeyFirst(s *notifier.Schema, scheme string) *notifier.Param {
	s.URL(
		scheme+"://{apikey}:{user}@{host}[/{targets...}]",
		scheme+"://{apikey}:{from}@{targets}[/{targets...}]",
		scheme+"://{apikey}@{from}",
	)
	s.Way(2, "to addresses of your choice")
	s.Way(3, "to the sender's own address")
	s.Way(1, "with the sender's address in two fields")
	m.describeMail(s)
	return s.Secret(&m.apikey, "apikey", "API key")
}

// describeUserFirst is describeMail for URLs that begin with the sender.
func (m *mailAPI) describeUserFirst(s *notifier.Schema, scheme string) {
	s.URL(scheme + "://{user}@{host}/{apikey}[/{targets...}]")
	m.describeMail(s)
	s.Secret(&m.apikey, "apikey", "API key")
}

// describeName binds the name of the sender.
func (m *mailAPI) describeName(s *notifier.Schema) *notifier.Param {
	return s.String(&m.name, "name", "", "sender's name")
}

// describeReply binds the address for replies, for providers that have one.
func (m *mailAPI) describeReply(s *notifier.Schema) {
	s.String(&m.replyTo, "reply", "", "address that replies go to").Normalize(mail.CheckAddress).Example("reply@example.com")
}

// Finish sets the sender and the recipients.
func (m *mailAPI) Finish(s *notifier.Schema) error {
	s.Recipients = mail.CountRecipients(m.targets, m.cc, m.bcc)
	m.sender.Address = m.user + "@" + m.host
	if b, ok := mail.ParseAddress(m.user); ok {
		m.sender = b
	}
	from, err := mail.ParseSender("from", m.from, mail.ParseAddress)
	if err != nil {
		return err
	}
	name, ok := mail.ParseAddress(m.name)
	if !ok {
		name = mail.Address{Name: mail.OneLine(m.name)}
	}
	for _, given := range []mail.Address{from, name} {
		m.sender.Address = cmp.Or(given.Address, m.sender.Address)
		m.sender.Name = cmp.Or(given.Name, m.sender.Name)
	}
	if b, ok := mail.ParseAddress(m.sender.Address); !ok || b.Name != "" {
		return errors.New("the sender is not an e-mail address; " +
			"write user and domain of the address into the URL, or give it as from=me@example.com")
	}
	if m.to = m.targets; len(m.to) == 0 {
		m.to = []string{m.sender.Address}
	}
	return nil
}

// mailSubject returns the title, or a replacement for providers that refuse a
// message without a subject.
func mailSubject(m *notifier.Message) string {
	if m.Title == "" {
		return "<no subject>"
	}
	return m.Title
}

// mailBodies returns the body of a message as HTML and as the text that stands
// beside it. The text of HTML is the one that Apprise sends, without the addresses
// of links.
func mailBodies(m *notifier.Message) (html, text string) {
	html, text = markup.Convert(m.Body, m.Format, notifier.HTML), m.Body
	if m.Format == notifier.HTML {
		text = markup.TextBesideHTML(m.Body)
	}
	return html, text
}

// mailFiles returns attachments as several providers expect them in JSON. The type
// is always application/octet-stream, because mail programs go by the name.
func mailFiles(attachments []*notifier.Attachment) (files []map[string]string) {
	for _, a := range attachments {
		files = append(files, map[string]string{
			"filename": a.Name, "content": notifier.Base64(a),
			"type": "application/octet-stream", "disposition": "attachment",
		})
	}
	return files
}

// mailFilesAs returns attachments as JSON objects with these keys.
func mailFilesAs(attachments []*notifier.Attachment, name, mediaType, content string) (files []map[string]string) {
	for _, a := range attachments {
		files = append(files, map[string]string{name: a.Name, mediaType: a.ContentType, content: notifier.Base64(a)})
	}
	return files
}

// each calls send for at most max targets at a time. A retry skips the targets
// that were sent to.
func (m *mailAPI) each(ctx context.Context, c *notifier.Client, max int, send func(context.Context, mail.Recipients) error) error {
	batches, keys := map[string][]string{}, []string{}
	for batch := range slices.Chunk(m.to, max) {
		batches[batch[0]] = batch
		keys = append(keys, batch[0])
	}
	return c.Steps.Each(ctx, keys, func(ctx context.Context, key string) error {
		return send(ctx, mail.NewRecipients(mail.ParseList(batches[key]), mail.ParseList(m.cc), mail.ParseList(m.bcc)))
	})
}

// mailRecipients returns payload with rcpt added under the provider's names for
// them, each as an object with the key "email".
func mailRecipients(rcpt mail.Recipients, payload map[string]any, to, cc, bcc string) map[string]any {
	out := maps.Clone(payload)
	for name, list := range map[string][]mail.Address{to: rcpt.To, cc: rcpt.CC, bcc: rcpt.BCC} {
		if len(list) == 0 {
			continue
		}
		objects := make([]map[string]string, len(list))
		for i, m := range list {
			objects[i] = map[string]string{"email": m.Address}
		}
		out[name] = objects
	}
	return out
}

// mailObject returns an address as most providers expect it in JSON, with the
// name if it has one.
func mailObject(m mail.Address) map[string]string {
	if m.Name == "" {
		return map[string]string{"email": m.Address}
	}
	return map[string]string{"email": m.Address, "name": m.Name}
}

// threadHeader returns header with the fields that make the mails of an incident a
// thread. A field of header takes precedence. It returns nil for an empty header.
func (m *mailAPI) threadHeader(msg *notifier.Message, header map[string]string) map[string]string {
	thread := mail.Thread(msg, m.sender.Address)
	if thread == "" {
		return header
	}
	out := map[string]string{}
	for _, name := range mail.ThreadFields {
		out[name] = thread
	}
	maps.Copy(out, header)
	return out
}

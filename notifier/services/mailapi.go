package services

import (
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mailAPI is what the services have in common that hand e-mail to a provider:
// who sends it and who gets it.
type mailAPI struct {
	apikey     string
	user, host string // the sender's address in two parts
	from, name string
	targets    []string
	cc, bcc    []string
	replyTo    string

	sender  emailAddress // what Finish makes of user, host, from and name
	to      []string     // the targets, or the sender where there are none
	dropped bool         // some target was no address
}

// describeMail binds the sender and the recipients.
func (m *mailAPI) describeMail(s *notifier.Schema) {
	s.Format, s.Attachments = notifier.HTML, true
	s.String(&m.user, "user", "", "sender's address up to the @")
	s.Host(&m.host, "host", "domain of the sender's address")
	s.String(&m.from, "from", "", "sender's address, name or both").Example("me@example.com")
	mailList(s, &m.targets, "targets", "addresses to send to; the sender's if none is given").Alias("to").Example("you@example.com").
		Item(func(text string) (string, error) {
			item, err := mailboxItem(text)
			m.dropped = m.dropped || err != nil
			return item, err
		})
	mailList(s, &m.cc, "cc", "addresses that get a copy")
	mailList(s, &m.bcc, "bcc", "addresses that get a copy unseen by others")
}

// mailList binds a list of mailboxes.
func mailList(s *notifier.Schema, v *[]string, name, doc string) *notifier.Param {
	return s.List(v, name, doc).Split(splitMailboxes).Item(mailboxItem).DropInvalid()
}

// describeKeyFirst is describeMail for URLs that begin with the API key.
func (m *mailAPI) describeKeyFirst(s *notifier.Schema, scheme string) *notifier.Param {
	s.URL(
		scheme+"://{apikey}:{user}@{host}[/{targets...}]",
		scheme+"://{apikey}:{from}@{targets}[/{targets...}]",
		scheme+"://{apikey}@{from}",
	)
	m.describeMail(s)
	return s.Secret(&m.apikey, "apikey", "API key")
}

// describeUserFirst is describeMail for URLs that begin with the sender.
func (m *mailAPI) describeUserFirst(s *notifier.Schema, scheme string) {
	s.URL(scheme + "://{user}@{host}/{apikey}[/{targets...}]")
	m.describeMail(s)
	s.Secret(&m.apikey, "apikey", "API key")
}

// describeName binds the sender's name.
func (m *mailAPI) describeName(s *notifier.Schema) *notifier.Param {
	return s.String(&m.name, "name", "", "sender's name")
}

// describeReply binds the address that answers go to, with providers that take
// one.
func (m *mailAPI) describeReply(s *notifier.Schema) {
	s.String(&m.replyTo, "reply", "", "address that answers go to").Item(mailboxItem).Example("reply@example.com")
}

// Finish works out the sender.
func (m *mailAPI) Finish(*notifier.Schema) error {
	m.sender.address = m.user + "@" + m.host
	if b, ok := parseMailbox(m.user); ok {
		m.sender = b
	}
	for _, text := range []string{m.from, m.name} {
		if b, ok := parseMailbox(text); ok {
			m.sender.address = b.address
			text = b.name
		}
		if text != "" {
			m.sender.name = mailName(text)
		}
	}
	if b, ok := parseMailbox(m.sender.address); !ok || b.name != "" {
		return errors.New("the sender is no e-mail address; write its part before the @ and its domain into the URL, or give it as from")
	}
	if len(m.targets) == 0 && m.dropped {
		return errors.New("none of the targets is an e-mail address such as you@example.com")
	}
	if m.to = m.targets; len(m.to) == 0 {
		m.to = []string{m.sender.address}
	}
	return nil
}

// mailSubject is the title, or what stands for it with providers that refuse a
// message without a subject.
func mailSubject(m *notifier.Message) string {
	if m.Title == "" {
		return "<no subject>"
	}
	return m.Title
}

// mailFiles are the attachments as several providers want them in JSON.
// Their type is left open, as receivers go by the name.
func mailFiles(attachments []*notifier.Attachment) (files []map[string]string) {
	for _, a := range attachments {
		files = append(files, map[string]string{
			"filename": a.Name, "content": notifier.Base64(a),
			"type": "application/octet-stream", "disposition": "attachment",
		})
	}
	return files
}

// mailFilesAs are the attachments as objects whose keys a provider calls so.
func mailFilesAs(attachments []*notifier.Attachment, name, kind, content string) (files []map[string]string) {
	for _, a := range attachments {
		files = append(files, map[string]string{name: a.Name, kind: a.ContentType, content: notifier.Base64(a)})
	}
	return files
}

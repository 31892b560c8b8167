package mailto

import (
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// messageID returns a new Message-ID, without its angle brackets.
func (m *service) messageID() string {
	_, domain, _ := strings.Cut(m.sender.Address, "@")
	return strings.ToLower(rand.Text()) + "@" + domain
}

// mail returns the mail with this content (RFC 5322). A header field of the URL
// replaces the field of the same name.
func (m *service) mail(msg *notifier.Message, rcpt mail.Recipients, id string, content mail.Part, chat chatHeader) mail.Part {
	sender := m.sender
	if sender.Name == "" && !m.unnamed && msg.Identity != nil {
		sender.Name = mail.OneLine(msg.Identity.Name)
	}
	own := map[string]string{} // by names in lower case
	for name, value := range m.header {
		own[strings.ToLower(name)] = headerValue(name, value)
	}
	var b strings.Builder
	field := func(name, value string) {
		if _, ok := own[strings.ToLower(name)]; !ok && value != "" {
			b.WriteString(mail.FoldField(name, value))
		}
	}
	field("Date", msg.Time.Format(time.RFC1123Z))
	field("From", mail.AddressField([]mail.Address{sender}))
	field("To", mail.AddressField(rcpt.To))
	field("Cc", mail.AddressField(rcpt.CC))
	field("Reply-To", mail.AddressField(parseAddresses(m.reply)))
	field("Message-ID", "<"+id+">")
	if m.chat {
		field("Chat-Version", "1.0")
		field("Autocrypt", chat.autocrypt)
		field("Subject", mail.EncodeText(chat.subject))
	} else {
		for _, name := range mail.ThreadFields {
			field(name, mail.Thread(msg, m.sender.Address))
		}
		field("Subject", mail.EncodeText(msg.Title))
	}
	if msg.Identity != nil {
		field("X-Application", mail.EncodeText(msg.Identity.Name))
	}
	// A gateway that takes mails recognizes a message that goes in circles by it.
	b.WriteString(mail.FoldField(notifier.HopsHeader, strconv.Itoa(msg.Hops+1)))
	for _, name := range slices.Sorted(maps.Keys(m.header)) {
		if value := own[strings.ToLower(name)]; value != "" {
			b.WriteString(mail.FoldField(name, value))
		}
	}
	b.WriteString("MIME-Version: 1.0\r\n" + content.Header)
	return mail.Part{Header: b.String(), Body: content.Body}
}

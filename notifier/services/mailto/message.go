package mailto

import (
	"crypto/rand"
	"maps"
	"slices"
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

// mail returns the mail with this content (RFC 5322).
func (m *service) mail(msg *notifier.Message, l mail.Letter, id string, content mimePart) mimePart {
	sender := m.sender
	if sender.Name == "" && !m.unnamed && msg.Identity != nil {
		sender.Name = mail.OneLine(msg.Identity.Name)
	}
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			b.WriteString(foldField(name, value))
		}
	}
	field("Date", msg.Time.Format(time.RFC1123Z))
	field("From", addressField([]mail.Address{sender}))
	field("To", addressField(l.To))
	field("Cc", addressField(l.CC))
	field("Reply-To", addressField(parseAddresses(m.reply)))
	field("Message-ID", "<"+id+">")
	field("Subject", encodeText(msg.Title))
	own := slices.Sorted(maps.Keys(m.header))
	for _, name := range own {
		field(name, encodeText(m.header[name]))
	}
	// Do not send us automatic replies (RFC 3834, section 5).
	if !slices.ContainsFunc(own, func(name string) bool { return strings.EqualFold(name, "Auto-Submitted") }) {
		field("Auto-Submitted", "auto-generated")
	}
	b.WriteString("MIME-Version: 1.0\r\n" + content.header)
	return mimePart{b.String(), content.body}
}

package services

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mailtoProgress is what is known of a mail over all tries to send it.
type mailtoProgress struct {
	id  string          // of the mail, for its Message-ID
	got map[string]bool // recipients that have it
}

func newMailtoProgress(from emailAddress) *mailtoProgress {
	_, domain, _ := strings.Cut(from.address, "@")
	return &mailtoProgress{id: strings.ToLower(rand.Text()) + "@" + domain, got: map[string]bool{}}
}

// mail is the whole mail: header, and content as its body (RFC 5322).
func (m *mailto) mail(msg *notifier.Message, l letter, id string, content mimePart) mimePart {
	sender := m.sender
	if sender.name == "" && !m.unnamed && msg.Identity != nil {
		sender.name = mailName(msg.Identity.Name)
	}
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			b.WriteString(mailtoFold(name, value))
		}
	}
	field("Date", msg.Time.Format(time.RFC1123Z))
	field("From", mailtoHeader([]emailAddress{sender}))
	field("To", mailtoHeader(l.to))
	field("Cc", mailtoHeader(l.cc))
	field("Reply-To", mailtoHeader(mailtoAddresses(m.reply)))
	field("Message-ID", "<"+id+">")
	field("Subject", mailtoText(msg.Title))
	own := slices.Sorted(maps.Keys(m.header))
	for _, name := range own {
		field(name, mailtoText(m.header[name]))
	}
	// Nobody's absence is to be answered to a gateway (RFC 3834, section 5).
	if !slices.ContainsFunc(own, func(name string) bool { return strings.EqualFold(name, "Auto-Submitted") }) {
		field("Auto-Submitted", "auto-generated")
	}
	b.WriteString("MIME-Version: 1.0\r\n" + content.header)
	return mimePart{b.String(), content.body}
}

package notifier

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Link is a link of a message to a page of the gateway. The last segment of the path of its
// address is a secret: who has it may act there.
type Link struct{ Label, URL string }

// AcknowledgeLabel is the label of a link to acknowledge an incident. All other links belong to
// questions.
const AcknowledgeLabel = "Acknowledge"

// Asks reports whether the message is a question.
func (m *Message) Asks() bool { return m.Link.URL != "" && m.Link.Label != AcknowledgeLabel }

// Buttons returns what a service shows that has room for n buttons: one for each answer of a
// question, or one that opens the page, or none.
func (m *Message) Buttons(n int) []Link {
	switch {
	case m.Link.URL == "":
		return nil
	case len(m.Choices) > 0 && len(m.Choices) <= n:
		return m.Choices
	}
	return []Link{m.Link}
}

// Field returns the name of the field that tells programs the address.
func (l Link) Field() string {
	if l.Label == AcknowledgeLabel {
		return "acknowledge_url"
	}
	return "answer_url"
}

// Fields returns the address as the values of the fields acknowledge_url and answer_url, of
// which at most one is not "".
func (l Link) Fields() (acknowledge, answer string) {
	if l.Label == AcknowledgeLabel {
		return l.URL, ""
	}
	return "", l.URL
}

// mask masks what is secret of the address in a text: the last segment of its path, as it is
// in any encoding of the address.
func (l Link) mask(text string) string {
	path, _, _ := strings.Cut(l.URL, "?")
	secret := path[strings.LastIndexByte(path, '/')+1:]
	if len(secret) < minLinkSecret {
		return text
	}
	return strings.ReplaceAll(text, secret, redact.Mask)
}

// minLinkSecret is the minimum length of a segment that is a secret: 96 bits in base64.
const minLinkSecret = 16

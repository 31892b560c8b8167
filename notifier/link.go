package notifier

import (
	"cmp"
	"html"
	"slices"
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

// Buttons returns the links for a service with room for n buttons: one for each answer of a
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

// mask masks the secret of the address in a text: the last segment of its path, in any encoding of
// the address.
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

// AcknowledgePlace is the place in which a service shows [Message].Link.
type AcknowledgePlace string

// The places. The zero AcknowledgePlace counts as [AcknowledgeInText].
const (
	AcknowledgeInText   AcknowledgePlace = "text"   // the text ends with a link
	AcknowledgeByButton AcknowledgePlace = "button" // a button or an action
	AcknowledgeByLink   AcknowledgePlace = "link"   // a link that opens with a tap, or is beside the text
	AcknowledgeInField  AcknowledgePlace = "field"  // a field for programs
	AcknowledgeNowhere  AcknowledgePlace = "none"   // nobody can open a link there, as in a call
)

// canAcknowledge reports whether the message tells of a problem that nobody takes care
// of yet.
func (m *Message) canAcknowledge() bool {
	if m.Type != Failure && m.Type != Warning {
		return false
	}
	return m.Incident.State != Acknowledged && m.Incident.State != Resolved
}

// minBesideLink is the minimum number of characters that a part of a message must have
// beside the link. A destination without room for them shows no link.
const minBesideLink = 40

// shortText is the maximum length of a text that has the bare address as its link.
const shortText = 400

// acknowledgeLine returns the line with the link at the end of m's text, with the line breaks
// before it, or "" if m has no address or the service shows it elsewhere. f is the form of m.
func (s *Schema) acknowledgeLine(m *Message, f form) string {
	if m.Link.URL == "" || !f.LinkInText && cmp.Or(s.Acknowledge, AcknowledgeInText) != AcknowledgeInText {
		return ""
	}
	word, address := m.Link.Label, m.Link.URL
	if f.LinkInText && m.Format == HTML {
		// A service that refuses the address in a button may drop such a link, too.
		return "<p>" + word + ": " + html.EscapeString(address) + "</p>"
	}
	dialect := s.Foreign != nil && s.Foreign.Escape != nil && m.Source != HTML // Send does not convert it
	switch {
	case m.Format == HTML:
		return `<p><a href="` + html.EscapeString(address) + `">` + word + `</a></p>`
	case m.Format == Markdown && !dialect && !f.LinkInText:
		return "\n\n[" + word + "](" + address + ")"
	case slices.Contains(s.groups, GroupSMS) || s.Limits.Body > 0 && s.Limits.Body <= shortText:
		return "\n" + address
	case s.Limits.Lines > 0:
		return "\n" + word + ": " + address
	}
	return "\n\n" + word + ": " + address
}

// lastLine returns the last line of m's text, with the line breaks before it: the link to
// acknowledge the incident, or how long the incident that m resolves was open.
func (s *Schema) lastLine(m *Message, f form) string {
	open := m.Incident.OpenTime()
	switch {
	case open == "" || m.Incident.State != Resolved || s.Acknowledge == AcknowledgeInField || slices.Contains(s.groups, GroupIncident):
		return s.acknowledgeLine(m, f)
	case m.Format == HTML:
		return "<p>Open for " + open + "</p>"
	case slices.Contains(s.groups, GroupSMS) || s.Limits.Lines > 0:
		return "\nOpen for " + open
	}
	return "\n\nOpen for " + open
}

// hasRoomForLink reports whether a part of m has room for the link that its text ends
// with.
func (s *Schema) hasRoomForLink(m *Message, f form) bool {
	line := s.acknowledgeLine(m, f)
	l := s.Limits
	return line == "" || l.Body <= 0 || l.Unit.Length(line)+minBesideLink <= l.Body-l.Reserve
}

// movesLink reports whether the text of a refused message can show the link of a button. Some
// services refuse a button with an address unknown to them, such as one in a private network.
func (d *delivery) movesLink(s *Schema, f form, parts []part) bool {
	m := &d.rendered
	button := s.Acknowledge == AcknowledgeByButton || s.Acknowledge == AcknowledgeByLink
	if f.LinkInText || m.Link.URL == "" || !button || !nothingSent(parts) {
		return false
	}
	f.LinkInText = true
	return s.hasRoomForLink(m, f)
}

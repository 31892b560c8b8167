package notifier

import (
	"cmp"
	"html"
	"slices"
)

// AcknowledgePlace is the place in which a service shows the address on which an
// incident can be acknowledged ([Message].AcknowledgeURL).
type AcknowledgePlace string

// The places. The zero AcknowledgePlace counts as [AcknowledgeInText].
const (
	AcknowledgeInText   AcknowledgePlace = "text"   // the text ends with a link
	AcknowledgeByButton AcknowledgePlace = "button" // a button or an action
	AcknowledgeByLink   AcknowledgePlace = "link"   // what opens with a tap, or a link beside the text
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

// acknowledgeLine returns the line that the text of m ends with, with the line breaks
// before it, or "" if m has no address or the service shows it elsewhere.
func (s *Schema) acknowledgeLine(m *Message) string {
	if m.AcknowledgeURL == "" || cmp.Or(s.Acknowledge, AcknowledgeInText) != AcknowledgeInText {
		return ""
	}
	const word = "Acknowledge"
	dialect := s.Foreign != nil && s.Foreign.Escape != nil && m.Source != HTML // Send does not convert it
	switch {
	case m.Format == HTML:
		return `<p><a href="` + html.EscapeString(m.AcknowledgeURL) + `">` + word + `</a></p>`
	case m.Format == Markdown && !dialect:
		return "\n\n[" + word + "](" + m.AcknowledgeURL + ")"
	case slices.Contains(s.groups, GroupSMS) || s.Limits.Body > 0 && s.Limits.Body <= shortText:
		return "\n" + m.AcknowledgeURL
	case s.Limits.Lines > 0:
		return "\n" + word + ": " + m.AcknowledgeURL
	}
	return "\n\n" + word + ": " + m.AcknowledgeURL
}

// hasRoomForLink reports whether a part of m has room for the link that its text ends
// with.
func (s *Schema) hasRoomForLink(m *Message) bool {
	line := s.acknowledgeLine(m)
	l := s.Limits
	return line == "" || l.Body <= 0 || l.Unit.Length(line)+minBesideLink <= l.Body-l.Reserve
}

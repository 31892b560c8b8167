package notifier

import (
	"cmp"
	"html"
	"slices"
)

// AcknowledgePlace is the place in which a service shows [Message].Link.
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
// before it, or "" if m has no address or the service shows it elsewhere. f is the form
// of m.
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

// lastLine returns the line that the text of m ends with, with the line breaks before it:
// the link to acknowledge the incident, or how long the incident was open that m resolves.
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

// movesLink reports whether the text of a refused message can show the link that a button shows
// now. Some services refuse a button with an address that they do not know, such as one in a
// private network.
func (d *delivery) movesLink(s *Schema, f form, parts []part) bool {
	m := &d.rendered
	button := s.Acknowledge == AcknowledgeByButton || s.Acknowledge == AcknowledgeByLink
	if f.LinkInText || m.Link.URL == "" || !button || !nothingSent(parts) {
		return false
	}
	f.LinkInText = true
	return s.hasRoomForLink(m, f)
}

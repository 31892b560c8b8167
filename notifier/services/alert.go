package services

import (
	"cmp"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// alertSummary returns the title or, without one, the text of a message, with at most
// max characters. It is for services that demand a summary beside the text.
func alertSummary(m *notifier.Message, max int) string {
	summary := m.Title
	switch {
	case summary != "":
	case m.Source == notifier.Text && m.Format == notifier.Markdown:
		summary = m.Body // not escaped
	default:
		summary = markup.Convert(m.Body, m.Format, notifier.Text)
	}
	return markup.Truncate(summary, max)
}

// alertKey returns the name of the alert that a message is about: param, which the URL has, or the
// ID of the incident. It is "" if there is none. over reports whether the message ends the alert:
// the incident is resolved or, without an incident, a success has the name of an alert.
func alertKey(param string, m *notifier.Message) (key string, over bool) {
	if m.Incident.ID != "" {
		return cmp.Or(param, m.Incident.ID), m.Incident.State == notifier.Resolved
	}
	return param, param != "" && m.Type == notifier.Success
}

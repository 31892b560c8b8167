package dispatch

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// IncidentOf returns what the queue knows the incident of a message by, or "". The
// incidents of keys of the same name in several sites or spaces are not the same.
func (d *Delivery) IncidentOf() string {
	i := &d.Message.Incident
	if i.ID == "" {
		return ""
	}
	return strings.Join([]string{d.Home, d.Key, i.ID}, "\x00")
}

// StateOf returns what a message says about its incident.
func StateOf(m *notifier.Message) notifier.IncidentState {
	if m.Incident.State != "" {
		return m.Incident.State
	}
	return notifier.StateOf(m.Type)
}

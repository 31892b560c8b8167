package dispatch

import (
	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// KnownIncident returns what the record of the incident of a message is named by, or "" if
// it has none.
func (d *Delivery) KnownIncident() string {
	switch {
	case d.Rules.Empty():
		return ""
	case d.Message.Incident.ID == "" && d.Rules.Escalate != nil && d.Message.Type != notifier.Info:
		return d.Place() + "\x00" + OwnIncident(d.ID) // if it escalates, it is an incident of its own
	}
	return d.IncidentOf()
}

// OwnIncident returns what stands for the name of the incident of a message that names
// none.
func OwnIncident(message uuid.UUID) string { return "message " + message.String() }

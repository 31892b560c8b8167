package site

import "github.com/caddy-notify/caddy-notify/notifier/rules"

// AcknowledgeURL returns the address of the page of an incident, or "".
func (r *Site) AcknowledgeURL(x *rules.Incident) string {
	if x == nil || r.PublicURL == "" || !x.IsOpen() || x.IsAcknowledged() {
		return ""
	}
	return r.PublicURL + RouteIncidents + "/" + x.ID
}

package httpapi

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// ListedIncident returns an incident as the pages show it.
func ListedIncident(r *http.Request, x *rules.Incident) view.ListedIncident {
	out := view.ListedIncident{
		Title: x.Title, Key: x.Key, KeyAddress: ConsoleKey(r, x.Key), Type: string(x.Type), State: view.IncidentState(x.Stage()), Since: x.Opened,
		Steps: len(alerting.IncidentSteps(x)), Step: x.Escalation.Step, Round: x.Escalation.Round, Next: x.Escalation.Next,
	}
	out.Address = RootOf(r.URL.Path) + site.RouteIncidents[1:] + "/" + x.ID
	if x.Name != x.Title && !x.Own {
		out.Name = x.Name
	}
	switch x.Stage() {
	case notifier.Resolved:
		out.Changed, out.By = x.Resolved, x.ResolvedBy
	case notifier.Acknowledged:
		out.Changed, out.By, out.Until = x.Acknowledged.At, x.Acknowledged.By, x.Acknowledged.Until
	}
	return out
}

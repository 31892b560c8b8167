package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentRow returns an incident with its buttons.
func (h *incidentPages) incidentRow(r *http.Request, x *rules.Incident) view.IncidentRow {
	out := view.IncidentRow{ListedIncident: h.ListedIncident(r, x), PublicID: x.ID, Resolve: !x.Own}
	h.api.Incidents.SetSilenced(r.Context(), x, &out.ListedIncident)
	if out.Steps > 0 {
		next, _ := x.Escalation.NextStep()
		if out.Told, out.NextTold = h.toldBy(out.Key, x), h.stepName(out.Key, next); out.Told != "" && next == x.Escalation.Step {
			out.NextTold = "again" // the others are silent, or there are none
		}
	}
	if !x.Own && out.Key != "" {
		query := url.Values{"key": {out.Key}, "incident": {cmp.Or(x.Name, x.Derived)}}
		out.Silence = silencesPage(r) + "?" + query.Encode() + "#silence"
	}
	return out
}

// toldBy returns the outcome of the latest step in words, and "" while the step is being sent.
func (h *incidentPages) toldBy(key string, x *rules.Incident) string {
	name := h.stepName(key, x.Escalation.Step)
	if name == "" || len(x.Begun) == 0 {
		return ""
	}
	switch x.Begun[len(x.Begun)-1].Outcome {
	case rules.StepTold:
		return name + " was told"
	case rules.StepFailed:
		return name + " could not be reached"
	case rules.StepSilenced:
		return "a silence keeps " + name + " from it"
	case rules.StepSending:
	}
	return name + " does not have it yet"
}

// stepName returns the names of the destinations of a step of a key, or "step 2" if they are
// unknown.
func (h *incidentPages) stepName(key string, step int) string {
	if step == 0 {
		return ""
	}
	var names []string
	if k := h.Resolved.Configured(key); k != nil {
		for _, t := range k.Targets {
			if rules.StepOf(t.Tags) == step {
				names = append(names, strings.TrimPrefix(t.Name(), "Device "))
			}
		}
	}
	return cmp.Or(joinNames(names), "step "+strconv.Itoa(step))
}

// postIncident returns the action that acknowledges or resolves an incident of the site.
func (h *incidentPages) postIncident(done string) httpapi.ActionFunc {
	return func(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
		if err := h.readPageForm(w, r); err != nil {
			return err
		}
		q, err := h.App.Open(nil)
		if err != nil || q == nil {
			return cmp.Or(err, error(alerting.ErrNoIncidents))
		}
		x, err := q.Alerts.Incidents.Find(r.Context(), r.PostForm.Get("id"), h.Resolved, h.Site())
		if err != nil {
			return err
		}
		change := q.Alerts.Incidents.Acknowledge
		if done == resolveQuery {
			change = q.Alerts.Incidents.Resolve
		}
		outcome := done
		_, changed, err := change(r.Context(), x, message.Who{User: environment.User(r)})
		if err != nil {
			return err
		}
		if !changed {
			outcome = "over"
		}
		query := url.Values{"done": {outcome}}
		for _, name := range []string{"key", "state"} { // filter of the list of incidents
			if value := r.PostForm.Get("filter-" + name); value != "" {
				query.Set(name, value)
			}
		}
		return httpapi.SeeOther(w, httpapi.AddressOf(r, at.Pattern), query.Encode())
	}
}

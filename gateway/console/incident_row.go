package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentRow returns an incident with its buttons.
func (h *incidentPages) incidentRow(r *http.Request, x *rules.Incident) view.IncidentRow {
	out := view.IncidentRow{ListedIncident: h.api.Incidents.Listed(r, x, true), PublicID: x.ID, Resolve: !x.Own}
	out.Line = out.Line.Short()
	if !x.Own && out.Key != "" {
		out.Silence = httpapi.SilenceAddress(r, url.Values{"key": {out.Key}, "incident": {cmp.Or(x.Name, x.Derived)}})
	}
	return out
}

// maxUnfolded is how many equal incidents a row shows when it unfolds.
const maxUnfolded = 20

// incidentRows returns a row of a list: an incident, or equal ones. Its forms are sent to the address
// action.
func (h *incidentPages) incidentRows(r *http.Request, x *alerting.ListedIncidents, now time.Time, action string) view.IncidentRow {
	row := func(x *alerting.StoredIncident) view.IncidentRow {
		out := h.incidentRow(r, x.Incident)
		out.Now, out.Action = now, action
		return out
	}
	out := row(&x.Worst)
	if x.Count == 1 {
		return out
	}
	list := alerting.IncidentQuery{Key: out.Key, Stage: x.Worst.Incident.Stage(), Limit: alerting.DefaultIncidents}
	all := &view.EqualIncidents{
		Count: x.Count, Newest: x.Newest, Address: list.Address(httpapi.AddressOf(r, httpapi.RouteConsoleIncidents), alerting.IncidentCursor{}),
	}
	ids := make([]string, len(x.Equal))
	for i := range x.Equal {
		if ids[i] = x.Equal[i].Incident.ID; i < maxUnfolded {
			all.Rows = append(all.Rows, row(&x.Equal[i]))
		}
	}
	all.PublicIDs, all.More = strings.Join(ids, " "), x.Count-len(all.Rows)
	if out.Silence != "" {
		all.SilenceAll = silenceAll(r, out.Key, x.Prefix)
	}
	out.Equal = all
	return out
}

// minPrefix is the length of a beginning of titles that says what they are about.
const minPrefix = 6

// silenceAll returns the address of the page for silencing equal incidents of a key: by what their
// titles begin with, or else the whole key.
func silenceAll(r *http.Request, key, prefix string) string {
	query := url.Values{"key": {key}}
	if prefix = strings.TrimRight(prefix, " "); len(prefix) >= minPrefix {
		query.Set("title", prefix)
	} else {
		query.Set("tag", rules.AllTags)
	}
	return silencesPage(r) + "?" + query.Encode() + "#silence"
}

// postIncident returns the action that acknowledges or resolves incidents of the site. Their IDs are
// in the field id.
func (h *incidentPages) postIncident(done string) httpapi.ActionFunc {
	return func(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
		if err := h.readPageForm(w, r); err != nil {
			return err
		}
		q, err := h.App.Open(nil)
		if err != nil || q == nil {
			return cmp.Or(err, error(alerting.ErrNoIncidents))
		}
		change := q.Alerts.Incidents.Acknowledge
		if done == resolveQuery {
			change = q.Alerts.Incidents.Resolve
		}
		ids := strings.Fields(r.PostForm.Get("id"))
		ctx, cancel := context.WithTimeout(r.Context(), alerting.ShareTime)
		defer cancel()
		count := 0
		for _, id := range ids[:min(len(ids), alerting.MaxEqual)] {
			x, err := q.Alerts.Incidents.Find(ctx, id, h.Resolved, h.Site())
			if errors.Is(err, alerting.ErrNoIncident) && len(ids) > 1 {
				continue // it was forgotten meanwhile
			}
			if err != nil {
				return err
			}
			_, changed, err := change(ctx, x, message.Who{User: environment.User(r)})
			if err != nil {
				return err
			}
			if changed {
				count++
			}
		}
		if len(ids) == 0 {
			return alerting.ErrNoIncident
		}
		query := url.Values{"done": {done}}
		if count > 1 {
			query.Set("count", strconv.Itoa(count))
		}
		if count == 0 {
			query.Set("done", "over")
		}
		for _, name := range []string{"key", "state", "day"} { // filter of the list of incidents
			if value := r.PostForm.Get("filter-" + name); value != "" {
				query.Set(name, value)
			}
		}
		return httpapi.SeeOther(w, httpapi.AddressOf(r, at.Pattern), query.Encode())
	}
}

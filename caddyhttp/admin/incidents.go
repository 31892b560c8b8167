package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// serveIncidents lists the incidents of the keys of all sites, the worst first.
func serveIncidents(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	by, err := alerting.ParseIncidentQuery(r.URL.Query())
	if err != nil {
		return answerError(w, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	conf := q.Outbox.Current()
	places, err := alerting.Places(ctx, &conf.Directory, by.Key)
	if err != nil {
		return answerError(w, err)
	}
	list, next, err := q.Alerts.Incidents.List(ctx, places, &by)
	if err != nil {
		return answerError(w, err)
	}
	nameOf := func(x *rules.Incident) string { return conf.NameOfIncident(ctx, x) }
	page := alerting.NewIncidentsJSON(list, nameOf, r.URL.Path, &by, next)
	out := incidentsJSON{Incidents: make([]listedIncident, len(list)), Next: page.Next}
	for i, x := range list {
		silenced, err := q.Alerts.Silences.Of(ctx, x.Incident)
		if err != nil {
			return answerError(w, err)
		}
		out.Incidents[i] = listedIncident{page.Incidents[i], silenced.Until.UTC(), silenced.Names()}
	}
	return writeJSON(w, out)
}

// incidentsJSON is a page of incidents.
type incidentsJSON struct {
	Incidents []listedIncident `json:"incidents"`
	Next      string           `json:"next,omitempty"` // address of the next page
}

// listedIncident is an incident with its silences.
type listedIncident struct {
	alerting.IncidentJSON
	Silenced time.Time `json:"silenced_until,omitzero"`
	For      []string  `json:"silenced_for,omitempty"` // the destinations that are not told; none if no destination is
}

// maxIncidentRequest bounds the body of a request that changes an incident, in bytes.
const maxIncidentRequest = 4 << 10

// serveAcknowledge acknowledges an incident.
func serveAcknowledge(w http.ResponseWriter, r *http.Request) error {
	return changeIncidentOf(w, r, (*alerting.Incidents).Acknowledge)
}

// serveResolve resolves an incident.
func serveResolve(w http.ResponseWriter, r *http.Request) error {
	return changeIncidentOf(w, r, (*alerting.Incidents).Resolve)
}

// incidentJSON is the JSON response to a change.
type incidentJSON struct {
	Changed bool `json:"changed_now"` // false if it was so before
	alerting.IncidentJSON

	Warnings []string `json:"warnings,omitempty"` // about parts of the request that could not be read
}

// changeIncidentOf calls change for the incident in the path of r, and responds with the
// incident.
func changeIncidentOf(
	w http.ResponseWriter, r *http.Request,
	change func(*alerting.Incidents, context.Context, *alerting.StoredIncident, message.Who) (*rules.Incident, bool, error),
) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	body := api.ReadSignal(w, r, message.Limits{MaxBody: maxIncidentRequest}, "by")
	by, warnings := message.Who{User: body.SignalField("by")}, body.Warnings()
	body.Close()
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	at, err := q.Alerts.Incidents.ByID(ctx, r.PathValue("id"))
	if err != nil {
		return answerError(w, err)
	}
	x, changed, err := change(q.Alerts.Incidents, ctx, at, by)
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, incidentJSON{changed, alerting.NewIncidentJSON(x, q.Outbox.Current().NameOfIncident(ctx, x)), warnings})
}

// serveForget forgets the incident in the path of r.
func serveForget(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	at, err := q.Alerts.Incidents.ByID(ctx, r.PathValue("id"))
	if err == nil {
		err = q.Alerts.Incidents.Forget(ctx, at)
	}
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, alerting.NewIncidentJSON(at.Incident, q.Outbox.Current().NameOfIncident(ctx, at.Incident)))
}

// serveForgetAll forgets the incidents of a key.
func serveForgetAll(w http.ResponseWriter, r *http.Request) error {
	app, err := runningGateway()
	if err != nil {
		return err
	}
	q, err := runningQueue()
	if err != nil {
		return err
	}
	by, err := alerting.ParseIncidentQuery(r.URL.Query())
	if err == nil && by.Key == "" {
		err = api.Errorf(http.StatusBadRequest, "name the key whose incidents are forgotten with ?key=")
	}
	if err != nil {
		return answerError(w, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), alerting.ShareTime)
	defer cancel()
	conf := q.Outbox.Current()
	places, err := alerting.Places(ctx, &conf.Directory, by.Key)
	if err != nil {
		return answerError(w, err)
	}
	savedWithoutRules := func(s *site.Site) bool { return s.Saved.On() && s.Saved.Rules.Empty() } // their keys have no places
	if len(places) == 0 && !slices.ContainsFunc(app.Conf.Sites, savedWithoutRules) {
		return apiError(http.StatusNotFound, noKey(app, by.Key, ", neither in the configuration nor saved"))
	}
	out, err := q.Alerts.Incidents.ForgetAll(ctx, places, by.Stage)
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, out)
}

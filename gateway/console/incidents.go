package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/console/week"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// incidentPages lists the incidents of the site and forgets them.
type incidentPages struct{ *shared }

// pageIncidents is the number of incidents on a page of the console.
const pageIncidents = 50

// serveIncidentsPage lists the incidents of the site.
func (h *incidentPages) serveIncidentsPage(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	by, err := alerting.ParseIncidentQuery(r.URL.Query())
	if err != nil {
		return err
	}
	by.Limit = pageIncidents
	root := api.RootOf(r.URL.Path)
	p := view.IncidentsPage{
		Root: root, Filter: view.IncidentFilter{Key: by.Key, State: view.IncidentState(by.Stage)}, Rules: h.hasRules(), Lacks: h.lacksRule(),
	}
	address := func(after alerting.IncidentCursor) string {
		whole := by
		whole.Limit = alerting.DefaultIncidents // the page has a limit of its own
		return whole.Address(root+httpapi.RouteConsoleIncidents[1:], after)
	}
	if !by.Day.IsZero() {
		p.Filter.Day = by.Day.Format(time.DateOnly)
		all := alerting.IncidentQuery{Key: by.Key, Stage: by.Stage, Limit: alerting.DefaultIncidents}
		p.AnyDay = all.Address(root+httpapi.RouteConsoleIncidents[1:], alerting.IncidentCursor{})
	}
	if p.Rules {
		p.Week = week.Of(r, h.Base, &by)
	}
	if by.After != (alerting.IncidentCursor{}) {
		p.First = address(alerting.IncidentCursor{})
	}
	if names, err := h.keyNames(r.Context()); err == nil && len(names) <= MaxListedKeys {
		p.Keys = names
	}
	p.Done = cmp.Or(forgottenOf(r.URL.Query()), nowDone(r.URL.Query()))
	by.Fold = by.Key == "" // the list of a key has each
	rows, next, err := h.api.Incidents.SiteRows(r.Context(), &by)
	switch {
	case errors.Is(err, alerting.ErrNoIncidents): // the page says what they need
	case err != nil:
		p.Problem = httpapi.ErrQueueUnread
	default:
		p.Action = root + httpapi.RouteConsoleIncidents[1:]
	}
	now := time.Now()
	for i := range rows {
		row := h.incidentRows(r, &rows[i], now, p.Action)
		row.Forget = alerting.IsQuiet(rows[i].Worst.Incident)
		p.Incidents = append(p.Incidents, row)
	}
	if next != (alerting.IncidentCursor{}) {
		p.More = address(next)
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsole, p)
}

// forgetQuery is the query parameter of the forms that forget incidents.
const forgetQuery = "forget"

// postForget forgets an incident of the page, or the incidents of a key.
func (h *incidentPages) postForget(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	q, err := h.App.Open(nil)
	if err != nil || q == nil {
		return cmp.Or(err, error(alerting.ErrNoIncidents))
	}
	filter := url.Values{
		"key": {r.PostForm.Get("filter-key")}, "state": {r.PostForm.Get("filter-state")}, "day": {r.PostForm.Get("filter-day")},
	}
	by, err := alerting.ParseIncidentQuery(filter)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), alerting.ShareTime)
	defer cancel()
	var out alerting.Forgotten
	if id := r.PostForm.Get("id"); id != "" {
		out.Forgotten, err = 1, h.forgetOne(ctx, q, id)
	} else {
		out, err = h.forgetKey(ctx, q, r.PostForm.Get("key"), by.Stage)
	}
	if err != nil {
		return httpapi.Answer(err)
	}
	query := url.Values{"done": {forgetQuery}, "forgotten": {strconv.Itoa(out.Forgotten)}}
	if out.Kept > 0 {
		query.Set("kept", strconv.Itoa(out.Kept))
	}
	for name := range filter {
		if value := filter.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	return httpapi.SeeOther(w, httpapi.AddressOf(r, httpapi.RouteConsoleIncidents), query.Encode())
}

// forgetOne forgets the incident with a public ID, which must belong to a key of the site.
func (h *incidentPages) forgetOne(ctx context.Context, q *gateway.Rooms, id string) error {
	at, err := q.Alerts.Incidents.Find(ctx, id, h.Resolved, h.Site())
	if err != nil {
		return err
	}
	return q.Alerts.Incidents.Forget(ctx, at)
}

// forgetKey forgets the incidents of a key of the site in a stage, or in any stage if it is empty.
func (h *incidentPages) forgetKey(ctx context.Context, q *gateway.Rooms, key string,
	stage notifier.IncidentState,
) (alerting.Forgotten, error) {
	if key == "" {
		return alerting.Forgotten{}, api.Errorf(http.StatusBadRequest, "there is nothing to forget; use the buttons of the page")
	}
	places, err := alerting.PlacesOfSite(ctx, h.Resolved, h.Site(), key, nil)
	if err != nil {
		return alerting.Forgotten{}, err
	}
	return q.Alerts.Incidents.ForgetAll(ctx, places, stage)
}

// forgottenOf returns a text about what a form has forgotten, or "".
func forgottenOf(query url.Values) string {
	n, err := strconv.Atoi(query.Get("forgotten"))
	if query.Get("done") != forgetQuery || err != nil {
		return ""
	}
	text := "Nothing is forgotten."
	switch {
	case n == 1:
		text = "One incident is forgotten."
	case n > 1:
		text = fmt.Sprintf("%d incidents are forgotten.", n)
	}
	if kept, err := strconv.Atoi(query.Get("kept")); err == nil && kept > 0 {
		text += fmt.Sprintf(" %d stay: people are being told of them, somebody takes care of them, or they are silenced.", kept)
	}
	return text
}

// hasRules reports whether a key of the site has rules.
func (h *shared) hasRules() bool {
	if h.Resolved.Saved.On() && !h.Resolved.Saved.Rules.Empty() {
		return true
	}
	for _, k := range h.Resolved.Keys {
		if !k.Rules.Empty() {
			return true
		}
	}
	return false
}

package caddyhttp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// pageIncidents is the number of incidents on a page of the console.
const pageIncidents = 50

// serveIncidentsPage lists the incidents of the site.
func (h *pages) serveIncidentsPage(w http.ResponseWriter, r *http.Request, _ *route) error {
	by, err := alerting.ParseIncidentQuery(r.URL.Query())
	if err != nil {
		return err
	}
	by.Limit = pageIncidents
	root := rootOf(r.URL.Path)
	p := view.IncidentsPage{
		Root: root, Filter: view.IncidentFilter{Key: by.Key, State: view.IncidentState(by.Stage)}, Rules: h.hasRules(),
	}
	address := func(after alerting.IncidentCursor) string {
		whole := by
		whole.Limit = alerting.DefaultIncidents // the page has one of its own
		return whole.Address(root+routeConsoleIncidents[1:], after)
	}
	if by.After != (alerting.IncidentCursor{}) {
		p.First = address(alerting.IncidentCursor{})
	}
	if names, err := h.keyNames(r.Context()); err == nil && len(names) <= maxListedKeys {
		p.Keys = names
	}
	p.Done = forgottenOf(r.URL.Query())
	list, next, err := h.siteIncidents(r.Context(), &by)
	if err != nil {
		p.Problem = errQueueUnread
	} else {
		p.Action = root + routeConsoleIncidents[1:]
	}
	for _, x := range list {
		listed := listedIncident(r, x.Incident)
		listed.Silenced = h.silencedUntil(r.Context(), x.Incident)
		if alerting.IsQuiet(x.Incident) {
			listed.ID = x.ID
		}
		p.Incidents = append(p.Incidents, listed)
	}
	if next != (alerting.IncidentCursor{}) {
		p.More = address(next)
	}
	return h.writePage(w, r, http.StatusOK, routeConsoleIncidents, p)
}

// forgetQuery is the query parameter of the forms that forget incidents.
const forgetQuery = "forget"

// postForget forgets an incident of the page, or those of a key.
func (h *pages) postForget(w http.ResponseWriter, r *http.Request, _ *route) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	q, err := h.app.Open(nil)
	if err != nil || q == nil {
		return cmp.Or(err, error(alerting.ErrNoIncidents))
	}
	filter := url.Values{"key": {r.PostForm.Get("filter-key")}, "state": {r.PostForm.Get("filter-state")}}
	by, err := alerting.ParseIncidentQuery(filter)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), alerting.ShareTime)
	defer cancel()
	var out alerting.Forgotten
	if id := r.PostForm.Get("id"); id != "" {
		out.Forgotten, err = 1, h.forgetOne(ctx, q, id)
	} else {
		out, err = h.forgetKey(ctx, q, r.PostForm.Get("key"), by.Stage)
	}
	if err != nil {
		return outbox.QueueError(err)
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
	w.Header().Set("Location", rootOf(r.URL.Path)+routeConsoleIncidents[1:]+"?"+query.Encode())
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// forgetOne forgets the incident with a public ID, which must be one of the site's keys.
func (h *pages) forgetOne(ctx context.Context, q *gateway.Rooms, id string) error {
	at, err := q.IncidentByID(ctx, id)
	if err != nil {
		return err
	}
	if at == nil {
		return errNoIncident
	}
	places, err := alerting.ResolvedIncidentPlaces(h.resolved, ctx, h.site(), at.Key, nil)
	if err != nil {
		return err
	}
	if !slices.Contains(places, alerting.PlaceOfIncident(at.Incident)) {
		return errNoIncident
	}
	return q.ForgetIncident(ctx, at)
}

// forgetKey forgets the incidents of a key of the site in a stage, or all if it is empty.
func (h *pages) forgetKey(ctx context.Context, q *gateway.Rooms, key string, stage notifier.IncidentState) (alerting.Forgotten, error) {
	if key == "" {
		return alerting.Forgotten{}, api.Errorf(http.StatusBadRequest, "there is nothing to forget; use the buttons of the page")
	}
	places, err := alerting.ResolvedIncidentPlaces(h.resolved, ctx, h.site(), key, nil)
	if err != nil {
		return alerting.Forgotten{}, err
	}
	return q.ForgetIncidents(ctx, places, stage)
}

// forgottenOf returns what a form has forgotten, or "".
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

// hasRules reports whether one of the keys of the site has rules.
func (h *pages) hasRules() bool {
	if h.resolved.Saved.On() && !h.resolved.Saved.Rules.Empty() {
		return true
	}
	for _, k := range h.resolved.Keys {
		if !k.Rules.Empty() {
			return true
		}
	}
	return false
}

// listedIncident returns an incident as the pages show it.
func listedIncident(r *http.Request, x *rules.Incident) view.ListedIncident {
	out := view.ListedIncident{
		Title: x.Title, Key: x.Key, KeyAddress: consoleKey(r, x.Key), Type: string(x.Type), State: view.IncidentState(x.Stage()), Since: x.Opened,
		Steps: len(alerting.IncidentSteps(x)), Step: x.Escalation.Step, Round: x.Escalation.Round, Next: x.Escalation.Next,
	}
	out.Address = rootOf(r.URL.Path) + site.RouteIncidents[1:] + "/" + x.ID
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

// incidentTrouble returns how many incidents of the site's keys are open, or "".
func (h *pages) incidentTrouble() string {
	select {
	case <-h.app.Started:
	default:
		return ""
	}
	if h.app.Rooms == nil || !h.hasRules() {
		return ""
	}
	sizes := h.app.Rooms.Groups.Get(context.Background(), h.app.Rooms.Queue)
	n := 0
	for name, k := range h.resolved.Keys {
		n += sizes[h.app.Rooms.IncidentGroup(k.Home(h.site())+"\x00"+name, notifier.Open)]
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d open", n)
}

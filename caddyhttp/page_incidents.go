package caddyhttp

import (
	"context"
	"fmt"
	"net/http"

	"github.com/caddy-notify/caddy-notify/caddyhttp/console"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// pageIncidents is the number of incidents on a page of the console.
const pageIncidents = 50

// serveIncidentsPage lists the incidents of the site.
func (h *pages) serveIncidentsPage(w http.ResponseWriter, r *http.Request, _ *route) error {
	by, err := parseIncidentQuery(r.URL.Query())
	if err != nil {
		return err
	}
	by.limit = pageIncidents
	root := rootOf(r.URL.Path)
	p := console.IncidentsPage{
		Root: root, Filter: console.IncidentFilter{Key: by.key, State: console.IncidentState(by.stage)}, Rules: h.hasRules(),
	}
	address := func(after incidentCursor) string {
		whole := by
		whole.limit = defaultIncidents // the page has one of its own
		return whole.address(root+routeConsoleIncidents[1:], after)
	}
	if by.after != (incidentCursor{}) {
		p.First = address(incidentCursor{})
	}
	if names, err := h.keyNames(r.Context()); err == nil && len(names) <= maxListedKeys {
		p.Keys = names
	}
	list, next, err := h.siteIncidents(r.Context(), &by)
	if err != nil {
		p.Problem = errQueueUnread
	}
	for _, x := range list {
		listed := listedIncident(r, x.Incident)
		listed.Silenced = h.silencedUntil(r.Context(), x.Incident)
		p.Incidents = append(p.Incidents, listed)
	}
	if next != (incidentCursor{}) {
		p.More = address(next)
	}
	return h.writePage(w, r, http.StatusOK, routeConsoleIncidents, p)
}

// hasRules reports whether one of the keys of the site has rules.
func (h *pages) hasRules() bool {
	if h.resolved.saved.on() && !h.resolved.saved.rules.Empty() {
		return true
	}
	for _, k := range h.resolved.keys {
		if !k.rules.Empty() {
			return true
		}
	}
	return false
}

// listedIncident returns an incident as the pages show it.
func listedIncident(r *http.Request, x *rules.Incident) console.ListedIncident {
	out := console.ListedIncident{
		Title: x.Title, Key: x.Key, KeyAddress: consoleKey(r, x.Key), Type: string(x.Type), State: console.IncidentState(x.Stage()), Since: x.Opened,
		Steps: len(incidentSteps(x)), Step: x.Escalation.Step, Round: x.Escalation.Round, Next: x.Escalation.Next,
	}
	out.Address = rootOf(r.URL.Path) + routeIncidents[1:] + "/" + x.ID
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
	case <-h.app.started:
	default:
		return ""
	}
	if h.app.queue == nil || !h.hasRules() {
		return ""
	}
	sizes := h.app.queue.groups.get(context.Background(), h.app.queue.Queue)
	n := 0
	for name, k := range h.resolved.keys {
		n += sizes[h.app.queue.incidentGroup(k.home(h.site())+"\x00"+name, notifier.Open)]
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d open", n)
}

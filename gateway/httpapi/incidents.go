package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

var errIncidentsSlash = api.Errorf(http.StatusNotFound, "the address of the list of incidents has no slash at the end; remove it")

// serveIncidents answers a request for the incidents of the site with JSON or, for a browser, with
// the page of the console.
func (h *Incidents) serveIncidents(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	if strings.HasSuffix(r.URL.Path, "/") {
		// A matcher that excludes /notify/incidents/* for the links of messages does not exclude
		// the list, which is for managers.
		return h.ErrorResponse(r, errIncidentsSlash)
	}
	if err := h.doIncidents(w, r, at); err != nil {
		return h.ErrorResponse(r, err)
	}
	return nil
}

func (h *Incidents) doIncidents(w http.ResponseWriter, r *http.Request, at *Route) error {
	if err := at.CheckMethod(w, r); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.MayManage(r); err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if h.Has.Console && api.PrefersHTML(r) {
		return SeeOther(w, AddressOf(r, RouteConsoleIncidents), r.URL.RawQuery)
	}
	by, err := alerting.ParseIncidentQuery(r.URL.Query())
	if err != nil {
		return err
	}
	list, next, err := h.SiteIncidents(r.Context(), &by)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, alerting.NewIncidentsJSON(list, h.NameOfIncident(r), AddressOf(r, site.RouteIncidents), &by, next))
}

// SiteIncidents returns a page of the incidents of the site's keys.
func (h *Incidents) SiteIncidents(ctx context.Context, by *alerting.IncidentQuery) ([]alerting.StoredIncident,
	alerting.IncidentCursor, error,
) {
	return ofSite(ctx, h, by, (*alerting.Incidents).List)
}

// SiteRows returns a page of the incidents of the site's keys, as the console lists them.
func (h *Incidents) SiteRows(ctx context.Context, by *alerting.IncidentQuery) ([]alerting.ListedIncidents, alerting.IncidentCursor, error) {
	return ofSite(ctx, h, by, (*alerting.Incidents).Rows)
}

// ofSite calls list with the places of the site's keys.
func ofSite[T any](ctx context.Context, h *Incidents, by *alerting.IncidentQuery,
	list func(*alerting.Incidents, context.Context, []string, *alerting.IncidentQuery) ([]T, alerting.IncidentCursor, error),
) ([]T, alerting.IncidentCursor, error) {
	q, err := h.App.Open(nil)
	if err != nil || q == nil {
		return nil, alerting.IncidentCursor{}, cmp.Or(err, error(alerting.ErrNoIncidents))
	}
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	places, err := alerting.PlacesOfSite(ctx, h.Resolved, h.Site(), by.Key, nil)
	if err != nil {
		return nil, alerting.IncidentCursor{}, err
	}
	out, next, err := list(q.Alerts.Incidents, ctx, places, by)
	if err != nil {
		err = outbox.Unread(fmt.Errorf("listing incidents: %w", err))
	}
	return out, next, err
}

// NameOfIncident returns a function that returns the present name of an incident's key.
func (h *Base) NameOfIncident(r *http.Request) func(*rules.Incident) string {
	return func(x *rules.Incident) string { return h.App.Conf.NameOfIncident(r.Context(), x) }
}

// ListedIncident returns an incident as the pages show it.
func (h *Base) ListedIncident(r *http.Request, x *rules.Incident) view.ListedIncident {
	key := h.NameOfIncident(r)(x)
	out := view.ListedIncident{
		Title: x.Title, Key: key, KeyAddress: ConsoleKey(r, key), Type: string(x.Type), State: view.IncidentState(x.Stage()), Since: x.Opened,
	}
	out.Address = AddressOf(r, site.RouteIncidents+"/"+x.ID)
	if h.Has.Console && h.MayManage(r) == nil {
		out.Address = AddressOf(r, RouteConsoleIncidents+"/"+x.ID)
	}
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

// ErrQueueUnread is shown on a page in place of data in the queue that cannot be read.
const ErrQueueUnread = "The queue cannot be read at the moment."

// Package week has the bars of the incidents of a week.
package week

import (
	"context"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// Of returns the incidents that the keys of the query have opened in the last seven days, or nil if
// there are none or they cannot be read. Each day leads to the list of its incidents.
func Of(r *http.Request, h *httpapi.Base, by *alerting.IncidentQuery) *view.IncidentWeek {
	q, err := h.App.Open(nil)
	if err != nil || q == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	places, err := alerting.PlacesOfSite(ctx, h.Resolved, h.Site(), by.Key, nil)
	if err != nil {
		return nil
	}
	week, err := q.Alerts.Incidents.Week(ctx, places)
	if err != nil {
		return nil
	}
	out, opened := &view.IncidentWeek{Cut: week.Cut, Keep: q.Outbox.Queue.Keep()}, 0
	for i, d := range week.Days {
		list := alerting.IncidentQuery{Key: by.Key, Day: d.Begin, Limit: alerting.DefaultIncidents}
		out.Days[i] = view.IncidentDay{
			Begin: d.Begin, Escalated: d.Escalated, Failures: d.Failures, Others: d.Others, Here: by.Day.Equal(d.Begin),
			Address: list.Address(httpapi.AddressOf(r, httpapi.RouteConsoleIncidents), alerting.IncidentCursor{}),
		}
		opened += d.Opened()
	}
	if opened == 0 {
		return nil
	}
	return out
}

package httpapi

import (
	"cmp"
	"context"
	"fmt"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// SiteIncidents returns a page of the incidents of the keys that the site has.
func (h *API) SiteIncidents(ctx context.Context, by *alerting.IncidentQuery) ([]alerting.StoredIncident, alerting.IncidentCursor, error) {
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
	list, next, err := q.ListIncidents(ctx, places, by)
	if err != nil {
		err = outbox.MessageError(fmt.Errorf("listing incidents: %w", err))
	}
	return list, next, err
}

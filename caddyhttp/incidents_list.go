package caddyhttp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// siteIncidents returns a page of the incidents of the keys that the site has.
func (h *httpAPI) siteIncidents(ctx context.Context, by *alerting.IncidentQuery) ([]alerting.StoredIncident, alerting.IncidentCursor, error) {
	q, err := h.app.Open(nil)
	if err != nil || q == nil {
		return nil, alerting.IncidentCursor{}, cmp.Or(err, error(alerting.ErrNoIncidents))
	}
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	places, err := alerting.ResolvedIncidentPlaces(h.resolved, ctx, h.site(), by.Key, nil)
	if err != nil {
		return nil, alerting.IncidentCursor{}, err
	}
	list, next, err := q.ListIncidents(ctx, places, by)
	if err != nil {
		err = outbox.MessageError(fmt.Errorf("listing incidents: %w", err))
	}
	return list, next, err
}

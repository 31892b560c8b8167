package caddyhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
)

// serveIncidents lists the incidents of the keys of all sites, the worst first.
func (adminAPI) serveIncidents(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	by, err := parseIncidentQuery(r.URL.Query())
	if err != nil {
		return adminFault(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	places, err := q.app.Load().incidentPlaces(ctx, by.key)
	if err != nil {
		return adminFault(err)
	}
	list, next, err := q.listIncidents(ctx, places, &by)
	if err != nil {
		return adminFault(err)
	}
	return writeAdminJSON(w, newIncidentsJSON(list, r.URL.Path, &by, next))
}

// adminFault returns err as the admin API answers it: with its own status, or with 503
// for a fault of the store.
func adminFault(err error) error {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return adminError(e.Status, e)
	}
	return adminError(http.StatusServiceUnavailable, err)
}

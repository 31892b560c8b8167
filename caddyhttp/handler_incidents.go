package caddyhttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

var errIncidentsSlash = api.Errorf(http.StatusNotFound, "the address of the list of incidents has no slash at the end; remove it")

// serveIncidents answers a request for the incidents of the site: with JSON, or for a
// browser with the page of the console.
func (h *httpAPI) serveIncidents(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	if strings.HasSuffix(r.URL.Path, "/") {
		// A matcher that leaves out /notify/incidents/* for the links of messages does not
		// leave out the list, which is for those who may manage.
		return h.errorResponse(errIncidentsSlash)
	}
	if err := h.doIncidents(w, r, at); err != nil {
		return h.errorResponse(err)
	}
	return nil
}

func (h *httpAPI) doIncidents(w http.ResponseWriter, r *http.Request, at *route) error {
	if !slices.Contains(at.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(at.methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method, at.methods[0])
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.mayManage(r); err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if h.has.console && api.PrefersHTML(r) {
		address := rootOf(r.URL.Path) + routeConsoleIncidents[1:]
		if r.URL.RawQuery != "" {
			address += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", address)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	by, err := alerting.ParseIncidentQuery(r.URL.Query())
	if err != nil {
		return err
	}
	list, next, err := h.siteIncidents(r.Context(), &by)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, alerting.NewIncidentsJSON(list, rootOf(r.URL.Path)+site.RouteIncidents[1:], &by, next))
}

package httpapi

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
func (h *API) serveIncidents(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	if strings.HasSuffix(r.URL.Path, "/") {
		// A matcher that leaves out /notify/incidents/* for the links of messages does not
		// leave out the list, which is for those who may manage.
		return h.ErrorResponse(errIncidentsSlash)
	}
	if err := h.doIncidents(w, r, at); err != nil {
		return h.ErrorResponse(err)
	}
	return nil
}

func (h *API) doIncidents(w http.ResponseWriter, r *http.Request, at *Route) error {
	if !slices.Contains(at.Methods, r.Method) {
		w.Header().Set("Allow", strings.Join(at.Methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method, at.Methods[0])
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.MayManage(r); err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if h.Has.Console && api.PrefersHTML(r) {
		address := RootOf(r.URL.Path) + RouteConsoleIncidents[1:]
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
	list, next, err := h.SiteIncidents(r.Context(), &by)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, alerting.NewIncidentsJSON(list, RootOf(r.URL.Path)+site.RouteIncidents[1:], &by, next))
}

package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/openapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Action is a row of the table of actions: the handling of one kind of request to a route, selected
// by its method or its query. The row of the route in the table of routes says who may use it.
type Action struct {
	Pattern string             // of the route
	Change  bool               // for POST and DELETE, which no page of another site may send
	Query   string             // a parameter that the query must have; "" for none
	Saved   bool               // it is not for keys of the configuration
	Do      ActionFunc         // writes the answer, or returns an error
	About   *openapi.Parameter // describes Query for the API's description; nil for forms of pages
}

// ActionFunc answers a request to a route.
type ActionFunc func(w http.ResponseWriter, r *http.Request, at *Route) error

// OfKey returns do for the key of a route.
func OfKey(do func(w http.ResponseWriter, r *http.Request, key string) error) ActionFunc {
	return func(w http.ResponseWriter, r *http.Request, at *Route) error { return do(w, r, at.Key) }
}

// serveAction answers a request by the table of actions.
func (h *API) serveAction(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	err := h.act(w, r, at)
	if err == nil {
		return nil
	}
	resp := h.ErrorResponse(r, err)
	switch {
	case IsChange(r):
		resp.Title, resp.BackURL = "Not changed", RelativeAddress(r)
		if at.Key != "" {
			resp.BackURL = ConsoleKey(r, at.Key)
		}
		h.Refuse(r, at.Lookup(), resp.Status, resp.Error, err)
	case resp.Status == http.StatusForbidden && at.access == accessManage:
		resp.Title = "You cannot use the console"
	}
	return resp
}

// act carries out the action of a request. If several match, the first counts.
func (h *API) act(w http.ResponseWriter, r *http.Request, at *Route) error {
	if err := at.CheckMethod(w, r); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.mayAct(r, at); err != nil {
		return err
	}
	query := r.URL.Query()
	for _, a := range h.actions {
		if a.Pattern != at.Pattern || a.Change != IsChange(r) || a.Query != "" && !query.Has(a.Query) {
			continue
		}
		if a.Saved {
			if err := h.Saved.CheckSaved(at.Key); err != nil {
				return err
			}
		}
		return a.Do(w, r, at)
	}
	return api.Errorf(http.StatusBadRequest, "there is nothing to do; use the buttons of the page")
}

// mayAct returns an error if the client of r may not use the route.
func (h *API) mayAct(r *http.Request, at *Route) error {
	switch at.access {
	case accessManage:
		if err := h.MayManage(r); err != nil {
			return err
		}
	case accessSaved:
		if err := h.MayManageSaved(r); err != nil {
			return err
		}
	case accessSender:
		// Only clients that may send to the key learn whether it exists.
		if _, err := at.Lookup().toSend(r); err != nil && !errors.Is(err, site.ErrNoKey) && h.MayManageSaved(r) != nil {
			return err
		}
	}
	if err := h.Sender.mayNameKey(r, at); err != nil || !IsChange(r) {
		return err
	}
	if err := CheckOwnOrigin(r); err != nil || at.Key == "" {
		return err
	}
	// A key that was saved before its name was reserved can be read, moved and deleted.
	moves := slices.Contains([]string{RouteGet, RouteDel, RouteMove}, at.Pattern) && site.IsKeyName(at.Key)
	if err := site.CheckKeyName(at.Key); err != nil && !moves {
		return api.Errorf(http.StatusNotFound, "%w", err)
	}
	return nil
}

// IsChange reports whether a request may change something.
func IsChange(r *http.Request) bool {
	return r.Method == http.MethodPost || r.Method == http.MethodDelete
}

// SeeOther redirects the client to another address with a query, which may be empty. It returns
// nil.
func SeeOther(w http.ResponseWriter, address, query string) error {
	if query != "" {
		address += "?" + query
	}
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/openapi"
)

// describeAPI returns the description of the API, made from the tables of routes and of actions,
// for a version of the module.
func describeAPI(version string, actions []Action) ([]byte, error) {
	var routes []openapi.Route
	for _, spec := range RouteSpecs() {
		about := spec.about()
		for _, a := range actions {
			if a.Pattern == spec.Pattern && a.About != nil { // all of them belong to the first operation
				about.Operations[0].Parameters = append(about.Operations[0].Parameters, a.About)
			}
		}
		routes = append(routes, openapi.Route{Path: strings.TrimSuffix(spec.Pattern, "/{REST...}"), Secrets: spec.secrets(), About: about})
	}
	return openapi.Document(version, routes, map[string][]string{"VERB": NtfyVerbs}, api.Components())
}

// secrets returns what clients of a route authenticate with.
func (spec *RouteSpec) secrets() openapi.Secrets {
	switch spec.access {
	case accessSender:
		return openapi.WithoutSecret | openapi.WithToken // the key may have no token
	case accessReader:
		return openapi.WithoutSecret | openapi.WithToken | openapi.WithLogin
	case accessInbox:
		return openapi.WithToken | openapi.WithLogin
	case accessManage, accessSaved:
		return openapi.WithoutSecret | openapi.WithLogin // everybody may manage who reaches the site, or some
	default:
		return openapi.WithoutSecret
	}
}

// serveOpenAPI writes the description of the API.
func (h *API) serveOpenAPI(w http.ResponseWriter, r *http.Request, _ *Route) *api.Response {
	if strings.HasSuffix(r.URL.Path, "/") {
		// The description names the server relative to its own address.
		return api.Errorf(http.StatusNotFound, "the address of the API's description has no slash at the end; remove it").Response()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET", r.Method).Response()
	}
	text, err := h.description()
	if err != nil {
		return h.ErrorResponse(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // it fails only if the client is gone
	}
	return nil
}

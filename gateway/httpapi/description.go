package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
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
		return h.ErrorResponse(r, err)
	}
	WriteFile(w, r, "application/json", text)
	return nil
}

// WriteFile writes something that is the same for all clients until there is another version of the
// gateway. Clients may keep it, and ask with its ETag whether it is still right.
func WriteFile(w http.ResponseWriter, r *http.Request, mediaType string, content []byte) {
	sum := sha256.Sum256(content)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	w.Header().Set("Etag", tag)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if hasTag(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // it fails only if the client is gone
	}
}

// hasTag reports whether the lists in If-None-Match have an ETag (RFC 9110, section 13.1.2).
func hasTag(lists []string, tag string) bool {
	for _, list := range lists {
		for item := range strings.SplitSeq(list, ",") {
			if item = strings.TrimPrefix(strings.TrimSpace(item), "W/"); item == "*" || item == tag {
				return true
			}
		}
	}
	return false
}

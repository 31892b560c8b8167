package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/openapi"
)

// DescribedPath returns the path that the description has of a route: links have another address
// than clients.
func DescribedPath(pattern string) string {
	switch pattern {
	case RouteMessage, RouteIncident, RouteAsk:
		pattern = strings.Replace(pattern, RouteNotify+"/", RouteNotify+"/-/", 1)
	}
	return openapi.PathOf(pattern)
}

// TestDescriptionOfRoutes checks that the table of routes and their descriptions agree: no route is
// forgotten, and each operation belongs to its route.
func TestDescriptionOfRoutes(t *testing.T) {
	ids := map[string]string{}
	for _, spec := range RouteSpecs() {
		if spec.about == nil || spec.serve == nil {
			t.Fatalf("%s has no description or nobody who answers; openapi.NotDescribed is for pages", spec.Pattern)
		}
		operations := spec.about().Operations
		described := map[string]bool{}
		for _, o := range operations {
			described[o.Method] = true
			if !slices.Contains(spec.Methods, o.Method) {
				t.Errorf("%s %s is described, and the table does not have it", o.Method, spec.Pattern)
			}
			if other := ids[o.ID]; other != "" || o.ID == "" || o.Summary == "" || o.Tag == "" || len(o.Answers) == 0 {
				t.Errorf("%s %s needs an ID of its own (%q, which %q has), a summary, a tag and answers", o.Method, spec.Pattern, o.ID, other)
			}
			ids[o.ID] = spec.Pattern
		}
		for _, method := range spec.Methods {
			// PUT of a source is POST for programs that cannot send that. GET of a saved key is
			// a page for browsers.
			known := method == http.MethodHead || spec.Pattern == RouteSource && method == http.MethodPut || spec.Pattern == RouteKey &&
				method == http.MethodGet
			if len(operations) > 0 && !known && !described[method] {
				t.Errorf("%s %s is not described", method, spec.Pattern)
			}
		}
		ofPages := strings.HasPrefix(spec.Pattern, RouteConsole) || strings.Contains(spec.Pattern, ".")
		if len(operations) == 0 && !ofPages && DescribedPath(spec.Pattern) == openapi.PathOf(spec.Pattern) {
			t.Errorf("%s is not described", spec.Pattern)
		}
	}
}

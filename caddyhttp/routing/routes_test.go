package routing

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// busyHandler is a handler of a plugin whose method CaddyModule would copy what its
// requests change.
type busyHandler struct{ requests int }

func (busyHandler) CaddyModule() caddy.ModuleInfo { panic("the handler was copied") }

func (h *busyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	h.requests++
	return next.ServeHTTP(w, r)
}

// TestSiteBesideOtherHandlers checks that handlers of other modules are not copied
// when a site is looked up. Requests may use them at that time, so that it was a data
// race.
func TestSiteBesideOtherHandlers(t *testing.T) {
	own, want := caddyhttp.MiddlewareHandler(new(caddyhttp.StaticResponse)), new(Site)
	f := siteFinder{server: &caddyhttp.Server{}, siteOf: func(h caddyhttp.MiddlewareHandler) *Site {
		if h == own {
			return want
		}
		return nil
	}}
	f.find(caddyhttp.RouteList{{Handlers: []caddyhttp.MiddlewareHandler{&busyHandler{}, own}}}, routedSite{})
	if len(f.sites) != 1 || f.sites[0].handler != want {
		t.Errorf("%v, want the handler", f.sites)
	}
}

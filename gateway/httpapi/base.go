package httpapi

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/refusal"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
)

// Base is what every resource of a site's API, and every page, is built on: the settings of
// the site, the gateway behind it, and how errors and pages are written. All resources of a
// site share one.
type Base struct {
	Resolved *site.Site
	Sources  source.Set
	App      *gateway.Gateway
	Shared   *dispatch.Dispatcher
	Saved    *saved.Keys // nil if the site has none
	Has      SiteRoutes
	Routes   routeTable
	pages    PageFuncs
	api.OriginCheck

	// Logins says for the names of keys whether a client needs a login of the server before it
	// can send to them; "" stands for saved keys. A key for which that is not known is left
	// out. nil knows nothing.
	Logins func() map[string]bool

	// ParseDuration parses a duration, which may be in days.
	ParseDuration func(string) (time.Duration, error)

	Log      *zap.Logger
	Refusals refusal.Log
	faults   loglimit.Budget // of lines about requests that failed through no fault of the client
}

// Site returns the ID of the site.
func (h *Base) Site() string { return h.App.Engine.SiteID(h.Resolved) }

// NeedsLogin reports whether a program needs a login of the server to send to a key. Where that
// is not known, it does if the client of r has one.
func (h *Base) NeedsLogin(r *http.Request, k *site.Key) bool {
	name := k.Name
	if k.Saved {
		name = ""
	}
	if h.Logins != nil {
		if needs, ok := h.Logins()[name]; ok {
			return needs
		}
	}
	return environment.User(r) != ""
}

// WritePage writes a page in its frame. here is the route of the place of the navigation that
// the page is in; "" for none.
func (h *Base) WritePage(w http.ResponseWriter, r *http.Request, status int, here string, p view.Page) error {
	return view.Write(w, r, status, h.pages.Frame(r, here), p)
}

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

// Base is the part that every resource of a site's API and every page share: the settings of the
// site, the gateway behind it, and the writing of errors and pages.
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

	// Logins returns, by name of a key, whether the server asks for a login before a client can
	// send to it; "" stands for saved keys. Keys for which this is unknown are missing. nil means
	// that nothing is known.
	Logins func() map[string]bool

	// ParseDuration parses a duration, which may be in days.
	ParseDuration func(string) (time.Duration, error)

	Log      *zap.Logger
	Refusals refusal.Log
	faults   loglimit.Budget // for log lines about requests that failed through no fault of the client
}

// Site returns the ID of the site.
func (h *Base) Site() string { return h.App.Engine.SiteID(h.Resolved) }

// NeedsLogin reports whether a program needs a login of the server to send to a key. If this is
// unknown, it reports whether the client of r has one.
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

// WritePage writes a page in its frame. here is the route of the page's place in the navigation; ""
// for none.
func (h *Base) WritePage(w http.ResponseWriter, r *http.Request, status int, here string, p view.Page) error {
	return view.Write(w, r, status, h.pages.Frame(r, here), p)
}

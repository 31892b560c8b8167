package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/early"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/mcp"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/refusal"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/internal/version"
)

// API answers the requests of a site. Each resource is a small type of its own; the table of routes
// selects the one for a path.
type API struct {
	*Base

	Sender    *Sender
	Beats     *Beats
	Messages  *Messages
	Inboxes   *Inboxes
	Incidents *Incidents
	Silences  *Silences
	Devices   *Devices
	Asks      *Asks
	SavedKeys *SavedKeys

	actions       []Action     // handling of requests to several routes
	agents        http.Handler // see serveMCP
	notifications *notifications
	sources       *sources
	rulers        *rulers

	// description returns the answer to /notify/openapi.json. It is made once.
	description func() ([]byte, error)

	// Closing closes connections whose requests were answered early.
	Closing early.Closing

	// Streams are the responses that last until the site ends.
	Streams *inbox.Streams
}

// New returns the API of a site. pages returns its pages.
func New(o Options, pages func(*API) PageFuncs) *API {
	base := &Base{
		Options: o, Shared: o.App.Conf.Shared, OriginCheck: api.NewOriginCheck(o.Resolved), Routes: NewRouteTable(RouteSpecs()),
		Has: SiteRoutes{
			Queue: o.App.Conf.QueueSettings != nil, Configs: o.Saved != nil, Push: o.Resolved.Push != nil, MCP: o.Resolved.MCP,
			Console: o.Resolved.Managers != nil && o.Resolved.Page, Inbox: o.App.Conf.QueueSettings != nil && o.Resolved.HasInboxes(),
			Beats: o.Resolved.ExpectsBeats(),
		},
	}
	h := &API{Base: base, Streams: &inbox.Streams{Ending: make(chan struct{})}}
	h.description = sync.OnceValues(func() ([]byte, error) { return describeAPI(version.Current, h.actions) })
	h.Sender = &Sender{Base: base}
	h.Beats = &Beats{Base: base, sender: h.Sender}
	h.Messages = &Messages{Base: base, streams: h.Streams}
	h.Asks = &Asks{Base: base}
	h.Silences = &Silences{Base: base}
	h.Incidents = &Incidents{Base: base, silences: h.Silences}
	h.Devices = &Devices{Base: base, sender: h.Sender}
	h.SavedKeys = &SavedKeys{Base: base, sender: h.Sender}
	h.sources = &sources{Base: base, sender: h.Sender, beats: h.Beats}
	h.notifications = &notifications{Base: base, sender: h.Sender, beats: h.Beats}
	h.rulers = &rulers{Base: base, sender: h.Sender, sources: h.sources, started: time.Now()}
	h.Inboxes = &Inboxes{Base: base, sources: h.sources, streams: h.Streams}
	h.Incidents.inboxes = h.Inboxes
	h.agents = mcp.NewHandler(version.Current, h.Serve)
	h.pages = pages(h)
	for i := range h.Routes {
		h.Routes[i].handle = h.Routes[i].serve(h)
	}
	h.actions = append(slices.Clip(h.pages.Actions), h.SavedKeys.actionSpecs()...)
	return h
}

// PageFuncs are the pages of a site, which package console writes. The API calls them when a
// browser gets a page instead of JSON or text.
type PageFuncs struct {
	AppFile  func(w http.ResponseWriter, r *http.Request, at *Route) *api.Response // writes a file of the app for devices
	Manifest func(w http.ResponseWriter, r *http.Request, at *Route) *api.Response
	Send     func(w http.ResponseWriter, r *http.Request, to *Lookup) *api.Response // writes the page to send from
	Preview  func(w http.ResponseWriter, r *http.Request, to *Lookup) *api.Response // writes a message as a destination shows it
	Invited  func(w http.ResponseWriter, r *http.Request, to *Lookup) *api.Response // writes the page of an invitation

	Draft    func(w http.ResponseWriter, r *http.Request, key string, status int, d *Draft) error
	NewToken func(w http.ResponseWriter, r *http.Request, key, token string, count int) error

	// Actions are the actions of the pages.
	Actions []Action

	// Frame returns the frame of a page for the client of r. here is the route of the page's place;
	// "" for none.
	Frame func(r *http.Request, here string) view.Frame
}

// Serve answers a request, and reports whether its path belongs to the gateway.
func (h *API) Serve(w http.ResponseWriter, r *http.Request) bool {
	at, ok, err := h.Routes.ParseRequest(r, &h.Has)
	if !ok {
		return false
	}
	at.lookup = Lookup{Name: at.Key, site: h.Resolved}
	h.hideLink(r, &at)
	environment.Provide(r, at.placeholder)
	h.App.Checks.Respond(w, r)
	w = early.Writer(w, r, &h.Closing)
	var resp *api.Response
	if err == nil {
		resp = at.handle(w, r, &at)
	} else {
		resp = h.refuseConfigID(r, &at, err)
	}
	h.WriteResponse(w, r, &at, resp)
	return true
}

// WriteResponse writes the response to a request to a route. A nil response is already written.
func (h *API) WriteResponse(w http.ResponseWriter, r *http.Request, at *Route, resp *api.Response) {
	if resp == nil {
		return
	}
	at.setOutcome(resp)
	if c := h.Log.Check(zapcore.DebugLevel, "request rejected"); c != nil && resp.Status/100 == 4 {
		c.Write(zap.Int("status", resp.Status), zap.String("reason", resp.Error))
	}
	if resp.Status == http.StatusUnauthorized {
		askForSecret(w, at.access)
	}
	if h.Has.Console && api.PrefersHTML(r) {
		resp.Frame = h.pages.Frame(r, "")
	}
	resp.Write(w, r)
}

// serveNotify answers a request for a key or, without one, for messages with URLs:
// a message, a preview, or the page.
func (h *notifications) serveNotify(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	beat, isBeat := beatQuery(r)
	switch {
	case at.Key != "" && isInvited(r):
		return h.pages.Invited(w, r, at.Lookup())
	case isBeat:
		return h.beats.serveBeat(w, r, at, beat)
	case r.Method != http.MethodPost:
		resp := h.pages.Send(w, r, at.Lookup())
		if resp != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Refuse(r, at.Lookup(), resp.Status, resp.Error, nil)
		}
		return resp
	case isPreview(r.URL.RawQuery) && at.byHeader:
		return h.pages.Preview(w, r, h.Lookup("")) // it sends nothing
	case isPreview(r.URL.RawQuery):
		return h.pages.Preview(w, r, at.Lookup())
	case at.byHeader:
		return h.notifyNamed(w, r, at)
	}
	return h.notify(w, r, at)
}

// ClientAddress returns the client's address according to the server, shortened by
// [api.ClientNetwork]. It returns the zero Addr if the client has no IP address.
func ClientAddress(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddr(environment.ClientIP(r))
	if err != nil {
		return netip.Addr{}
	}
	return api.ClientNetwork(addr)
}

// CheckOwnOrigin returns a 403 if a page of another site sent a request that changes something,
// even if the page's origin may send messages.
func CheckOwnOrigin(r *http.Request) error {
	if http.NewCrossOriginProtection().Check(r) != nil {
		return errForeignChange
	}
	return nil
}

// previewQuery is the query string of a POST that asks for a preview of its message
// instead of sending it.
const previewQuery = "preview"

// isPreview reports whether a query string asks for a preview. Besides that, it may have only a
// token.
func isPreview(query string) bool {
	if token, rest, ok := strings.Cut(query, "&"); ok && strings.HasPrefix(token, tokenQuery+"=") {
		query = rest
	}
	return query == previewQuery
}

// Options are what the API of a site is made of.
type Options struct {
	Resolved *site.Site
	Sources  source.Set
	App      *gateway.Gateway
	Saved    *saved.Keys // nil if the site has none

	// Logins returns, by name of a key, whether the server asks for a login before a client can
	// send to it; "" stands for saved keys. Keys for which this is unknown are missing. nil means
	// that nothing is known.
	Logins func() map[string]bool

	// ParseDuration parses a duration, which may be in days.
	ParseDuration func(string) (time.Duration, error)

	Log *zap.Logger
}

// Base is the part that every resource of a site's API and every page share: the settings of the
// site, the gateway behind it, and the writing of errors and pages.
type Base struct {
	Options
	Shared *dispatch.Dispatcher
	Has    SiteRoutes
	Routes routeTable
	pages  PageFuncs
	api.OriginCheck

	Refusals refusal.Log
	faults   loglimit.Budget // for log lines about requests that failed through no fault of the client
}

// Site returns the ID of the site.
func (h *Base) Site() string { return h.App.Conf.SiteID(h.Resolved) }

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

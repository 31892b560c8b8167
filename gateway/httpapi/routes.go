package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/openapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// access says who may use a route.
type access string

const (
	accessAnyone access = "anyone" // every client; Caddy's matchers and authentication decide
	accessSender access = "sender" // clients that may send to the key or, without a key, to URLs of the request
	accessReader access = "reader" // clients that may read the key's destinations
	accessInbox  access = "inbox"  // clients that may read the key's messages
	accessHolder access = "holder" // clients that know the ID of the message
	accessDevice access = "device" // clients with an invitation, the device's secret or the token of a push; lists are for managers
	accessManage access = "manage" // managers (see site.Managers)
	accessSaved  access = "saved"  // managers, if saved keys can be read and changed
)

// RouteSpec is one row of the table of routes.
type RouteSpec struct {
	// Pattern is the path. A name in braces stands for one segment, and {REST...} for any number of
	// further segments. Each path may end with a slash.
	Pattern string

	// Methods are the methods of the HTTP API. Sources may have others.
	Methods []string

	access access

	// On reports whether a site with these settings has the route. nil means that
	// every site has it.
	On func(s *SiteRoutes) bool

	// serve returns the function of a site's API that answers requests.
	serve func(h *API) handler

	// about returns the description of the route for the API's description, without the other
	// fields.
	about func() openapi.About
}

// handler answers a request. It returns nil if it has written the response.
type handler func(w http.ResponseWriter, r *http.Request, at *Route) *api.Response

// SiteRoutes are the settings of a site that decide which routes it has.
type SiteRoutes struct {
	Queue   bool // there is a queue
	Configs bool // there are saved keys
	Push    bool // devices can subscribe to keys
	Console bool // somebody may manage, and there are pages
	Inbox   bool // a key has an inbox
	Beats   bool // a key expects beats
	MCP     bool // agents can use keys
}

// WithQueue reports whether a site has a queue.
func WithQueue(s *SiteRoutes) bool { return s.Queue }

// WithBeats reports whether a key of a site expects beats.
func WithBeats(s *SiteRoutes) bool { return s.Queue && s.Beats }

func withConfigs(s *SiteRoutes) bool { return s.Configs }
func withPush(s *SiteRoutes) bool    { return s.Push }
func withConsole(s *SiteRoutes) bool { return s.Console }
func withLogin(s *SiteRoutes) bool   { return s.Queue && s.Console }
func withMCP(s *SiteRoutes) bool     { return s.MCP }
func withInbox(s *SiteRoutes) bool   { return s.Inbox }

// A key or a source with the name of a route could not be reached.
func init() { site.Reserve(patternsOf(RouteSpecs())) }

// patternsOf returns the patterns of routes.
func patternsOf(specs []RouteSpec) (patterns []string) {
	for _, spec := range specs {
		patterns = append(patterns, spec.Pattern)
	}
	return patterns
}

// RouteSpecs returns the routes of the handler. If several match a path, the first
// counts.
func RouteSpecs() []RouteSpec {
	get, post := []string{http.MethodGet, http.MethodHead}, []string{http.MethodPost}
	both := []string{http.MethodGet, http.MethodHead, http.MethodPost}
	all := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete}
	getDelete := []string{http.MethodGet, http.MethodHead, http.MethodDelete}
	messages := func(h *API) handler { return h.notifications.serveNotify }
	silences := func(h *API) handler { return h.Silences.serveSilences }
	inbox := func(h *API) handler { return h.Inboxes.serveInbox }
	devices := func(h *API) handler { return h.Devices.serveDevices }
	acts := func(h *API) handler { return h.serveAction }
	asks := func(h *API) handler { return h.Asks.serveAsk }
	message := func(h *API) handler { return h.Messages.serveMessage }
	incident := func(h *API) handler { return h.Incidents.serveIncident }
	appFile := func(h *API) handler { return h.pages.AppFile }
	return []RouteSpec{
		{RouteNotify, both, accessSender, nil, messages, openapi.Notify},
		{RouteOpenAPI, get, accessAnyone, nil, func(h *API) handler { return h.serveOpenAPI }, openapi.Description},
		{RouteHealth, get, accessAnyone, nil, func(h *API) handler { return h.serveHealth }, openapi.Health},
		{RouteMessage, getDelete, accessHolder, WithQueue, message, openapi.NotDescribed},
		{site.RouteIncidents, get, accessManage, WithQueue, func(h *API) handler { return h.Incidents.serveIncidents }, openapi.Incidents},
		{RouteIncident, both, accessHolder, WithQueue, incident, openapi.NotDescribed},
		{RouteAsk, both, accessHolder, WithQueue, asks, openapi.NotDescribed},
		{RouteConsoleAsk, both, accessHolder, withLogin, asks, openapi.NotDescribed},
		{RouteConsole, both, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleKeys, get, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleKey, both, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleMessages, get, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleMessage, both, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleQueue, both, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleBeats, get, accessManage, withLogin, acts, openapi.NotDescribed},
		{RouteConsoleSilences, both, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleIncidents, both, accessManage, withConsole, acts, openapi.NotDescribed},
		{RouteConsoleIncident, both, accessManage, withLogin, incident, openapi.NotDescribed},
		{RouteWorker, get, accessAnyone, withPush, appFile, openapi.NotDescribed},
		{RouteManifest, get, accessAnyone, withPush, func(h *API) handler { return h.pages.Manifest }, openapi.NotDescribed},
		{RouteIcon, get, accessAnyone, withPush, appFile, openapi.NotDescribed},
		{RouteIconSmall, get, accessAnyone, withPush, appFile, openapi.NotDescribed},
		{RouteIconLarge, get, accessAnyone, withPush, appFile, openapi.NotDescribed},
		{RouteBadge, get, accessAnyone, withPush, appFile, openapi.NotDescribed},
		{site.RouteNotifyKey, both, accessSender, nil, messages, openapi.Key},
		{RouteSilences, both, accessManage, nil, silences, openapi.Silences},
		{RouteSilence, all, accessManage, nil, silences, openapi.Silence},
		{RouteInbox, get, accessInbox, withInbox, inbox, openapi.Inbox},
		{RouteInboxStream, get[:1], accessInbox, withInbox, inbox, openapi.Stream},
		{RouteNtfyInbox, get[:1], accessInbox, withInbox, func(h *API) handler { return h.Inboxes.serveNtfyInbox }, openapi.Ntfy},
		{RouteDevices, both, accessDevice, withPush, devices, openapi.Devices},
		{
			RouteDevice,
			[]string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete},
			accessDevice, withPush, devices,
			openapi.Device,
		},
		{RouteDeviceTest, post, accessDevice, withPush, func(h *API) handler { return h.Devices.serveDeviceTest }, openapi.DeviceTest},
		{RouteReceipts, post, accessDevice, withPush, func(h *API) handler { return h.Devices.serveReceipt }, openapi.Receipts},
		{RouteMCP, post, accessSender, withMCP, func(h *API) handler { return h.serveMCP }, openapi.MCP},
		{RouteRulerAlerts, both, accessSender, nil, func(h *API) handler { return h.rulers.serveAlerts }, openapi.RulerAlerts},
		{RouteRulerStatus, get, accessSender, nil, func(h *API) handler { return h.rulers.serveStatus }, openapi.RulerStatus},
		{RouteRulerHealthy, get, accessSender, nil, func(h *API) handler { return h.rulers.serveHealthy }, openapi.RulerHealthy},
		{RouteRulerReady, get, accessSender, nil, func(h *API) handler { return h.rulers.serveReady }, openapi.RulerReady},
		{RouteClientMessage, getDelete, accessHolder, WithQueue, message, openapi.Message},
		{RouteClientIncident, both, accessHolder, WithQueue, incident, openapi.Incident},
		{RouteClientAsk, both, accessHolder, WithQueue, asks, openapi.Ask},
		{
			RouteSource,
			[]string{http.MethodPost, http.MethodPut},
			accessSender, nil, func(h *API) handler { return h.sources.serveSource },
			openapi.Source,
		},
		{RouteAdd, post, accessSaved, withConfigs, acts, openapi.Add},
		{RouteGet, post, accessSaved, withConfigs, acts, openapi.Get},
		{RouteDel, post, accessSaved, withConfigs, acts, openapi.Del},
		{RouteMove, post, accessSaved, withConfigs, acts, openapi.Move},
		{RouteKeys, get, accessSaved, withConfigs, acts, openapi.Keys},
		{RouteKey, both, accessSaved, withConfigs, acts, openapi.SavedKey},
		{routeToken, []string{http.MethodPost, http.MethodDelete}, accessSaved, withConfigs, acts, openapi.Token},
		{RouteURLs, get, accessReader, withConfigs, acts, openapi.URLs},
		{RouteStatus, get, accessAnyone, withConfigs, acts, openapi.Status},
		{RouteStatusKey, get, accessSender, withConfigs, acts, openapi.StatusOfKey},
		{RouteQR, get, accessSender, withConfigs, acts, openapi.QR},
		{RouteDetails, get, accessAnyone, withConfigs, acts, openapi.Details},
	}
}

// The patterns of the routes.
const (
	RouteNotify     = site.RouteNotify
	RouteOpenAPI    = "/notify/openapi.json"
	RouteMessage    = "/notify/messages/{ID}"
	RouteHealth     = "/notify/status"
	RouteSilences   = "/notify/{KEY}/silences"
	RouteSilence    = "/notify/{KEY}/silences/{ID}"
	RouteDevices    = "/notify/{KEY}/devices"
	RouteDevice     = "/notify/{KEY}/devices/{ID}"
	RouteDeviceTest = "/notify/{KEY}/devices/{ID}/test"
	RouteReceipts   = "/notify/{KEY}/devices/{ID}/receipts"
	RouteMCP        = "/notify/{KEY}/mcp"
	RouteSource     = "/notify/{KEY}/{SOURCE}/{REST...}"

	RouteRulerAlerts  = "/notify/{KEY}/prometheus/api/v2/alerts"
	RouteRulerStatus  = "/notify/{KEY}/prometheus/api/v2/status"
	RouteRulerHealthy = "/notify/{KEY}/prometheus/-/healthy"
	RouteRulerReady   = "/notify/{KEY}/prometheus/-/ready"

	RouteConsole = "/notify/console"

	RouteIncident = "/notify/incidents/{ID}"

	RouteAsk        = site.RouteAsks + "/{ID}"
	RouteConsoleAsk = site.RouteConsoleAsks + "/{ID}"

	// The description has these addresses instead of those in links: OpenAPI allows no two paths that
	// one address matches, as /notify/messages/silences would /notify/messages/{ID} and
	// /notify/{KEY}/silences.
	RouteClientMessage  = "/notify/-/messages/{ID}"
	RouteClientIncident = "/notify/-/incidents/{ID}"
	RouteClientAsk      = "/notify/-/asks/{ID}"

	RouteInbox       = "/notify/{KEY}/messages"
	RouteInboxStream = "/notify/{KEY}/stream"
	RouteNtfyInbox   = "/notify/{KEY}/ntfy/{TOPICS}/{VERB}"

	RouteConsoleKeys      = "/notify/console/keys"
	RouteConsoleKey       = "/notify/console/keys/{KEY}"
	RouteConsoleMessages  = "/notify/console/messages"
	RouteConsoleMessage   = "/notify/console/messages/{ID}"
	RouteConsoleQueue     = "/notify/console/queue"
	RouteConsoleBeats     = "/notify/console/beats"
	RouteConsoleSilences  = "/notify/console/silences"
	RouteConsoleIncidents = "/notify/console/incidents"
	RouteConsoleIncident  = RouteConsoleIncidents + "/{ID}"

	RouteWorker    = "/notify/push.js"
	RouteManifest  = "/notify/app.webmanifest"
	RouteIcon      = "/notify/icon.svg"
	RouteIconSmall = "/notify/icon-192.png"
	RouteIconLarge = "/notify/icon-512.png"
	RouteBadge     = "/notify/badge.png"

	RouteAdd     = "/add/{KEY}"
	RouteGet     = "/get/{KEY}"
	RouteDel     = "/del/{KEY}"
	RouteMove    = "/move/{KEY}"
	RouteKeys    = "/cfg"
	RouteKey     = "/cfg/{KEY}"
	routeToken   = "/cfg/{KEY}/token"
	RouteURLs    = "/json/urls/{KEY}"
	RouteStatus  = "/status"
	RouteDetails = "/details"

	RouteStatusKey = "/status/{KEY}"
	RouteQR        = "/qr/{KEY}"
)

// NtfyVerbs are the last segments of the addresses for ntfy's clients.
var NtfyVerbs = []string{"json", "sse", "raw", "ws", "auth"}

// Route is a parsed path. [API.Serve] parses the path of a request once and passes the result to
// the handler.
type Route struct {
	*route
	ID     string // of a message
	Key    string // may not exist; "" on a route without a key
	Source string // may not exist
	Rest   string // the path below a source's address, without empty segments
	topics string // ntfy topics, separated by commas
	verb   string // one of NtfyVerbs

	byHeader bool // the key comes from X-Apprise-Config-ID, because the path has none

	lookup  Lookup // lookup of the key
	outcome outcome
}

// CheckMethod returns an error if the route does not have the method of r.
func (at *Route) CheckMethod(w http.ResponseWriter, r *http.Request) error {
	if slices.Contains(at.Methods, r.Method) {
		return nil
	}
	w.Header().Set("Allow", strings.Join(at.Methods, ", "))
	return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method,
		strings.Join(slices.DeleteFunc(slices.Clone(at.Methods), func(m string) bool { return m == http.MethodHead }), " or "))
}

// Lookup returns the lookup of the route's key for its request.
func (at *Route) Lookup() *Lookup { return &at.lookup }

// routeTable is a table of routes.
type routeTable []route

// route is a row of the table of an API.
type route struct {
	RouteSpec
	segments []string // of the pattern
	handle   handler  // what serve returned for the API
}

// NewRouteTable returns a table of routes, in order.
func NewRouteTable(specs []RouteSpec) routeTable {
	t := make(routeTable, len(specs))
	for i, spec := range specs {
		t[i].RouteSpec, t[i].segments = spec, strings.Split(spec.Pattern, "/")[1:]
	}
	return t
}

// Parse parses a path, and reports whether it belongs to the gateway. Any other path goes to the
// next handler.
func (t routeTable) Parse(u *url.URL, has *SiteRoutes) (at Route, ok bool) {
	if site.HasDotSegment(u.Path) {
		return Route{}, false
	}
	for i := range t {
		spec := &t[i]
		if spec.On != nil && !spec.On(has) {
			continue
		}
		if at, ok := matchPath(spec.segments, u.Path); ok {
			at.route = spec
			return at, !hasEncodedSlash(u, at.Source != "")
		}
	}
	return Route{}, false
}

// matchPath returns the values of the segments in braces, and reports whether the path matches.
func matchPath(segments []string, path string) (at Route, ok bool) {
	path, ok = strings.CutPrefix(strings.TrimSuffix(path, "/"), "/")
	if !ok {
		return at, false
	}
	for i, segment := range segments {
		if segment == "{REST...}" {
			// A client with the address …/gotify/ posts to …/gotify//message.
			at.Rest = strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), "/")
			return at, true
		}
		here, after, more := strings.Cut(path, "/")
		if path = after; here == "" || !at.set(segment, here) {
			return at, false
		}
		last := i == len(segments)-1 || segments[i+1] == "{REST...}" && i+2 == len(segments)
		if !more && !last || more && i == len(segments)-1 {
			return at, false
		}
	}
	return at, true
}

// set sets the value of a segment of a pattern. It reports whether the segment can have the value.
func (at *Route) set(segment, value string) bool {
	switch segment {
	case "{ID}":
		at.ID = value
	case "{KEY}":
		at.Key = value
	case "{TOPICS}":
		at.topics = value
	case "{VERB}":
		at.verb = value
		return slices.Contains(NtfyVerbs, value)
	case "{SOURCE}":
		at.Source = value
		return site.CheckKeyName(at.Key) == nil && site.IsSourceName(value)
	default:
		return segment == value
	}
	return true
}

// MayMatch reports whether a pattern of Caddy's path matcher, which ignores case,
// may match a path of the gateway.
func (t routeTable) MayMatch(pattern string, has *SiteRoutes) bool {
	pattern = strings.ToLower(pattern)
	i := strings.IndexAny(pattern, `*?[\{%`)
	if i < 0 {
		u := &url.URL{Path: pattern}
		_, ok := t.Parse(u, has)
		return ok || t.mayNameKeyAt(u, has)
	}
	prefix := pattern[:i]
	for j := range t {
		if t[j].On != nil && !t[j].On(has) {
			continue
		}
		fixed, _, open := strings.Cut(t[j].Pattern+"/", "{")
		if strings.HasPrefix(fixed, prefix) || open && strings.HasPrefix(prefix, fixed) {
			return true
		}
	}
	return false
}

// hasEncodedSlash reports whether the path of u contains %2F. The gateway does not answer such an
// address: for a path matcher in front of an authentication handler, /notify/ops and /notify/ops%2F
// are different addresses, so the second would get around a password for the first. Below the
// address of a source, %2F is allowed, as in the alias of …/opsgenie/v2/alerts/db1%2Fdisk/close:
// matchers compare the decoded path, and it does not change the source.
func hasEncodedSlash(u *url.URL, source bool) bool {
	i := strings.Index(strings.ToLower(u.RawPath), "%2f")
	return i >= 0 && !(source && strings.Count(u.RawPath[:i], "/") >= strings.Count(RouteSource, "/"))
}

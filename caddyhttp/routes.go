package caddyhttp

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// routeSpec is one row of the table of routes.
type routeSpec struct {
	// pattern is the path. A name in braces stands for one segment, and {REST...}
	// for further segments, if there are any. Each path may end with a slash.
	pattern string

	// methods are the methods of the HTTP API. Sources may have others.
	methods []string

	access site.Access

	// on reports whether a site with these settings has the route. nil means that
	// every site has it.
	on func(s *siteRoutes) bool

	// serve answers a request. It returns nil if it has written the response.
	serve func(h *httpAPI, w http.ResponseWriter, r *http.Request, at *route) *api.Response
}

// siteRoutes are the settings of a site that decide which routes it has.
type siteRoutes struct {
	queue   bool // there is a queue
	configs bool // there are saved keys
	push    bool // devices can subscribe to keys
	console bool // somebody may manage, and there are pages
	inbox   bool // a key keeps its messages readable
}

func withQueue(s *siteRoutes) bool   { return s.queue }
func withConfigs(s *siteRoutes) bool { return s.configs }
func withPush(s *siteRoutes) bool    { return s.push }
func withConsole(s *siteRoutes) bool { return s.console }
func withInbox(s *siteRoutes) bool   { return s.inbox }

// The pages serve these routes.
func serveConsole(h *httpAPI, w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	return h.pages.console(w, r, at)
}

func serveAppFile(h *httpAPI, w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	return h.pages.appFile(w, r, at)
}

func serveManifest(h *httpAPI, w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	return h.pages.manifest(w, r, at)
}

// routeSpecs returns the routes of the handler. If several match a path, the first
// counts.
func routeSpecs() []routeSpec {
	get, post := []string{http.MethodGet, http.MethodHead}, []string{http.MethodPost}
	both := []string{http.MethodGet, http.MethodHead, http.MethodPost}
	return []routeSpec{
		{routeNotify, both, site.AccessSender, nil, (*httpAPI).serveNotify},
		{routeOpenAPI, get, site.AccessAnyone, nil, (*httpAPI).serveOpenAPI},
		{routeHealth, get, site.AccessAnyone, nil, (*httpAPI).serveHealth},
		{routeMessage, []string{http.MethodGet, http.MethodHead, http.MethodDelete}, site.AccessHolder, withQueue, (*httpAPI).serveMessage},
		{site.RouteIncidents, get, site.AccessManage, withQueue, (*httpAPI).serveIncidents},
		{routeIncident, both, site.AccessHolder, withQueue, (*httpAPI).serveIncident},
		{routeConsole, get, site.AccessManage, withConsole, serveConsole},
		{routeConsoleKey, both, site.AccessManage, withConsole, serveConsole},
		{routeConsoleMessages, get, site.AccessManage, withConsole, serveConsole},
		{routeConsoleMessage, both, site.AccessManage, withConsole, serveConsole},
		{routeConsoleQueue, both, site.AccessManage, withConsole, serveConsole},
		{routeConsoleSilences, both, site.AccessManage, withConsole, serveConsole},
		{routeConsoleIncidents, both, site.AccessManage, withConsole, serveConsole},
		{routeWorker, get, site.AccessAnyone, withPush, serveAppFile},
		{routeManifest, get, site.AccessAnyone, withPush, serveManifest},
		{routeIcon, get, site.AccessAnyone, withPush, serveAppFile},
		{routeIconSmall, get, site.AccessAnyone, withPush, serveAppFile},
		{routeIconLarge, get, site.AccessAnyone, withPush, serveAppFile},
		{routeBadge, get, site.AccessAnyone, withPush, serveAppFile},
		{site.RouteNotifyKey, both, site.AccessSender, nil, (*httpAPI).serveNotify},
		{routeSilences, both, site.AccessManage, nil, (*httpAPI).serveSilences},
		{routeSilence, []string{http.MethodGet, http.MethodHead, http.MethodDelete}, site.AccessManage, nil, (*httpAPI).serveSilences},
		{routeInbox, get, site.AccessInbox, withInbox, (*httpAPI).serveInbox},
		{routeInboxStream, get[:1], site.AccessInbox, withInbox, (*httpAPI).serveInbox},
		{routeNtfyInbox, get[:1], site.AccessInbox, withInbox, (*httpAPI).serveNtfyInbox},
		{routeDevices, both, site.AccessDevice, withPush, (*httpAPI).serveDevices},
		{routeDevice, []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}, site.AccessDevice, withPush, (*httpAPI).serveDevices},
		{routeDeviceTest, post, site.AccessDevice, withPush, (*httpAPI).serveDeviceTest},
		{routeReceipts, post, site.AccessDevice, withPush, (*httpAPI).serveReceipt},
		{routeSource, []string{http.MethodPost, http.MethodPut}, site.AccessSender, nil, (*httpAPI).serveSource},
		{routeAdd, post, site.AccessManage, withConfigs, (*httpAPI).serveConfig},
		{routeGet, post, site.AccessManage, withConfigs, (*httpAPI).serveConfig},
		{routeDel, post, site.AccessManage, withConfigs, (*httpAPI).serveConfig},
		{routeKeys, get, site.AccessManage, withConfigs, (*httpAPI).serveConfig},
		{routeKey, both, site.AccessManage, withConfigs, (*httpAPI).serveConfig},
		{routeToken, []string{http.MethodPost, http.MethodDelete}, site.AccessManage, withConfigs, (*httpAPI).serveConfig},
		{routeURLs, get, site.AccessReader, withConfigs, (*httpAPI).serveConfig},
		{routeStatus, get, site.AccessAnyone, withConfigs, (*httpAPI).serveConfig},
		{routeDetails, get, site.AccessAnyone, withConfigs, (*httpAPI).serveConfig},
	}
}

// The patterns of the routes.
const (
	routeNotify     = "/notify"
	routeOpenAPI    = "/notify/openapi.json"
	routeMessage    = "/notify/messages/{ID}"
	routeHealth     = "/notify/status"
	routeSilences   = "/notify/{KEY}/silences"
	routeSilence    = "/notify/{KEY}/silences/{ID}"
	routeDevices    = "/notify/{KEY}/devices"
	routeDevice     = "/notify/{KEY}/devices/{ID}"
	routeDeviceTest = "/notify/{KEY}/devices/{ID}/test"
	routeReceipts   = "/notify/{KEY}/devices/{ID}/receipts"
	routeSource     = "/notify/{KEY}/{SOURCE}/{REST...}"
	routeConsole    = "/notify/console"

	routeIncident = "/notify/incidents/{ID}"

	routeInbox       = "/notify/{KEY}/messages"
	routeInboxStream = "/notify/{KEY}/stream"
	routeNtfyInbox   = "/notify/{KEY}/ntfy/{TOPICS}/{VERB}"

	routeConsoleKey       = "/notify/console/keys/{KEY}"
	routeConsoleMessages  = "/notify/console/messages"
	routeConsoleMessage   = "/notify/console/messages/{ID}"
	routeConsoleQueue     = "/notify/console/queue"
	routeConsoleSilences  = "/notify/console/silences"
	routeConsoleIncidents = "/notify/console/incidents"

	routeWorker    = "/notify/push.js"
	routeManifest  = "/notify/app.webmanifest"
	routeIcon      = "/notify/icon.svg"
	routeIconSmall = "/notify/icon-192.png"
	routeIconLarge = "/notify/icon-512.png"
	routeBadge     = "/notify/badge.png"

	routeAdd     = "/add/{KEY}"
	routeGet     = "/get/{KEY}"
	routeDel     = "/del/{KEY}"
	routeKeys    = "/cfg"
	routeKey     = "/cfg/{KEY}"
	routeToken   = "/cfg/{KEY}/token"
	routeURLs    = "/json/urls/{KEY}"
	routeStatus  = "/status"
	routeDetails = "/details"
)

// ntfyVerbs are what ntfy's clients want of topics.
var ntfyVerbs = []string{"json", "sse", "ws", "auth"}

// route is what a path addresses.
type route struct {
	*routeSpec
	id     string // of a message
	key    string // may not exist; "" on a route without a key
	source string // may not exist
	rest   string // what the clients of an API add to the address of its source, without empty segments
	topics string // of ntfy, with commas between them
	verb   string // what ntfy's client wants of the topics

	byHeader bool // the key is that of X-Apprise-Config-ID, because the path has none
}

// routeTable is a table of routes, with its patterns split into segments.
type routeTable []struct {
	routeSpec
	segments []string
}

func newRouteTable(specs []routeSpec) routeTable {
	t := make(routeTable, len(specs))
	for i, spec := range specs {
		t[i].routeSpec, t[i].segments = spec, strings.Split(spec.pattern, "/")[1:]
	}
	return t
}

// parse returns what a path addresses, and reports whether it is a path of the
// gateway. Any other path goes to the next handler.
func (t routeTable) parse(u *url.URL, has *siteRoutes) (at route, ok bool) {
	if site.HasDotSegment(u.Path) {
		return route{}, false
	}
	for i := range t {
		spec := &t[i].routeSpec
		if spec.on != nil && !spec.on(has) {
			continue
		}
		if at, ok := matchPath(t[i].segments, u.Path); ok {
			at.routeSpec = spec
			return at, !hasEncodedSlash(u, at.source != "")
		}
	}
	return route{}, false
}

// matchPath returns the values of the segments in braces, and reports whether the
// path matches.
func matchPath(segments []string, path string) (at route, ok bool) {
	path, ok = strings.CutPrefix(strings.TrimSuffix(path, "/"), "/")
	if !ok {
		return at, false
	}
	for i, segment := range segments {
		if segment == "{REST...}" {
			// A client with the address …/gotify/ posts to …/gotify//message.
			at.rest = strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), "/")
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

// set sets the value of a segment of a pattern. It reports whether the segment can
// have the value.
func (at *route) set(segment, value string) bool {
	switch segment {
	case "{ID}":
		at.id = value
	case "{KEY}":
		at.key = value
	case "{TOPICS}":
		at.topics = value
	case "{VERB}":
		at.verb = value
		return slices.Contains(ntfyVerbs, value)
	case "{SOURCE}":
		at.source = value
		return site.IsKeyName(at.key) && !site.ContainsFold(site.ReservedNames, at.key) && site.SourceName.MatchString(value)
	default:
		return segment == value
	}
	return true
}

// mayMatch reports whether a pattern of Caddy's path matcher, which ignores case,
// may match a path of the gateway.
func (t routeTable) mayMatch(pattern string, has *siteRoutes) bool {
	pattern = strings.ToLower(pattern)
	i := strings.IndexAny(pattern, `*?[\{%`)
	if i < 0 {
		u := &url.URL{Path: pattern}
		_, ok := t.parse(u, has)
		return ok || t.mayNameKeyAt(u, has)
	}
	prefix := pattern[:i]
	for j := range t {
		if t[j].on != nil && !t[j].on(has) {
			continue
		}
		fixed, _, open := strings.Cut(t[j].pattern+"/", "{")
		if strings.HasPrefix(fixed, prefix) || open && strings.HasPrefix(prefix, fixed) {
			return true
		}
	}
	return false
}

// hasEncodedSlash reports whether the path of u contains %2F. The gateway does not
// answer such an address: to a path matcher in front of an authentication handler,
// /notify/ops and /notify/ops%2F are different addresses, so that the second would
// get around a password for the first. What clients of an API add to the address of a
// source may have one, because matchers compare it decoded and the source is no
// other: the alias in …/opsgenie/v2/alerts/db1%2Fdisk/close.
func hasEncodedSlash(u *url.URL, source bool) bool {
	i := strings.Index(strings.ToLower(u.RawPath), "%2f")
	return i >= 0 && !(source && strings.Count(u.RawPath[:i], "/") >= strings.Count(routeSource, "/"))
}

package routing

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	devicepkg "github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// WarnUnguarded logs a warning about each notify handler that
//
//   - has keys, requires no authentication, and does not set stateless
//   - lets anyone manage its keys
//   - requires authentication for one way to send to a key without a token, but not for
//     another: /notify/KEY, /notify/KEY/, /notify/KEY/SOURCE, and ntfy's addresses, which
//     are beside those for readers
//   - keeps strangers from the address of a key, but not from the header that names it
//   - requires authentication where phones and links have none: devices, invitations,
//     incidents and questions
//
// To find out, it follows an anonymous request through the routes of each
// server. It gives no warning in unclear cases, such as behind a handler or
// matcher that is not part of Caddy.
func (c *Routes) WarnUnguarded() {
	warned, warnedManage := map[*Site]bool{}, map[*Site]bool{} // about isOpen and about openManagement
	for _, server := range c.servers() {
		f := siteFinder{server: server, siteOf: c.Of, warned: c.Warned}
		f.find(f.server.Routes, routedSite{})
		for _, s := range f.sites {
			if !warned[s.handler] && s.isOpen() {
				warned[s.handler] = true
				s.warn("anyone who can reach this site can send to notification URLs of their own with POST "+
					s.prefix+"/notify, because it requires no authentication; write stateless off, "+
					"so that only keys can be used, or stateless on if this is intended",
					zap.Strings("listen", s.server.Listen))
			}
			if m, path := s.openManagement(); m != nil && !warnedManage[s.handler] {
				warnedManage[s.handler] = true
				s.warn("anyone who can reach this site can "+m.can+s.prefix+path+
					", because it requires no authentication and "+m.setting+" has manage open; "+
					"write manage without open, and add basic_auth or another authentication",
					zap.Strings("listen", s.server.Listen))
			}
			s.warnConfigID()
			if f.guarded {
				s.warnSpellings()
				s.warnLinks()
			} else if p := s.handler.API.Resolved.Push; p != nil && p.Who == devicepkg.DevicesUsers && !s.requiresCertificate() {
				s.warn("devices users lets nobody subscribe without an invitation here, " +
					"because nothing authenticates users before notify; " +
					"add basic_auth or another authentication, or write devices invited")
			}
		}
	}
}

// isOpen reports whether the handler has keys and does not set stateless, and
// an anonymous client on another machine can use POST /notify, which takes URLs with and
// without X-Apprise-Config-ID.
func (s routedSite) isOpen() bool {
	h := s.handler
	return (len(h.API.Resolved.Keys) > 0 || h.API.Resolved.Saved.On()) && !h.Stateless && !s.requiresCertificate() &&
		slices.ContainsFunc(s.server.Listen, isOutside) &&
		(s.follow(http.MethodPost, "/notify") == reached || s.followRequest(http.MethodPost, "/notify", "KEY") == reached)
}

// management is an action for people who may manage.
type management struct {
	pattern string // of the route
	can     string // what, with a preposition before the address
	setting string // whose manage decides
}

// managements returns the actions that [routedSite.openManagement] looks for, the worst first.
func managements() []management {
	const configs, either = "configs", "console or configs"
	const saved = "read and change saved keys, as with POST "
	return []management{
		{httpapi.RouteAdd, saved, configs},
		{httpapi.RouteGet, saved, configs},
		{httpapi.RouteKey, saved, configs},
		{httpapi.RouteDel, saved, configs},
		{httpapi.RouteConsole, "use the console at ", "console"},
		{httpapi.RouteInbox, "read the messages of keys with GET ", either},
		{httpapi.RouteDevices, "list and revoke devices at ", either},
		{httpapi.RouteSilences, "silence keys with POST ", either},
		{site.RouteIncidents, "list all incidents with GET ", either},
		{httpapi.RouteIncident, "silence each incident whose link they have with POST ", either},
		{httpapi.RouteClientIncident, "silence each incident whose ID they have with POST ", either},
	}
}

// openManagement returns an action that an anonymous client on another machine can do, and its
// path, or nil. A matcher may exclude addresses that readers, phones and links use without a login.
func (s routedSite) openManagement() (*management, string) {
	m := s.handler.API.Resolved.Managers
	if m == nil || !m.Open || s.requiresCertificate() || !slices.ContainsFunc(s.server.Listen, isOutside) {
		return nil, ""
	}
	keys := slices.Sorted(maps.Keys(s.handler.API.Resolved.Keys))
	keys = append([]string{"KEY"}, keys[:min(len(keys), maxReachKeys)]...)
	for _, m := range managements() {
		names := keys
		if !strings.Contains(m.pattern, "{KEY}") {
			names = keys[:1]
		}
		for _, key := range names {
			path := strings.Replace(site.PathOf(m.pattern, key), "{ID}", "ID", 1)
			at, ok := s.handler.API.Routes.Parse(&url.URL{Path: path}, &s.handler.API.Has)
			if !ok || at.Pattern != m.pattern || m.pattern == httpapi.RouteSilences && !s.handler.API.Has.Queue {
				continue // the site does not have the route, or it does nothing there
			}
			ways := []string{path, path + invitedQuery}
			if m.pattern != site.RouteIncidents {
				ways = append(ways, path+"/")
			}
			for _, method := range at.Methods {
				if slices.ContainsFunc(ways, func(path string) bool { return s.follow(method, path) == reached }) {
					return &m, path
				}
			}
		}
	}
	return nil, ""
}

// invitedQuery is the query of an invitation, which a matcher may leave out.
const invitedQuery = "?" + httpapi.InviteQuery + "=ID"

// probe is a request that the guard follows.
type probe struct{ method, path string }

func (p probe) String() string {
	if p.method == http.MethodPost {
		return p.path
	}
	return p.method + " " + p.path
}

// waysToSend returns the ways in which a message can be sent to a key of a site with sources.
func waysToSend(sources source.Set, k *site.Key) []probe {
	post := func(path string) probe { return probe{http.MethodPost, path} }
	path := site.PathOf(site.RouteNotifyKey, k.Name)
	out := []probe{post(path), post(path + "/"), post(path + "/source")} // which stands for any source
	if src, err := sources.Get("ntfy"); err == nil && !src.ChecksSender() && k.CheckSource("ntfy") == nil {
		out = append(out, probe{http.MethodGet, path + "/ntfy/TOPIC/publish"}, post(path+"/ntfy/TOPIC"))
		if len(k.Readers) == 0 { // otherwise these only read
			for _, verb := range httpapi.NtfyVerbs {
				out = append(out, post(path+"/ntfy/TOPIC/"+verb))
			}
		}
	}
	if len(k.Expects) > 0 && k.CheckSource(site.SourceDirect) == nil {
		out = append(out, probe{http.MethodGet, path + "?" + httpapi.BeatParameter + "=" + k.Expects[0].Name})
	}
	for _, p := range out[:3] {
		out = append(out, post(p.path+invitedQuery))
	}
	return out
}

// warnSpellings warns if the authentication for one way to send to a key does not apply to another:
// with or without a slash at the end, with a source, or at an address beside those for readers.
func (s routedSite) warnSpellings() {
	r := s.handler.API.Resolved
	ways := [][]probe{{{http.MethodPost, httpapi.RouteNotify}, {http.MethodPost, httpapi.RouteNotify + "/"}}}
	for _, name := range slices.Sorted(maps.Keys(r.Keys)) {
		if k := r.Keys[name]; len(k.Tokens) == 0 { // otherwise every way needs the token
			ways = append(ways, waysToSend(s.handler.API.Sources, k))
		}
	}
	if r.Saved.On() {
		ways = append(ways, waysToSend(s.handler.API.Sources, &site.Key{Name: "KEY"}))
	}
	for _, sends := range ways {
		var locked, open probe
		for _, p := range slices.Backward(sends) {
			switch s.follow(p.method, p.path) {
			case guarded:
				locked = p
			case reached:
				open = p
			}
		}
		if locked.path == "" || open.path == "" {
			continue
		}
		advice := "end the path in its matcher with *, as in " + sends[0].path + "*"
		if len(sends) > 2 && !slices.Contains(sends[:3], open) {
			advice = "leave out only what is read, with the matcher of docs/inbox.md, " +
				"and only the pages of invitations, with the matcher of docs/phone.md"
		}
		s.warn("the authentication for " + s.prefix + locked.path + " does not apply to " + probe{open.method, s.prefix + open.path}.String() +
			", so a request can avoid it; " + advice)
	}
}

// warnLinks warns if addresses that phones and links in messages use require authentication. A
// phone in the background cannot authenticate; these addresses have their own secrets.
func (s routedSite) warnLinks() {
	r := s.handler.API.Resolved
	var links []probe
	if r.Push != nil {
		for _, key := range append([]string{"KEY"}, slices.Sorted(maps.Keys(r.Keys))...) {
			device := site.PathOf(httpapi.RouteDevices, key) + "/ID"
			links = append(links, probe{http.MethodPost, device + "/receipts"}, probe{http.MethodPut, device},
				probe{http.MethodGet, device}, probe{http.MethodPost, device + "/test"})
			if r.Push.Who != devicepkg.DevicesUsers {
				links = append(links, probe{http.MethodPost, site.PathOf(httpapi.RouteDevices, key)},
					probe{http.MethodGet, site.PathOf(site.RouteNotifyKey, key) + invitedQuery})
			}
		}
		for _, path := range []string{
			httpapi.RouteWorker, httpapi.RouteManifest, httpapi.RouteIcon,
			httpapi.RouteIconSmall, httpapi.RouteIconLarge, httpapi.RouteBadge,
		} {
			links = append(links, probe{http.MethodGet, path})
		}
	}
	if s.handler.hasEscalation() {
		links = append(links, probe{http.MethodGet, site.RouteIncidents + "/ID"}, probe{http.MethodPost, site.RouteIncidents + "/ID"})
	}
	if len(links) > 0 && s.handler.API.Has.Queue && r.PublicURL != "" { // a message may ask, too
		links = append(links, probe{http.MethodGet, site.RouteAsks + "/ID"}, probe{http.MethodPost, site.RouteAsks + "/ID"})
	}
	for _, p := range links {
		if s.follow(p.method, p.path) != guarded {
			continue
		}
		matcher := "write @login not path " + site.RouteIncidents + "/* " + site.RouteAsks + "/*"
		if r.Push != nil {
			matcher = "write the matcher @login of docs/phone.md"
		}
		s.warn("the authentication applies to " + s.prefix + p.path + ", which phones and the links of " +
			"messages use without a login, so that they fail; these addresses need a secret of their own, " +
			"so leave them out: " + matcher + ", and basic_auth @login or what authenticates")
		return
	}
}

// requiresCertificate reports whether the server may require a client
// certificate. A policy without a mode requires one.
func (s routedSite) requiresCertificate() bool {
	for _, p := range s.server.TLSConnPolicies {
		if c := p.ClientAuthentication; c != nil && c.Mode != "request" && c.Mode != "verify_if_given" {
			return true
		}
	}
	return false
}

// isOutside reports whether an address of a server can be reached from other
// machines.
func isOutside(listen string) bool {
	a, err := caddy.ParseNetworkAddress(listen)
	if err != nil || !strings.HasPrefix(a.Network, "tcp") && !strings.HasPrefix(a.Network, "udp") || a.Host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(a.Host)
	return err != nil || !ip.IsLoopback()
}

// outcome is the outcome of a request.
type outcome int

const (
	unclear outcome = iota // unknown, or answered before the handler
	guarded                // it must be authenticated first
	reached                // it reaches the handler, with the key in its path
)

// follow returns the outcome of an anonymous request for a path, which may have a query,
// below the prefix of s.
func (s routedSite) follow(method, path string) outcome { return s.followRequest(method, path, "") }

// followRequest is like follow for a request that names the key id in X-Apprise-Config-ID,
// if that is not "".
func (s routedSite) followRequest(method, path, id string) (o outcome) {
	defer func() {
		if recover() != nil {
			o = unclear // a handler or matcher panicked because the request has no connection
		}
	}()
	r, err := s.request(method, s.prefix+path)
	if err != nil {
		return unclear
	}
	f := follower{routedSite: s, key: id, groups: map[string]bool{}}
	if id == "" {
		path, _, _ = strings.Cut(path, "?")
		f.key, _ = s.handler.keyOf(&url.URL{Path: path})
	} else {
		r.Header.Set(httpapi.ConfigIDHeader, id)
	}
	return f.routes(s.server.Routes, r, func(*http.Request) outcome { return unclear })
}

// follower follows a request through routes as Caddy would, without answering
// it.
type follower struct {
	routedSite
	key    string          // in the path, "" for none
	groups map[string]bool // of routes that have matched
}

// next returns the outcome of a request in the handlers that follow.
type next func(*http.Request) outcome

func (f follower) routes(routes caddyhttp.RouteList, r *http.Request, after next) outcome {
	if len(routes) == 0 {
		return after(r)
	}
	route := routes[0]
	rest := func(r *http.Request) outcome { return f.routes(routes[1:], r, after) }
	if f.groups[route.Group] {
		return rest(r)
	}
	switch matches, ok := matchAny(route.MatcherSets, r); {
	case !ok:
		return unclear
	case !matches:
		return rest(r)
	}
	if route.Group != "" {
		f.groups[route.Group] = true
	}
	if route.Terminal {
		return f.handlers(route.Handlers, r, func(*http.Request) outcome { return unclear })
	}
	return f.handlers(route.Handlers, r, rest)
}

func (f follower) handlers(handlers []caddyhttp.MiddlewareHandler, r *http.Request, after next) (o outcome) {
	if len(handlers) == 0 {
		return after(r)
	}
	rest := func(r *http.Request) outcome { return f.handlers(handlers[1:], r, after) }
	if h := f.siteOf(handlers[0]); h != nil {
		at, ok, err := h.API.Routes.ParseRequest(r, &h.API.Has)
		switch {
		case !ok:
			return rest(r)
		case h == f.handler && err == nil && at.Key == f.key:
			return reached
		}
		return unclear
	}
	if sub, ok := handlers[0].(*caddyhttp.Subroute); ok {
		return f.routes(sub.Routes, r, rest)
	}
	if authenticates(handlers[0]) {
		return guarded
	}
	if passesOn(handlers[0]) {
		return rest(r)
	}
	if !changes(handlers[0]) {
		return unclear
	}
	err := handlers[0].ServeHTTP(discard{}, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		o = rest(r)
		return nil
	}))
	if err != nil {
		return unclear
	}
	return o
}

// matchAny reports whether one of the sets matches the request, and whether that
// is certain.
func matchAny(sets caddyhttp.MatcherSets, r *http.Request) (matches, certain bool) {
	certain = true
	for _, set := range sets {
		m, ok := matchAll(set, r)
		if m && ok {
			return true, true
		}
		certain = certain && ok
	}
	return len(sets) == 0, certain
}

// matchAll reports whether all matchers match the request, and whether that is
// certain.
func matchAll(set caddyhttp.MatcherSet, r *http.Request) (matches, certain bool) {
	certain = true
	for _, m := range set {
		if !isCaddyMatcher(m) {
			certain = false
			continue
		}
		matches, err := caddyhttp.MatcherSet{m}.MatchWithError(r)
		if err != nil {
			return false, false
		}
		if !matches {
			return false, true
		}
	}
	return certain, certain
}

// isCaddyMatcher reports whether a matcher is part of Caddy. Others may have
// side effects, such as counting the request.
func isCaddyMatcher(m any) bool {
	if not, ok := m.(*caddyhttp.MatchNot); ok {
		return !slices.ContainsFunc(not.MatcherSets, func(set caddyhttp.MatcherSet) bool {
			return slices.ContainsFunc(set, func(m any) bool { return !isCaddyMatcher(m) })
		})
	}
	t := reflect.TypeOf(m)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasPrefix(t.PkgPath(), "github.com/caddyserver/caddy/v2/")
}

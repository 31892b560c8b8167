package caddyhttp

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	"go.uber.org/zap"
)

// warnUnguarded logs a warning about each notify handler that
//
//   - has keys, requires no authentication, and does not set stateless
//   - lets anyone manage its keys
//   - requires authentication for one address of a key without a token, but not for
//     another: /notify/KEY, /notify/KEY/ and /notify/KEY/SOURCE
//   - keeps strangers from the address of a key, but not from the header that names it
//   - requires authentication where phones and links have none: devices and incidents
//
// To find out, it follows an anonymous request through the routes of each
// server. It gives no warning in unclear cases, such as behind a handler or
// matcher that is not part of Caddy.
func (a *App) warnUnguarded() {
	app, err := a.emitter.ctx.AppIfConfigured("http")
	if err != nil {
		return // there is no http app, so there is no site
	}
	servers := app.(*caddyhttp.App).Servers
	warned, warnedManage := map[*Handler]bool{}, map[*Handler]bool{} // about isOpen and about openManagement
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		f := siteFinder{server: servers[name]}
		f.find(f.server.Routes, site{})
		for _, s := range f.sites {
			if !warned[s.handler] && a.Stateless == nil && s.isOpen() {
				warned[s.handler] = true
				s.warn("anyone who can reach this site can send to notification URLs of their own with POST "+s.prefix+"/notify, because it requires no authentication; write stateless off, so that only keys can be used, or stateless on if this is intended",
					zap.Strings("listen", s.server.Listen))
			}
			if path := s.openManagement(); path != "" && !warnedManage[s.handler] {
				warnedManage[s.handler] = true
				can, setting := "read and change saved keys, as with POST ", "configs"
				switch path {
				case routeConsole:
					can, setting = "use the console at ", "console"
				case pathOf(routeInbox, "KEY"):
					can, setting = "read the messages of keys with GET ", "console or configs"
				case pathOf(routeDevices, "KEY"):
					can, setting = "list and revoke devices at ", "console or configs"
				}
				s.warn("anyone who can reach this site can "+can+s.prefix+path+", because it requires no authentication and "+setting+" has manage open; write manage without open, and add basic_auth or another authentication",
					zap.Strings("listen", s.server.Listen))
			}
			s.warnConfigID()
			if f.guarded {
				s.warnSpellings()
				s.warnLinks()
			} else if p := s.handler.resolved.push; p != nil && p.who == devicesUsers && !s.requiresCertificate() {
				s.warn("devices users lets nobody subscribe without an invitation here, because nothing authenticates users before notify; add basic_auth or another authentication, or write devices invited")
			}
		}
	}
}

// site is a notify handler and its place in the routes of a server.
type site struct {
	handler *Handler
	server  *caddyhttp.Server
	host    string   // one that reaches the handler; "" for any
	hosts   []string // all that reach the handler, as configured; none for any
	prefix  string   // of the path; the routes remove it before the handler
}

func (s site) warn(text string, fields ...zap.Field) {
	s.handler.log.Warn(s.handler.Caddyfile.position()+text, fields...)
}

// isOpen reports whether the handler has keys and does not set stateless, and
// an anonymous client on another machine can use POST /notify, which takes URLs with and
// without X-Apprise-Config-ID.
func (s site) isOpen() bool {
	h := s.handler
	return (len(h.resolved.keys) > 0 || h.resolved.saved.on()) && h.Stateless == nil && !s.requiresCertificate() &&
		slices.ContainsFunc(s.server.Listen, isOutside) && (s.follow("/notify") == reached || s.followRequest(http.MethodPost, "/notify", "KEY") == reached)
}

// openManagement returns a path with which an anonymous client on another
// machine can manage keys, or "". A matcher may leave out addresses that readers and
// phones use without a login, and who may manage with rights.
func (s site) openManagement() string {
	m := s.handler.resolved.managers
	if m == nil || !m.open || s.requiresCertificate() || !slices.ContainsFunc(s.server.Listen, isOutside) {
		return ""
	}
	managed := map[access]bool{accessManage: true, accessInbox: true, accessDevice: true}
	for _, pattern := range []string{routeAdd, routeGet, routeKey, routeDel, routeConsole, routeInbox, routeDevices} {
		path := pathOf(pattern, "KEY")
		if at, ok := s.handler.routes.parse(&url.URL{Path: path}, &s.handler.has); ok && managed[at.access] && s.follow(path) == reached {
			return path
		}
	}
	return ""
}

// warnSpellings warns if the authentication for one address of a key does not
// apply to another: with or without a slash at the end, or with a source.
func (s site) warnSpellings() {
	for _, key := range append([]string{""}, slices.Sorted(maps.Keys(s.handler.resolved.keys))...) {
		path := "/notify"
		if key != "" {
			path += "/" + key
		}
		if k := s.handler.resolved.keys[key]; k != nil && len(k.tokens) > 0 {
			continue // every spelling needs the token
		}
		paths := []string{path, path + "/"}
		if key != "" {
			paths = append(paths, path+"/source") // stands for any source
		}
		var guardedPath, openPath string
		for _, p := range slices.Backward(paths) {
			switch s.follow(p) {
			case guarded:
				guardedPath = p
			case reached:
				openPath = p
			}
		}
		if guardedPath == "" || openPath == "" {
			continue
		}
		s.warn("the authentication for " + s.prefix + guardedPath + " does not apply to " + s.prefix + openPath +
			", so a request can avoid it; end the path in its matcher with *, as in " + path + "*")
	}
}

// warnLinks warns about addresses that phones and links in messages use, if they require
// an authentication, which a phone in the background does not have. They have secrets of
// their own.
func (s site) warnLinks() {
	r := s.handler.resolved
	var paths []string
	if r.push != nil {
		for _, key := range append([]string{"KEY"}, slices.Sorted(maps.Keys(r.keys))...) {
			device := pathOf(routeDevices, key) + "/ID"
			paths = append(paths, device+"/receipts", device, device+"/test")
			if r.push.who != devicesUsers {
				paths = append(paths, pathOf(routeDevices, key))
			}
		}
	}
	if r.push != nil {
		paths = append(paths, routeWorker, routeManifest, routeIcon, routeIconSmall, routeIconLarge, routeBadge)
	}
	if s.handler.hasEscalation() {
		paths = append(paths, routeIncidents+"/ID")
	}
	for _, path := range paths {
		if s.follow(path) != guarded {
			continue
		}
		matcher := routeIncidents + "/*"
		if r.push != nil {
			matcher = devicePaths + " " + matcher
		}
		s.warn("the authentication applies to " + s.prefix + path + ", which phones and the links of messages use without a login, so that they fail; these addresses need a secret of their own, so leave them out: write @login not path " + matcher + ", and basic_auth @login or what authenticates")
		return
	}
}

// devicePaths are those of Caddy's path matcher for what phones ask for without a login. A
// star in the middle of a path stands for one segment.
const devicePaths = "/notify/*/devices /notify/*/devices/* /notify/*/devices/*/* " +
	routeWorker + " " + routeManifest + " " + routeIcon + " " + routeIconSmall + " " + routeIconLarge + " " + routeBadge

// hasEscalation reports whether a key of the site escalates.
func (h *Handler) hasEscalation() bool {
	if h.resolved.saved.on() && h.resolved.saved.rules.IsStep() {
		return true
	}
	for _, k := range h.resolved.keys {
		if k.rules.IsStep() {
			return true
		}
	}
	return false
}

// requiresCertificate reports whether the server may require a client
// certificate. A policy without a mode requires one.
func (s site) requiresCertificate() bool {
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

// siteFinder finds the notify handlers in the routes of a server.
type siteFinder struct {
	server  *caddyhttp.Server
	sites   []site
	guarded bool // a handler in the routes authenticates requests
}

// find appends the handlers in routes to f.sites, and returns the prefix that
// the routes have removed from the path. at has the host and the prefix so far.
func (f *siteFinder) find(routes caddyhttp.RouteList, at site) (prefix string) {
	for _, route := range routes {
		in := at
		if hosts := hostsOf(route.MatcherSets); len(hosts) > 0 {
			in.host = strings.ReplaceAll(caddy.NewReplacer().ReplaceAll(hosts[0], ""), "*", "any")
			in.hosts = hosts
		}
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case *Handler:
				f.sites = append(f.sites, site{h, f.server, in.host, in.hosts, in.prefix})
			case *caddyhttp.Subroute:
				in.prefix = f.find(h.Routes, in)
			case *rewrite.Rewrite:
				if h.StripPathPrefix != "" {
					in.prefix += "/" + strings.TrimPrefix(h.StripPathPrefix, "/")
				}
			}
			f.guarded = f.guarded || authenticates(handler)
		}
		if len(route.MatcherSets) == 0 {
			at.prefix = in.prefix
		}
	}
	return at.prefix
}

// hostsOf returns the hosts that the matchers accept, or none if they accept any.
func hostsOf(sets caddyhttp.MatcherSets) (all []string) {
	for _, set := range sets {
		for _, m := range set {
			if hosts, ok := m.(*caddyhttp.MatchHost); ok {
				all = append(all, *hosts...)
			}
		}
	}
	return all
}

// outcome is the outcome of a request.
type outcome int

const (
	unclear outcome = iota // unknown, or answered before the handler
	guarded                // it must be authenticated first
	reached                // it reaches the handler, with the key in its path
)

// follow returns the outcome of an anonymous POST request for a path below the
// prefix of s.
func (s site) follow(path string) outcome { return s.followRequest(http.MethodPost, path, "") }

// followRequest is like follow for a method and, if id is not "", with the key in
// X-Apprise-Config-ID.
func (s site) followRequest(method, path, id string) (o outcome) {
	defer func() {
		if recover() != nil {
			o = unclear // a handler or matcher panicked because the request has no connection
		}
	}()
	r, err := s.request(s.prefix + path)
	if err != nil {
		return unclear
	}
	r.Method = method
	f := follower{site: s, key: id, groups: map[string]bool{}}
	if id == "" {
		f.key, _ = s.handler.keyOf(&url.URL{Path: path})
	} else {
		r.Header.Set(configIDHeader, id)
	}
	return f.routes(s.server.Routes, r, func(*http.Request) outcome { return unclear })
}

// request returns an anonymous POST request for a path of the site, as the server
// would pass it to its routes.
func (s site) request(path string) (*http.Request, error) {
	host := s.host
	if host == "" {
		host = "host.invalid"
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+host+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.RequestURI = r.URL.RequestURI()
	r.URL.Scheme, r.URL.Host = "", ""  // as on a server
	r.RemoteAddr = "203.0.113.1:50000" // a public address; RFC 5737 reserves it for examples
	if len(s.server.TLSConnPolicies) > 0 {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: host}
	}
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), discard{}, s.server), nil
}

// keyOf returns the key in a path, or "" if the path has none, and reports
// whether the handler answers the path.
func (h *Handler) keyOf(u *url.URL) (key string, ok bool) {
	at, ok := h.routes.parse(u, &h.has)
	return at.key, ok
}

// follower follows a request through routes as Caddy would, without answering
// it.
type follower struct {
	site
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
	switch h := handlers[0].(type) {
	case *Handler:
		at, ok, err := h.routes.parseRequest(r, &h.has)
		switch {
		case !ok:
			return rest(r)
		case h == f.handler && err == nil && at.key == f.key:
			return reached
		}
		return unclear
	case *caddyhttp.Subroute:
		return f.routes(h.Routes, r, rest)
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

// authenticates reports whether a handler may refuse an unauthenticated
// request.
func authenticates(handler caddyhttp.MiddlewareHandler) bool {
	if h, ok := handler.(*reverseproxy.Handler); ok {
		return len(h.HandleResponse) > 0 // forward_auth
	}
	return isModule(handler, "http.handlers.authentication")
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

// discard is a response writer for requests that get no response.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

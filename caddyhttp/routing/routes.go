// Package routing finds out which requests reach the sites of the gateway in a Caddy configuration:
// whether any does, whether strangers' requests do, and at which addresses. It makes requests and
// follows them through the routes, without answering them.
package routing

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// Site is a handler of the gateway, as the routes lead to it.
type Site struct {
	Name      string // of the site, as configured; "" for none
	API       *httpapi.API
	Caddyfile *block.Info // nil if unknown
	Block     int         // handlers with the same are one site, unless it is 0
	Stateless bool        // the operator has decided about stateless, for the site or for all
	Settings  any         // their JSON identifies a site that is not in the routes of a server
}

// SiteFunc returns the site of a handler in the routes, or nil if the handler is of another
// module.
type SiteFunc func(caddyhttp.MiddlewareHandler) *Site

// Routes are the routes of a configuration, with the sites that may be in them.
type Routes struct {
	HTTP  *caddyhttp.App // that has the routes; nil for none
	Sites []*Site        // in the order in which they were provisioned
	Of    SiteFunc

	// Warned is called with each warning instead of logging it; nil to log it.
	Warned WarnFunc
}

// A WarnFunc gets a warning and its subject.
type WarnFunc func(about About, text string)

// About is what a warning is about.
type About string

// What warnings are about.
const (
	AboutStrangers About = "strangers" // what clients without a password can do
	AboutAddresses About = "addresses" // the answers to requests to wrong addresses
)

// servers returns the servers, sorted by their names.
func (c *Routes) servers() (all []*caddyhttp.Server) {
	if c.HTTP == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.HTTP.Servers)) {
		all = append(all, c.HTTP.Servers[name])
	}
	return all
}

// keyOf returns the key in a path, or "" if the path has none, and reports
// whether the handler answers the path.
func (h *Site) keyOf(u *url.URL) (key string, ok bool) {
	at, ok := h.API.Routes.Parse(u, &h.API.Has)
	return at.Key, ok
}

// hasEscalation reports whether a key of the site escalates.
func (h *Site) hasEscalation() bool {
	if h.API.Resolved.Saved.On() && h.API.Resolved.Saved.Rules.IsStep() {
		return true
	}
	for _, k := range h.API.Resolved.Keys {
		if k.Rules.IsStep() {
			return true
		}
	}
	return false
}

// place identifies a handler that is not in the routes of a server, for example
// because the handler of a plugin contains it.
func (h *Site) place() string {
	if h.Block != 0 {
		return "block " + strconv.Itoa(h.Block)
	}
	return string(caddyconfig.JSON(h.Settings, nil))
}

// routedSite is a notify handler and its place in the routes of a server.
type routedSite struct {
	handler *Site
	siteOf  SiteFunc
	warned  WarnFunc
	server  *caddyhttp.Server
	host    string   // one that reaches the handler; "" for any
	hosts   []string // all that reach the handler, as configured; none for any
	prefix  string   // of the path; the routes remove it before the handler
}

func (s routedSite) warn(text string, fields ...zap.Field) { s.warnOf(AboutStrangers, text, fields...) }

func (s routedSite) warnOf(about About, text string, fields ...zap.Field) {
	if s.warned != nil {
		s.warned(about, s.handler.Caddyfile.Position()+text)
		return
	}
	s.handler.API.Log.Warn(s.handler.Caddyfile.Position()+text, fields...)
}

// siteFinder finds the notify handlers in the routes of a server.
type siteFinder struct {
	server  *caddyhttp.Server
	siteOf  SiteFunc
	warned  WarnFunc
	sites   []routedSite
	guarded bool // a handler in the routes authenticates requests
}

// find appends the handlers in routes to f.sites, and returns the prefix that
// the routes have removed from the path. at has the host and the prefix so far.
func (f *siteFinder) find(routes caddyhttp.RouteList, at routedSite) (prefix string) {
	for _, route := range routes {
		in := at
		if hosts := hostsOf(route.MatcherSets); len(hosts) > 0 {
			in.host = strings.ReplaceAll(caddy.NewReplacer().ReplaceAll(hosts[0], ""), "*", "any")
			in.hosts = hosts
		}
		for _, handler := range route.Handlers {
			if s := f.siteOf(handler); s != nil {
				f.sites = append(f.sites, routedSite{s, f.siteOf, f.warned, f.server, in.host, in.hosts, in.prefix})
			}
			switch h := handler.(type) {
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

// request returns an anonymous request for a path of the site, as the server would pass it
// to its routes.
func (s routedSite) request(method, path string) (*http.Request, error) {
	host := s.host
	if host == "" {
		host = "host.invalid"
	}
	r, err := http.NewRequest(method, "http://"+host+path, http.NoBody)
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

// passesOn reports whether a handler of Caddy passes every request on as it is.
func passesOn(handler caddyhttp.MiddlewareHandler) bool {
	return isModule(handler,
		"http.handlers.encode", "http.handlers.intercept", "http.handlers.log_append", "http.handlers.push",
		"http.handlers.request_body", "http.handlers.templates", "http.handlers.tracing",
	)
}

// changes reports whether a handler of Caddy changes requests and passes them on.
func changes(handler caddyhttp.MiddlewareHandler) bool {
	return isModule(handler, "http.handlers.headers", "http.handlers.map", "http.handlers.rewrite", "http.handlers.vars")
}

// isModule reports whether a handler is one of these modules. It compares types,
// because most CaddyModule methods copy the handler, which requests may be using.
func isModule(handler caddyhttp.MiddlewareHandler, ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool {
		info, err := caddy.GetModule(id)
		return err == nil && reflect.TypeOf(info.New()) == reflect.TypeOf(handler)
	})
}

// authenticates reports whether a handler may refuse an unauthenticated
// request.
func authenticates(handler caddyhttp.MiddlewareHandler) bool {
	if h, ok := handler.(*reverseproxy.Handler); ok {
		return len(h.HandleResponse) > 0 // forward_auth
	}
	return isModule(handler, "http.handlers.authentication")
}

// discard is a response writer for requests that get no response.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

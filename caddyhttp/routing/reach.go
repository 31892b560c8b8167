package routing

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// CheckReach returns an error if no request can reach a notify handler: another
// handler answers all of them first, or its paths never get there. It warns about
// a site that answers mistyped addresses with success, so that a client takes an
// alert that went nowhere for delivered.
//
// It can check this only when the configuration starts, because a handler does
// not know its place in the routes. In unclear cases, such as behind a handler
// that is not part of Caddy, it assumes that requests arrive.
func (c *Routes) CheckReach() error {
	reached := map[*Site]bool{}
	var missed []error
	for _, server := range c.servers() {
		f := siteFinder{server: server, siteOf: c.Of, warned: c.Warned}
		f.find(f.server.Routes, routedSite{})
		for _, s := range f.sites {
			reach := newReach(s)
			switch {
			case reached[s.handler]:
			case reach.any():
				reached[s.handler] = true
				s.warnCatchAll()
			default:
				missed = append(missed, s.handler.Caddyfile.Locate(block.Begin, reach.err()))
			}
		}
	}
	return errors.Join(missed...)
}

// reach finds out whether requests can reach a notify handler.
type reach struct {
	routedSite
	catchAll bool // look for a handler that answers everything instead

	// What was met on the way, for the error.
	answers string // the directive that answers before the handler; "" for none
	other   bool   // another notify handler answers before it
	unsure  int    // how many of the routes around it may match or not
	nobody  bool   // no handler has answered, so that Caddy does, with 200 and an empty body
}

func newReach(s routedSite) *reach { return &reach{routedSite: s} }

// any reports whether a request for any path of the handler can reach it.
func (c *reach) any() bool {
	keys := slices.Sorted(maps.Keys(c.handler.API.Resolved.Keys))
	keys = append([]string{"KEY"}, keys[:min(len(keys), maxReachKeys)]...)
	patterns := pathPatterns(c.server.Routes)
	paths := map[string]bool{}
	for _, p := range patterns {
		paths[strings.ReplaceAll(p, "*", "")] = true
		paths[strings.ReplaceAll(p, "*", "KEY")] = true
	}
	for _, p := range append(patterns, c.prefix) {
		prefix, _, _ := strings.Cut(p, "*")
		for _, spec := range httpapi.RouteSpecs() {
			if spec.On != nil && !spec.On(&c.handler.API.Has) {
				continue
			}
			for _, key := range keys {
				path := strings.NewReplacer("{KEY}", key, "{ID}", "id", "{SOURCE}", "grafana", "/{REST...}", "").Replace(spec.Pattern)
				paths[path], paths[strings.TrimSuffix(prefix, "/")+path] = true, true
			}
		}
	}
	return slices.ContainsFunc(slices.Sorted(maps.Keys(paths)), c.path)
}

// maxReachKeys is the maximum number of keys whose paths are tried.
const maxReachKeys = 20

// err returns the error for a handler that no request reaches.
func (c *reach) err() error {
	switch {
	case c.other:
		return errors.New("no request reaches this notify, because another notify of the site answers all of its " +
			"addresses; write all settings into one block, or give each a path matcher, such as notify /notify/ops*")
	case c.answers != "":
		return fmt.Errorf("no request reaches this notify, because %s comes before it and answers every request; "+
			"put notify first within route { … }, or give %[1]s a matcher", c.answers)
	}
	return errors.New("no request reaches this notify, because its addresses are /notify and " +
		"/notify/{KEY} and the directive around it takes other paths; for a prefix such as /alerts, " +
		"write handle_path /alerts/* { notify { … } }, which removes the prefix")
}

// path reports whether a request for a path may reach the handler. Only path and host are fixed:
// the method and the rest of the request are assumed to match.
func (c *reach) path(path string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true // a handler or matcher panicked because the request has no connection
		}
	}()
	r, err := c.request(http.MethodPost, path)
	if err != nil {
		return true
	}
	return c.routes(c.server.Routes, r, nil, c.end)
}

// end is called for a request that has passed all handlers.
func (c *reach) end(*http.Request) bool {
	c.nobody = c.catchAll
	return c.catchAll
}

// contains reports whether a route has the notify handler.
func (c *reach) contains(route caddyhttp.Route) bool {
	f := siteFinder{server: c.server, siteOf: c.siteOf}
	f.find(caddyhttp.RouteList{route}, routedSite{})
	return slices.ContainsFunc(f.sites, func(s routedSite) bool { return s.handler == c.handler })
}

// reachNext are the handlers that follow. They report whether the request may reach the
// target.
type reachNext func(*http.Request) bool

func (c *reach) routes(routes caddyhttp.RouteList, r *http.Request, groups map[string]bool, after reachNext) bool {
	if len(routes) == 0 {
		return after(r)
	}
	route := routes[0]
	rest := func(groups map[string]bool) reachNext {
		return func(r *http.Request) bool { return c.routes(routes[1:], r, groups, after) }
	}
	if route.Group != "" && groups[route.Group] {
		return rest(groups)(r)
	}
	m := c.matchOf(route.MatcherSets, r)
	switch {
	case m == matchesNot:
		return rest(groups)(r)
	case m == mayMatch && c.catchAll:
		// It counts whether or not the route matches, but what is beside notify is for others.
		if rest(groups)(r) {
			return true
		}
		if !c.contains(route) {
			return false
		}
		c.unsure++
		defer func() { c.unsure-- }()
	}
	in := groups
	if route.Group != "" {
		in = maps.Clone(groups)
		if in == nil {
			in = map[string]bool{}
		}
		in[route.Group] = true
	}
	next := rest(in)
	if route.Terminal {
		next = c.end
	}
	answers, other := c.answers, c.other
	if c.handlers(route.Handlers, r, in, next) {
		return true
	}
	if m == mayMatch && !c.catchAll {
		c.answers, c.other = answers, other // they do not answer every request
		return rest(groups)(r)
	}
	return false
}

func (c *reach) handlers(handlers []caddyhttp.MiddlewareHandler, r *http.Request, groups map[string]bool, after reachNext) bool {
	if len(handlers) == 0 {
		return after(r)
	}
	rest := func(r *http.Request) bool { return c.handlers(handlers[1:], r, groups, after) }
	if h := c.siteOf(handlers[0]); h != nil {
		_, ok := h.keyOf(r.URL)
		switch {
		case !ok:
			return rest(r)
		case h == c.handler:
			return !c.catchAll
		}
		c.other = true
		return false
	}
	switch h := handlers[0].(type) {
	case *caddyhttp.Subroute:
		return c.routes(h.Routes, r, groups, rest)
	case *caddyhttp.StaticResponse:
		c.answers = "respond"
		if h.Headers.Get("Location") != "" {
			c.answers = "redir"
		}
		return c.catchAll && c.unsure == 0 && isSuccess(h)
	case *caddyhttp.StaticError:
		c.answers = "error"
		return false
	case *fileserver.FileServer:
		if h.PassThru {
			return rest(r)
		}
		c.answers = "file_server"
		return false
	case *reverseproxy.Handler:
		if len(h.HandleResponse) > 0 { // such as forward_auth
			return rest(r)
		}
		c.answers = "reverse_proxy"
		return false
	}
	if passesOn(handlers[0]) || authenticates(handlers[0]) {
		return rest(r)
	}
	if changes(handlers[0]) {
		ok := false
		err := handlers[0].ServeHTTP(discard{}, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			ok = rest(r)
			return nil
		}))
		return ok || err != nil && !c.catchAll
	}
	return !c.catchAll // an unknown handler
}

// isSuccess reports whether a handler answers with a status of success, as far as
// that is known.
func isSuccess(h *caddyhttp.StaticResponse) bool {
	status := string(h.StatusCode)
	return !h.Abort && (status == "" || strings.HasPrefix(status, "2")) && h.Headers.Get("Location") == ""
}

// warnCatchAll warns if a POST to a mistyped address of the site is answered with success, by
// respond or because nobody answers.
func (s routedSite) warnCatchAll() {
	if len(s.handler.API.Resolved.Keys) == 0 && !s.handler.API.Resolved.Saved.On() {
		return
	}
	for _, path := range s.mistyped() {
		c := &reach{routedSite: s, catchAll: true}
		if !c.path(path) {
			continue
		}
		text := "respond answers a mistyped address such as " + path + " with success, so that a client takes an alert that went nowhere " +
			"for delivered; give respond a path matcher, such as respond / OK, or the status 404"
		if c.nobody {
			text = "nobody answers a mistyped address such as " + path + ", so that Caddy says 200 and a client takes an alert that went " +
				"nowhere for delivered; write respond 404 into the site, or beside another handler, such as file_server, " +
				"respond /notify* 404"
		}
		s.warnOf(AboutAddresses, text, zap.Strings("listen", s.server.Listen))
		return
	}
}

// mistyped returns addresses that somebody may type for the address of a key: with another word
// before the key, with something other than a name after it, and with another prefix.
func (s routedSite) mistyped() []string {
	paths := []string{s.prefix + "/notfy/KEY", s.prefix + "/notify/KEY/a.b"}
	if s.prefix != "" {
		paths = append(paths, s.prefix+"x/notify/KEY")
	}
	return paths
}

// pathPatterns returns the patterns of the path matchers of the routes.
func pathPatterns(routes caddyhttp.RouteList) (patterns []string) {
	for _, route := range routes {
		for _, set := range route.MatcherSets {
			for _, m := range set {
				if paths, ok := m.(*caddyhttp.MatchPath); ok {
					patterns = append(patterns, *paths...)
				}
			}
		}
		for _, h := range route.Handlers {
			if sub, ok := h.(*caddyhttp.Subroute); ok {
				patterns = append(patterns, pathPatterns(sub.Routes)...)
			}
		}
	}
	return patterns
}

// match is the result of comparing matchers with a request.
type match int

const (
	matchesNot match = iota
	mayMatch         // it depends on something other than the path and the host
	matchesAlways
)

// matchOf returns whether one of the sets accepts the path and the host of a request. To find
// what answers everything, it also looks at the method and the file.
func (c *reach) matchOf(sets caddyhttp.MatcherSets, r *http.Request) match {
	if len(sets) == 0 {
		return matchesAlways
	}
	best := matchesNot
	for _, set := range sets {
		here := matchesAlways
		for _, m := range set {
			here = min(here, c.matchOfMatcher(m, r))
		}
		best = max(best, here)
	}
	return best
}

func (c *reach) matchOfMatcher(m any, r *http.Request) match {
	switch m := m.(type) {
	case *caddyhttp.MatchMethod, caddyhttp.MatchMethod, *fileserver.MatchFile, fileserver.MatchFile:
		if !c.catchAll {
			return mayMatch
		}
		return matchFor(m, r)
	case *caddyhttp.MatchPath, *caddyhttp.MatchPathRE, *caddyhttp.MatchHost, caddyhttp.MatchPath, caddyhttp.MatchHost:
		return matchFor(m, r)
	case *caddyhttp.MatchNot:
		out := matchesAlways
		for _, set := range m.MatcherSets {
			out = min(out, matchesAlways-c.matchOf(caddyhttp.MatcherSets{set}, r))
		}
		return out
	}
	return mayMatch
}

// matchFor reports whether a matcher accepts exactly this request.
func matchFor(m any, r *http.Request) match {
	ok, err := caddyhttp.MatcherSet{m}.MatchWithError(r)
	switch {
	case err != nil:
		return mayMatch
	case ok:
		return matchesAlways
	}
	return matchesNot
}

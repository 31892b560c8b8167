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
		return errors.New("no request reaches this notify, because another notify of the site answers all of its addresses; write all settings into one block, or give each a path matcher, such as notify /notify/ops*")
	case c.answers != "":
		return fmt.Errorf("no request reaches this notify, because %s comes before it and answers every request; put notify first within route { … }, or give %[1]s a matcher", c.answers)
	}
	return errors.New("no request reaches this notify, because its addresses are /notify and /notify/{KEY} and the directive around it takes other paths; for a prefix such as /alerts, write handle_path /alerts/* { notify { … } }, which removes the prefix")
}

// path reports whether a request for a path may reach the handler. The method and
// everything else but path and host may be as the routes want it.
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
	return c.routes(c.server.Routes, r, nil, func(*http.Request) bool { return false })
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
	m := matchOf(route.MatcherSets, r)
	if m == matchesNot || m == mayMatch && c.catchAll {
		return rest(groups)(r)
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
		next = func(*http.Request) bool { return false }
	}
	answers, other := c.answers, c.other
	if c.handlers(route.Handlers, r, in, next) {
		return true
	}
	if m == mayMatch {
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
		return c.catchAll && isSuccess(h)
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

// warnCatchAll warns if a POST to a mistyped address of the site is answered with
// success by respond.
func (s routedSite) warnCatchAll() {
	c := &reach{routedSite: s, catchAll: true}
	if len(s.handler.API.Resolved.Keys) == 0 && !s.handler.API.Resolved.Saved.On() || !c.path(s.prefix+"/notfy/KEY") {
		return
	}
	s.warn("respond answers a mistyped address such as "+s.prefix+"/notfy/KEY with success, so that a client takes an alert that went nowhere for delivered; give respond a path matcher, such as respond / OK, or the status 404",
		zap.Strings("listen", s.server.Listen))
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

// matchOf returns whether one of the sets accepts the path and the host of a
// request.
func matchOf(sets caddyhttp.MatcherSets, r *http.Request) match {
	if len(sets) == 0 {
		return matchesAlways
	}
	best := matchesNot
	for _, set := range sets {
		here := matchesAlways
		for _, m := range set {
			here = min(here, matchOfMatcher(m, r))
		}
		best = max(best, here)
	}
	return best
}

func matchOfMatcher(m any, r *http.Request) match {
	switch m := m.(type) {
	case *caddyhttp.MatchPath, *caddyhttp.MatchPathRE, *caddyhttp.MatchHost, caddyhttp.MatchPath, caddyhttp.MatchHost:
		ok, err := caddyhttp.MatcherSet{m}.MatchWithError(r)
		switch {
		case err != nil:
			return mayMatch
		case ok:
			return matchesAlways
		}
		return matchesNot
	case *caddyhttp.MatchNot:
		out := matchesAlways
		for _, set := range m.MatcherSets {
			out = min(out, matchesAlways-matchOf(caddyhttp.MatcherSets{set}, r))
		}
		return out
	}
	return mayMatch
}

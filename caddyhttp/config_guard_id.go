package caddyhttp

import (
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// warnConfigID warns if X-Apprise-Config-ID gets a stranger past what keeps strangers from
// the address of a key: a matcher of the path /notify/KEY does not match /notify. Without
// config_id on, the header needs a secret of the key on every path.
func (s routedSite) warnConfigID() {
	r := s.handler.resolved
	if !r.ConfigID || s.requiresCertificate() {
		return
	}
	for _, c := range configIDRoutes() {
		for _, name := range append([]string{"KEY"}, slices.Sorted(maps.Keys(r.Keys))...) {
			path := site.PathOf(c.keyed, name)
			if s.isOpenByID(c, name) && s.followRequest(c.method, path, "") != reached && newReach(s).path(s.prefix+path) {
				s.warn("what keeps strangers from " + s.prefix + path + " does not apply to " + s.prefix + c.path + " with the header " + configIDHeader +
					": " + name + ", because of config_id on; authenticate requests with the header, too, with the matcher header " + configIDHeader + " *, or write config_id off")
				return
			}
		}
	}
}

// isOpenByID reports whether the header gets a stranger something at a route without a
// key: the routes of saved keys need a right to manage that everybody has.
func (s routedSite) isOpenByID(c configIDRoute, name string) bool {
	r := s.handler.resolved
	k := r.Keys[name]
	switch c.keyed {
	case site.RouteNotifyKey, routeURLs:
		if k == nil && !s.handler.has.configs || k != nil && len(k.Tokens) > 0 {
			return false
		}
	default:
		if k != nil || r.Managers == nil || !r.Managers.Open {
			return false
		}
	}
	return s.followRequest(c.method, c.path, name) == reached
}

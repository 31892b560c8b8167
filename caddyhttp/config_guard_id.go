package caddyhttp

import (
	"maps"
	"slices"
)

// warnConfigID warns if X-Apprise-Config-ID gets a stranger past what keeps strangers from
// the address of a key: a matcher of the path /notify/KEY does not match /notify. Without
// config_id on, the header needs a secret of the key on every path.
func (s routedSite) warnConfigID() {
	r := s.handler.resolved
	if !r.configID || s.requiresCertificate() {
		return
	}
	for _, c := range configIDRoutes() {
		for _, name := range append([]string{"KEY"}, slices.Sorted(maps.Keys(r.keys))...) {
			path := pathOf(c.keyed, name)
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
	k := r.keys[name]
	switch c.keyed {
	case routeNotifyKey, routeURLs:
		if k == nil && !s.handler.has.configs || k != nil && len(k.tokens) > 0 {
			return false
		}
	default:
		if k != nil || r.managers == nil || !r.managers.open {
			return false
		}
	}
	return s.followRequest(c.method, c.path, name) == reached
}

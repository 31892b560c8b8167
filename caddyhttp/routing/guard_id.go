package routing

import (
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// warnConfigID warns if X-Apprise-Config-ID gets a stranger past the protection of a key's address:
// a matcher of the path /notify/KEY does not match /notify. Without config_id on, the header needs
// a secret of the key on every path.
func (s routedSite) warnConfigID() {
	r := s.handler.API.Resolved
	if !r.ConfigID || s.requiresCertificate() {
		return
	}
	for _, c := range httpapi.ConfigIDRoutes() {
		for _, name := range append([]string{"KEY"}, slices.Sorted(maps.Keys(r.Keys))...) {
			path := site.PathOf(c.Keyed, name)
			if s.isOpenByID(c, name) && s.followRequest(c.Method, path, "") != reached && newReach(s).path(s.prefix+path) {
				s.warn("what keeps strangers from " + s.prefix + path + " does not apply to " +
					s.prefix + c.Path + " with the header " + httpapi.ConfigIDHeader +
					": " + name + ", because of config_id on; authenticate requests with the header, too, " +
					"with the matcher header " + httpapi.ConfigIDHeader + " *, or write config_id off")
				return
			}
		}
	}
}

// isOpenByID reports whether the header gives a stranger access at a route without a key. The
// routes of saved keys give access only if everybody may manage.
func (s routedSite) isOpenByID(c httpapi.ConfigIDRoute, name string) bool {
	r := s.handler.API.Resolved
	k := r.Keys[name]
	switch c.Keyed {
	case site.RouteNotifyKey, httpapi.RouteURLs:
		if k == nil && !s.handler.API.Has.Configs || k != nil && len(k.Tokens) > 0 {
			return false
		}
	default:
		if k != nil || r.Managers == nil || !r.Managers.Open {
			return false
		}
	}
	return s.followRequest(c.Method, c.Path, name) == reached
}

package routing

import (
	"maps"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Logins says for the names of the keys of a site whether a program must authenticate before it
// can send to them. "" stands for saved keys. It leaves out keys for which that is unclear, and
// keys that have both an address with authentication and one without.
func (c *Routes) Logins(of *httpapi.API) map[string]bool {
	all := map[string][]outcome{}
	for _, server := range c.servers() {
		f := siteFinder{server: server, siteOf: c.Of}
		f.find(server.Routes, routedSite{})
		for _, s := range f.sites {
			if s.handler.API != of {
				continue
			}
			for _, name := range append([]string{""}, slices.Sorted(maps.Keys(of.Resolved.Keys))...) {
				key := name
				if name == "" {
					key = "KEY"
				}
				all[name] = append(all[name], s.follow(http.MethodPost, site.PathOf(site.RouteNotifyKey, key)))
			}
		}
	}
	logins := map[string]bool{}
	for name, outcomes := range all {
		if all := slices.Compact(outcomes); len(all) == 1 && all[0] != unclear {
			logins[name] = all[0] == guarded
		}
	}
	return logins
}

package routing

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Index returns the sites by their IDs, which follow from their addresses.
func (c *Routes) Index() *site.Index {
	addresses := c.addresses()
	// names are the texts that handlers of one site share: addresses and blocks.
	// Each is in the group of the first handler that has it.
	groups := make([]int, len(c.Sites)) // by handler
	byName := map[string]int{}
	for i, h := range c.Sites {
		groups[i] = i
		names := addresses[h]
		if b := h.Caddyfile.Number(); b > 0 { // those of named routes are not unique
			names = append(slices.Clip(names), "block "+strconv.Itoa(b))
		}
		for _, name := range names {
			other, ok := byName[name]
			if !ok {
				byName[name] = groups[i]
				continue
			}
			replaced := groups[i]
			for k := range groups[:i+1] {
				if groups[k] == replaced {
					groups[k] = groups[other]
				}
			}
		}
	}
	all := map[int][]string{} // addresses by group
	for i, h := range c.Sites {
		all[groups[i]] = append(all[groups[i]], addresses[h]...)
	}
	x := &site.Index{IDs: map[*site.Site]string{}, ByID: map[string][]*site.Site{}}
	for i, h := range c.Sites {
		names := slices.Compact(slices.Sorted(slices.Values(all[groups[i]])))
		if len(names) == 0 {
			names = []string{h.place()}
		}
		sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
		id := base64.RawURLEncoding.EncodeToString(sum[:siteIDLength])
		x.IDs[h.API.Resolved] = id
		x.ByID[id] = append(x.ByID[id], h.API.Resolved)
	}
	return x
}

// siteIDLength is the length of the ID of a site in bytes, before it is encoded.
const siteIDLength = 9

// addresses returns the addresses of each site in the routes.
func (c *Routes) addresses() map[*Site][]string {
	out := map[*Site][]string{}
	for _, server := range c.servers() {
		f := siteFinder{server: server, siteOf: c.Of}
		f.find(server.Routes, routedSite{})
		if server.Errors != nil {
			f.find(server.Errors.Routes, routedSite{})
		}
		for _, name := range slices.Sorted(maps.Keys(server.NamedRoutes)) {
			f.find(caddyhttp.RouteList{*server.NamedRoutes[name]}, routedSite{prefix: "&" + name})
		}
		listen := strings.Join(slices.Sorted(slices.Values(server.Listen)), ",")
		for _, s := range f.sites {
			hosts := s.hosts
			if len(hosts) == 0 {
				hosts = []string{""}
			}
			for _, host := range hosts {
				host = strings.ToLower(caddy.NewReplacer().ReplaceAll(host, ""))
				out[s.handler] = append(out[s.handler], listen+" "+host+s.prefix)
			}
		}
	}
	return out
}

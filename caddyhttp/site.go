package caddyhttp

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// indexSites returns the sites of the configuration.
func (a *App) indexSites() *site.Index {
	addresses := a.handlerAddresses()
	// names are the texts that handlers of one site share: addresses and blocks.
	// Each is in the group of the first handler that has it.
	groups := make([]int, len(a.handlers)) // by handler
	byName := map[string]int{}
	for i, h := range a.handlers {
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
	for i, h := range a.handlers {
		all[groups[i]] = append(all[groups[i]], addresses[h]...)
	}
	x := &site.Index{Ids: map[*site.Site]string{}, ByID: map[string][]*site.Site{}}
	for i, h := range a.handlers {
		names := slices.Compact(slices.Sorted(slices.Values(all[groups[i]])))
		if len(names) == 0 {
			names = []string{h.place()}
		}
		sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
		id := base64.RawURLEncoding.EncodeToString(sum[:siteIDLength])
		x.Ids[h.api.Resolved] = id
		x.ByID[id] = append(x.ByID[id], h.api.Resolved)
	}
	return x
}

// siteIDLength is the length of the ID of a site in bytes, before it is encoded.
const siteIDLength = 9

// place identifies a handler that is not in the routes of a server, for example
// because the handler of a plugin contains it.
func (h *Handler) place() string {
	if at := h.Caddyfile.Position(); at != "" {
		return at + strconv.Itoa(h.Caddyfile.Number())
	}
	return string(caddyconfig.JSON(h.Settings, nil))
}

// handlerAddresses returns the addresses of each handler in the routes.
func (a *App) handlerAddresses() map[*Handler][]string {
	out := map[*Handler][]string{}
	app, err := a.ctx.AppIfConfigured("http")
	if err != nil {
		return out // there is no http app
	}
	for _, server := range app.(*caddyhttp.App).Servers {
		f := siteFinder{server: server}
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

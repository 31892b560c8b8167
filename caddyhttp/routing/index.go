package routing

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Index returns the sites by their IDs, which follow from their names or their addresses.
func (c *Routes) Index() *site.Index {
	addresses := c.addresses()
	// names are the texts that handlers of one site share: addresses and blocks.
	// Each is in the group of the first handler that has it.
	groups := make([]int, len(c.Sites)) // by handler
	byName := map[string]int{}
	for i, h := range c.Sites {
		groups[i] = i
		names := textsOf(addresses[h])
		if b := h.Block; b > 0 && h.Name == "" { // the numbers of named routes are not unique
			names = append(names, "block "+strconv.Itoa(b))
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
		all[groups[i]] = append(all[groups[i]], textsOf(addresses[h])...)
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

// address is what identifies a site in the routes of a server.
type address struct {
	text   string   // ports, host and prefix, or the name of the site
	listen []string // what the server listens on, which is no part of the identity
}

func textsOf(all []address) (texts []string) {
	for _, a := range all {
		texts = append(texts, a.text)
	}
	return texts
}

// addresses returns the addresses of each site in the routes. A site with a name has its name as
// its address.
func (c *Routes) addresses() map[*Site][]address {
	out := map[*Site][]address{}
	for _, server := range c.servers() {
		f := siteFinder{server: server, siteOf: c.Of}
		f.find(server.Routes, routedSite{})
		if server.Errors != nil {
			f.find(server.Errors.Routes, routedSite{})
		}
		for _, name := range slices.Sorted(maps.Keys(server.NamedRoutes)) {
			f.find(caddyhttp.RouteList{*server.NamedRoutes[name]}, routedSite{prefix: "&" + name})
		}
		ports := portsOf(server.Listen)
		for _, s := range f.sites {
			hosts := s.hosts
			if len(hosts) == 0 {
				hosts = []string{""}
			}
			for _, host := range hosts {
				host = strings.ToLower(caddy.NewReplacer().ReplaceAll(host, ""))
				out[s.handler] = append(out[s.handler], address{ports + " " + host + s.prefix, server.Listen})
			}
		}
	}
	for _, h := range c.Sites {
		if h.Name != "" {
			out[h] = []address{{text: "site " + h.Name}}
		}
	}
	return out
}

// portsOf returns the ports of addresses that a server listens on, such as ":80,:443".
func portsOf(listen []string) string {
	ports := make([]string, 0, len(listen))
	for _, text := range listen {
		a, err := caddy.ParseNetworkAddress(text)
		switch {
		case err != nil:
			ports = append(ports, text)
		case a.IsUnixNetwork() || a.IsFdNetwork():
			ports = append(ports, a.Network) // without a port; the rest is its bind
		default:
			a.Network, a.Host = "tcp", ""
			ports = append(ports, a.String())
		}
	}
	slices.Sort(ports)
	return strings.Join(slices.Compact(ports), ",")
}

// CheckNames returns an error if two sites differ only in the addresses that their servers
// listen on, as by bind, and have no names. Whether they are one site or two cannot be seen.
func (c *Routes) CheckNames() error {
	type place struct {
		site   *Site
		listen string
	}
	first := map[string]place{} // by address
	addresses := c.addresses()
	for _, h := range c.Sites {
		if h.Name != "" {
			continue
		}
		for _, a := range addresses[h] {
			at := place{h, strings.Join(slices.Sorted(slices.Values(a.listen)), ", ")}
			other, ok := first[a.text]
			if !ok {
				first[a.text] = at
				continue
			}
			if other.listen != at.listen && (h.Block == 0 || h.Block != other.site.Block) {
				return h.Caddyfile.Locate(block.Begin, fmt.Errorf("this notify and %s differ only "+
					"in what their servers listen on (%s and %s); write site <name> into each: "+
					"one name if they are one site, with the same messages, incidents and devices, or else two",
					cmp.Or(other.site.Caddyfile.Line(block.Begin), "another one"), at.listen, other.listen))
			}
		}
	}
	return nil
}

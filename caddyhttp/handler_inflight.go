package caddyhttp

import (
	"net/http"
	"net/netip"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// clientAddress returns the address of the client that the server determined, as [api.ClientNetwork] does. It returns the zero
// Addr if the client has no IP address.
func clientAddress(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddr(clientIP(r))
	if err != nil {
		return netip.Addr{}
	}
	return api.ClientNetwork(addr)
}

package httpapi

import (
	"net/http"
	"net/netip"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// ClientAddress returns the address of the client that the server determined, as [api.ClientNetwork] does. It returns the zero
// Addr if the client has no IP address.
func ClientAddress(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddr(ClientIP(r))
	if err != nil {
		return netip.Addr{}
	}
	return api.ClientNetwork(addr)
}

package api

import "net/netip"

// ClientNetwork returns the address that stands for a client where clients are
// counted: an IPv4 address, or the /64 network of an IPv6 address, because one
// client has all of that. The zero Addr stays.
func ClientNetwork(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap(); !addr.Is6() {
		return addr
	}
	const oneClient = 64 // bits
	return netip.PrefixFrom(addr.WithZone(""), oneClient).Masked().Addr()
}

package api

import "net/netip"

// ClientNetwork returns the address by which a client is counted: its IPv4 address, or its IPv6 /64
// network, because one client usually has the whole network. The zero Addr stays.
func ClientNetwork(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap(); !addr.Is6() {
		return addr
	}
	const oneClient = 64 // bits
	return netip.PrefixFrom(addr.WithZone(""), oneClient).Masked().Addr()
}

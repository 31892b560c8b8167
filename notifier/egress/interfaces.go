package egress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// interfaceLife is the time for which a list of interface addresses is used
// before it is read again. Reading it takes one or two system calls.
const interfaceLife = 5 * time.Second

// interfaces caches the addresses of this machine's network interfaces and
// their networks. Both may be public: a rented server has a public address and,
// in the same network, neighbours and a router. The zero value is ready for use
// and safe for concurrent use.
type interfaces struct {
	list func() ([]net.Addr, error) // nil for net.InterfaceAddrs

	mu       sync.Mutex
	readAt   time.Time
	err      error
	prefixes []netip.Prefix // address and length of the network, not masked
}

// rule returns why a may not be reached, or "". The text contains no address,
// since clients read it.
func (i *interfaces) rule(a netip.Addr) string {
	prefixes, err := i.current()
	if err != nil {
		return "possibly in a network of this machine, because the system does " +
			"not list its network interfaces (a service manager must allow AF_NETLINK)"
	}
	for _, p := range prefixes {
		if p.Addr() == a {
			return "an address of this machine"
		}
	}
	for _, p := range prefixes {
		if p.Bits() > 0 && p.Contains(a) {
			return "in a network of this machine"
		}
	}
	return ""
}

// current returns the prefixes of all interfaces. If the list cannot be read
// again, the last one stays in use.
func (i *interfaces) current() ([]netip.Prefix, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.readAt.IsZero() && time.Since(i.readAt) < interfaceLife {
		return i.prefixes, i.err
	}
	list := i.list
	if list == nil {
		list = net.InterfaceAddrs
	}
	addrs, err := list()
	i.readAt = time.Now()
	if err != nil {
		if i.prefixes == nil {
			i.err = err
		}
		return i.prefixes, i.err
	}
	i.err, i.prefixes = nil, make([]netip.Prefix, 0, len(addrs))
	for _, addr := range addrs {
		if p, err := netip.ParsePrefix(addr.String()); err == nil {
			if p.Addr().Is4In6() && p.Bits() >= 96 {
				p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
			}
			i.prefixes = append(i.prefixes, netip.PrefixFrom(p.Addr().WithZone(""), p.Bits()))
		}
	}
	return i.prefixes, nil
}

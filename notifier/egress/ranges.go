package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

var (
	allRanges = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

	privateRanges = []netip.Prefix{
		netip.MustParsePrefix("192.168.0.0/16"),
		netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("127.0.0.1/8"),
		netip.MustParsePrefix("fd00::/8"),
		netip.MustParsePrefix("::1/128"),
	}

	globalUnicast  = netip.MustParsePrefix("2000::/3")        // RFC 4291, section 2.4
	ipv4Compatible = netip.MustParsePrefix("::/96")           // RFC 4291, section 2.5.5.1
	ipv4Translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765, section 2.1
	nat64          = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052, section 2.1
	localNAT64     = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	teredo         = netip.MustParsePrefix("2001::/32")       // RFC 4380
	sixToFour      = netip.MustParsePrefix("2002::/16")       // RFC 3056
)

// specialRanges are the ranges that are not public, a narrower one before a
// wider one that contains it. Sources: the IANA IPv4 and IPv6 special-purpose
// address registries and multicast address registries.
var specialRanges = []struct {
	kind   string
	prefix netip.Prefix
}{
	{"unspecified", netip.MustParsePrefix("0.0.0.0/32")},
	{"of this network", netip.MustParsePrefix("0.0.0.0/8")},
	{"private", netip.MustParsePrefix("10.0.0.0/8")},
	{"shared by carrier-grade NAT", netip.MustParsePrefix("100.64.0.0/10")},
	{"loopback", netip.MustParsePrefix("127.0.0.0/8")},
	{"link-local", netip.MustParsePrefix("169.254.0.0/16")},
	{"private", netip.MustParsePrefix("172.16.0.0/12")},
	{"reserved for protocols", netip.MustParsePrefix("192.0.0.0/24")},
	{"reserved for documentation", netip.MustParsePrefix("192.0.2.0/24")},
	{"reserved for 6to4 relays", netip.MustParsePrefix("192.88.99.0/24")},
	{"private", netip.MustParsePrefix("192.168.0.0/16")},
	{"reserved for benchmarks", netip.MustParsePrefix("198.18.0.0/15")},
	{"reserved for documentation", netip.MustParsePrefix("198.51.100.0/24")},
	{"reserved for documentation", netip.MustParsePrefix("203.0.113.0/24")},
	{"multicast", netip.MustParsePrefix("224.0.0.0/4")},
	{"broadcast", netip.MustParsePrefix("255.255.255.255/32")},
	{"reserved", netip.MustParsePrefix("240.0.0.0/4")},
	// A public address by its number. Within Azure it is the agent of the
	// host, which gives out secrets of the virtual machine.
	{"the Azure platform", netip.MustParsePrefix("168.63.129.16/32")},

	{"unspecified", netip.MustParsePrefix("::/128")},
	{"loopback", netip.MustParsePrefix("::1/128")},
	{"IPv4-compatible", ipv4Compatible},
	{"IPv4-translated", ipv4Translated},
	{"NAT64 of a local network", localNAT64},
	{"discarded", netip.MustParsePrefix("100::/64")},
	{"Teredo", teredo},
	{"reserved for benchmarks", netip.MustParsePrefix("2001:2::/48")},
	{"reserved for documentation", netip.MustParsePrefix("2001:db8::/32")},
	{"reserved for protocols", netip.MustParsePrefix("2001::/23")},
	{"6to4", sixToFour},
	{"reserved for documentation", netip.MustParsePrefix("3fff::/20")},
	{"unique-local", netip.MustParsePrefix("fc00::/7")},
	{"link-local", netip.MustParsePrefix("fe80::/10")},
	{"site-local", netip.MustParsePrefix("fec0::/10")},
	{"multicast", netip.MustParsePrefix("ff00::/8")},
}

// ParseRanges returns the ranges that an entry of a list stands for: an IP
// address, a range in CIDR notation, or private_ranges.
func ParseRanges(entry string) ([]netip.Prefix, error) {
	entry = strings.TrimSpace(entry)
	if entry == "private_ranges" {
		return privateRanges, nil
	}
	p, err := netip.ParsePrefix(entry)
	if err != nil {
		a, err := netip.ParseAddr(entry)
		if err != nil || a.Zone() != "" {
			return nil, errors.New("expected an IP address without a zone, a range such as 10.0.0.0/8, or private_ranges")
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	// Caddy itself writes 127.0.0.1/8 for private_ranges.
	if whole := p.Masked(); p != whole && !slices.Contains(privateRanges, p) {
		return nil, fmt.Errorf("it is an address within a range; write %s for the range, or %s for the address alone", whole, p.Addr())
	}
	return []netip.Prefix{p}, nil
}

// compact returns the sorted minimal list of ranges with the same addresses.
func compact(ranges []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	sorted := make([]netip.Prefix, len(ranges))
	for i, p := range ranges {
		sorted[i] = p.Masked()
	}
	slices.SortFunc(sorted, netip.Prefix.Compare)
	for _, p := range sorted {
		if n := len(out); n > 0 && out[n-1].Overlaps(p) {
			continue // the previous range contains p
		}
		out = append(out, p)
		// Replace two halves of a range by the range.
		for n := len(out); n > 1 && out[n-1].Bits() == out[n-2].Bits() && out[n-1].Bits() > 0; n = len(out) {
			whole := netip.PrefixFrom(out[n-2].Addr(), out[n-2].Bits()-1).Masked()
			if !whole.Contains(out[n-1].Addr()) {
				break
			}
			out = append(out[:n-2], whole)
		}
	}
	return out
}

// embedded returns the IPv4 addresses that are embedded in an IPv6 address. If
// certain is false, they are candidates: the length of the prefix, and so the
// position of the IPv4 address, cannot be read from the address.
func embedded(a netip.Addr) (inner []netip.Addr, certain bool) {
	if !a.Is6() || a.IsUnspecified() || a.IsLoopback() {
		return nil, true
	}
	b := a.As16()
	at := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	switch {
	case ipv4Compatible.Contains(a), ipv4Translated.Contains(a), nat64.Contains(a):
		return []netip.Addr{at(12, 13, 14, 15)}, true
	case sixToFour.Contains(a): // RFC 3056, section 2
		return []netip.Addr{at(2, 3, 4, 5)}, true
	case teredo.Contains(a): // RFC 4380, section 4: the server, and the client with its bits inverted
		client := netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
		return []netip.Addr{at(4, 5, 6, 7), client}, true
	case localNAT64.Contains(a): // RFC 6052, section 2.2: prefixes of 48, 56, 64 or 96 bits
		return []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)}, false
	}
	return nil, true
}

package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// Policy says which addresses the URLs that clients bring may lead to. nil
// allows every address; it is for URLs that the operator wrote.
//
// An address that is denied is refused. One that is allowed passes. Any other
// passes unless it is of a kind that the public Internet does not route:
// loopback, private, link-local and the rest of the IANA special-purpose
// registries (RFC 6890), or one of this machine's own addresses, or in a network
// that one of its interfaces is connected to. An IPv6 address that carries an IPv4 address is
// judged by both, except that an IPv4-mapped one is the IPv4 address. The
// NAT64 prefix that a network took from its own range cannot be recognised;
// where there is one, deny it.
//
// A Policy is safe for concurrent use. It reads the list of this machine's
// interfaces when it needs it, at most every 5 seconds. The zero Policy is
// that of NewPolicy(nil, nil).
type Policy struct {
	allow, deny []netip.Prefix
	key         string
	own         interfaces
}

// BlockedError says that an address may not be reached.
type BlockedError struct {
	// Addr is what was refused, without its zone. It is not valid where a name
	// leads there, nor where the host was refused because nobody can say for
	// certain what it denotes.
	Addr netip.Addr

	// Rule is "deny" with the range that the operator denied, or the kind of
	// the address, with its range.
	Rule string

	ofName bool // the address is that of a host name, and not shown
}

func (e *BlockedError) Error() string {
	if e.Rule == ownMachine {
		return "this reaches into the gateway's own machine, which destinations named by clients may not; the operator can name it in the configuration"
	}
	address := "the address " + e.Addr.String()
	if e.ofName {
		address = "the address of the host"
	}
	if !e.Addr.IsValid() && !e.ofName {
		return "the host is " + e.Rule + "; write a host name, or an IP address in its usual form"
	}
	if strings.HasPrefix(e.Rule, "deny ") {
		return fmt.Sprintf("%s falls under %s of egress, and destinations named by clients may not reach it", address, e.Rule)
	}
	return fmt.Sprintf("%s is %s, and destinations named by clients may not reach it; the operator can allow it with egress", address, e.Rule)
}

// NewPolicy makes the policy of two lists. An entry is a range in CIDR
// notation, an IP address, private_ranges or, in allow, all. private_ranges
// means what it means elsewhere in Caddy: 192.168.0.0/16, 172.16.0.0/12,
// 10.0.0.0/8, 127.0.0.1/8, fd00::/8 and ::1. An error names the entry.
func NewPolicy(allow, deny []string) (*Policy, error) {
	e := &Policy{}
	for _, entry := range allow {
		if strings.TrimSpace(entry) == "all" {
			e.allow = append(e.allow, everything...)
			continue
		}
		ranges, err := parseRanges(entry)
		if err != nil {
			return nil, fmt.Errorf("egress allow %q: %w, or all", entry, err)
		}
		e.allow = append(e.allow, ranges...)
	}
	for _, entry := range deny {
		ranges, err := parseRanges(entry)
		if err != nil {
			return nil, fmt.Errorf("egress deny %q: %w", entry, err)
		}
		e.deny = append(e.deny, ranges...)
	}
	e.allow, e.deny = compact(e.allow), compact(e.deny)
	if len(e.allow)+len(e.deny) > 0 {
		e.key = keyOf(e.allow, e.deny)
	}
	return e, nil
}

// Key is the policy as text. Two policies that list the same addresses have
// the same key, in whatever order and ranges they were written. The key of
// nil is empty, and no other is.
func (e *Policy) Key() string {
	switch {
	case e == nil:
		return ""
	case e.key == "":
		return "allow; deny"
	}
	return e.key
}

func keyOf(allow, deny []netip.Prefix) string {
	var b strings.Builder
	b.WriteString("allow")
	for _, p := range allow {
		b.WriteString(" " + p.String())
	}
	b.WriteString("; deny")
	for _, p := range deny {
		b.WriteString(" " + p.String())
	}
	return b.String()
}

// Control refuses a connection to an address that the policy does not allow.
// It is for [net.Dialer.ControlContext], which calls it with each address
// that is really dialled, so that no name, redirect or DNS answer gets around
// it. The error is an [*BlockedError].
func (e *Policy) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	if e == nil {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &BlockedError{Rule: unreadable}
	}
	return e.CheckAddr(ap.Addr())
}

// CheckAddr returns an [*BlockedError] where the policy does not allow a. The
// zone of a does not matter.
func (e *Policy) CheckAddr(a netip.Addr) error {
	if e == nil {
		return nil
	}
	if !a.IsValid() {
		return &BlockedError{Rule: unreadable}
	}
	// A prefix contains no address that has a zone, nor an IPv4-mapped one.
	a = a.WithZone("").Unmap()
	inner, certain := embedded(a)
	if err := e.denied(a, inner...); err != nil {
		return err
	}
	if rule := e.refusal(a); rule != "" {
		return &BlockedError{Addr: a, Rule: rule}
	}
	if !certain {
		return nil
	}
	for _, v4 := range inner {
		if rule := e.refusal(v4); rule != "" {
			return &BlockedError{Addr: a, Rule: fmt.Sprintf("a form of %s, which is %s", v4, rule)}
		}
	}
	return nil
}

// denied looks for a denied range that holds a or an address inside it.
func (e *Policy) denied(a netip.Addr, inner ...netip.Addr) error {
	for _, p := range e.deny {
		if p.Contains(a) || slices.ContainsFunc(inner, p.Contains) {
			return &BlockedError{Addr: a, Rule: "deny " + p.String()}
		}
	}
	return nil
}

// refusal is the kind that speaks against an address, or "" where it is
// public or allowed.
func (e *Policy) refusal(a netip.Addr) string {
	for _, p := range e.allow {
		if p.Contains(a) {
			return ""
		}
	}
	for _, k := range specialKinds {
		if k.prefix.Contains(a) {
			return fmt.Sprintf("%s (%s)", k.name, k.prefix)
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) && !nat64.Contains(a) {
		return "not global unicast (outside " + globalUnicast.String() + ")"
	}
	return e.own.rule(a)
}

// ownMachine is the rule for what has no address, but is part of the machine
// that the gateway runs on.
const ownMachine = "part of the gateway's machine"

// unreadable is the rule for a host that is neither a name nor an address.
const unreadable = "no name, and no address that can be read for certain"

// CheckLocal returns a [*BlockedError] unless e is nil: only the operator's URLs
// may use sockets, standard error and other resources of this machine.
func (e *Policy) CheckLocal() error {
	if e == nil {
		return nil
	}
	return &BlockedError{Rule: ownMachine}
}

// CheckHost returns an [*BlockedError] where host, as written in a URL, with
// or without a port, denotes an address that the policy does not allow. It is
// for requests that go through a forward proxy, which dials in our place:
// there is no address to check then but a literal one. Other names pass.
//
// Whatever some reader takes for an address counts as one: the forms of
// inet_aton (2130706433, 0177.0.0.1, 0x7f.1, 127.1), leading zeros read as
// octal and as decimal, IPv6 with and without brackets and zone, percent
// escapes, characters that IDNA maps to ASCII, and dots at the end. So do the
// names of the loopback interface. Of user-info both sides of the @ are
// checked, since readers have disagreed which is the host.
func (e *Policy) CheckHost(host string) error {
	if e == nil {
		return nil
	}
	return e.checkHost(host, 0)
}

// maxUnescapes bounds how often a host is freed of percent escapes; a client
// that escapes more often than that wants to hide something.
const maxUnescapes = 3

func (e *Policy) checkHost(host string, unescaped int) error {
	pieces := strings.FieldsFunc(foldHost(host), func(r rune) bool {
		return strings.ContainsRune(`@/\?#`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
	})
	if len(pieces) == 0 {
		return &BlockedError{Rule: unreadable}
	}
	for _, piece := range pieces {
		if before, _, ok := strings.Cut(piece, "%"); ok && strings.Count(before, ":") >= 2 {
			piece = before // what follows is the zone of an IPv6 address
		}
		if plain := percent.DecodeText(piece); plain != piece {
			if unescaped == maxUnescapes {
				return &BlockedError{Rule: unreadable}
			}
			if err := e.checkHost(plain, unescaped+1); err != nil {
				return err
			}
			continue
		}
		if err := e.checkPlainHost(piece); err != nil {
			return err
		}
	}
	return nil
}

// checkPlainHost checks a host that is in lower case and has no escapes.
func (e *Policy) checkPlainHost(host string) error {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil {
			return &BlockedError{Rule: unreadable}
		}
		return e.CheckAddr(a)
	}
	host = strings.Trim(host, ".")
	if host == "" {
		return &BlockedError{Rule: unreadable}
	}
	if isLoopbackName(host) {
		return e.checkLoopback()
	}
	labels := strings.Split(host, ".")
	if !isNumber(labels[len(labels)-1]) {
		return nil
	}
	// No top-level domain is a number (RFC 3696, section 2), so this is an
	// address or nothing at all.
	octal, ok8 := parseIPv4(labels, 8)
	decimal, ok10 := parseIPv4(labels, 10)
	if !ok8 && !ok10 {
		return &BlockedError{Rule: unreadable}
	}
	if ok8 {
		if err := e.CheckAddr(octal); err != nil {
			return err
		}
	}
	if ok10 {
		return e.CheckAddr(decimal)
	}
	return nil
}

// checkLoopback checks a name of the loopback interface: one family that is
// allowed is enough, one that is denied is too much.
func (e *Policy) checkLoopback() error {
	v4, v6 := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	for _, a := range []netip.Addr{v4, v6} {
		if err := e.denied(a); err != nil {
			return err
		}
	}
	if e.CheckAddr(v6) == nil {
		return nil
	}
	return e.CheckAddr(v4)
}

// isLoopbackName says whether a name in lower case leads to the machine
// itself: those of RFC 6761, section 6.3, and those that the hosts files of
// Debian, Fedora and their like bring along.
func isLoopbackName(name string) bool {
	switch name {
	case "localhost", "localhost4", "localhost6", "loopback",
		"localhost.localdomain", "localhost4.localdomain4", "localhost6.localdomain6",
		"ip6-localhost", "ip6-loopback":
		return true
	}
	return strings.HasSuffix(name, ".localhost")
}

// foldHost maps a host as IDNA does before it looks a name up (UTS #46): to
// lower case and compatible characters, with one kind of dot and without the
// characters that are not seen. Fullwidth and circled digits become digits.
func foldHost(host string) string {
	host = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, host)
	return strings.ReplaceAll(strings.ToLower(norm.NFKC.String(host)), "。", ".")
}

// isNumber says whether a label is written as a number, whatever its size.
func isNumber(label string) bool {
	digits, cutset := label, "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits, cutset = hex, "0123456789abcdef"
	}
	return label != "" && strings.Trim(digits, cutset) == ""
}

// parseIPv4 reads an address the way inet_aton does: one to four numbers, of
// which the last fills all bytes that remain. zeroBase is the base of a
// number that begins with 0; inet_aton says 8, many others 10.
func parseIPv4(labels []string, zeroBase int) (netip.Addr, bool) {
	if len(labels) > 4 {
		return netip.Addr{}, false
	}
	var v uint64
	for i, label := range labels {
		base := 10
		if hex, ok := strings.CutPrefix(label, "0x"); ok {
			label, base = "0"+hex, 16
		} else if strings.HasPrefix(label, "0") {
			base = zeroBase
		}
		bits := 8
		if i == len(labels)-1 {
			bits = 8 * (4 - i)
		}
		n, err := strconv.ParseUint(label, base, bits)
		if err != nil {
			return netip.Addr{}, false
		}
		v = v<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// embedded returns the IPv4 addresses that an IPv6 address carries. Where
// certain is false they are the possible ones, since the address does not say
// where it carries one.
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
	case teredo.Contains(a): // RFC 4380, section 4: the server, and the client with each bit turned
		client := netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
		return []netip.Addr{at(4, 5, 6, 7), client}, true
	case localNAT64.Contains(a): // RFC 6052, section 2.2: prefixes of 48, 56, 64 and 96 bits
		return []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)}, false
	}
	return nil, true
}

var (
	everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

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

// specialKinds are the kinds of address that nobody outside means, the
// narrower range first. Sources: the IANA IPv4 and IPv6 special-purpose
// address registries, and those of multicast.
var specialKinds = []struct {
	name   string
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
	// Public by its number, but inside Azure it is the host's agent, which
	// hands out the secrets of the virtual machine.
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

// parseRanges reads an entry of a list. The error continues a sentence that
// names the entry.
func parseRanges(entry string) ([]netip.Prefix, error) {
	entry = strings.TrimSpace(entry)
	if entry == "private_ranges" {
		return privateRanges, nil
	}
	p, err := netip.ParsePrefix(entry)
	if err != nil {
		a, err := netip.ParseAddr(entry)
		if err != nil || a.Zone() != "" {
			return nil, fmt.Errorf("expected an IP address without zone, a range such as 10.0.0.0/8, or private_ranges")
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return []netip.Prefix{p}, nil
}

// compact returns the fewest ranges that hold the same addresses, in order.
func compact(ranges []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	sorted := make([]netip.Prefix, len(ranges))
	for i, p := range ranges {
		sorted[i] = p.Masked()
	}
	slices.SortFunc(sorted, netip.Prefix.Compare)
	for _, p := range sorted {
		if n := len(out); n > 0 && out[n-1].Overlaps(p) {
			continue // the one before is at least as wide
		}
		out = append(out, p)
		// Two halves of a range are the range.
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

package egress

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// CheckHost returns a [*BlockedError] if host, the host of a URL with or
// without a port, is an address that the policy blocks. It is for requests
// through a forward proxy: the proxy dials, so that the policy can check only
// an address in the URL itself. Other host names pass.
//
// A host is an address if any common parser reads it as one. CheckHost knows
// the forms of inet_aton (2130706433, 0177.0.0.1, 0x7f.1, 127.1), leading
// zeros as octal and as decimal, IPv6 with and without brackets and zone,
// percent escapes, characters that IDNA maps to ASCII, and trailing dots. The
// names of the loopback interface count as its addresses. If host contains @,
// both sides are checked, because parsers disagree on which one is the host.
func (p *Policy) CheckHost(host string) error {
	if p == nil {
		return nil
	}
	return p.checkHost(host, 0)
}

// maxUnescapes is the maximum number of layers of percent escapes that are
// decoded. A host with more is blocked.
const maxUnescapes = 3

func (p *Policy) checkHost(host string, unescaped int) error {
	pieces := strings.FieldsFunc(foldHost(host), func(r rune) bool {
		return strings.ContainsRune(`@/\?#`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
	})
	if len(pieces) == 0 {
		return &BlockedError{Rule: ambiguousHost}
	}
	for _, piece := range pieces {
		if before, _, ok := strings.Cut(piece, "%"); ok && strings.Count(before, ":") >= 2 {
			piece = before // the rest is the zone of an IPv6 address
		}
		if plain := percent.DecodeText(piece); plain != piece {
			if unescaped == maxUnescapes {
				return &BlockedError{Rule: ambiguousHost}
			}
			if err := p.checkHost(plain, unescaped+1); err != nil {
				return err
			}
			continue
		}
		if err := p.checkPlainHost(piece); err != nil {
			return err
		}
	}
	return nil
}

// checkPlainHost checks a lower-case host without escapes.
func (p *Policy) checkPlainHost(host string) error {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil {
			return &BlockedError{Rule: ambiguousHost}
		}
		return p.CheckAddr(a)
	}
	host = strings.Trim(host, ".")
	if host == "" {
		return &BlockedError{Rule: ambiguousHost}
	}
	if isLoopbackName(host) {
		return p.checkLoopback()
	}
	labels := strings.Split(host, ".")
	if !isNumber(labels[len(labels)-1]) {
		return nil
	}
	// No top-level domain is a number (RFC 3696, section 2), so host can only
	// be an address.
	octal, ok8 := parseIPv4(labels, 8)
	decimal, ok10 := parseIPv4(labels, 10)
	if !ok8 && !ok10 {
		return &BlockedError{Rule: ambiguousHost}
	}
	if ok8 {
		if err := p.CheckAddr(octal); err != nil {
			return err
		}
	}
	if ok10 {
		return p.CheckAddr(decimal)
	}
	return nil
}

// checkLoopback checks a name of the loopback interface. The name passes if
// one of 127.0.0.1 and ::1 is allowed and neither is denied.
func (p *Policy) checkLoopback() error {
	v4, v6 := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	for _, a := range []netip.Addr{v4, v6} {
		if err := p.checkDenied(a); err != nil {
			return err
		}
	}
	if p.CheckAddr(v6) == nil {
		return nil
	}
	return p.CheckAddr(v4)
}

// isLoopbackName reports whether a lower-case name denotes this machine by RFC
// 6761, section 6.3, or in the hosts file of common Linux distributions.
func isLoopbackName(name string) bool {
	switch name {
	case "localhost", "localhost4", "localhost6", "loopback",
		"localhost.localdomain", "localhost4.localdomain4", "localhost6.localdomain6",
		"ip6-localhost", "ip6-loopback":
		return true
	}
	return strings.HasSuffix(name, ".localhost")
}

// foldHost maps host as IDNA does before a lookup (UTS #46): to lower case and
// compatible characters, with U+3002 as a dot and without invisible
// characters. Fullwidth and circled digits become ASCII digits.
func foldHost(host string) string {
	host = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, host)
	return strings.ReplaceAll(strings.ToLower(norm.NFKC.String(host)), "。", ".")
}

// isNumber reports whether a label is a decimal, octal or hexadecimal number of
// any size.
func isNumber(label string) bool {
	digits, cutset := label, "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits, cutset = hex, "0123456789abcdef"
	}
	return label != "" && strings.Trim(digits, cutset) == ""
}

// parseIPv4 parses an address as inet_aton does: one to four numbers, the last of which fills the
// remaining bytes. A number that begins with 0 has the base zeroBase: 8 in inet_aton, 10 in many
// other parsers.
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

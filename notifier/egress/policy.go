package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Policy decides which addresses may be dialled for URLs that clients send.
// The nil Policy allows every address; it is for URLs that the operator wrote.
//
// A denied address is blocked. An allowed address that is not denied passes.
// Any other address passes if it is public and outside of this machine and its
// networks. It is blocked if it is
//   - loopback, private, link-local or in another range of the IANA
//     special-purpose address registries (RFC 6890),
//   - an address of this machine,
//   - in a network that an interface of this machine is connected to.
//
// If an IPv6 address embeds an IPv4 address, both must pass; an IPv4-mapped
// address counts as the IPv4 address alone. A NAT64 prefix from a network's own
// range cannot be recognised; a network that has one must deny it.
//
// A Policy is safe for concurrent use. It reads the list of the interfaces when
// it needs it, at most every 5 seconds. The zero Policy is equal to the result
// of NewPolicy(nil, nil).
type Policy struct {
	// Advice is what errors tell those who read them to do. It is set before the first use.
	Advice Advice

	allow, deny []netip.Prefix
	key         string
	own         interfaces
}

// Advice is what the errors of a [Policy] end with, such as the name of the setting that allows
// what was blocked. Only the program that made the policy knows it. "" adds nothing.
type Advice struct {
	Address string // after an error about an address that is neither allowed nor denied
	Local   string // after an error about a resource of this machine
}

// NewPolicy returns the policy with the given lists. An entry is an IP
// address, a range in CIDR notation, private_ranges or, in allow only, all.
// As elsewhere in Caddy, private_ranges means 192.168.0.0/16, 172.16.0.0/12,
// 10.0.0.0/8, 127.0.0.1/8, fd00::/8 and ::1. An error names the entry.
func NewPolicy(allow, deny []string) (*Policy, error) {
	var allowed, denied []netip.Prefix
	for _, entry := range allow {
		if strings.TrimSpace(entry) == "all" {
			allowed = append(allowed, allRanges...)
			continue
		}
		ranges, err := ParseRanges(entry)
		if err != nil {
			return nil, fmt.Errorf("egress allow %q: %w, or all", entry, err)
		}
		allowed = append(allowed, ranges...)
	}
	for _, entry := range deny {
		ranges, err := ParseRanges(entry)
		if err != nil {
			return nil, fmt.Errorf("egress deny %q: %w", entry, err)
		}
		denied = append(denied, ranges...)
	}
	return newPolicy(allowed, denied), nil
}

func newPolicy(allow, deny []netip.Prefix) *Policy {
	p := &Policy{allow: compact(allow), deny: compact(deny)}
	if len(p.allow)+len(p.deny) > 0 {
		p.key = keyOf(p.allow, p.deny)
	}
	return p
}

// Strictest returns a policy that lets an address pass only if all policies do.
// Nil policies have no effect; without any other, Strictest returns nil.
func Strictest(policies ...*Policy) *Policy {
	var s *Policy
	for _, p := range policies {
		switch {
		case p == nil || s != nil && s.Key() == p.Key():
		case s == nil:
			s = p
		default:
			advice := cmp.Or(s.Advice, p.Advice)
			s = newPolicy(common(s.allow, p.allow), slices.Concat(s.deny, p.deny))
			s.Advice = advice
		}
	}
	return s
}

// common returns the ranges that are in both lists. Of two ranges that overlap,
// one contains the other.
func common(a, b []netip.Prefix) (both []netip.Prefix) {
	for _, x := range a {
		for _, y := range b {
			if x.Overlaps(y) {
				if y.Bits() > x.Bits() {
					both = append(both, y)
				} else {
					both = append(both, x)
				}
			}
		}
	}
	return both
}

// ParsePolicy returns the policy with a key: see [Policy.Key].
func ParsePolicy(key string) (*Policy, error) {
	if key == "" {
		return nil, nil
	}
	allow, deny, ok := strings.Cut(key, "; deny")
	allow, found := strings.CutPrefix(allow, "allow")
	if !ok || !found {
		return nil, errors.New("the text is not an egress policy")
	}
	return NewPolicy(strings.Fields(allow), strings.Fields(deny))
}

// Key returns the policy as text. Two policies have the same key if their
// lists hold the same addresses. Only the nil Policy has the empty key.
// [ParsePolicy] is the inverse.
func (p *Policy) Key() string {
	switch {
	case p == nil:
		return ""
	case p.key == "":
		return "allow; deny"
	}
	return p.key
}

func keyOf(allow, deny []netip.Prefix) string {
	var b strings.Builder
	b.WriteString("allow")
	for _, r := range allow {
		b.WriteString(" " + r.String())
	}
	b.WriteString("; deny")
	for _, r := range deny {
		b.WriteString(" " + r.String())
	}
	return b.String()
}

// Control returns a [*BlockedError] if the policy blocks address, an IP
// address with a port. It is a [net.Dialer.ControlContext], which is called
// with each address that is dialled; no host name, redirect or DNS answer can
// bypass it.
func (p *Policy) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	if p == nil {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &BlockedError{Rule: ambiguousHost}
	}
	return p.CheckAddr(ap.Addr())
}

// CheckAddr returns a [*BlockedError] if the policy blocks a. It ignores the
// zone of a.
func (p *Policy) CheckAddr(a netip.Addr) error {
	if p == nil {
		return nil
	}
	if !a.IsValid() {
		return &BlockedError{Rule: ambiguousHost}
	}
	// netip.Prefix.Contains is false for addresses with a zone, and for
	// IPv4-mapped addresses.
	a = a.WithZone("").Unmap()
	inner, certain := embedded(a)
	if err := p.checkDenied(a, inner...); err != nil {
		return err
	}
	if rule := p.blockRule(a); rule != "" {
		return &BlockedError{Addr: a, Rule: rule, advice: p.Advice.Address}
	}
	if !certain {
		return nil
	}
	for _, v4 := range inner {
		if rule := p.blockRule(v4); rule != "" {
			return &BlockedError{Addr: a, Rule: fmt.Sprintf("a form of %s, which is %s", v4, rule), advice: p.Advice.Address}
		}
	}
	return nil
}

// CheckLocal returns a [*BlockedError] unless p is nil. Services call it before
// they use a socket, a file or another local resource of this machine.
func (p *Policy) CheckLocal() error {
	if p == nil {
		return nil
	}
	return &BlockedError{Rule: localResource, advice: p.Advice.Local}
}

// checkDenied returns an error if a denied range contains a or one of inner.
func (p *Policy) checkDenied(a netip.Addr, inner ...netip.Addr) error {
	for _, r := range p.deny {
		if r.Contains(a) || slices.ContainsFunc(inner, r.Contains) {
			return &BlockedError{Addr: a, Rule: "deny " + r.String()}
		}
	}
	return nil
}

// blockRule returns why an address that is not denied is blocked, for example
// "loopback (127.0.0.0/8)". It returns "" if the address passes.
func (p *Policy) blockRule(a netip.Addr) string {
	for _, r := range p.allow {
		if r.Contains(a) {
			return ""
		}
	}
	for _, r := range specialRanges {
		if r.prefix.Contains(a) {
			return fmt.Sprintf("%s (%s)", r.kind, r.prefix)
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) && !nat64.Contains(a) {
		return "not global unicast (outside " + globalUnicast.String() + ")"
	}
	return p.own.rule(a)
}

// BlockedError is returned when a policy blocks an address or a host.
type BlockedError struct {
	// Addr is the blocked address, without its zone. It is invalid if the address belongs to a
	// host name, or if the host is not an address.
	Addr netip.Addr

	// Rule is "deny" with the range that the operator denied, or the kind
	// and the range of the address, for example "loopback (127.0.0.0/8)".
	Rule string

	named  bool   // the address belongs to a host name and is not shown
	advice string // see [Advice]
}

// Rules of a [BlockedError] without an address.
const (
	localResource = "a resource of this machine"
	ambiguousHost = "neither a name nor an IP address in its usual form"
)

func (e *BlockedError) Error() string {
	if e.Rule == localResource {
		return "URLs of clients may not use sockets and files of this machine" + e.remedy()
	}
	address := "the address " + e.Addr.String()
	if e.named {
		address = "the address of the host"
	}
	if !e.Addr.IsValid() && !e.named {
		return "the host is " + e.Rule + "; write a host name or an address such as 192.0.2.1"
	}
	if strings.HasPrefix(e.Rule, "deny ") {
		return fmt.Sprintf("%s matches %s of egress, and URLs of clients may not reach it", address, e.Rule)
	}
	return fmt.Sprintf("%s is %s, and URLs of clients may not reach it%s", address, e.Rule, e.remedy())
}

// remedy returns the advice as the end of a sentence.
func (e *BlockedError) remedy() string {
	if e.advice == "" {
		return ""
	}
	return "; " + e.advice
}

package egress

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// withInterfaces returns a policy on a machine with the interface addresses
// that list returns, in CIDR notation.
func withInterfaces(t *testing.T, allow, deny []string, list func() ([]string, error)) *Policy {
	t.Helper()
	p := mustPolicy(t, allow, deny)
	p.own.list = func() ([]net.Addr, error) {
		texts, err := list()
		var addrs []net.Addr
		for _, text := range texts {
			ip, network, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			addrs = append(addrs, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		return addrs, err
	}
	return p
}

func TestOwnNetworks(t *testing.T) {
	list := func() ([]string, error) {
		return []string{"127.0.0.1/8", "11.22.33.44/24", "2a00:db9::5/64", "12.0.0.1/32", "13.0.0.1/0"}, nil
	}
	for _, tc := range []struct {
		name         string
		allow, deny  []string
		addr, reason string // no reason: allowed
	}{
		{"own address, v4", nil, nil, "11.22.33.44", "an address of this machine"},
		{"own address, v6", nil, nil, "2a00:db9::5", "an address of this machine"},
		{"own address, mapped", nil, nil, "::ffff:11.22.33.44", "an address of this machine"},
		{"own address behind NAT64", nil, nil, "64:ff9b::11.22.33.44", "an address of this machine"},
		{"own address without a network", nil, nil, "12.0.0.1", "an address of this machine"},
		{"neighbour, v4", nil, nil, "11.22.33.1", "in a network of this machine"},
		{"neighbour, v6", nil, nil, "2a00:db9::1", "in a network of this machine"},
		{"beside the network, v4", nil, nil, "11.22.34.1", ""},
		{"beside the network, v6", nil, nil, "2a00:db9:0:1::1", ""},
		{"beside an address without a network", nil, nil, "12.0.0.2", ""},
		{"a network of all addresses counts for its address alone", nil, nil, "13.0.0.1", "an address of this machine"},
		{"allowed address", []string{"11.22.33.1"}, nil, "11.22.33.1", ""},
		{"allow opens one address", []string{"11.22.33.1"}, nil, "11.22.33.2", "in a network"},
		{"allow all", []string{"all"}, nil, "11.22.33.44", ""},
		{"deny comes first", []string{"all"}, []string{"11.22.33.0/24"}, "11.22.33.44", "deny 11.22.33.0/24"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := withInterfaces(t, tc.allow, tc.deny, list)
			err := p.CheckAddr(netip.MustParseAddr(tc.addr))
			checkBlocked(t, tc.addr, err, tc.reason != "")
			if err != nil && !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("error %q does not contain %q", err, tc.reason)
			}
		})
	}
}

// TestOwnNetworksAreCurrent checks that an address that the machine gets at run
// time is recognized.
func TestOwnNetworksAreCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := []string{"11.22.33.44/24"}
		var fails error
		p := withInterfaces(t, nil, nil, func() ([]string, error) { return now, fails })
		addr := netip.MustParseAddr("11.22.44.1")
		checkBlocked(t, "before", p.CheckAddr(addr), false)
		now = []string{"11.22.44.1/32"}
		time.Sleep(interfaceLife)
		checkBlocked(t, "with the new address", p.CheckAddr(addr), true)
		fails, now = errors.New("no"), nil
		time.Sleep(interfaceLife)
		checkBlocked(t, "while the list cannot be read", p.CheckAddr(addr), true)
		checkBlocked(t, "while the list cannot be read, another address", p.CheckAddr(netip.MustParseAddr("8.8.8.8")), false)
	})
}

func TestOwnNetworksUnknown(t *testing.T) {
	p := withInterfaces(t, []string{"9.9.9.9"}, nil, func() ([]string, error) { return nil, errors.New("no") })
	err := p.CheckAddr(netip.MustParseAddr("8.8.8.8"))
	checkBlocked(t, "a public address", err, true)
	if err != nil && !strings.Contains(err.Error(), "AF_NETLINK") {
		t.Errorf("error %q does not tell what to do", err)
	}
	checkBlocked(t, "an allowed address", p.CheckAddr(netip.MustParseAddr("9.9.9.9")), false)
}

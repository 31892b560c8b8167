package egress

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func mustPolicy(t *testing.T, allow, deny []string) *Policy {
	t.Helper()
	e, err := NewPolicy(allow, deny)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// checkBlocked fails the test unless err is a BlockedError if blocked is true
// and nil if it is false.
func checkBlocked(t *testing.T, what string, err error, blocked bool) {
	t.Helper()
	if !blocked {
		if err != nil {
			t.Errorf("%s: blocked: %v", what, err)
		}
		return
	}
	if _, ok := errors.AsType[*BlockedError](err); !ok {
		t.Errorf("%s: got %v, want an BlockedError", what, err)
	}
}

func TestCheckAddrBlocksSpecialRanges(t *testing.T) {
	e := mustPolicy(t, nil, nil)
	for _, tc := range []struct{ addr, kind string }{
		{"127.0.0.1", "loopback"},
		{"127.255.255.254", "loopback"},
		{"::1", "loopback"},
		{"::1%lo", "loopback"},
		{"10.0.0.1", "private"},
		{"172.16.0.1", "private"},
		{"172.31.255.255", "private"},
		{"192.168.1.1", "private"},
		{"169.254.169.254", "link-local"},
		{"fe80::1", "link-local"},
		{"fe80::1%eth0", "link-local"},
		{"febf::1", "link-local"},
		{"100.64.0.1", "carrier-grade NAT"},
		{"100.127.255.255", "carrier-grade NAT"},
		{"224.0.0.1", "multicast"},
		{"239.255.255.255", "multicast"},
		{"ff02::1", "multicast"},
		{"0.0.0.0", "unspecified"},
		{"::", "unspecified"},
		{"0.1.2.3", "this network"},
		{"255.255.255.255", "broadcast"},
		{"240.0.0.1", "reserved"},
		{"255.255.255.254", "reserved"},
		{"192.0.0.8", "reserved for protocols"},
		{"192.88.99.1", "6to4 relays"},
		{"198.18.0.1", "benchmarks"},
		{"198.19.255.255", "benchmarks"},
		{"2001:2::1", "benchmarks"},
		{"192.0.2.1", "documentation"},
		{"198.51.100.1", "documentation"},
		{"203.0.113.1", "documentation"},
		{"2001:db8::1", "documentation"},
		{"3fff::1", "documentation"},
		{"168.63.129.16", "Azure"},
		{"::ffff:127.0.0.1", "loopback"},
		{"::ffff:10.0.0.1", "private"},
		{"::ffff:169.254.169.254%eth0", "link-local"},
		{"::127.0.0.1", "IPv4-compatible"},
		{"::8.8.8.8", "IPv4-compatible"},
		{"::ffff:0:127.0.0.1", "IPv4-translated"},
		{"64:ff9b::127.0.0.1", "a form of 127.0.0.1, which is loopback"},
		{"64:ff9b::a9fe:a9fe", "a form of 169.254.169.254, which is link-local"},
		{"64:ff9b:1::10.0.0.1", "NAT64"},
		{"64:ff9b:1::8.8.8.8", "NAT64"},
		{"64:ff9b:2::1", "not global unicast"},
		{"2002:7f00:1::", "6to4"},
		{"2002:808:808::1", "6to4"},
		{"2001:0:4136:e378:8000:63bf:80ff:fffe", "Teredo"},
		{"2001:1::1", "reserved for protocols"},
		{"2001:20::1", "reserved for protocols"},
		{"fc00::1", "unique-local"},
		{"fd00:ec2::254", "unique-local"},
		{"fec0::1", "site-local"},
		{"100::1", "discarded"},
		{"100:0:0:1::1", "not global unicast"},
		{"5f00::1", "not global unicast"},
		{"4000::1", "not global unicast"},
	} {
		err := e.CheckAddr(netip.MustParseAddr(tc.addr))
		checkBlocked(t, tc.addr, err, true)
		if err != nil && !strings.Contains(err.Error(), tc.kind) {
			t.Errorf("%s: %q does not say %q", tc.addr, err, tc.kind)
		}
	}
	checkBlocked(t, "no address", e.CheckAddr(netip.Addr{}), true)
}

func TestCheckAddrPassesPublicAddresses(t *testing.T) {
	e := mustPolicy(t, nil, nil)
	for _, addr := range []string{
		"8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
		"126.255.255.255", "128.0.0.1", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.1",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700:4700::1111", "2001:4860:4860::8888",
		"2003::1", "2a00:1450::1", "2606:4700::1%eth0",
	} {
		checkBlocked(t, addr, e.CheckAddr(netip.MustParseAddr(addr)), false)
	}
}

func TestCheckHost(t *testing.T) {
	e := mustPolicy(t, nil, nil)
	for _, tc := range []struct {
		hosts   []string
		blocked bool
	}{
		{[]string{ // dotted, decimal, octal, hexadecimal, short, mixed
			"127.0.0.1", "2130706433", "0177.0.0.1", "017700000001", "0x7f000001", "0x7f.1", "0X7F.0.0.1",
			"127.1", "127.0.1", "0x7f.0.1", "0177.0x0.1", "00000177.0.0.1", "0", "00", "0x", "0.0.0.0", "10.1",
			"0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "127.0.0.0x1", "192.0x00a80001",
		}, true},
		{[]string{ // a leading zero means octal to some parsers and decimal to others
			"010.0.0.1", "0127.0.0.1", "0192.0168.01.01",
		}, true},
		{[]string{ // numbers that parsers read differently or not at all
			"1.2.3.4.5", "256.256.256.256", "425.510.425.510", "8.8.8.256", "4294967296", "0o177.0.0.1",
			"99999999999999999999999999", "example.1", "example.0x7f",
		}, true},
		{[]string{ // trailing dots, ports, brackets
			"127.0.0.1.", "127.0.0.1..", "127.1.:80", "127.0.0.1:80", "[127.0.0.1]", "[::1]", "[::1]:443", "::1", "[::1",
			"[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
			"[2002:7f00:1::]", "[FE80::1]", "[fe80::1%25eth0]:80", "fe80::1%eth0", "fe80::1%ab", "[::1%25lo]", "[fd00::1]",
			"[::ffff:127.0.0.01]", "1:2:3",
		}, true},
		{[]string{ // characters that IDNA maps to ASCII
			"１２７.０.０.１", "①②⑦.⓪.⓪.①", "１２７。０。０。１", "127．0．0．1", "127｡0｡0｡1", "²130706433", "0ｘ7f.1",
			"127.0.0.\u200b1", "127\u00ad.0.0.1", "127.0.0.1\ufe0f", "ｌｏｃａｌｈｏｓｔ", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "local\u200dhost", "loca\u2113host",
		}, true},
		{[]string{ // escapes
			"%31%32%37.0.0.1", "127%2e0%2e0%2e1", "%6cocalhost", "%256cocalhost", "%25252525256cocalhost", "%5B::1%5D",
			"%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1", "%3A%3A1", "[fe80::1%25et%30]",
		}, true},
		{[]string{ // user information, and delimiters that parsers read differently
			"example.com@127.0.0.1", "user:password@127.0.0.1:80", "127.0.0.1@example.com", "a:b:c@127.0.0.1",
			"example.com%40127.0.0.1", "127.0.0.1%40example.com", "127.0.0.1#example.com", "127.0.0.1\\@example.com", "127.0.0.1/",
			"127.0.0.1\x00.example.com", "127.0.0.1 example.com", " 127.0.0.1", "127.0.0.1\r\n", "example.com＠127.0.0.1",
		}, true},
		{[]string{ // names of the loopback interface
			"localhost", "LOCALHOST", "localhost.", "localhost:8080", "foo.localhost", "a.b.LocalHost.", "ip6-localhost",
			"ip6-loopback", "localhost.localdomain", "localhost6",
		}, true},
		{[]string{"", ".", ":80", "[]", "@", " "}, true},
		{[]string{
			"example.com", "EXAMPLE.com.", "example.com:8443", "bücher.example", "xn--bcher-kva.example", "8.8.8.8", "134744072",
			"0x8.8.8.8", "8.8.2056", "8.8.8.0377", "[2606:4700:4700::1111]:443", "2606:4700:4700::1111", "[::ffff:8.8.8.8]", "８.８.８.８",
			"127.0.0.1.example.com", "localhost.example.com", "notlocalhost", "mylocalhost.example", "0x7f.example", "1password.com",
			"1.example.com", "e164.arpa", "user@example.com", "0xg", "db_1", "intranet",
		}, false},
	} {
		for _, host := range tc.hosts {
			checkBlocked(t, host, e.CheckHost(host), tc.blocked)
		}
	}
}

func TestPolicyPrecedence(t *testing.T) {
	for _, tc := range []struct {
		name        string
		allow, deny []string
		blocked     string // addresses, separated by spaces
		passes      string
	}{
		{
			"all",
			[]string{"all"},
			nil, "",
			"127.0.0.1 ::1 0.0.0.0 fe80::1%eth0 255.255.255.255 64:ff9b:1::10.0.0.1 2002:7f00:1:: 8.8.8.8",
		},
		{
			"private_ranges",
			[]string{"private_ranges"},
			nil,
			"169.254.169.254 fe80::1 100.64.0.1 0.0.0.0 fc00::1 224.0.0.1 2002:a00:1::",
			"10.0.0.1 172.16.0.1 192.168.0.1 127.9.9.9 fd00::1 ::1 ::1%lo ::ffff:127.0.0.1 64:ff9b::10.0.0.1 8.8.8.8",
		},
		{
			"allow a range",
			[]string{"10.0.0.0/8"},
			nil,
			"127.0.0.1 192.168.0.1 ::10.0.0.1 2002:a00:1:: 64:ff9b:1::10.0.0.1",
			"10.0.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 8.8.8.8",
		},
		{
			"allow an address",
			[]string{"192.168.1.2", "fe80::2"},
			nil,
			"192.168.1.1 192.168.1.3 fe80::3", "192.168.1.2 fe80::2 fe80::2%eth0",
		},
		{"allow the loopback range as Caddy writes it", []string{"127.0.0.1/8"}, nil, "10.2.0.1", "127.0.0.1 127.255.255.255"},
		{"allow in mapped form", []string{"::ffff:10.0.0.0/104", "::ffff:127.0.0.1"}, nil, "127.0.0.2", "10.9.9.9 127.0.0.1"},
		{
			"an address and the one embedded in it",
			[]string{"2002::/16", "10.0.0.0/8"},
			nil,
			"2002:7f00:1::", "2002:a00:1:: 2002:808:808::",
		},
		{
			"allowing a NAT64 range does not allow the embedded addresses",
			[]string{"64:ff9b::/96"},
			nil,
			"64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8",
		},
		{"allowing a local NAT64 range allows the embedded addresses", []string{"64:ff9b:1::/48"}, nil, "10.0.0.1", "64:ff9b:1::10.0.0.1"},
		{
			"deny takes precedence over all",
			[]string{"all"},
			[]string{"10.0.0.0/8", "8.8.8.8", "fe80::/10"},
			"10.0.0.1 ::ffff:10.0.0.1 ::10.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::10.0.0.1 64:ff9b:1:a00:0:100:: " +
				"2002:a00:1:: 2001:0:808:404::f5ff:fffe 2001:0:a00:1:: 8.8.8.8 64:ff9b::8.8.8.8 fe80::1%eth0",
			"127.0.0.1 11.0.0.1 8.8.4.4 64:ff9b::8.8.4.4",
		},
		{"deny takes precedence over allow of the same range", []string{"10.0.0.0/8"}, []string{"10.0.0.0/8"}, "10.0.0.1", "8.8.8.8"},
		{"deny a range within an allowed one", []string{"private_ranges"}, []string{"10.0.0.0/24"}, "10.0.0.1", "10.0.1.1"},
		{"deny takes precedence over allow of a narrower range", []string{"10.0.0.1"}, []string{"private_ranges"}, "10.0.0.1 ::1", "1.1.1.1"},
		{"deny all of one family", []string{"all"}, []string{"::/0"}, "2606:4700::1 ::1", "8.8.8.8 ::ffff:8.8.8.8 127.0.0.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := mustPolicy(t, tc.allow, tc.deny)
			for addr := range strings.FieldsSeq(tc.blocked) {
				checkBlocked(t, addr, e.CheckAddr(netip.MustParseAddr(addr)), true)
				checkBlocked(t, addr+" as a host", e.CheckHost(addr), true)
			}
			for addr := range strings.FieldsSeq(tc.passes) {
				checkBlocked(t, addr, e.CheckAddr(netip.MustParseAddr(addr)), false)
				checkBlocked(t, addr+" as a host", e.CheckHost(addr), false)
			}
		})
	}
}

func TestCheckHostLoopbackNames(t *testing.T) {
	for _, tc := range []struct {
		allow, deny []string
		blocked     bool
	}{
		{[]string{"127.0.0.1"}, nil, false},
		{[]string{"::1"}, nil, false},
		{[]string{"private_ranges"}, nil, false},
		{[]string{"all"}, nil, false},
		{[]string{"10.0.0.0/8"}, nil, true},
		{[]string{"all"}, []string{"127.0.0.0/8"}, true},
		{[]string{"all"}, []string{"::1"}, true},
	} {
		e := mustPolicy(t, tc.allow, tc.deny)
		for _, host := range []string{"localhost", "a.localhost", "ip6-localhost"} {
			checkBlocked(t, host+" with "+e.Key(), e.CheckHost(host), tc.blocked)
		}
	}
}

func TestNilPolicyAllowsEverything(t *testing.T) {
	var e *Policy
	checkBlocked(t, "address", e.CheckAddr(netip.MustParseAddr("127.0.0.1")), false)
	checkBlocked(t, "host", e.CheckHost("localhost"), false)
	checkBlocked(t, "dial", e.Control(t.Context(), "tcp4", "127.0.0.1:80", nil), false)
	if e.Key() != "" {
		t.Errorf("key %q, want none", e.Key())
	}
}

func TestNewPolicyNamesTheWrongEntry(t *testing.T) {
	for _, entry := range []string{"", "any", "10.0.0.0/33", "10.0.0", "fe80::1%eth0", "fe80::/10%eth0", "example.com", "010.0.0.1", "[::1]"} {
		for name, lists := range map[string][2][]string{
			"allow": {{"private_ranges", entry}, nil},
			"deny":  {nil, {"10.0.0.1", entry}},
		} {
			_, err := NewPolicy(lists[0], lists[1])
			if err == nil || !strings.Contains(err.Error(), name+` "`+entry+`"`) {
				t.Errorf("%s %q: error %v does not name the entry", name, entry, err)
			}
		}
	}
	// An address with the length of a network could mean either.
	for entry, want := range map[string]string{
		"10.0.0.5/8": "write 10.0.0.0/8 for the range, or 10.0.0.5 for the address",
		"fd00::5/8":  "write fd00::/8", "127.0.0.2/8": "write 127.0.0.0/8",
		"::ffff:10.0.0.5/104": "write 10.0.0.0/8",
	} {
		if _, err := NewPolicy([]string{entry}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", entry, err, want)
		}
	}
	if _, err := NewPolicy(nil, []string{"all"}); err == nil {
		t.Error("deny took all")
	}
}

func TestPolicyKey(t *testing.T) {
	type lists struct{ allow, deny []string }
	key := func(l lists) string { return mustPolicy(t, l.allow, l.deny).Key() }
	for _, same := range [][]lists{
		{{nil, nil}, {[]string{}, []string{}}},
		{{[]string{"10.0.0.0/8", "127.0.0.1"}, nil}, {[]string{"127.0.0.1/32", "10.1.2.3", "10.0.0.0/8"}, nil}},
		{{[]string{"10.0.0.0/8"}, nil}, {[]string{"10.0.0.0/9", "10.128.0.0/10", "10.192.0.0/10", "10.3.0.0/16"}, nil}},
		{{[]string{"all"}, nil}, {[]string{"::/0", "private_ranges", "0.0.0.0/0"}, nil}, {[]string{"0.0.0.0/1", "128.0.0.0/1", "::/0"}, nil}},
		{{nil, []string{"::ffff:10.0.0.1"}}, {nil, []string{"10.0.0.1"}}},
	} {
		for _, l := range same[1:] {
			if got, want := key(l), key(same[0]); got != want {
				t.Errorf("%v has key %q, %v has %q", l, got, same[0], want)
			}
		}
	}
	seen := map[string]lists{"": {}}
	for _, l := range []lists{
		{nil, nil},
		{[]string{"10.0.0.0/8"}, nil},
		{nil, []string{"10.0.0.0/8"}},
		{[]string{"10.0.0.0/8", "12.0.0.0/8"}, nil},
		{[]string{"11.0.0.0/8", "12.0.0.0/8"}, nil},
		{[]string{"10.0.0.0/7"}, nil},
		{[]string{"all"}, nil},
		{[]string{"private_ranges"}, nil},
	} {
		if other, ok := seen[key(l)]; ok {
			t.Errorf("%v and %v have the same key %q", l, other, key(l))
		}
		seen[key(l)] = l
	}
	if got, want := new(Policy).Key(), key(lists{}); got != want {
		t.Errorf("the zero Policy has key %q, that of no lists %q", got, want)
	}
}

func TestBlockedErrorNamesTheRule(t *testing.T) {
	for _, tc := range []struct {
		allow, deny []string
		host, want  string
	}{
		{nil, nil, "0x7f.1", "the address 127.0.0.1 is loopback (127.0.0.0/8), and URLs of clients may not reach it"},
		{nil, nil, "[fe80::1%25secret]", "the address fe80::1 is link-local (fe80::/10), and URLs of clients may not reach it"},
		{[]string{"all"}, []string{"10.0.0.0/8"}, "10.1", "the address 10.0.0.1 matches deny 10.0.0.0/8 of egress, " +
			"and URLs of clients may not reach it"},
		{nil, nil, "secret.1", "the host is neither a name nor an IP address in its usual form; " +
			"write a host name or an address such as 192.0.2.1"},
	} {
		err := mustPolicy(t, tc.allow, tc.deny).CheckHost(tc.host)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", tc.host, err, tc.want)
		}
	}
}

// The program that made a policy says what to do about its errors. What is made of several policies
// says it, too.
func TestAdvice(t *testing.T) {
	p := mustPolicy(t, nil, nil)
	p.Advice = Advice{Address: "ask Ann", Local: "ask Bob"}
	other := mustPolicy(t, []string{"10.0.0.0/8"}, nil)
	for _, p := range []*Policy{p, Strictest(other, p), Strictest(p, other)} {
		for _, x := range []struct {
			err  error
			want string
		}{
			{p.CheckHost("127.0.0.1"), "the address 127.0.0.1 is loopback (127.0.0.0/8), and URLs of clients may not reach it; ask Ann"},
			{p.CheckHost("64:ff9b::127.0.0.1"), "and URLs of clients may not reach it; ask Ann"},
			{p.CheckLocal(), "URLs of clients may not use sockets and files of this machine; ask Bob"},
		} {
			if x.err == nil || !strings.HasSuffix(x.err.Error(), x.want) {
				t.Errorf("%v, want %s", x.err, x.want)
			}
		}
	}
}

func TestControlChecksTheDialledAddress(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, tc := range []struct {
		name    string
		egress  *Policy
		blocked bool
	}{
		{"nil", nil, false},
		{"without lists", mustPolicy(t, nil, nil), true},
		{"allowed", mustPolicy(t, []string{"127.0.0.0/8"}, nil), false},
		{"denied", mustPolicy(t, []string{"all"}, []string{"127.0.0.1"}), true},
	} {
		for _, host := range []string{"127.0.0.1", "::ffff:127.0.0.1", "localhost"} {
			d := net.Dialer{ControlContext: tc.egress.Control}
			conn, err := d.DialContext(t.Context(), "tcp4", net.JoinHostPort(host, port))
			if err == nil {
				conn.Close()
			}
			checkBlocked(t, tc.name+" "+host, err, tc.blocked)
		}
	}
	checkBlocked(t, "socket", mustPolicy(t, nil, nil).Control(t.Context(), "unix", "/run/docker.sock", nil), true)
	checkBlocked(t, "zone", mustPolicy(t, nil, nil).Control(t.Context(), "tcp6", "[fe80::1%eth0]:80", nil), true)
	checkBlocked(t, "public", mustPolicy(t, nil, nil).Control(t.Context(), "tcp6", "[2606:4700::1]:443", nil), false)
}

func FuzzCheckHost(f *testing.F) {
	for _, host := range []string{"127.1", "[::1%25lo]:80", "１２７.０.０.１", "a%40b", "0x", "%25%25", "\xff"} {
		f.Add(host)
	}
	e, err := NewPolicy(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host string) {
		err := e.CheckHost(host)
		a, parseErr := netip.ParseAddr(host)
		if parseErr == nil && e.CheckAddr(a) != nil && err == nil {
			t.Errorf("%q passes as a host but not as an address", host)
		}
	})
}

func TestStrictest(t *testing.T) {
	policy := func(allow, deny string) *Policy {
		p, err := NewPolicy(strings.Fields(allow), strings.Fields(deny))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	s := Strictest(policy("10.0.0.0/8 127.0.0.1", "1.1.1.1"), nil,
		policy("10.1.0.0/16 10.2.3.4 192.168.0.0/16", "8.8.8.0/24 10.1.2.0/24"), policy("all", ""))
	for address, pass := range map[string]bool{
		"10.1.1.1": true, "10.2.3.4": true, "10.2.3.5": false, "10.1.2.3": false, "127.0.0.1": false, "192.168.1.1": false,
		"1.1.1.1": false, "8.8.8.8": false, "9.9.9.9": true,
	} {
		if err := s.CheckAddr(netip.MustParseAddr(address)); (err == nil) != pass {
			t.Errorf("%s: %v", address, err)
		}
	}
	if want := policy("10.1.0.0/16 10.2.3.4", "1.1.1.1 8.8.8.0/24 10.1.2.0/24").Key(); s.Key() != want {
		t.Errorf("key %q, want %q", s.Key(), want)
	}
	if s := Strictest(nil, nil); s != nil {
		t.Errorf("without a policy: %q", s.Key())
	}
	if want := policy("", ""); Strictest(policy("10.0.0.0/8", ""), want).Key() != want.Key() {
		t.Error("a policy without lists is not the strictest")
	}
}

// A policy that is stored as its key is the same afterwards.
func TestParsePolicy(t *testing.T) {
	p, err := NewPolicy([]string{"10.0.0.0/8", "fd00::/8"}, []string{"1.1.1.1", "private_ranges"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Policy{nil, new(Policy), p} {
		if got, err := ParsePolicy(p.Key()); err != nil || got.Key() != p.Key() || (got == nil) != (p == nil) {
			t.Errorf("%q is parsed as %q, %v", p.Key(), got.Key(), err)
		}
	}
	for _, key := range []string{"allow", "deny", "allow x; deny", "allow; deny x", " ", "1; deny"} {
		if p, err := ParsePolicy(key); err == nil {
			t.Errorf("%q is parsed as %q", key, p.Key())
		}
	}
}

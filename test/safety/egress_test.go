package safety

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// forbidden lists addresses of each kind that clients must not reach, with a
// word of the error.
var forbidden = []struct{ address, rule string }{
	{"127.0.0.1", "loopback"},
	{"127.0.0.53", "loopback"},
	{"127.255.255.254", "loopback"},
	{"10.1.2.3", "private"},
	{"172.16.0.1", "private"},
	{"172.31.255.255", "private"},
	{"192.168.0.1", "private"},
	{"169.254.169.254", "link-local"},
	{"100.64.0.1", "carrier-grade NAT"},
	{"100.127.255.255", "carrier-grade NAT"},
	{"224.0.0.1", "multicast"},
	{"239.255.255.250", "multicast"},
	{"0.0.0.0", "unspecified"},
	{"0.1.2.3", "this network"},
	{"255.255.255.255", "broadcast"},
	{"240.0.0.1", "reserved"},
	{"192.0.0.8", "reserved"},
	{"192.0.2.1", "documentation"},
	{"198.51.100.1", "documentation"},
	{"203.0.113.1", "documentation"},
	{"198.18.0.1", "benchmarks"},
	{"168.63.129.16", "Azure"},
	{"::1", "loopback"},
	{"::", "unspecified"},
	{"fe80::1", "link-local"},
	{"fec0::1", "site-local"},
	{"fc00::1", "unique-local"},
	{"fd00:ec2::254", "unique-local"},
	{"ff02::1", "multicast"},
	{"2001:db8::1", "documentation"},
	{"64:ff9b:1::1", "NAT64"},
	{"2002:7f00:1::", "6to4"},
	{"2001:0:7f00:1::", "Teredo"},
}

// spellings are the ways to write an IPv4 address. rule is a word of the error if it differs from
// the error of the address.
var spellings = []struct {
	name  string
	write func(a [4]byte) string
	rule  string
}{
	{"dotted", parts("%d.%d.%d.%d"), ""},
	{"dot behind", parts("%d.%d.%d.%d."), ""},
	{"two dots behind", parts("%d.%d.%d.%d.."), none},
	{"decimal", whole("%d"), ""},
	{"octal", whole("0%o"), ""},
	{"octal with zeros", whole("000000%o"), ""},
	{"octal parts", parts("0%o.0%o.0%o.0%o"), ""},
	{"parts with zeros", parts("%04d.%04d.%04d.%04d"), ""},
	{"hexadecimal", whole("0x%x"), ""},
	{"hexadecimal, upper case", whole("0X%X"), ""},
	{"hexadecimal parts", parts("0x%x.0x%x.0x%x.0x%x"), ""},
	{"mixed parts", parts("%d.0x%x.0%o.%d"), ""},
	{"short, of two", func(a [4]byte) string { return fmt.Sprintf("%d.%d", a[0], int(a[1])<<16|int(a[2])<<8|int(a[3])) }, ""},
	{"short, of three", func(a [4]byte) string { return fmt.Sprintf("%d.%d.%d", a[0], a[1], int(a[2])<<8|int(a[3])) }, ""},
	{"fullwidth digits", digits('０'), ""},
	{"circled digits", circled, ""},
	{"mathematical digits", digits('𝟎'), ""},
	{"ideographic dots", parts("%d。%d。%d。%d"), none},
	{"soft hyphen", parts("%d.%d.\u00ad%d.%d"), none},
	{"escaped", func(a [4]byte) string { return "%" + fmt.Sprintf("%x", fmt.Sprint(a[0])[0]) + dotted(a)[1:] }, none},
	{"user", parts("good@%d.%d.%d.%d"), ""},
	{"user and password", parts("good:word@%d.%d.%d.%d"), ""},
	{"user that looks like a host", parts("8.8.8.8:80@%d.%d.%d.%d"), ""},
	{"mapped", parts("[::ffff:%d.%d.%d.%d]"), ""},
	{"mapped, hexadecimal", pairs("[::ffff:%x:%x]"), ""},
	{"mapped, upper case, in full", pairs("[0:0:0:0:0:FFFF:%X:%X]"), ""},
	{"mapped, zone", parts("[::ffff:%d.%d.%d.%d%%25eth0]"), none}, // IPv4 has none
	{"compatible", parts("[::%d.%d.%d.%d]"), "IPv4-compatible|loopback|unspecified"},
	{"NAT64", parts("[64:ff9b::%d.%d.%d.%d]"), ""},
	{"private NAT64", pairs("[64:ff9b:1::%x:%x]"), "NAT64"},
	{"6to4", pairs("[2002:%x:%x::1]"), "6to4"},
	{"Teredo", pairs("[2001:0:%x:%x::]"), "Teredo"},
}

// spellings6 are the ways to write an IPv6 address.
var spellings6 = []func(a netip.Addr) string{
	func(a netip.Addr) string { return "[" + a.String() + "]" },
	func(a netip.Addr) string { return "[" + a.StringExpanded() + "]" },
	func(a netip.Addr) string { return "[" + strings.ToUpper(a.String()) + "]" },
	func(a netip.Addr) string { return "[" + a.String() + "%25eth0]" },
	func(a netip.Addr) string { return "[" + a.String() + "%251]" },
	func(a netip.Addr) string { return "good@[" + a.String() + "]" },
}

// names are names of the machine itself.
var names = []string{
	"localhost", "LOCALHOST", "LocalHost.", "localhost.localdomain", "service.localhost", "ip6-localhost", "ｌｏｃａｌｈｏｓｔ", "good@localhost",
}

// none is the rule of spellings that may also be refused because they are not valid
// hosts.
const none = "none"

func dotted(a [4]byte) string { return netip.AddrFrom4(a).String() }

func parts(format string) func([4]byte) string {
	return func(a [4]byte) string { return fmt.Sprintf(format, a[0], a[1], a[2], a[3]) }
}

func pairs(format string) func([4]byte) string {
	return func(a [4]byte) string { return fmt.Sprintf(format, int(a[0])<<8|int(a[1]), int(a[2])<<8|int(a[3])) }
}

func whole(format string) func([4]byte) string {
	return func(a [4]byte) string {
		return fmt.Sprintf(format, uint32(a[0])<<24|uint32(a[1])<<16|uint32(a[2])<<8|uint32(a[3]))
	}
}

// digits writes an address with other decimal digits, of which zero is the
// first.
func digits(zero rune) func([4]byte) string {
	return func(a [4]byte) string {
		return strings.Map(func(r rune) rune {
			if r == '.' {
				return r
			}
			return zero + r - '0'
		}, dotted(a))
	}
}

func circled(a [4]byte) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return r
		case '0':
			return '⓪'
		}
		return '①' + r - '1'
	}, dotted(a))
}

// forbiddenHost is one spelling of a host that clients must not reach.
type forbiddenHost struct {
	host  string
	rule  string // alternatives, one of which is in the error
	none  bool   // the error may be that the host is invalid
	usual bool   // the usual spelling, or 127.0.0.1
}

// forbiddenHosts returns all addresses in all their spellings, and all names.
func forbiddenHosts() (out []forbiddenHost) {
	for _, f := range forbidden {
		a := netip.MustParseAddr(f.address)
		if a.Is6() {
			for i, write := range spellings6 {
				out = append(out, forbiddenHost{write(a), f.rule, false, i == 0})
			}
			continue
		}
		for _, s := range spellings {
			p := forbiddenHost{s.write(a.As4()), s.rule, s.rule == none, s.name == "dotted" || f.address == "127.0.0.1"}
			switch s.rule {
			case "":
				p.rule = f.rule
			case none:
				p.rule = f.rule + "|" + unreadable
			}
			out = append(out, p)
		}
	}
	for _, name := range names {
		out = append(out, forbiddenHost{name, "loopback", false, true})
	}
	return out
}

// sampleHosts returns the usual spellings and every seventh of the others, which
// has each spelling of IPv4, or all if full is set.
func sampleHosts(all []forbiddenHost) (out []forbiddenHost) {
	unusual := 0
	for _, p := range all {
		if !p.usual {
			unusual++
		}
		if full || p.usual || unusual%7 == 0 {
			out = append(out, p)
		}
	}
	return out
}

// unreadable matches refusals of text that cannot be parsed as a host.
const unreadable = `malformed|has the wrong form|to an invalid address|an attachment's address begins with|neither a name nor`

func (p forbiddenHost) refusedIn(text string) bool {
	return regexp.MustCompile(p.rule).MatchString(text)
}

// redirector runs a server at an allowed address that redirects to the address
// in its query.
func redirector(t *testing.T) string {
	s := serveHTTP(t, "127.0.0.2", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	return authority(s)
}

// ways returns the ways in which a client can name a host: in a notification
// URL, in the address of an attachment, and as the target of a redirect of
// either.
func ways(redirector string) (urls, attachments map[string]func(host string) string) {
	via := func(scheme, prefix string) func(string) string {
		return func(host string) string {
			return scheme + redirector + "/?" + prefix + "to=" + url.QueryEscape("http://"+host+"/")
		}
	}
	urls = map[string]func(host string) string{
		"URL":             func(host string) string { return "json://" + host + "/?cto=10&rto=20" },
		"URL over TLS":    func(host string) string { return "jsons://" + host + "/?cto=10&rto=20" },
		"URL, redirected": via("json://", "redirect=yes&-"),
	}
	attachments = map[string]func(host string) string{
		"attachment":             func(host string) string { return "http://" + host + "/file" },
		"attachment over TLS":    func(host string) string { return "https://" + host + "/file" },
		"attachment, redirected": via("http://", ""),
	}
	return urls, attachments
}

// proxied returns an environment in which v is the proxy for addresses outside
// this machine.
func (v *guarded) proxied() []string {
	return []string{"HTTP_PROXY=http://127.0.0.1:" + v.port, "HTTPS_PROXY=http://127.0.0.1:" + v.port}
}

// isRefusal matches the errors of egress.
var isRefusal = regexp.MustCompile(`may not reach it|in its usual form`)

// TestEgressMatrix checks that a client cannot reach an address that is not
// public, in any spelling and any of the ways, with and without a proxy. If
// egress allows the address, it is reached; with a proxy, the proxy is reached.
// If full is set, all ways use all spellings. Otherwise one way does, and the
// others use a sample.
func TestEgressMatrix(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	all := forbiddenHosts()
	for _, gate := range []struct {
		name, egress  string
		proxied, open bool
	}{
		{"closed", "allow 127.0.0.2", false, false},
		{"closed, with a proxy", "allow 127.0.0.2", true, false},
		{"open", "allow all", true, true},
	} {
		t.Run(gate.name, func(t *testing.T) {
			t.Parallel()
			v, from := newGuarded(t), redirector(t)
			urls, attachments := ways(from)
			var environment []string
			if gate.proxied {
				environment = v.proxied()
			}
			g := start(t, "", "client_limits {\ndeliveries 1000\nrequests 5000\n}\negress {\n"+gate.egress+"\n}", environment...)
			check := func(way string, p forbiddenHost, delivered bool, text string) {
				switch {
				case !gate.open && (delivered || !p.refusedIn(text)):
					t.Errorf("%s %s: not refused with %s: %s", way, p.host, p.rule, text)
				case gate.open && !p.none && isRefusal.MatchString(text):
					t.Errorf("%s %s, allowed: %s", way, p.host, text)
				}
			}
			for way, write := range urls {
				all := all
				if way != "URL" {
					all = sampleHosts(all)
				}
				list, reachable := make([]string, len(all)), 0
				for i, p := range all {
					list[i] = write(p.host + ":" + v.port)
					if !p.none {
						reachable++
					}
				}
				got := g.post("/notify", message{"body": "x", "urls": list})
				if len(got.Results) != len(all) {
					t.Fatalf("%s: status %d, %d results for %d URLs: %.300s", way, got.Status, len(got.Results), len(all), got.Body)
				}
				for i, r := range got.Results {
					check(way, all[i], r.Status == "delivered", r.Error)
				}
				if n := int(v.take()); gate.open && n < reachable || !gate.open && n > 0 {
					t.Errorf("%s: %d connections, want one for each of %d URLs", way, n, len(all))
				}
			}
			for way, write := range attachments {
				for _, p := range sampleHosts(all) {
					got := g.post("/notify", message{"body": "x", "urls": "json://" + from + "/taken", "attach": write(p.host + ":" + v.port)})
					check(way, p, got.Status == 200, got.text())
					if gate.open && v.take() == 0 && !p.none {
						t.Errorf("%s %s: no connection, status %d: %s", way, p.host, got.Status, got.text())
					}
				}
				if n := v.take(); !gate.open && n > 0 {
					t.Errorf("%s: %d connections, want none", way, n)
				}
			}
		})
	}
}

// TestEgressTricks checks URLs that look as if their host were allowed.
func TestEgressTricks(t *testing.T) {
	t.Parallel()
	v := newGuarded(t)
	g := start(t, "", "egress {\nallow 127.0.0.2\n}")
	for _, host := range []string{
		"127.0.0.2@127.0.0.1:" + v.port,
		"127.0.0.2:80@127.0.0.1:" + v.port,
		"127.0.0.1:" + v.port + "#@127.0.0.2",
		"127.0.0.1:" + v.port + `\@127.0.0.2`,
		"127.0.0.1:" + v.port + "%2F@127.0.0.2",
		"127.0.0.1:" + v.port + "%40127.0.0.2",
		"127.0.0.1%00.example.com:" + v.port,
		"127.0.0.1%0d%0aHost:%20x:" + v.port,
		"127.0.0.2%20127.0.0.1:" + v.port,
		"[::1]@127.0.0.1:" + v.port,
		"[127.0.0.1]:" + v.port,
		"[::ffff:127.0.0.1%25127.0.0.2]:" + v.port,
	} {
		for _, m := range []message{
			{"body": "x", "urls": []string{"json://" + host + "/?cto=1&rto=1"}},
			{"body": "x", "urls": []string{"json://127.0.0.2:1/"}, "attach": "http://" + host + "/file"},
		} {
			got := g.post("/notify", m)
			if n := v.take(); n > 0 || got.Status == 200 {
				t.Errorf("%v: %d connections, status %d: %s", m, n, got.Status, got.text())
			}
		}
	}
}

// TestEgressOfTheMachine checks that clients reach no socket and no file of the
// machine.
func TestEgressOfTheMachine(t *testing.T) {
	t.Parallel()
	g := start(t, "", "")
	for _, u := range []string{
		"syslog://kern", "syslog://user/me", "json://%2Fvar%2Frun%2Fdocker.sock/",
		"unix:///var/run/docker.sock", "file:///etc/passwd",
	} {
		for _, m := range []message{{"body": "x", "urls": []string{u}}, {"body": "x", "urls": []string{"json://example.invalid/"}, "attach": u}} {
			if got := g.post("/notify", m); got.Status != 400 && got.Status != 424 {
				t.Errorf("%v: status %d: %s", m, got.Status, got.text())
			}
		}
	}
	for _, u := range []string{
		"discord://1098765432109876543/AbCdEf-0123456789?template=/etc/hostname",
		"discord://1098765432109876543/AbCdEf-0123456789?template=file:///etc/hostname",
		"tgram://123456789:abcdefg_hijklmnop/5?template=Caddyfile",
		"fcm://project/device?keyfile=/etc/hostname", "mailtos://me:x@example.com?pgpprv=/etc/hostname",
	} {
		if got := g.post("/notify", message{"body": "x", "urls": []string{u}}); got.Status != 400 {
			t.Errorf("%s: status %d: %s", u, got.Status, got.text())
		}
	}
}

// TestEgressMatrixOfTheOperator checks that URLs of the configuration reach any
// address in any spelling, even if egress denies it to clients.
func TestEgressMatrixOfTheOperator(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	v, from := newGuarded(t), redirector(t)
	urls, _ := ways(from)
	var block strings.Builder
	hosts := 0
	for way, write := range urls {
		for _, p := range forbiddenHosts() {
			u := write(p.host + ":" + v.port)
			if d, err := notifier.Parse(u, nil); err != nil || len(d.Warnings()) > 0 || p.none || strings.HasSuffix(way, "TLS") {
				continue
			}
			hosts++
			fmt.Fprintf(&block, "url `%s`\n", u)
		}
	}
	g := start(t, "", "egress {\ndeny 0.0.0.0/0 ::/0\n}\nkey all {\n"+block.String()+"}", v.proxied()...)
	got := g.post("/notify/all", message{"body": "x"})
	if got.Status != 200 || len(got.Results) != hosts || hosts < 1000 {
		t.Errorf("%d hosts, status %d, %d results", hosts, got.Status, len(got.Results))
	}
	for _, r := range got.Results {
		if r.Status != "delivered" {
			t.Errorf("%s: %s", r.Destination, r.Error)
		}
	}
}

// TestEgressIgnoresTheOperator checks that egress does not apply to the URLs
// of the configuration, and that clients cannot use their connections.
func TestEgressIgnoresTheOperator(t *testing.T) {
	t.Parallel()
	v := newGuarded(t)
	from := redirector(t)
	g := start(t, "", `
		egress {
			deny 127.0.0.0/8
		}
		default_urls json://127.0.0.1:`+v.port+`/
		key literal {
			url json://127.0.0.1:`+v.port+`/
		}
		key redirected {
			url "json://`+from+`/?redirect=yes&-to=`+url.QueryEscape("http://127.0.0.1:"+v.port+"/")+`"
		}`)
	for _, path := range []string{"/notify", "/notify/literal", "/notify/redirected"} {
		got := g.post(path, message{"body": "x"})
		if n := v.take(); got.Status != 200 || n == 0 {
			t.Errorf("%s: %d connections, status %d: %s", path, n, got.Status, got.text())
		}
	}
	// A client's request does not use the connection of the operator's URL.
	if got := g.post("/notify", message{"body": "x", "urls": "json://127.0.0.1:" + v.port}); got.Status != 424 || v.take() > 0 {
		t.Errorf("a client used the operator's connection: status %d: %s", got.Status, got.text())
	}
}

package safety

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// places are hosts that clients must not reach, and a word of the rule that
// says so; "" for hosts that some readers take for no host at all. Where reaches is set, the host leads to this machine once it is
// allowed, whatever the resolver.
var places = []struct {
	host    string
	rule    string
	reaches bool
}{
	{"127.0.0.1", "loopback", true},
	{"127.0.0.53", "loopback", true},
	{"127.1", "loopback", false},
	{"127.0.1", "loopback", false},
	{"127.0.0.1.", "loopback", false},
	{"127.0.0.1..", "", false},
	{"2130706433", "loopback", false},
	{"017700000001", "loopback", false},
	{"0177.0.0.1", "loopback", false},
	{"0127.0.0.1", "loopback", false},
	{"0x7f.0.0.1", "loopback", false},
	{"0X7F.1", "loopback", false},
	{"0x7f000001", "loopback", false},
	{"localhost", "loopback", true},
	{"LOCALHOST", "loopback", true},
	{"localhost.", "loopback", false},
	{"service.localhost", "loopback", false},
	{"ip6-localhost", "loopback", false},
	{"１２７.０.０.１", "loopback", false},
	{"①②⑦.⓪.⓪.①", "loopback", false},
	{"127。0。0。1", "", false},
	{"ｌｏｃａｌｈｏｓｔ", "loopback", false},
	{"%31%32%37.0.0.1", "", false},
	{"good@127.0.0.1", "loopback", true},
	{"good:word@127.0.0.1", "loopback", true},
	{"[::1]", "loopback", true},
	{"[0:0:0:0:0:0:0:1]", "loopback", true},
	{"[::1%25lo]", "loopback", true},
	{"[::ffff:127.0.0.1]", "loopback", true},
	{"[::FFFF:7F00:1]", "loopback", true},
	{"[::127.0.0.1]", "IPv4-compatible", false},
	{"[64:ff9b::127.0.0.1]", "loopback", false},
	{"[64:ff9b:1::7f00:1]", "NAT64", false},
	{"[2002:7f00:1::]", "6to4", false},
	{"[2001:0:7f00:1::]", "Teredo", false},
	{"0", "unspecified", false},
	{"0.0.0.0", "unspecified", true},
	{"[::]", "unspecified", true},
	{"0.1.2.3", "this network", false},
	{"10.1.2.3", "private", false},
	{"10.1", "private", false},
	{"167838211", "private", false},
	{"172.16.0.1", "private", false},
	{"172.31.255.255", "private", false},
	{"192.168.0.1", "private", false},
	{"0xc0a80001", "private", false},
	{"[::ffff:10.0.0.1]", "private", false},
	{"[64:ff9b::10.0.0.1]", "private", false},
	{"[2002:c0a8:1::1]", "6to4", false},
	{"100.64.0.1", "carrier-grade NAT", false},
	{"169.254.169.254", "link-local", false},
	{"2852039166", "link-local", false},
	{"[::ffff:169.254.169.254]", "link-local", false},
	{"[fe80::1]", "link-local", false},
	{"[fe80::1%25eth0]", "link-local", false},
	{"[fec0::1]", "site-local", false},
	{"[fc00::1]", "unique-local", false},
	{"[fd00:ec2::254]", "unique-local", false},
	{"[ff02::1]", "multicast", false},
	{"224.0.0.1", "multicast", false},
	{"239.255.255.250", "multicast", false},
	{"255.255.255.255", "broadcast", false},
	{"240.0.0.1", "reserved", false},
	{"192.0.0.8", "reserved", false},
	{"192.0.2.1", "documentation", false},
	{"198.51.100.1", "documentation", false},
	{"203.0.113.1", "documentation", false},
	{"[2001:db8::1]", "documentation", false},
	{"198.18.0.1", "benchmarks", false},
	{"168.63.129.16", "Azure", false},
}

// unreadable is how a host is refused that is written as no host is.
var unreadable = regexp.MustCompile(`malformed|address that is none|an attachment's address begins with|is loopback`)

// redirector stands at an address that is allowed and sends everybody on to
// where the query says.
func redirector(t *testing.T) string {
	s := serveHTTP(t, "127.0.0.2", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	return authority(s)
}

// ways are how a client can name a host, below one that is allowed.
func ways(redirector string) map[string]func(host string) message {
	url := func(u string) message { return message{"body": "x", "urls": []string{u}} }
	file := func(u string) message {
		return message{"body": "x", "urls": []string{"json://" + redirector + "/taken"}, "attach": u}
	}
	via := func(scheme, to string) string {
		return scheme + "://" + redirector + "/?" + map[string]string{"json": "redirect=yes&-", "http": ""}[scheme] + "to=" + url2(to)
	}
	return map[string]func(string) message{
		"URL":                    func(h string) message { return url("json://" + h + "/?cto=1&rto=2") },
		"URL, redirected":        func(h string) message { return url(via("json", "http://"+h+"/")) },
		"attachment":             func(h string) message { return file("http://" + h + "/file") },
		"attachment, redirected": func(h string) message { return file(via("http", "http://"+h+"/file")) },
	}
}

func url2(s string) string { return url.QueryEscape(s) }

// No spelling of an address that is not public gets a client there, in none of
// the ways in which it can name one, unless egress allows it.
func TestEgressMatrix(t *testing.T) {
	v := newVictim(t)
	from := redirector(t)
	closed := start(t, "", "egress {\nallow 127.0.0.2\n}")
	open := start(t, "", "egress {\nallow all\n}")
	for way, name := range ways(from) {
		for _, p := range places {
			m := name(p.host + ":" + v.port)
			got := closed.post("/notify", m)
			if got.Status == 200 || !strings.Contains(got.text(), p.rule) || v.take() > 0 {
				t.Errorf("%s %s: status %d: %s", way, p.host, got.Status, got.text())
			}
			if p.rule == "" && !unreadable.MatchString(got.text()) {
				t.Errorf("%s %s: no rule is named: %s", way, p.host, got.text())
			}
			if !p.reaches {
				continue
			}
			got = open.post("/notify", m)
			if n := v.take(); n == 0 || got.Status != 200 && !strings.HasPrefix(way, "attachment") {
				t.Errorf("%s %s, allowed: %d connections, status %d: %s", way, p.host, n, got.Status, got.text())
			}
		}
	}
}

// What is written to look like another host is refused, or leads to the host
// that is checked.
func TestEgressTricks(t *testing.T) {
	v := newVictim(t)
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

// Every service that lets a URL name its server is under the same rules,
// whatever it speaks.
func TestEgressOfEveryService(t *testing.T) {
	v := newVictim(t)
	open := start(t, "", "timeout 1s\negress {\nallow 127.0.0.1\n}")
	closed := start(t, "", "timeout 5s")
	schemes, hosts := 0, []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"}
	for _, s := range notifier.Services() {
		reached := map[string]bool{}
		for _, u := range onServer(s, hosts[0]+":"+v.port) {
			scheme, rest, _ := strings.Cut(u, "://")
			m := message{"body": "a body", "title": "a title", "urls": []string{u}}
			got := open.post("/notify", m)
			if strings.Contains(got.text(), "may not reach it") {
				t.Errorf("%s, allowed: %s", u, got.text())
			}
			dials := v.take() > 0
			reached[scheme] = reached[scheme] || dials
			if !dials {
				continue // it lacks something that the service needs first
			}
			for _, host := range hosts {
				other := scheme + "://" + strings.Replace(rest, hosts[0], host, 1)
				if _, err := notifier.Parse(other, nil); err != nil {
					continue
				}
				m["urls"] = []string{other}
				got := closed.post("/notify", m)
				if got.Status == 200 || !strings.Contains(got.text(), "is loopback") || v.take() > 0 {
					t.Errorf("%s: status %d: %s", m["urls"], got.Status, got.text())
				}
			}
		}
		for scheme, reached := range reached {
			if schemes++; !reached {
				t.Errorf("%s://: allowed, but no URL makes a connection", scheme)
			}
		}
	}
	if schemes < 50 {
		t.Errorf("only %d schemes name a server", schemes)
	}
}

// onServer are the URLs of a service's examples that name its server, under
// each of its schemes, with the server at an address.
func onServer(s notifier.ServiceInfo, address string) (urls []string) {
	const host = "example.com"
	if !slices.ContainsFunc(s.Params, func(p notifier.ParamInfo) bool { return p.Name == "host" && p.Example == host }) {
		return nil
	}
	for i, example := range s.Examples {
		if !strings.Contains(s.URLs[i], "{host}") {
			continue
		}
		_, rest, _ := strings.Cut(example, "://")
		before, after, ok := strings.Cut(rest, host+":8080")
		if !ok {
			before, after, _ = strings.Cut(rest, host)
		}
		for _, scheme := range s.Schemes {
			u := scheme + "://" + before + address + after
			if _, err := notifier.Parse(u, nil); err == nil {
				urls = append(urls, u)
			}
		}
	}
	return urls
}

// What belongs to the machine itself is the operator's alone.
func TestEgressOfTheMachine(t *testing.T) {
	g := start(t, "", "")
	for _, u := range []string{"syslog://kern", "syslog://user/me", "json://%2Fvar%2Frun%2Fdocker.sock/", "unix:///var/run/docker.sock", "file:///etc/passwd"} {
		for _, m := range []message{{"body": "x", "urls": []string{u}}, {"body": "x", "urls": []string{"json://example.invalid/"}, "attach": u}} {
			if got := g.post("/notify", m); got.Status != 400 && got.Status != 424 {
				t.Errorf("%v: status %d: %s", m, got.Status, got.text())
			}
		}
	}
}

// The operator's URLs lead anywhere, whatever egress says about clients'.
func TestEgressLeavesTheOperatorAlone(t *testing.T) {
	v := newVictim(t)
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
			url "json://`+from+`/?redirect=yes&-to=`+url2("http://127.0.0.1:"+v.port+"/")+`"
		}`)
	for _, path := range []string{"/notify", "/notify/literal", "/notify/redirected"} {
		got := g.post(path, message{"body": "x"})
		if n := v.take(); got.Status != 200 || n == 0 {
			t.Errorf("%s: %d connections, status %d: %s", path, n, got.Status, got.text())
		}
	}
	// A connection that the operator's URL has opened is not lent to a client.
	if got := g.post("/notify", message{"body": "x", "urls": "json://127.0.0.1:" + v.port}); got.Status != 424 || v.take() > 0 {
		t.Errorf("a client used the operator's connection: status %d: %s", got.Status, got.text())
	}
}

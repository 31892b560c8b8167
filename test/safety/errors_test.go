package safety

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// ownNetwork matches text about the gateway's machine: addresses of
// connections, name servers and paths of files.
var ownNetwork = regexp.MustCompile(`127\.0\.0\.\d|::1\b|->|\b(dial|read|write|lookup) (tcp|udp|unix|\S+ on)|/tmp|/etc/|/run/|/proc/`)

// checkErrors sends a message to path in each response format, and checks that
// none shows the gateway's network, except for the name of the destination. It returns
// the responses.
func (g *gateway) checkErrors(what, path string, fields url.Values, destination string) string {
	g.t.Helper()
	formats := []string{"text/html", "application/x-ndjson", "application/json", "text/plain"}
	texts := make([]string, len(formats))
	var wg sync.WaitGroup
	for i, accept := range formats {
		r, err := http.NewRequest(http.MethodPost, g.url+path, strings.NewReader(fields.Encode()))
		if err != nil {
			g.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", accept)
		wg.Go(func() {
			reply := g.ask(r)
			if reply.Status/100 == 2 && accept != "application/x-ndjson" {
				g.t.Errorf("%s: the message arrived", what)
			}
			if reply.Status == http.StatusServiceUnavailable {
				g.t.Errorf("%s: too many requests", what)
			}
			text := ndjsonDestination.ReplaceAllString(reply.Body, "")
			if accept == "application/json" {
				text = reply.text() + fmt.Sprint(reply.Details) // without the destination's URL
			}
			text = strings.ReplaceAll(text, "Failed to send to "+nameOf(g.t, destination)+":", "")
			if shown := ownNetwork.FindString(text); shown != "" {
				g.t.Errorf("%s: the answer as %s shows %q: %.600s", what, accept, shown, text)
			}
			texts[i] = text
		})
	}
	wg.Wait()
	return strings.Join(texts, "\n")
}

// nameOf returns the name of the destination of a URL.
func nameOf(t *testing.T, u string) string {
	t.Helper()
	d, err := notifier.Parse(u, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	return d.Name()
}

var ndjsonDestination = regexp.MustCompile(`"(destination|name)":"[^"]*"`)

// TestErrorsShowNoNetwork checks that no error for a client shows an address of
// the gateway, a name server, a path or a proxy. Errors of connections once
// showed them.
func TestErrorsShowNoNetwork(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	reset := func(c net.Conn) {
		_, _ = c.Read(make([]byte, 100))
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	hosts := map[string]string{
		"nobody listens": "127.0.0.1:" + porttest.Free(),
		"reset":          listen(t, "127.0.0.1:0", reset),
		"reset at once":  listen(t, "127.0.0.1:0", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }),
		"silent":         listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<20)); _, _ = c.Read(make([]byte, 1<<20)) }),
	}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		accept(t, l, reset)
		hosts["reset of IPv6"] = l.Addr().String()
	}
	schemes := []string{
		"json://%s/", "jsons://%s/", "mqtt://%s/topic", "mqtts://%s/topic", "xmpp://me:pw@%s/you", "irc://me@%s/%%23here", "growl://%s/",
		"mailto://me:pw@%s?from=me@example.com&to=you@example.com&mode=insecure", "mailtos://me:pw@%s?from=me@example.com&to=you@example.com",
	}
	block := "timeout " + seconds(3) + "\nclient_limits {\nin_flight_per_address 500\n}\negress {\nallow 127.0.0.1 ::1\n}\n"
	type attempt struct {
		what, path  string
		fields      url.Values
		destination string
	}
	var all []attempt
	for way, host := range hosts {
		for i, scheme := range schemes {
			u := fmt.Sprintf(scheme, host)
			if way == "silent" {
				u += map[bool]string{true: "&", false: "?"}[strings.Contains(u, "?")] + "rto=0.3"
			}
			key := fmt.Sprintf("%s-%d", strings.ReplaceAll(way, " ", "-"), i)
			block += "key " + key + " {\nurl " + u + "\n}\n"
			all = append(all,
				attempt{way + ", of a client: " + u, "/notify", url.Values{"urls": {u}, "body": {"x"}}, u},
				attempt{way + ", of the operator: " + u, "/notify/" + key, url.Values{"body": {"x"}}, u})
		}
		if way != "silent" {
			all = append(all, attempt{
				way + ", an attachment", "/notify/reset-0",
				url.Values{"body": {"x"}, "attach": {"http://" + host + "/file"}},
				"json://" + host,
			})
		}
	}
	block += "key log {\nurl syslog://\n}\n"
	all = append(all, attempt{"a unix socket", "/notify/log", url.Values{"body": {"x"}}, "syslog://"})
	g := start(t, "", block)
	var wg sync.WaitGroup
	for _, a := range all {
		wg.Go(func() { g.checkErrors(a.what, a.path, a.fields, a.destination) })
	}
	wg.Wait()
	// The operator's log has the addresses.
	if log := g.log(); !strings.Contains(log, `"cause":"dial tcp `+hosts["nobody listens"]+": connect: connection refused") {
		t.Error("the log does not name the address that refuses connections")
	}
}

// TestErrorsShowNoProxy checks that no error shows the address of a forward proxy
// or the password for it.
func TestErrorsShowNoProxy(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	closed := "127.0.0.1:" + porttest.Free()
	reset := listen(t, "127.0.0.1:0", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) })
	for _, proxy := range []string{
		"http://me:hunter22@" + closed, "https://me:hunter22@" + closed, "socks5://me:hunter22@" + closed, "ftp://me:hunter22@" + closed,
		"http://me:hunter22@" + reset, "https://me:hunter22@" + reset, "socks5://me:hunter22@" + reset, "http://me:hunter22@" + closed + ":x",
	} {
		g := start(t, "", "timeout "+seconds(3)+"\nkey k {\nurl jsons://1.1.1.1/\n}", "HTTP_PROXY="+proxy, "HTTPS_PROXY="+proxy)
		for _, text := range []string{
			g.checkErrors(proxy+", of the operator", "/notify/k", url.Values{"body": {"x"}}, "jsons://1.1.1.1/"),
			g.checkErrors(proxy+", of a client", "/notify", url.Values{"body": {"x"}, "urls": {"json://1.1.1.1/"}}, "json://1.1.1.1/"),
			g.checkErrors(proxy+", an attachment", "/notify/k", url.Values{"body": {"x"}, "attach": {"http://1.1.1.1/file"}}, "jsons://1.1.1.1/"),
			g.log(),
		} {
			if strings.Contains(text, "hunter22") {
				t.Errorf("%s: the password is shown: %.600s", proxy, text)
			}
		}
	}
}

// TestErrorsShowNoNameServer checks that an error about a host name that cannot
// be looked up does not show the name server.
func TestErrorsShowNoNameServer(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	g := start(t, "", "timeout 5s\nkey k {\nurl json://absent.example/\n}")
	for what, text := range map[string]string{
		"of the operator": g.checkErrors("of the operator", "/notify/k", url.Values{"body": {"x"}}, "json://absent.example/"),
		"of a client": g.checkErrors("of a client", "/notify",
			url.Values{"body": {"x"}, "urls": {"json://absent.example/"}}, "json://absent.example/"),
		"an attachment": g.checkErrors("an attachment", "/notify/k",
			url.Values{"body": {"x"}, "attach": {"http://absent.example/file"}}, "json://absent.example/"),
	} {
		if !strings.Contains(text, "host name") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

package safety

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// nonHTTP lists a scheme of each service that uses a protocol other than HTTP.
// These services use no HTTP proxy.
var nonHTTP = []string{"mqtt", "irc", "xmpp", "smpp", "syslog", "rsyslog", "growl", "aprs", "mailto"}

// isNonHTTP reports whether the service with these schemes is one of nonHTTP.
func isNonHTTP(schemes []string) bool {
	return slices.ContainsFunc(nonHTTP, func(c string) bool { return slices.Contains(schemes, c) })
}

// serverConn is the server's side of a line-based protocol.
type serverConn struct {
	in  *bufio.Reader
	out io.Writer
}

func (c serverConn) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format+"\r\n", args...)
}

// line returns the next line of the client. It reports false when the client
// has closed the connection.
func (c serverConn) line() (string, bool) {
	line, err := c.in.ReadString('\n')
	return strings.TrimSpace(line), err == nil
}

// plain returns line with its base64 words also decoded.
func plain(line string) string {
	for word := range strings.FieldsSeq(line) {
		if text, err := base64.StdEncoding.DecodeString(word); err == nil && len(text) > 4 {
			line += " " + strings.ReplaceAll(string(text), "\x00", " ")
		}
	}
	return line
}

// refusingServers are servers that refuse the password in the syntax of their
// protocol and repeat it. With these URLs the password is sent without TLS.
var refusingServers = []struct {
	url   string
	tls   bool
	quote bool // the result quotes the server
	serve func(c serverConn)
}{
	{"mailto://user:password@%s?from=me@example.com&to=you@example.com&mode=insecure", false, true, func(c serverConn) {
		c.say("220 mail.example ESMTP")
		for line, ok := c.line(); ok; line, ok = c.line() {
			if strings.HasPrefix(line, "EHLO") {
				c.say("250-mail.example\r\n250 AUTH PLAIN LOGIN")
				continue
			}
			c.say("535 5.7.8 I heard %s", plain(line))
		}
	}},
	{"irc://user:password@%s/%%23ops?mode=server", false, true, func(c serverConn) {
		for line, ok := c.line(); ok; line, ok = c.line() {
			c.say(":irc.example 464 * :I heard %s", line)
		}
	}},
	{"growl://password@%s", false, true, func(c serverConn) {
		line, _ := c.line()
		c.say("GNTP/1.0 -ERROR NONE\r\nError-Code: 500\r\nError-Description: I heard %s password\r\n", line)
	}},
	{"mqtt://user:password@%s/topic", false, false, func(c serverConn) {
		_ = c.packet()
		_, _ = c.out.Write([]byte{0x20, 2, 0, 5})
	}},
	{"mqtt://user:password@%s/topic?version=v5.0", false, true, func(c serverConn) {
		reason := "I heard " + strings.ToValidUTF8(strings.ReplaceAll(string(c.packet()), "\x00", " "), " ")
		reason = reason[:min(len(reason), 100)]
		answer := binary.BigEndian.AppendUint16([]byte{0x20, byte(len(reason) + 6), 0, 0x87, byte(len(reason) + 3), 0x1f}, uint16(len(reason)))
		_, _ = c.out.Write(append(answer, reason...))
	}},
	{"smpp://user:password@%s/15557654321/15551234567", false, false, func(c serverConn) {
		var head [16]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return
		}
		body := make([]byte, min(1024, binary.BigEndian.Uint32(head[:]))-16)
		_, _ = io.ReadFull(c.in, body)
		name := append([]byte(fmt.Sprintf("%.15s", strings.Split(string(body), "\x00")[1])), 0)
		answer := binary.BigEndian.AppendUint32(nil, uint32(16+len(name)))
		answer = append(answer, 0x80, 0, 0, 2, 0, 0, 0, 0x0e)
		_, _ = c.out.Write(append(append(answer, head[12:]...), name...))
	}},
	{"xmpps://user:password@%s/bob?mode=tls&verify=no", true, true, func(c serverConn) {
		c.until("version=")
		c.until(">")
		_, _ = io.WriteString(c.out, "<?xml version='1.0'?><stream:stream xmlns='jabber:client' "+
			"xmlns:stream='http://etherx.jabber.org/streams' id='1' from='127.0.0.1' version='1.0'>"+
			"<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms></stream:features>")
		c.until("<auth")
		c.until(">")
		heard := strings.TrimSuffix(c.until("<"), "<")
		_, _ = io.WriteString(c.out, "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text "+
			"xml:lang='en'>I heard "+plain(heard)+"</text></failure>")
	}},
}

// until reads up to and including end, at most 4 KiB.
func (c serverConn) until(end string) string {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), end) && b.Len() < 4096 {
		x, err := c.in.ReadByte()
		if err != nil {
			break
		}
		b.WriteByte(x)
	}
	return b.String()
}

// packet reads an MQTT packet.
func (c serverConn) packet() []byte {
	_, _ = c.in.ReadByte()
	n, _ := binary.ReadUvarint(c.in)
	body := make([]byte, min(n, 4096))
	_, _ = io.ReadFull(c.in, body)
	return body
}

// TestSecretsOfOtherProtocols is TestSecretsOfTheProgram for services that do
// not use HTTP. Their servers are missing, hang up, stay silent, repeat what
// they receive, or refuse the password in the syntax of their protocol.
func TestSecretsOfOtherProtocols(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	var all []secretURL
	quoting := map[string]bool{}
	number := 100000
	add := func(service, u string) string {
		m := withTestSecrets(service, "", u, &number)
		if m.secrets != nil && !slices.ContainsFunc(all, func(o secretURL) bool { return o.url == m.url }) {
			all = append(all, m)
		}
		return m.url
	}
	for _, address := range []string{
		listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(c, io.LimitReader(c, 64<<10)) }),
		listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = c.Read(make([]byte, 100)) }),
		"127.0.0.1:" + porttest.Free(),
	} {
		for _, n := range servers() {
			if isNonHTTP(n.service.Schemes) {
				add(n.service.Name, n.at(address))
			}
		}
	}
	p := newProxy(t)
	for _, r := range refusingServers {
		address := listen(t, "127.0.0.1:0", func(c net.Conn) {
			if r.tls {
				c = tls.Server(c, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					return p.certificate("127.0.0.1")
				}})
			}
			r.serve(serverConn{bufio.NewReader(c), c})
		})
		scheme, _, _ := strings.Cut(r.url, "://")
		d, err := notifier.Parse(fmt.Sprintf(r.url, address), nil)
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		quoting[add(d.Service(), fmt.Sprintf(r.url, address))] = r.quote
	}
	var block strings.Builder
	urls, env := make([]string, len(all)), make([]string, len(all))
	for i, m := range all {
		urls[i], env[i] = m.url, fmt.Sprintf("URL%d=%s", i, m.url)
		fmt.Fprintf(&block, "url {env.URL%d} part%d\n", i, i/20)
	}
	w := newWatcher(t)
	g := start(t, w.options()+tracing, "timeout 2s\negress {\nallow 127.0.0.1\n}\nkey all {\n"+block.String()+"}", env...)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var said strings.Builder
	var events []event
	hear := func(r reply, key string) {
		mu.Lock()
		defer mu.Unlock()
		said.WriteString(r.Body)
		events = append(events, eventOf(r, key, "http"))
	}
	n := 0
	for some := range slices.Chunk(urls, 20) {
		tag := fmt.Sprintf("part%d", n)
		n++
		wg.Go(func() {
			hear(g.post("/notify/all?tag="+tag, message{"body": "a body", "title": "a title", "type": "failure"}), "all")
		})
		wg.Go(func() {
			got := g.post("/notify", message{"body": "a body", "title": "a title", "type": "failure", "urls": some})
			hear(got, "")
			for i, r := range got.Results {
				if quotes, ok := quoting[some[i]]; ok && (r.Status == "delivered" || quotes != strings.Contains(r.Error, "I heard")) {
					t.Errorf("%s: %s", some[i], r.Error)
				}
			}
		})
	}
	wg.Wait()
	heard := w.checkEvents(t, events)
	checkNoSecrets(t, "an answer", said.String(), all)
	checkNoSecrets(t, "an event", heard, all)
	checkNoSecrets(t, "the gateway", g.exposed("all"), all)
}

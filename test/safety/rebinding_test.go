package safety

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
)

// nameServer runs a name server that answers the n-th question for an IPv4
// address with the n-th address, and later ones with the last. An IPv6 address
// is the answer to questions for IPv6 addresses only. The process uses the
// server until the test ends.
func nameServer(t *testing.T, addresses ...string) *atomic.Int32 {
	t.Helper()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	var asked atomic.Int32
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			const header, typeA, typeAAAA = 12, 1, 28
			end := header
			for end < n && b[end] != 0 {
				end += int(b[end]) + 1
			}
			if end+5 > n {
				continue
			}
			answer := append([]byte{}, b[:end+5]...)
			answer[2], answer[3] = 0x81, 0x80
			copy(answer[6:header], make([]byte, header-6))
			kind, i := binary.BigEndian.Uint16(b[end+1:]), 0
			if kind == typeA {
				i = min(int(asked.Add(1)), len(addresses)) - 1
			}
			if a := netip.MustParseAddr(addresses[i]); kind == typeA && a.Is4() || kind == typeAAAA && a.Is6() {
				answer[7] = 1
				answer = append(answer, 0xc0, header, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
				answer = append(answer, a.AsSlice()...)
			}
			_, _ = udp.WriteTo(answer, from)
		}
	}()
	system := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", udp.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = system })
	return &asked
}

// TestRebinding checks that a client cannot reach a forbidden address by a name
// whose address changes: the gateway checks the address of each connection. It
// runs in the test's process, because the program uses the system's resolver.
func TestRebinding(t *testing.T) {
	v, redirector := newGuarded(t), redirector(t)
	_, allowedPort, _ := net.SplitHostPort(redirector)
	const name = "changing.example"
	guard, err := egress.NewPolicy([]string{"127.0.0.2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Each try opens new connections, whose addresses are checked.
	send := func(u string) error {
		t.Helper()
		d, err := notifier.Parse(u, guard)
		if err != nil {
			t.Fatal(err)
		}
		s := notifier.NewSender(egress.NewPool("test"), 0)
		return s.Send(t.Context(), &notifier.Message{Body: "x"}, []notifier.Target{{Destination: d}},
			notifier.Options{Timeout: 3 * time.Second, Transient: true}).Results[0].Err
	}
	fetch := func(u string) error {
		files := &spool.Spool{MaxSize: 1 << 20, MaxCount: 10}
		defer files.Close()
		_, err := files.Fetch(t.Context(), egress.NewPool("test"), guard, u, "")
		return err
	}
	// changes makes the first answer for name allowed and the next one
	// forbidden. It consumes the first, as a check before dialling would.
	changes := func(to string) *atomic.Int32 {
		asked := nameServer(t, "127.0.0.2", to)
		if _, err := net.DefaultResolver.LookupHost(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(to, ":") {
			asked = nameServer(t, to)
			asked.Add(1)
		}
		return asked
	}

	to := url.QueryEscape("http://" + name + ":" + v.port + "/")
	for _, f := range forbidden {
		for what, try := range map[string]func() error{
			"URL":        func() error { return send("json://" + name + ":" + v.port) },
			"MQTT":       func() error { return send("mqtt://" + name + ":" + v.port + "/topic") },
			"mail":       func() error { return send("mailto://" + name + ":" + v.port + "?from=a@example.com&to=b@example.com") },
			"attachment": func() error { return fetch("http://" + name + ":" + v.port) },
		} {
			asked := changes(f.address)
			if err := try(); err == nil || !strings.Contains(err.Error(), f.rule) || v.take() > 0 || asked.Load() < 2 {
				t.Errorf("%s, %s: %d questions: %v", what, f.address, asked.Load(), err)
			}
		}
		if strings.Contains(f.address, ":") {
			continue
		}
		// The first connection is allowed, and the server redirects to its own
		// name.
		for what, try := range map[string]func() error{
			"URL":        func() error { return send("json://" + name + ":" + allowedPort + "/?redirect=yes&-to=" + to) },
			"attachment": func() error { return fetch("http://" + name + ":" + allowedPort + "/?to=" + to) },
		} {
			asked := nameServer(t, "127.0.0.2", f.address)
			if err := try(); err == nil || !strings.Contains(err.Error(), f.rule) || v.take() > 0 || asked.Load() < 2 {
				t.Errorf("%s, redirected, %s: %d questions: %v", what, f.address, asked.Load(), err)
			}
		}
	}

	refused := map[string]bool{}
	for _, n := range servers() {
		asked := changes("127.0.0.1")
		err := send(n.at(name + ":" + v.port))
		if err == nil || v.take() > 0 {
			t.Errorf("%s: %d questions: %v", n.at(name), asked.Load(), err)
		}
		// Some of the URLs fail before they dial.
		refused[n.scheme] = refused[n.scheme] || asked.Load() >= 2 && strings.Contains(err.Error(), "is loopback")
	}
	for scheme, is := range refused {
		if !is {
			t.Errorf("%s:// resolves no name, or its error does not name the problem with the address", scheme)
		}
	}
}

package safety

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// nameServer answers every question for an IPv4 address with the next of the
// addresses, and the last one from then on; it knows no IPv6 addresses. The
// process asks it until the test ends.
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
			const header, typeA = 12, 1
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
			if binary.BigEndian.Uint16(b[end+1:]) == typeA {
				i := min(int(asked.Add(1)), len(addresses)) - 1
				answer[7] = 1
				answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, net.ParseIP(addresses[i]).To4()...)
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

// A name whose addresses change leads nowhere that the rules forbid: what is
// checked is the address of each connection, and not an earlier answer. The
// program takes the system's resolver, so this is tested within the process.
func TestRebinding(t *testing.T) {
	v := newVictim(t)
	const name = "changing.example"
	guard, err := notifier.NewEgress([]string{"127.0.0.2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	redirector := redirector(t)
	_, allowedPort, _ := net.SplitHostPort(redirector)
	// Each try has connections of its own: one that is open already leads where
	// it was checked to lead.
	send := func(u string) error {
		t.Helper()
		d, err := notifier.Parse(u, guard)
		if err != nil {
			t.Fatal(err)
		}
		m := &notifier.Message{Body: "x"}
		return notifier.NewSender(notifier.NewPool("test"), 0).Send(t.Context(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 3 * time.Second}).Results[0].Err
	}
	fetch := func(u string) error {
		spool := &notifier.Spool{MaxSize: 1 << 20, MaxCount: 10}
		defer spool.Close()
		_, err := spool.Fetch(t.Context(), notifier.NewPool("test"), guard, u, "")
		return err
	}
	for what, try := range map[string]func(port, path string) error{
		"URL":        func(port, path string) error { return send("json://" + name + ":" + port + "/" + path) },
		"MQTT":       func(port, path string) error { return send("mqtt://" + name + ":" + port + "/topic") },
		"IRC":        func(port, path string) error { return send("irc://" + name + ":" + port + "/%23room") },
		"attachment": func(port, path string) error { return fetch("http://" + name + ":" + port + "/" + path) },
	} {
		// A first answer that is fine, as somebody gets who asks before dialling.
		asked := nameServer(t, "127.0.0.2", "127.0.0.1")
		if _, err := net.DefaultResolver.LookupHost(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		err := try(v.port, "")
		if err == nil || !strings.Contains(err.Error(), "loopback") || v.take() > 0 || asked.Load() < 2 {
			t.Errorf("%s: %d questions: %v", what, asked.Load(), err)
		}
		if what != "URL" && what != "attachment" {
			continue
		}
		// The name is dialled first where it may lead, and sends back to itself.
		asked = nameServer(t, "127.0.0.2", "127.0.0.1")
		err = try(allowedPort, "?redirect=yes&-to="+url2("http://"+name+":"+v.port+"/")+"&to="+url2("http://"+name+":"+v.port+"/"))
		if err == nil || !strings.Contains(err.Error(), "loopback") || v.take() > 0 || asked.Load() < 2 {
			t.Errorf("%s, redirected: %d questions: %v", what, asked.Load(), err)
		}
	}
}

package safety

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// halfSent opens n connections, each of which sends the head of a request to path and
// the first byte of its body. head has more lines of the head; client returns the
// address of the i-th client. The connections are open until the caller closes them.
func (g *gateway) halfSent(n int, path, head string, client func(i int) string) (closeAll func()) {
	g.t.Helper()
	var open []net.Conn
	closeAll = func() {
		for _, c := range open {
			_ = c.Close()
		}
	}
	g.t.Cleanup(closeAll)
	for i := range n {
		c, err := net.Dial("tcp", g.address())
		if err != nil {
			g.t.Fatal(err)
		}
		open = append(open, c)
		if _, err := fmt.Fprintf(c,
			"POST %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nContent-Length: 100\r\n%s\r\n{",
			path, g.address(), client(i), head); err != nil {
			g.t.Fatal(err)
		}
	}
	return closeAll
}

var (
	refusalLine  = regexp.MustCompile(`(?m)^caddy_notify_refused_total\{reason="(?:forbidden|overloaded)"\} (\d+)$`)
	inFlightLine = regexp.MustCompile(`(?m)^caddy_notify_in_flight (\d+)$`)
)

// requests returns how many requests are in flight, and how many were refused so far
// because they were not allowed or too many.
func (g *gateway) requests() (inFlight, refused int) {
	g.t.Helper()
	_, metrics := g.get(g.adminURL+"/metrics", "*/*")
	m := inFlightLine.FindStringSubmatch(metrics)
	if m == nil {
		g.t.Fatalf("no number of messages in %q", metrics)
	}
	for _, line := range refusalLine.FindAllStringSubmatch(metrics, -1) {
		refused += g.number(line[1])
	}
	return g.number(m[1]), refused
}

// TestStrangersLeaveRoom checks that half-sent requests without the token or the
// signature of their source leave at least half of max_in_flight to others. In an
// earlier version, 1005 of them took all of it, and every alert got 503 while they
// lasted.
func TestStrangersLeaveRoom(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const bound, half, perAddress, strangers = 40, 20, 2, 60
	const token, secret = "t0ken-of-the-nas", "s3cret-of-the-signature"
	fine, slow := newDiscard(t), newStalled(t)
	g := start(t, behindProxy, fmt.Sprintf(`max_in_flight %d
key ops {
url json://%s/
}
key slow {
url %s
}
from nas {
title x
token %s
}
from signed {
title x
sign github %s
}
from slack {
token %s
}`, bound, authority(fine), slow.url, token, secret, token))
	send := func(path, client, body string, header ...string) reply {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, g.url+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Error(err)
			return reply{}
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", client)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return g.ask(r)
	}
	const body = `{"a":"b"}`
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))

	one := func(int) string { return "192.0.2.1" }
	many := func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }
	const asJSON, unsigned = "Content-Type: application/json\r\n", "X-Hub-Signature-256: sha256=00\r\n"
	for _, tt := range []struct {
		name, path, head string
		client           func(i int) string
		held             int // the number of requests that the gateway reads
	}{
		{"no token", "/notify/ops/nas", asJSON, many, 0},
		{"a wrong token in the query", "/notify/ops/nas?token=wrong", asJSON, many, 0},
		{"a wrong token in a header", "/notify/ops/nas", asJSON + "Authorization: Bearer wrong\r\n", many, 0},
		{"a wrong token, and no such key", "/notify/none/nas", asJSON, many, 0},
		{"a form, which cannot be signed", "/notify/ops/signed", "Content-Type: multipart/form-data; boundary=b\r\n" + unsigned, many, 0},
		{"signatures, one address", "/notify/ops/signed", asJSON + unsigned, one, perAddress},
		{"signatures, many addresses", "/notify/ops/signed", asJSON + unsigned, many, half},
		{"tokens that may be in the body, one address", "/notify/ops/slack", asJSON, one, perAddress},
		{"tokens that may be in the body, many addresses", "/notify/ops/slack", asJSON, many, half},
	} {
		_, before := g.requests()
		closeAll := g.halfSent(strangers, tt.path, tt.head, tt.client)
		held := 0
		eventually(t, "all requests are held or refused: "+tt.name, func() bool {
			var refused int
			held, refused = g.requests()
			return held+refused-before == strangers
		})
		if held != tt.held {
			t.Errorf("%s: %d requests are held, want %d", tt.name, held, tt.held)
		}
		for name, got := range map[string]reply{
			"a message":                            send("/notify/ops", "203.0.113.1", `{"body":"the alert"}`),
			"a message with a token":               send("/notify/ops/nas?token="+token, "203.0.113.1", body),
			"a message with a token in its header": send("/notify/ops/nas", "203.0.113.1", body, "Authorization", "Bearer "+token),
		} {
			if got.Status != http.StatusOK {
				t.Errorf("%s: %s got %d %s", tt.name, name, got.Status, got.text())
			}
		}
		// A signature is known only after the body.
		got, want := send("/notify/ops/signed", "203.0.113.1", body, "X-Hub-Signature-256", signature), http.StatusOK
		if tt.held == half {
			want = http.StatusServiceUnavailable
		}
		if got.Status != want || want != http.StatusOK && !strings.Contains(got.Error, "client_limits in_flight") {
			t.Errorf("%s: a signed message got %d %s, want %d", tt.name, got.Status, got.text(), want)
		}
		closeAll()
		eventually(t, "the strangers are gone: "+tt.name, func() bool { n, _ := g.requests(); return n == 0 })
	}
	if got := send("/notify/ops/slack", "192.0.2.1", `{"text":"x","token":"`+token+`"}`); got.Status != http.StatusOK {
		t.Errorf("with the token in the body: %d %s", got.Status, got.Body)
	}

	// Once it is verified, a message counts like any other: messages of one address are under way
	// while their destination is slow.
	var under sync.WaitGroup
	for i := range 4 * perAddress {
		under.Go(func() {
			if got := send("/notify/slow/signed", "192.0.2.1", body, "X-Hub-Signature-256", signature); got.Status != http.StatusOK {
				t.Errorf("a signed message to a slow destination: %d %s", got.Status, got.text())
			}
		})
		eventually(t, "a signed message is under way", func() bool { return slow.arrived.Load() == int32(i)+1 })
	}
	slow.release()
	under.Wait()
}

package safety

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// silent is a server that accepts and counts connections and sends nothing
// until the test ends.
type silent struct {
	address string
	reached atomic.Int32
}

func newSilent(t *testing.T) *silent {
	s := &silent{}
	end := make(chan struct{})
	s.address = listen(t, "127.0.0.1:0", func(c net.Conn) {
		s.reached.Add(1)
		<-end
	})
	t.Cleanup(func() { close(end) })
	return s
}

// flood counts the responses to many requests.
type flood struct {
	refused atomic.Int32 // with 503, Retry-After and the expected text
	other   atomic.Int32
}

// flood posts the message n times at once, until the test ends. client
// returns the address of the i-th client, which a trusted proxy reports to the
// gateway. A refusal must contain want.
func (g *gateway) flood(n int, path string, m message, want string, client func(i int) string) *flood {
	g.t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		g.t.Fatal(err)
	}
	f := &flood{}
	ctx, hangUp := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	g.t.Cleanup(wg.Wait)
	g.t.Cleanup(hangUp)
	for i := range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, bytes.NewReader(body))
		if err != nil {
			g.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", client(i))
		wg.Go(func() {
			resp, err := g.client.Do(r)
			if err != nil {
				return // the test has ended
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "1" && strings.Contains(string(text), want) {
				f.refused.Add(1)
			} else {
				f.other.Add(1)
			}
		})
	}
	return f
}

// behindProxy is the options of a gateway that trusts a proxy on loopback.
const behindProxy = "servers {\ntrusted_proxies static 127.0.0.1\n}"

// TestClientsLeaveRoomForKeys checks that 600 client requests to a silent
// address, or 2000 if full is set, leave half of max_in_flight to messages for
// keys. In an earlier version they took all of it, and every alert got 503.
func TestClientsLeaveRoomForKeys(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	requests := amount(full, 2000, 600)
	s, fine := newSilent(t), newRecorder(t)
	g := start(t, behindProxy, "timeout 2m\nkey ops {\nurl "+fine.url+"\n}\negress {\nallow 127.0.0.1\n}")
	one := func(int) string { return "192.0.2.1" }
	for _, tt := range []struct {
		name   string
		path   string
		m      message
		client func(i int) string
		want   string
		under  int32 // the maximum number in flight
	}{
		{"URLs of one IPv4 address", "/notify", message{"body": "x", "urls": "json://" + s.address + "/"}, one, "from your address", 62},
		{
			"URLs of one IPv6 network", "/notify",
			message{"body": "x", "urls": "json://" + s.address + "/"},
			func(i int) string { return fmt.Sprintf("2001:db8:0:1:%x::%x", i, i) }, "from your address", 62,
		},
		{
			"files of one address for a key", "/notify/ops",
			message{"body": "x", "attach": "http://" + s.address + "/f"},
			func(int) string { return "192.0.2.2" }, "from your address", 62,
		},
		{
			"URLs of many addresses", "/notify",
			message{"body": "x", "urls": "json://" + s.address + "/"},
			func(i int) string { return fmt.Sprintf("198.51.100.%d", i%250) }, "URLs of clients", 500 - 3*62,
		},
	} {
		before := s.reached.Load()
		f := g.flood(requests, tt.path, tt.m, tt.want, tt.client)
		for range 20 {
			if got := g.post("/notify/ops", message{"body": "the alert"}); got.Status != http.StatusOK {
				t.Fatalf("%s: an alert got %d %s", tt.name, got.Status, got.text())
			}
		}
		eventually(t, "the others are refused: "+tt.name, func() bool { return f.refused.Load() == int32(requests)-tt.under })
		if n := f.other.Load(); n != 0 {
			t.Errorf("%s: %d other answers", tt.name, n)
		}
		eventually(t, "the first ones are under way: "+tt.name, func() bool { return s.reached.Load()-before == tt.under })
	}
	// The clients' half is full. Alerts arrive, with their files.
	for range 50 {
		if got := g.post("/notify/ops",
			message{"body": "the alert", "attach": map[string]string{"base64": "QUJD"}}); got.Status != http.StatusOK {
			t.Fatalf("an alert during the flood: %d %s", got.Status, got.text())
		}
	}
	if got := g.post("/notify", message{"body": "x", "urls": fine.url}); got.Status != http.StatusServiceUnavailable {
		t.Errorf("one more client: status %d", got.Status)
	}
}

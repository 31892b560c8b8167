package safety

import (
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// noTLS matches errors about a server that does not speak TLS.
const noTLS = `|does not look like a TLS handshake|does not begin with TLS|does not use TLS`

// serverFaults lists the faults of servers of other protocols than HTTP. want
// matches the errors of the results.
var serverFaults = []struct {
	name  string
	serve func(net.Conn)
	want  string
}{
	{"refuses", nil, `refused`},
	{"resets", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, `reset|closed|EOF|broken pipe|hung up`},
	{"hangs up", func(net.Conn) {}, `reset|closed|EOF|broken pipe|hung up`},
	{"stays silent", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, `not done within 5s`},
	{"sends one byte at a time", repeating("1", 100*time.Millisecond), `not done within 5s|does not speak` + noTLS},
	{
		"sends a gigabyte in one line", repeating(strings.Repeat("gigabyte", 1<<17), 0),
		`more than 4 MiB|does not speak|unexpected|closed|not done within 5s` + noTLS,
	},
	{
		"sends a gigabyte in lines", repeating(strings.Repeat("250-gigabyte\r\n", 1<<16), 0),
		`more than 4 MiB|does not speak|unexpected|closed|not done within 5s` + noTLS,
	},
	{"speaks HTTP", func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	}, `not done within 5s|does not speak|HTTP/1.1 400` + noTLS},
}

// repeating writes a text repeatedly and does not read.
func repeating(text string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

// TestFaultsOfOtherProtocols is TestFaults for services that do not use HTTP.
func TestFaultsOfOtherProtocols(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	fine := newDiscard(t)
	g := start(t, "", "timeout 5s\negress {\nallow 127.0.0.1\n}\nkey k {\nurl json://"+authority(fine)+"/\n}")
	g.post("/notify/k", message{"body": "x"}) // what the first message starts is no leak
	type try struct{ url, fault, want string }
	var all []try
	for _, f := range serverFaults {
		address := "127.0.0.1:" + porttest.Free()
		if f.serve != nil {
			address = listen(t, "127.0.0.1:0", f.serve)
		}
		for _, n := range servers() {
			if isNonHTTP(n.service.Schemes) && n.scheme != "rsyslog" { // UDP, without a response
				all = append(all, try{n.at(address), f.name, f.want})
			}
		}
	}
	urls := make([]string, len(all), len(all)+1)
	for i, c := range all {
		urls[i] = c.url
	}
	urls = append(urls, "json://"+authority(fine)+"/")
	before := g.goroutines()
	peak, heap := g.peak(), g.memory().HeapAlloc
	got := g.post("/notify", message{"title": "a title", "body": "a body", "urls": urls})
	if len(got.Results) != len(urls) {
		t.Fatalf("status %d, %d results for %d URLs: %.300s", got.Status, len(got.Results), len(urls), got.Body)
	}
	for i, c := range all {
		r := got.Results[i]
		if r.Status != "failed" || !regexp.MustCompile(c.want).MatchString(r.Error) || len(r.Error) > 2000 {
			t.Errorf("%s, server %s: status %s, want error with %s: %.300s", c.url, c.fault, r.Status, c.want, r.Error)
		}
		if testing.Verbose() {
			t.Logf("%-22s %-70s %s", c.fault, c.url, r.Error)
		}
	}
	if r := got.Results[len(all)]; r.Status != "delivered" || r.Attempts != 1 {
		t.Errorf("a message during the faults: %+v", r)
	}
	if more := g.peak() - peak; more > 256<<20 {
		t.Errorf("the memory grew by %d MiB", more>>20)
	}
	g.waitIdle(before)
	g.waitFreed(heap)
}

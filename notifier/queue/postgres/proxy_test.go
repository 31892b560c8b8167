package postgres

import (
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is a TCP proxy before a server. It can delay what passes, or stop passing anything, and counts
// how often a client waits for an answer.
type proxy struct {
	listener net.Listener
	server   int           // in connection strings
	target   atomic.Int64  // the port to which new connections lead
	delay    time.Duration // in each direction
	stalled  atomic.Bool
	waits    atomic.Int64
	loops    sync.WaitGroup
}

// newProxy starts a proxy before the server at a port of loopback.
func newProxy(tb testing.TB, server int, delay time.Duration) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{listener: l, server: server, delay: delay}
	p.target.Store(int64(server))
	tb.Cleanup(func() { l.Close() })
	p.loops.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", "127.0.0.1:"+strconv.FormatInt(p.target.Load(), 10))
			if err != nil {
				c.Close()
				continue
			}
			var waits atomic.Bool // for an answer on this connection
			go p.pass(s, c, func() {
				if !waits.Swap(true) {
					p.waits.Add(1)
				}
			})
			go p.pass(c, s, func() { waits.Store(false) })
		}
	})
	return p
}

// address returns the address of the proxy.
func (p *proxy) address() string { return p.listener.Addr().String() }

// dsn returns the connection string through the proxy.
func (p *proxy) dsn(dsn string) string {
	_, port, _ := net.SplitHostPort(p.listener.Addr().String())
	return strings.Replace(dsn, ":"+strconv.Itoa(p.server)+"/", ":"+port+"/", 1)
}

// pass copies from one connection to another, with the delay. It calls note before each part.
func (p *proxy) pass(to, from net.Conn, note func()) {
	type part struct {
		data []byte
		at   time.Time
	}
	parts := make(chan part, 1024)
	go func() {
		defer to.Close()
		for part := range parts {
			time.Sleep(time.Until(part.at))
			for p.stalled.Load() {
				time.Sleep(10 * time.Millisecond)
			}
			if _, err := to.Write(part.data); err != nil {
				from.Close()
			}
		}
	}()
	defer close(parts)
	for {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		if n > 0 {
			note()
			parts <- part{b[:n], time.Now().Add(p.delay)}
		}
		if err != nil {
			if err != io.EOF {
				to.Close()
			}
			return
		}
	}
}

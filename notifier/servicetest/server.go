package servicetest

import (
	"cmp"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a TCP server on loopback.
type Server struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
}

// Serve starts a server, with TLS if config is not nil. An empty address is any
// free port of 127.0.0.1. A connection is closed when handle returns, and the
// server stops when the test ends.
func Serve(t testing.TB, address string, config *tls.Config, handle func(net.Conn)) *Server {
	t.Helper()
	l, err := net.Listen("tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	s := &Server{listener: l}
	t.Cleanup(s.Stop)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return s
}

// Addr returns the host and port of the server.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Stop closes the server and its connections.
func (s *Server) Stop() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.Close()
	}
}

// SilentServer starts a server that accepts connections and never answers.
func SilentServer(t testing.TB) (address string) {
	t.Helper()
	return Serve(t, "", nil, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }).Addr()
}

// Eventually waits until is returns true. It fails the test after a minute, which
// is long enough for a busy machine.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: %s", what)
		}
	}
}

// Log records what a server sees, in order.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// Add adds a line.
func (l *Log) Add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// Take returns the lines since the last call.
func (l *Log) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// Expect checks the lines since the last call of Take or Expect.
func (l *Log) Expect(t testing.TB, want ...string) {
	t.Helper()
	if got := l.Take(); !slices.Equal(got, want) {
		t.Errorf("the server saw\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

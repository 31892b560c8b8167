package safety

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// listen runs a server that handles each connection with serve, and returns its
// address.
func listen(t *testing.T, address string, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	accept(t, l, serve)
	return l.Addr().String()
}

// accept serves the connections of a listener, which is closed when the test
// ends.
func accept(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
}

// guarded is a server that must not be reached. It counts connections and
// datagrams on all addresses of the machine.
type guarded struct {
	t       *testing.T
	port    string
	reached atomic.Int32
	marked  chan struct{}
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	v := &guarded{t: t, marked: make(chan struct{})}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if _, v.port, err = net.SplitHostPort(l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", ":"+v.port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		_ = http.Serve(&countingListener{l, &v.reached}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
		}))
	}()
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, _, err := udp.ReadFrom(b)
			switch {
			case err != nil:
				return
			case string(b[:n]) == lastDatagram:
				v.marked <- struct{}{}
			default:
				v.reached.Add(1)
			}
		}
	}()
	return v
}

// take returns how often the server was reached since the last call. It sends a
// datagram and waits for it, so that all earlier ones are counted.
func (v *guarded) take() int32 {
	v.t.Helper()
	c, err := net.Dial("udp", "127.0.0.1:"+v.port)
	if err != nil {
		v.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(lastDatagram)); err != nil {
		v.t.Fatal(err)
	}
	<-v.marked
	return v.reached.Swap(0)
}

// lastDatagram is the content of the datagram that take sends.
const lastDatagram = "all that came before this was counted"

type countingListener struct {
	net.Listener
	n *atomic.Int32
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return c, err
}

// serveHTTP runs a web server at an address, on a free port.
func serveHTTP(t *testing.T, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// authority returns the host and port of a web server.
func authority(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }

package integration

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// standIn serves h at the HTTPS addresses of hosts for programs that are started from now
// on: they use a proxy that leads to it.
func standIn(t *testing.T, h http.Handler, hosts ...string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(authority.certificate(t, hosts...))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go tunnel(c, s.Listener.Addr().String())
		}
	}()
	t.Setenv("HTTPS_PROXY", "http://"+l.Addr().String())
}

// tunnel connects a client of a proxy, which asks for any host, with an address.
func tunnel(client net.Conn, address string) {
	defer client.Close()
	in := bufio.NewReader(client)
	if r, err := http.ReadRequest(in); err != nil || r.Method != http.MethodConnect {
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, in)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
}

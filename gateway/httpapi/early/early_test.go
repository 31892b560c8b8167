package early

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// start starts a server that refuses each request as soon as its header has arrived.
func start(t *testing.T, c *Closing, secure bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = Writer(w, r, c)
		if r.URL.Path == "/read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, "the answer")
	}))
	s.Config.ConnContext = ConnContext
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		c.Stop()
		s.Close()
	})
	return s
}

// dial connects to a server.
func dial(t *testing.T, s *httptest.Server) (net.Conn, error) {
	t.Helper()
	if s.TLS == nil {
		return (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	}
	client := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName = "example.com"
	return (&tls.Dialer{Config: client}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
}

// sendAndRead sends a request and the whole of its body, as slowly as many clients do, before
// it reads the answer.
func sendAndRead(t *testing.T, s *httptest.Server, header string, parts int) (status int, text string, err error) {
	t.Helper()
	conn, err := dial(t, s)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	const part = 64 << 10
	chunked := strings.Contains(header, "chunked")
	data := strings.Repeat("x", part)
	if chunked {
		data = fmt.Sprintf("%x\r\n%s\r\n", part, data)
	} else {
		header += fmt.Sprintf("Content-Length: %d\r\n", part*parts)
	}
	if _, err := io.WriteString(conn, header+"Host: example.com\r\n\r\n"); err != nil {
		return 0, "", err
	}
	for range parts {
		if _, err := io.WriteString(conn, data); err != nil {
			return 0, "", fmt.Errorf("sending the body: %w", err)
		}
		time.Sleep(10 * time.Millisecond) // longer in all than net/http waits before it closes a connection
	}
	if chunked {
		if _, err := io.WriteString(conn, "0\r\n\r\n"); err != nil {
			return 0, "", fmt.Errorf("sending the end of the body: %w", err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// TestAnswerArrives checks that a client that sends a large body before it reads gets its
// answer, however the body is sent and many of them at a time.
func TestAnswerArrives(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		c := &Closing{}
		s := start(t, c, secure)
		var clients sync.WaitGroup
		for _, tt := range []struct {
			header string
			want   int
		}{
			{"POST /refused HTTP/1.1\r\n", 401},
			{"POST /refused HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 401},
			{"POST /refused HTTP/1.1\r\nConnection: close\r\n", 401},
			{"POST /refused HTTP/1.0\r\n", 401},
			{"POST /unread HTTP/1.1\r\n", 200},
			{"POST /unread HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 200},
			{"POST /read HTTP/1.1\r\n", 200},
		} {
			for range 3 {
				clients.Go(func() {
					if status, text, err := sendAndRead(t, s, tt.header, 128); err != nil || status != tt.want || text != "the answer" {
						t.Errorf("%s: %q: %d %q %v", name, tt.header, status, text, err)
					}
				})
			}
		}
		clients.Wait()
	}
}

// TestConnectionIsKept checks that a client that has sent its whole body keeps the connection.
func TestConnectionIsKept(t *testing.T) {
	t.Parallel()
	s := start(t, &Closing{}, false)
	conn, err := dial(t, s)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, path := range []string{"/read", "/unread", "/read"} {
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.Close {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
}

// TestClosingStops checks that no connection is kept after the end, and that their number is
// bounded.
func TestClosingStops(t *testing.T) {
	t.Parallel()
	c := &Closing{}
	s := start(t, c, false)
	var conns []net.Conn
	for range maxClosing + 3 {
		conn, err := dial(t, s)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
		if _, err := io.WriteString(conn, "POST /refused HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%v %v", resp, err)
		}
		c.mu.Lock()
		n := len(c.kept)
		c.mu.Unlock()
		if n > maxClosing {
			t.Fatalf("%d connections", n)
		}
	}
	c.Stop()
	if len(c.kept) > 0 {
		t.Errorf("%d connections are left", len(c.kept))
	}
	for _, conn := range conns[:maxClosing] {
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Log(err) // it was reset
		}
	}
	if r := httptest.NewRequest(http.MethodPost, "/", nil); c.keep(r.WithContext(ConnContext(t.Context(), conns[0]))) {
		t.Error("a connection is kept after the end")
	}
}

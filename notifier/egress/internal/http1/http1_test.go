package http1

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// newClient returns a client for tests. Its idle connections are closed at the end
// of the test.
func newClient(t testing.TB) *Client {
	c := &Client{Dial: new(net.Dialer).DialContext, MaxIdle: 100, IdleTimeout: time.Minute}
	t.Cleanup(c.CloseIdle)
	return c
}

// newTransport returns the transport that a client is compared with.
func newTransport(t testing.TB) *http.Transport {
	tr := &http.Transport{MaxResponseHeaderBytes: MaxHead}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// server is a server for tests that records what it gets, byte by byte.
type server struct {
	address string

	mu       sync.Mutex
	requests []string // in the order in which they began
	conns    int
}

// serve starts a server that ends with the test. For each request, it calls answer
// with the number of the request, from 0, and closes the connection if the result
// is false.
func serve(t testing.TB, answer func(n int, c net.Conn) bool) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: l.Addr().String()}
	var open sync.WaitGroup
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		close(done)
		open.Wait()
	})
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			open.Go(func() {
				defer c.Close()
				ended := make(chan struct{})
				defer close(ended)
				go func() {
					select {
					case <-done:
						_ = c.Close()
					case <-ended:
					}
				}()
				s.read(c, answer)
			})
		}
	})
	return s
}

// read reads and answers the requests of a connection.
func (s *server) read(c net.Conn, answer func(n int, c net.Conn) bool) {
	var got bytes.Buffer
	in := bufio.NewReader(io.TeeReader(c, &got))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, got.String())
		s.mu.Unlock()
		got.Reset()
		if !answer(n, c) {
			return
		}
	}
}

// got returns the requests and the number of connections.
func (s *server) got() (requests []string, conns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.conns
}

// always answers each request with text.
func always(text string) func(int, net.Conn) bool {
	return func(_ int, c net.Conn) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	}
}

// request returns a request to s. body may be empty.
func (s *server) request(t testing.TB, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// send sends r and returns the body of the answer.
func send(rt http.RoundTripper, r *http.Request) (string, error) {
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// idle returns the number of idle connections of c.
func idle(c *Client) int {
	c.idle.mu.Lock()
	defer c.idle.mu.Unlock()
	n := 0
	for conn := c.idle.newest; conn != nil; conn = conn.older {
		n++
	}
	if n != c.idle.count {
		panic("the connections are counted wrongly")
	}
	return n
}

// waitForNoise waits until the server has done something with the newest idle
// connection of c. It reads some of what the server has sent.
func waitForNoise(c *Client) {
	for c.idle.newest.raw.Read(c.idle.newest.check) == nil && c.idle.newest.quiet {
		time.Sleep(time.Millisecond)
	}
}

// closing is a body that records that it has been closed.
type closing struct {
	io.Reader
	closed bool
}

func (b *closing) Close() error {
	b.closed = true
	return nil
}

var _ http.RoundTripper = (*Client)(nil)

// A small request and its answer make 23 allocations; with http.Transport, they
// make 44. The race detector adds some, because pools then drop what they hold.
func TestAllocations(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 4096)
		answer := []byte("HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2001 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok")
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}()
	c := newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	message, answer := []byte(`{"title":"Disk almost full"}`), make([]byte, 100)
	allocations := testing.AllocsPerRun(200, func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/", bytes.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, answer[:2]); err != nil {
			t.Fatal(err)
		}
		_, _ = resp.Body.Read(answer)
		_ = resp.Body.Close()
	})
	if allocations > 30 {
		t.Errorf("%v allocations", allocations)
	}
}

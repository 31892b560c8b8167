package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A connection on which the server did something while it was idle is not used
// again, even for a request that must not be repeated.
func TestIdleConnectionIsChecked(t *testing.T) {
	for name, act := range map[string]func(net.Conn){
		"closed":    func(c net.Conn) { _ = c.Close() },
		"half open": func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"reset": func(c net.Conn) {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		},
		"408":  func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
		"text": func(c net.Conn) { _, _ = io.WriteString(c, "more") },
	} {
		conns := make(chan net.Conn, 10)
		s := serve(t, func(n int, c net.Conn) bool {
			conns <- c
			return always(ok)(n, c)
		})
		c := newClient(t)
		for i := range 3 {
			if got, err := send(c, s.request(t, "POST", "/", "message")); err != nil || got != "ok" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			used := <-conns
			if i == 1 {
				act(used)
				waitForNoise(c)
			}
		}
		if got, conns := s.got(); len(got) != 3 || conns != 2 || idle(c) != 1 {
			t.Errorf("%s: %d requests, %d connections, %d idle", name, len(got), conns, idle(c))
		}
	}
}

// A server may close a connection at the moment when it gets a request. Only a
// request that is idempotent is repeated then, and only once.
func TestRepeatedRequests(t *testing.T) {
	for _, tc := range []struct {
		name, method string
		header       http.Header
		want         string // the error
		times        int    // that the server gets the second request
	}{
		{"POST", "POST", nil, "EOF", 1},
		{"PUT", "PUT", nil, "EOF", 1},
		{"DELETE", "DELETE", nil, "EOF", 1},
		{"POST with a key", "POST", http.Header{"Idempotency-Key": {"1"}}, "", 2},
		{"POST with a key that is not sent", "POST", http.Header{"Idempotency-Key": nil}, "", 2},
		{"POST with another key", "POST", http.Header{"X-Idempotency-Key": {"1"}}, "", 2},
		{"GET", "GET", nil, "", 2},
		{"HEAD", "HEAD", nil, "", 2},
		{"OPTIONS", "OPTIONS", nil, "", 2},
	} {
		for _, rt := range []http.RoundTripper{newTransport(t), newClient(t)} {
			s := serve(t, func(n int, c net.Conn) bool {
				return n != 1 && always("HTTP/1.1 204 No Content\r\n\r\n")(n, c)
			})
			for i := range 2 {
				r := s.request(t, tc.method, "/", "message")
				if tc.header != nil {
					r.Header = tc.header
				}
				_, err := send(rt, r)
				if got := errorText(err); i == 0 && err != nil || i == 1 && got != tc.want {
					t.Errorf("%s, %T: %q, want %q", tc.name, rt, got, tc.want)
				}
			}
			if got, _ := s.got(); len(got)-1 != tc.times || got[1] != got[len(got)-1] {
				t.Errorf("%s, %T: %q", tc.name, rt, got)
			}
		}
	}
}

// A request is not repeated if the server has begun to answer, or if it was the
// first one of the connection.
func TestRequestsThatAreNotRepeated(t *testing.T) {
	s := serve(t, func(n int, c net.Conn) bool {
		if n == 1 {
			_, _ = io.WriteString(c, "H")
		}
		return n == 0 && always(ok)(n, c)
	})
	c := newClient(t)
	for i, want := range []string{"", "net/http: HTTP/1.x transport connection broken: malformed HTTP response \"H\"", "EOF"} {
		if _, err := send(c, s.request(t, "GET", "/", "")); errorText(err) != want {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got, conns := s.got(); len(got) != 3 || conns != 2 {
		t.Errorf("%d requests, %d connections", len(got), conns)
	}
}

// failingConn is a connection on which writing fails after some bytes.
type failingConn struct {
	*net.TCPConn
	left *int // negative: does not fail
}

func (c failingConn) Write(p []byte) (int, error) {
	if *c.left < 0 {
		return c.TCPConn.Write(p)
	}
	n, _ := c.TCPConn.Write(p[:*c.left])
	_ = c.CloseWrite()
	return n, errors.New("no more")
}

// If nothing of a request was written, any request is repeated on a new connection.
func TestFailedWrite(t *testing.T) {
	for written, want := range []string{"", "net/http: HTTP/1.x transport connection broken: no more"} {
		s := serve(t, always(ok))
		c, left, dials := newClient(t), -1, 0
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			dials++
			if dials > 1 {
				return nc, nil
			}
			return failingConn{nc.(*net.TCPConn), &left}, nil
		}
		if _, err := send(c, s.request(t, "POST", "/", "message")); err != nil {
			t.Fatal(err)
		}
		left = written
		if _, err := send(c, s.request(t, "POST", "/", "message")); errorText(err) != want {
			t.Errorf("after %d bytes: %v", written, err)
		}
		if dials != 2-written {
			t.Errorf("after %d bytes: %d connections", written, dials)
		}
	}
}

// When the context ends, the request ends at once with its cause, and the
// connection is closed.
func TestCancel(t *testing.T) {
	stopped := errors.New("stopped")
	for _, tc := range []struct{ name, answer string }{
		{"dial", ""},
		{"write", ""},
		{"head", ""},
		{"half a head", "HTTP/1.1 200 O"},
		{"second head", "HTTP/1.1 100 Continue\r\n\r\n"},
		{"body", okLine + "Content-Length: 5\r\n\r\nok"},
		{"chunk", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nok"},
		{"gzip", okLine + "Content-Encoding: gzip\r\nContent-Length: 99\r\n\r\n" + zipped("text")[:12]},
		{"body to the end", okLine + "\r\nok"},
	} {
		for _, deadline := range []bool{false, true} {
			closed := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			s := serve(t, func(n int, c net.Conn) bool {
				if n > 0 {
					_, _ = io.WriteString(c, tc.answer)
					cancel(stopped)
					_, _ = c.Read(make([]byte, 1))
					close(closed)
					return false
				}
				return always(ok)(n, c)
			})
			c := newClient(t)
			if _, err := send(c, s.request(t, "POST", "/", "message")); err != nil {
				t.Fatal(err)
			}
			switch tc.name {
			case "dial":
				c.CloseIdle()
				c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					cancel(stopped)
					<-ctx.Done()
					close(closed)
					return nil, errors.New("cancelled")
				}
			case "write":
				c.CloseIdle()
				c.Dial = func(context.Context, string, string) (net.Conn, error) {
					client, other := net.Pipe()
					go func() {
						_, _ = other.Read(make([]byte, 1))
						cancel(stopped)
						_, _ = other.Write([]byte{'x'}) // waits until the client closes
						close(closed)
					}()
					return client, nil
				}
			}
			r, want := s.request(t, "GET", "/", "").WithContext(ctx), stopped
			if deadline {
				var end context.CancelFunc
				ctx, end = context.WithDeadline(ctx, time.Now().Add(time.Hour))
				defer end()
				r = r.WithContext(ctx)
			}
			_, err := send(c, r)
			if err != want {
				t.Errorf("%s: %v", tc.name, err)
			}
			<-closed
			if n := idle(c); n != 0 {
				t.Errorf("%s: %d idle connections", tc.name, n)
			}
		}
	}
}

// The deadline of a context ends a request as well.
func TestDeadline(t *testing.T) {
	s := serve(t, func(_ int, c net.Conn) bool {
		_, _ = c.Read(make([]byte, 1))
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := newClient(t).RoundTrip(s.request(t, "GET", "/", "").WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// A context that ends after the request does not touch the connection, which may
// have another request then.
func TestCancelAfterTheAnswer(t *testing.T) {
	s := serve(t, always(ok))
	c := newClient(t)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := send(c, s.request(t, "POST", "/", "message").WithContext(ctx)); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if _, conns := s.got(); conns != 1 {
		t.Errorf("%d connections", conns)
	}
}

// Errors of dialling are returned as they are.
func TestDialError(t *testing.T) {
	c := newClient(t)
	failed := errors.New("no route")
	var addresses []string
	c.Dial = func(_ context.Context, network, address string) (net.Conn, error) {
		addresses = append(addresses, network+" "+address)
		return nil, failed
	}
	for _, u := range []string{"http://example.com", "http://example.com:81/", "http://[::1]/", "http://127.0.0.1:/"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.RoundTrip(r); err != failed {
			t.Error(err)
		}
	}
	if got := strings.Join(addresses, ", "); got != "tcp example.com:80, tcp example.com:81, tcp [::1]:80, tcp 127.0.0.1:80" {
		t.Error(got)
	}
}

// A connection that cannot be checked has one request.
func TestConnectionWithoutCheck(t *testing.T) {
	s := serve(t, always(ok))
	c := newClient(t)
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		return struct{ net.Conn }{nc}, err
	}
	for range 2 {
		if _, err := send(c, s.request(t, "POST", "/", "message")); err != nil {
			t.Fatal(err)
		}
	}
	if _, conns := s.got(); conns != 2 {
		t.Errorf("%d connections", conns)
	}
	var _ syscall.Conn = failingConn{} // the connections of other tests can be checked
}

// Each of many requests gets its own answer, also if others fail or are cancelled.
func TestManyRequests(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch body, _ := io.ReadAll(r.Body); n.Add(1) % 7 {
		case 0:
			w.Header().Set("Connection", "close")
			fallthrough
		case 1:
			w.(http.Flusher).Flush()
			fallthrough
		default:
			_, _ = w.Write(body)
		case 2:
			panic(http.ErrAbortHandler)
		}
	}))
	defer s.Close()
	c := newClient(t)
	c.MaxIdle = 8
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				text := strings.Repeat(fmt.Sprint(i, " ", j, " "), 1+i*j)
				r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL, strings.NewReader(text))
				if err != nil {
					t.Error(err)
				}
				if j%5 == 0 {
					go cancel()
				}
				resp, err := c.RoundTrip(r)
				if err == nil && j%6 > 0 {
					var got []byte
					if got, err = io.ReadAll(resp.Body); err == nil && string(got) != text {
						t.Errorf("got %q, want %q", got, text)
					}
				}
				if resp != nil {
					_ = resp.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if n := idle(c); n > c.MaxIdle {
		t.Errorf("%d idle connections", n)
	}
}

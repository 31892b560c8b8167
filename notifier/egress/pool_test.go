package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// repeat answers with the body of the request.
func repeat(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}

// connections starts a server and returns its address, how many connections it
// has got, and how many of them are open.
func connections(t *testing.T) (address string, all, open *atomic.Int64) {
	all, open = new(atomic.Int64), new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(repeat))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			all.Add(1)
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, all, open
}

// do sends a request with a body and checks that the answer repeats it.
func do(t *testing.T, p *Pool, address string, o Options) {
	t.Helper()
	for _, body := range []string{"message", strings.Repeat("a long message ", 10_000)} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.Do(r, o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
			t.Errorf("got %d bytes, want %d: %v", len(got), len(body), err)
		}
		_ = resp.Body.Close()
	}
}

// Connections are used for several requests with the same policy, but never for
// another policy. Close closes them.
func TestConnectionsOfPolicies(t *testing.T) {
	address, all, open := connections(t)
	p := NewPool("test")
	one, other := mustPolicy(t, []string{"127.0.0.1"}, nil), mustPolicy(t, []string{"127.0.0.0/8"}, nil)
	for range 3 {
		for _, policy := range []*Policy{nil, one, other} {
			do(t, p, address, Options{Policy: policy})
		}
	}
	if n := all.Load(); n != 3 {
		t.Errorf("%d connections for three policies", n)
	}
	p.Close()
	for open.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Over TLS, requests are sent with HTTP/2 if the server has it. They share one
// connection.
func TestHTTP2(t *testing.T) {
	var conns atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != "HTTP/2.0" {
			t.Error(r.Proto)
		}
		repeat(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	p := NewPool("test")
	defer p.Close()
	for range 3 {
		do(t, p, s.URL, Options{Insecure: true})
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// The error of a request whose context ends is the cause of the context, whether
// the server does not answer or does not end its answer.
func TestCancelledRequest(t *testing.T) {
	waiting := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
		}
		waiting <- struct{}{}
		<-r.Context().Done()
	})
	http1, http2 := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	http2.EnableHTTP2 = true
	http2.StartTLS()
	defer http1.Close()
	defer http2.Close()
	p := NewPool("test")
	defer p.Close()
	stopped := errors.New("stopped")
	for _, address := range []string{http1.URL + "/head", http1.URL + "/body", http2.URL + "/head", http2.URL + "/body"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-waiting
			cancel(stopped)
		}()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.Do(r, Options{Insecure: true})
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if !errors.Is(err, stopped) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// All requests go to the proxy that the environment names.
func TestProxy(t *testing.T) {
	var got []string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.RequestURI)
		repeat(w, r)
	})
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("NO_PROXY", "")
	p := NewPool("test")
	defer p.Close()
	do(t, p, "http://example.com/path", Options{})
	want := "POST http://example.com/path"
	if strings.Join(got, ", ") != want+", "+want {
		t.Errorf("%q", got)
	}
}

// An error about a connection does not contain its address.
func TestConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	p := NewPool("test")
	defer p.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.Do(r, Options{ConnectTimeout: time.Minute})
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil || err.Error() != "connecting failed: connection refused" {
		t.Error(err)
	}
}

// TestConnectionsOfManyAtOnce checks that more than a thousand requests at once to a host leave
// their connections to the next ones. When three times as many could be under way as connections
// were kept, a message to a hundred destinations of a host made eight times as much work.
func TestConnectionsOfManyAtOnce(t *testing.T) {
	const requests = 1200
	all, arrived := new(atomic.Int64), new(atomic.Int64)
	var release atomic.Pointer[chan struct{}]
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if arrived.Add(1) == requests {
			close(*release.Load())
		}
		<-*release.Load()
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			all.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	p := NewPool("test")
	defer p.Close()
	for range 2 {
		arrived.Store(0)
		release.Store(new(make(chan struct{})))
		var group sync.WaitGroup
		for range requests {
			group.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := p.Do(r, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		group.Wait()
	}
	if n := all.Load(); n > requests {
		t.Errorf("twice %d requests opened %d connections", requests, n)
	}
}

//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"
)

// destination stands for a service: it reads each request and answers 200.
// Paths that begin with /slow are answered after 50 ms, those that begin with
// /hold when a value is received from release, those that begin with /gate when
// it is not closed, and those that begin with /hang never.
type destination struct {
	servers []*httptest.Server
	address string       // over plain HTTP
	large   atomic.Int32 // requests larger than largeRequest
	held    atomic.Int32 // requests that wait for release
	release chan struct{}
	closed  atomic.Bool  // requests to paths that begin with /gate are not answered
	total   atomic.Int64 // requests
	last    atomic.Int64 // when the last request arrived, in nanoseconds since 1970
}

const largeRequest = 50 << 20

// A protocol is a way to reach the destination.
type protocol struct {
	name   string
	url    string // of the destination
	schema string // of the gateway's URLs
	query  string // of the gateway's URLs
}

func startDestination() *destination {
	d := &destination{release: make(chan struct{})}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n > largeRequest {
			d.large.Add(1)
		}
		d.last.Store(time.Now().UnixNano())
		d.total.Add(1)
		switch {
		case strings.HasPrefix(r.URL.Path, "/slow"):
			time.Sleep(50 * time.Millisecond)
		case strings.HasPrefix(r.URL.Path, "/hold"):
			d.held.Add(1)
			<-d.release
			d.held.Add(-1)
		case strings.HasPrefix(r.URL.Path, "/hang"), strings.HasPrefix(r.URL.Path, "/gate") && d.closed.Load():
			<-r.Context().Done()
		}
	})
	plain, http1, http2 := httptest.NewServer(handler), httptest.NewUnstartedServer(handler), httptest.NewUnstartedServer(handler)
	http2.EnableHTTP2 = true
	http1.StartTLS()
	http2.StartTLS()
	d.servers = []*httptest.Server{http2, http1, plain}
	d.address = plain.Listener.Addr().String()
	return d
}

// protocols returns the ways to reach the destination, the most usual one first.
func (d *destination) protocols() []protocol {
	return []protocol{
		{"HTTPS, HTTP/2", d.servers[0].URL, "jsons", "?verify=no"},
		{"HTTPS, HTTP/1.1", d.servers[1].URL, "jsons", "?verify=no"},
		d.plain(),
	}
}

// plain returns the way to reach the destination without TLS.
func (d *destination) plain() protocol {
	return protocol{"HTTP", d.servers[2].URL, "json", ""}
}

// gatewayURL returns the gateway's URL for a path of the destination.
func (p protocol) gatewayURL(path string) string {
	_, address, _ := strings.Cut(p.url, "://")
	return p.schema + "://" + address + path + p.query
}

// key returns a key with n destinations whose paths begin with path.
func (p protocol) key(name, path string, n int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\t\tkey %s {\n", name)
	for i := range n {
		fmt.Fprintf(&out, "\t\t\turl %s\n", p.gatewayURL(fmt.Sprintf("%s/%d", path, i)))
	}
	out.WriteString("\t\t}\n")
	return out.String()
}

// close ends the servers and their connections.
func (d *destination) close() {
	for _, s := range d.servers {
		_ = s.Config.Close()
	}
}

// lastArrival returns when the last request arrived.
func (d *destination) lastArrival() time.Time { return time.Unix(0, d.last.Load()) }

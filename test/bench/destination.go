package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// destination stands for a service: it reads each request and answers 200.
// Paths that begin with /slow are answered after 50 ms, those that begin with
// /hold when a value is received from release, and those that begin with /hang
// never.
type destination struct {
	server  *http.Server
	address string
	large   atomic.Int32 // requests larger than largeRequest
	held    atomic.Int32 // requests that wait for release
	release chan struct{}
	total   atomic.Int64 // requests
	last    atomic.Int64 // when the last request arrived, in nanoseconds since 1970
}

const largeRequest = 50 << 20

func startDestination() *destination {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	d := &destination{address: l.Addr().String(), release: make(chan struct{})}
	d.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
		case strings.HasPrefix(r.URL.Path, "/hang"):
			<-r.Context().Done()
		}
	})}
	go func() { _ = d.server.Serve(l) }()
	return d
}

// lastArrival returns when the last request arrived.
func (d *destination) lastArrival() time.Time { return time.Unix(0, d.last.Load()) }

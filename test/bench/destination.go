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
// Paths that begin with /slow are answered after 50 ms.
type destination struct {
	server  *http.Server
	address string
	large   atomic.Int32 // requests larger than largeRequest
}

const largeRequest = 50 << 20

func startDestination() *destination {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	d := &destination{address: l.Addr().String()}
	d.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n > largeRequest {
			d.large.Add(1)
		}
		if strings.HasPrefix(r.URL.Path, "/slow") {
			time.Sleep(50 * time.Millisecond)
		}
	})}
	go func() { _ = d.server.Serve(l) }()
	return d
}

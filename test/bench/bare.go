//go:build linux

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"
)

// startBare starts this program as the server of [serveBare]. It shows the cost
// of net/http itself for requests to url.
func (b *bench) startBare(url string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &process{admin: address, gateway: address, command: exec.Command(self, "-bare", url)} //nolint:gosec // this program
	p.command.Env = append(os.Environ(), "BENCH_BARE_LISTEN="+address)
	return p, p.begin()
}

// serveBare answers POST /n after it has sent n concurrent requests with the
// same body to url, and GET /metrics with the counter that [usageOf] reads. It
// sends with long-lived goroutines, as the gateway does.
func serveBare(url string) error {
	const deliveries = 1024 // as many as the gateway makes at once
	t := &http.Transport{
		MaxIdleConns: deliveries, MaxIdleConnsPerHost: deliveries, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the bench's own destination
	}
	jobs := make(chan func())
	for range deliveries {
		go func() {
			for work := range jobs {
				work()
			}
		}()
	}
	server := &http.Server{Addr: os.Getenv("BENCH_BARE_LISTEN"), ReadHeaderTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			_, _ = fmt.Fprintf(w, "go_memstats_mallocs_total %d\n", m.Mallocs)
			return
		}
		body, err := io.ReadAll(r.Body)
		n, _ := strconv.Atoi(r.URL.Path[1:])
		done := make(chan error, n)
		work := func() { done <- roundTrip(t, url+"/", body) }
		for range n {
			jobs <- work
		}
		for range n {
			err = errors.Join(err, <-done)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	return server.ListenAndServe()
}

// roundTrip sends body to address with a minimal request.
func roundTrip(t *http.Transport, address string, body []byte) error {
	q, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	return readResponse(t.RoundTrip(q)) //nolint:bodyclose // readResponse closes
}

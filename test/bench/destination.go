//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// destination stands for a service: it reads each request and answers 200. The beginning of a path
// adds to this:
//
//	/slow   answers after 50 ms
//	/hold   answers when a value is received from release
//	/gate   answers unless it is closed
//	/hang   never answers
//	/timed  sends to delays how long the message took, whose text is when it was sent
type destination struct {
	http2, http1, plain protocol
	servers             []*httptest.Server
	large               atomic.Int32 // requests larger than largeRequest
	held                atomic.Int32 // requests that wait for release
	release             chan struct{}
	closed              atomic.Bool
	total               atomic.Int64 // requests
	last                atomic.Int64 // when the last request arrived, in nanoseconds since 1970
	delays              chan time.Duration
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
	d := &destination{release: make(chan struct{}), delays: make(chan time.Duration, timedMessages)}
	plain, http1, http2 := httptest.NewServer(d), httptest.NewUnstartedServer(d), httptest.NewUnstartedServer(d)
	http2.EnableHTTP2 = true
	http1.StartTLS()
	http2.StartTLS()
	d.servers = []*httptest.Server{http2, http1, plain}
	d.http2 = protocol{"HTTPS, HTTP/2", http2.URL, "jsons", "?verify=no"}
	d.http1 = protocol{"HTTPS, HTTP/1.1", http1.URL, "jsons", "?verify=no"}
	d.plain = protocol{"HTTP", plain.URL, "json", ""}
	return d
}

func (d *destination) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	begins := func(path string) bool { return strings.HasPrefix(r.URL.Path, path) }
	if begins("/timed") {
		d.time(r.Body)
	}
	if n, _ := io.Copy(io.Discard, r.Body); n > largeRequest {
		d.large.Add(1)
	}
	d.last.Store(time.Now().UnixNano())
	d.total.Add(1)
	switch {
	case begins("/slow"):
		time.Sleep(50 * time.Millisecond)
	case begins("/hold"):
		d.held.Add(1)
		<-d.release
		d.held.Add(-1)
	case begins("/hang"), begins("/gate") && d.closed.Load():
		<-r.Context().Done()
	}
}

// time sends to delays how long a message took.
func (d *destination) time(body io.Reader) {
	now := time.Now()
	var m struct{ Message string }
	if json.NewDecoder(body).Decode(&m) == nil {
		if sent, err := strconv.ParseInt(m.Message, 10, 64); err == nil {
			d.delays <- now.Sub(time.Unix(0, sent))
		}
	}
}

// await waits until the destination has had n requests.
func (d *destination) await(n int64) error {
	for end := time.Now().Add(drainTime); d.total.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("the messages are not delivered")
		}
	}
	return nil
}

// lastArrival returns when the last request arrived.
func (d *destination) lastArrival() time.Time { return time.Unix(0, d.last.Load()) }

// close ends the servers and their connections.
func (d *destination) close() {
	for _, s := range d.servers {
		_ = s.Config.Close()
	}
}

// gatewayURL returns the gateway's URL for a path of the destination.
func (p protocol) gatewayURL(path string) string {
	_, address, _ := strings.Cut(p.url, "://")
	return p.schema + "://" + address + path + p.query
}

// key returns a key with n destinations whose paths begin with path.
func (p protocol) key(name, path string, n int) string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = p.gatewayURL(fmt.Sprintf("%s/%d", path, i))
	}
	return keyOf(name, urls...)
}

// keys returns n keys with one destination each, and the paths of their messages.
func (p protocol) keys(path string, n int) (keys string, paths []string) {
	for i := range n {
		name := fmt.Sprintf("k%d", i)
		keys += p.key(name, path+"/"+name, 1)
		paths = append(paths, "/notify/"+name)
	}
	return keys, paths
}

// keyOf returns the block of a key.
func keyOf(name string, urls ...string) string {
	return "key " + name + " {\nurl " + strings.Join(urls, "\nurl ") + "\n}\n"
}

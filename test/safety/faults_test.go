package safety

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// fault is a destination with a fault.
type fault struct {
	name  string
	query string // of its URL
	serve func(net.Conn)
	want  string // a part of the result's error
	good  bool   // the message is delivered in the end
}

// answering sends the n-th answer to the n-th request, and the last one to all
// that follow.
func answering(answers ...string) func(net.Conn) {
	var mu sync.Mutex
	n := 0
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		answer := answers[min(n, len(answers)-1)]
		n++
		mu.Unlock()
		_, _ = io.WriteString(c, answer)
	}
}

func status(line string, header ...string) string {
	return "HTTP/1.1 " + line + "\r\nContent-Length: 0\r\nConnection: close\r\n" + strings.Join(append(header, ""), "\r\n") + "\r\n"
}

// forever reads a request, writes first, and then writes text again and again.
func forever(first, text string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		// Bytes before the request is sent are not a response.
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		if _, err := io.WriteString(c, first); err != nil {
			return
		}
		for {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

func faults() []fault {
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	megabyte := strings.Repeat("gigabyte", 1<<17)
	return []fault{
		{name: "resets", want: "reset", serve: func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
		}},
		{name: "hangs up", want: "closed the connection", serve: func(c net.Conn) { _, _ = c.Read(make([]byte, 64<<10)) }},
		{name: "accepts and stays silent", want: "timeout", serve: silent},
		{name: "stays silent, rto", query: "?rto=0.3", want: "no answer within", serve: silent},
		{name: "one byte at a time in the headers", want: "timeout", serve: forever("HTTP/1.1 200 OK\r\nX: ", "x", 100*time.Millisecond)},
		{name: "one byte at a time in the answer", want: "timeout", serve: forever("HTTP/1.1 200 OK\r\n\r\n", "x", 100*time.Millisecond)},
		{name: "a gigabyte of answer", want: "longer than 1 MiB", serve: forever("HTTP/1.1 200 OK\r\n\r\n", megabyte, 0)},
		{
			name: "a gigabyte of refusal", want: "longer than 1 MiB",
			serve: forever("HTTP/1.1 400 Bad\r\nContent-Length: 1073741824\r\n\r\n", megabyte, 0),
		},
		{
			name: "a gigabyte of headers", want: "headers exceeded 65536 bytes",
			serve: forever("HTTP/1.1 200 OK\r\n", "X-Y: "+strings.Repeat("z", 1000)+"\r\n", 0),
		},
		{name: "a gigabyte of status", want: "headers exceeded 65536 bytes", serve: forever("HTTP/1.1 200 ", megabyte, 0)},
		{
			name: "a gigabyte of redirect", query: "?redirect=yes", want: "more than 5 redirects",
			serve: forever("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", megabyte, 0),
		},
		{name: "invalid HTTP", want: "malformed", serve: answering("SSH-2.0-OpenSSH_9.2\r\n")},
		{name: "informs without end", want: "headers exceeded 65536 bytes", serve: forever("", "HTTP/1.1 102 Processing\r\n\r\n", 0)},
		{
			name: "broken chunks", want: "invalid byte in chunk length",
			serve: answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\nx"),
		},
		{name: "short answer", want: "EOF", serve: answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")},
		{
			name: "redirects in a circle", query: "?redirect=yes", want: "redirects",
			serve: answering(status("307 Temporary Redirect", "Location: /again")),
		},
		{
			name: "redirects to nowhere", query: "?redirect=yes", want: "redirected to an invalid address",
			serve: answering(status("307 Temporary Redirect", "Location: ftp://x/")),
		},
		{name: "429", want: "429 Too Many Requests", serve: answering(status("429 Too Many"))},
		{name: "429 for long", want: "after the timeout", serve: answering(status("429 Too Many", "Retry-After: 3600"))},
		{name: "429 for a moment", good: true, serve: answering(status("429 Too Many", "Retry-After: 0.2"), status("200 OK"))},
		{name: "429 with nonsense", want: "429", serve: answering(status("429 Too Many", "Retry-After: never", "Retry-After: -1"))},
		{name: "429 again and again", want: "429", serve: answering(status("429 Too Many", "Retry-After: 0"))},
		{name: "503 for a moment", good: true, serve: answering(status("503 Busy", "Retry-After: 0.2"), status("200 OK"))},
		{name: "500", want: "500 Internal Server Error", serve: answering(status("500 Oh"))},
		{name: "500, then 200", query: "?retry=1&wait=0.1", good: true, serve: answering(status("500 Oh"), status("200 OK"))},
		{name: "500, then 200, without retry", want: "500", serve: answering(status("500 Oh"), status("200 OK"))},
		{name: "hangs up, then 200", query: "?retry=1&wait=0.1", good: true, serve: answering("", status("200 OK"))},
		{name: "refuses", want: "refused"},
		{name: "TLS", query: "jsons", want: "closed the connection", serve: answering(status("200 OK"))},
	}
}

// TestFaults checks that a faulty destination delays no other, that its result
// names the fault within the timeout, and that it leaves nothing behind.
func TestFaults(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	var mu sync.Mutex
	arrived := map[string]int{}
	fine := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that the gateway keeps no connection
		mu.Lock()
		defer mu.Unlock()
		arrived[r.URL.Path]++
	})
	g := start(t, "", "timeout "+seconds(3)+"\nservices {\nallow json\n}\nkey k {\nurl json://"+
		authority(fine)+"/k\n}\negress {\nallow 127.0.0.1\n}")
	g.post("/notify/k", message{"body": "x"})
	var urls []string
	all := faults()
	for i, f := range all {
		address := "127.0.0.1:" + porttest.Free()
		if f.serve != nil {
			address = listen(t, "127.0.0.1:0", f.serve)
		}
		scheme := "json"
		if f.query == "jsons" {
			scheme, f.query = "jsons", ""
		}
		urls = append(urls, scheme+"://"+address+"/"+f.query, fmt.Sprintf("json://%s/%d", authority(fine), i))
	}
	// The cost of a message without a fault, for comparison.
	before := g.goroutines()
	peak, heap := g.peak(), g.memory().HeapAlloc

	done := make(chan reply)
	go func() { done <- g.post("/notify", message{"body": "x", "urls": urls}) }()
	// The other destinations have the message before the slow ones are done.
	eventually(t, "the others have the message", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(arrived) == len(all)+1
	})
	select {
	case <-done:
		t.Error("the good destinations were delayed, or none was slow")
	default:
	}
	got := <-done
	if got.Status != 424 || len(got.Results) != len(urls) {
		t.Fatalf("status %d, %d results", got.Status, len(got.Results))
	}
	for i, f := range all {
		bad, good := got.Results[2*i], got.Results[2*i+1]
		if good.Status != "delivered" || good.Attempts != 1 {
			t.Errorf("good destination with %s: %+v", f.name, good)
		}
		if (bad.Status == "delivered") != f.good {
			t.Errorf("%s: %+v", f.name, bad)
		}
		if !f.good && (f.want == "" || !strings.Contains(bad.Error, f.want)) {
			t.Errorf("%s: error %q, want %q in it", f.name, bad.Error, f.want)
		}
		if len(bad.Error) > 2000 {
			t.Errorf("%s: the result is %d characters long", f.name, len(bad.Error))
		}
		if testing.Verbose() {
			t.Logf("%-35s %d× %s", f.name, bad.Attempts, bad.Error)
		}
	}
	if more := g.peak() - peak; more > 96<<20 {
		t.Errorf("the memory grew by %d MiB", more>>20)
	}
	g.waitIdle(before)
	g.waitFreed(heap)
}

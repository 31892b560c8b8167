package safety

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// stall opens n connections, writes the beginning of a request to each, and
// keeps them open until hangUp is called or the test ends.
func (g *gateway) stall(n int, request string) (hangUp func()) {
	g.t.Helper()
	var wg sync.WaitGroup
	var conns []net.Conn
	hangUp = func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	g.t.Cleanup(hangUp)
	for range n {
		c, err := net.Dial("tcp", g.address())
		if err != nil {
			g.t.Fatal(err)
		}
		conns = append(conns, c)
		wg.Go(func() {
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			if _, err := io.WriteString(c, g.self(request)); err != nil {
				g.t.Errorf("sending: %v", err)
			}
		})
	}
	wg.Wait()
	return hangUp
}

// unfinishedForm returns a request with files of 1 MiB in a multipart form that
// stops within its last field.
func unfinishedForm(path string, files int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: SELF\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n", path,
		(files+1)<<20)
	for i := range files {
		fmt.Fprintf(&b, "--b\r\nContent-Disposition: form-data; name=\"attach\"; filename=\"%d.bin\"\r\n\r\n%s\r\n",
			i, strings.Repeat("x", 1<<20))
	}
	b.WriteString("--b\r\nContent-Disposition: form-data; name=\"body\"\r\n\r\nthe ")
	return b.String()
}

// TestStalledFormsTakeBoundedMemory checks that the files of unfinished requests
// are kept in memory up to a limit, and above it on disk. 60 requests with 6
// files of 1 MiB each once took 630 MiB. If full is not set, there are half as
// many requests, and of one size.
func TestStalledFormsTakeBoundedMemory(t *testing.T) { //nolint:tparallel // the sizes are measured one after the other
	t.Parallel()
	const budget = 64 << 20
	for _, tt := range racetest.Part([][2]int{{amount(full, 60, 30), 6}, {200, 2}}, 2) {
		forms, files := tt[0], tt[1]
		t.Run(fmt.Sprint(forms), func(t *testing.T) {
			fine := newRecorder(t)
			g := start(t, "", "client_limits {\nmemory 64MiB\n}\nkey k {\nurl "+fine.url+"\n}")
			peak := g.peak()
			g.stall(forms, unfinishedForm("/notify/k", files))
			eventually(t, "files above the limit are on disk", func() bool { return len(g.files()) >= forms*files-budget/2>>20 })
			// The same again for garbage, and 128 KiB for each connection.
			if n, bound := g.peak()-peak, int64(2*budget+forms*128<<10); n > bound {
				t.Errorf("%d forms take %d MiB, want at most %d", forms, n>>20, bound>>20)
			}
			if got := g.post("/notify/k", message{"body": "the alert"}); got.Status != http.StatusOK {
				t.Errorf("an alert meanwhile: %d %s", got.Status, got.text())
			}
			long := message{"body": strings.Repeat("x", 1<<20)}
			if got := g.post("/notify/k", long); got.Status != http.StatusOK {
				t.Errorf("a long text meanwhile: %d %s", got.Status, got.text())
			}
		})
	}
}

// TestStalledTextsTakeBoundedMemory checks that unfinished long texts take bounded memory, that
// texts to /notify leave memory for texts to keys, and that short alerts are always accepted.
func TestStalledTextsTakeBoundedMemory(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const budget = 64 << 20
	fine := newRecorder(t)
	g := start(t, "", "client_limits {\nmemory 64MiB\nin_flight_per_address 100\n"+
		"}\nkey k {\nurl "+fine.url+"\n}\negress {\nallow 127.0.0.1\n}")
	peak := g.peak()
	text := strings.Repeat("x", 1<<20)
	request := func(path string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: SELF\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{\"body\":\"%s",
			path, 2<<20, text)
	}
	refused := func(path string, m message) {
		t.Helper()
		eventually(t, "a long text to "+path+" is refused", func() bool {
			got := g.post(path, m)
			if got.Status == http.StatusServiceUnavailable &&
				(got.Header.Get("Retry-After") != "1" || !strings.Contains(got.Error, "client_limits memory 64 MiB")) {
				t.Errorf("%v %s", got.Header, got.Error)
			}
			return got.Status == http.StatusServiceUnavailable
		})
	}
	long := message{"body": text, "urls": fine.url}
	clients := g.stall(60, request("/notify"))
	refused("/notify", long)
	if got := g.post("/notify/k", long); got.Status != http.StatusOK {
		t.Errorf("a long text to a key meanwhile: %d %s", got.Status, got.text())
	}
	keys := g.stall(60, request("/notify/k"))
	refused("/notify/k", long)
	if n := g.peak() - peak; n > 2*budget {
		t.Errorf("the texts take %d MiB", n>>20)
	}
	for range 20 {
		if got := g.post("/notify/k", message{"body": text[:30<<10]}); got.Status != http.StatusOK {
			t.Fatalf("an alert meanwhile: %d %s", got.Status, got.text())
		}
	}
	clients()
	keys()
	eventually(t, "all memory is released", func() bool {
		_, metrics := g.get(g.adminURL+"/metrics", "*/*")
		return strings.Contains(metrics, "caddy_notify_memory_bytes 0\n")
	})
	for _, path := range []string{"/notify", "/notify/k"} {
		if got := g.post(path, long); got.Status != http.StatusOK {
			t.Errorf("afterwards: %d %s", got.Status, got.text())
		}
	}
}

package safety

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// stalled is a destination that does not answer before release.
type stalled struct {
	url     string
	arrived atomic.Int32
	release func()
}

func newStalled(t *testing.T) *stalled {
	free := make(chan struct{})
	h := &stalled{release: sync.OnceFunc(func() { close(free) })}
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.arrived.Add(1)
		<-free
		w.Header().Set("Connection", "close")
	})
	t.Cleanup(h.release) // before the server is closed, which waits for its connections
	h.url = "json://" + authority(s) + "/"
	return h
}

// TestOverload checks that requests above max_in_flight get a 503 with
// Retry-After and take no memory, and that the others are finished. If full is
// set, there are twice as many.
func TestOverload(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const bound, burst = 50, 300
	more := amount(full, 2000, 1000)
	if racetest.Enabled {
		more = 500
	}
	h := newStalled(t)
	g := start(t, "", fmt.Sprintf("timeout 5m\nmax_in_flight %d\nkey k {\nurl %s\n}", bound, h.url))
	before, peak, heap := g.goroutines(), g.peak(), g.memory().HeapAlloc
	body := strings.Repeat("word ", 200<<10/5)
	var taken, refused atomic.Int32
	post := func() {
		switch got := g.post("/notify/k", message{"body": body}); {
		case got.Status == 200:
			taken.Add(1)
		case got.Status == 503 && got.Header.Get("Retry-After") == "1" && strings.Contains(got.Error, "max_in_flight"):
			refused.Add(1)
		default:
			t.Errorf("status %d, Retry-After %q: %s", got.Status, got.Header.Get("Retry-After"), got.Body)
		}
	}
	var first, then sync.WaitGroup
	for range burst {
		first.Go(post)
	}
	eventually(t, "all but so many are refused", func() bool { return h.arrived.Load() == bound && refused.Load() == burst-bound })
	for range 20 {
		then.Go(func() {
			for range more / 20 {
				post()
			}
		})
	}
	then.Wait()
	if n := int(refused.Load()); n != burst-bound+more || taken.Load() > 0 {
		t.Errorf("%d refused, %d taken", n, taken.Load())
	}
	_, metrics := g.get(g.adminURL+"/metrics", "*/*")
	for _, line := range []string{
		fmt.Sprintf("caddy_notify_messages_total{outcome=\"overloaded\"} %d\n", burst-bound+more),
		fmt.Sprintf("caddy_notify_in_flight %d\n", bound),
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if status, _ := g.get(g.url+"/up", "*/*"); status != 200 {
		t.Errorf("another handler of the site has status %d", status)
	}
	// The refused requests have 250 MB in all, or 450 MB.
	if n := g.peak() - peak; n > 150<<20 {
		t.Errorf("the memory grew by %d MiB", n>>20)
	}
	h.release()
	first.Wait()
	if n := taken.Load(); n != bound || h.arrived.Load() != bound {
		t.Errorf("%d taken, %d arrived", n, h.arrived.Load())
	}
	if got := g.post("/notify/k", message{"body": body}); got.Status != 200 {
		t.Errorf("afterwards: %d %s", got.Status, got.Body)
	}
	g.waitIdle(before)
	g.waitFreed(heap)
}

// TestSlowClientsTimeOut checks that unfinished requests count as in
// flight only until the server's read timeout.
func TestSlowClientsTimeOut(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const bound = 20
	fine := newDiscard(t)
	// A busy machine reads all requests before the first one times out.
	g := start(t, "servers {\ntimeouts {\nread_body "+seconds(4)+"\n}\n}",
		fmt.Sprintf("max_in_flight %d\nkey k {\nurl json://%s/\n}", bound, authority(fine)))
	before := g.goroutines()
	slow := make([]net.Conn, bound)
	for i := range slow {
		c, err := net.Dial("tcp", g.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c,
			"POST /notify/k HTTP/1.1\r\nHost: "+g.address()+"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"body\":")
		slow[i] = c
	}
	eventually(t, "all places are taken", func() bool {
		_, metrics := g.get(g.adminURL+"/metrics", "*/*")
		return strings.Contains(metrics, fmt.Sprintf("caddy_notify_in_flight %d\n", bound))
	})
	if got := g.post("/notify/k", message{"body": "x"}); got.Status != 503 {
		t.Errorf("with slow clients: %d %s", got.Status, got.Body)
	}
	eventually(t, "a place is free", func() bool { return g.post("/notify/k", message{"body": "x"}).Status == 200 })
	for _, c := range slow {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 408 ") {
			t.Errorf("a slow client got %q, %v", line, err)
		}
	}
	g.waitIdle(before)
}

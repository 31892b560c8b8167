package safety

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tally is a destination that counts how often each message has arrived. It
// takes a moment for each.
type tally struct {
	mu  sync.Mutex
	got map[string]int
}

func (y *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Title       string
		Attachments []struct{ Base64 string }
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n, _ := strconv.Atoi(m.Title)
	if n%20 == 0 && (len(m.Attachments) != 1 || len(m.Attachments[0].Base64) < largeFile) {
		w.WriteHeader(http.StatusBadRequest) // its file is gone
		return
	}
	time.Sleep(time.Duration(n%7) * 30 * time.Millisecond)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.got[m.Title]++
}

// largeFile is one that the gateway keeps in a temporary file.
const largeFile = 1<<20 + 1

// load posts messages with numbers at a rate, each on a connection of its own,
// until it is told to stop. It keeps what became of each: its status, or 0
// where there was no answer in so many tries.
type load struct {
	statuses sync.Map // of number
	errs     sync.Map
	stopped  atomic.Bool
	sent     int
	done     chan struct{}
}

func (g *gateway) load(rate, first, tries int) *load {
	l := &load{done: make(chan struct{})}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	file := bytes.Repeat([]byte("x"), largeFile)
	go func() {
		defer close(l.done)
		var wg sync.WaitGroup
		defer wg.Wait()
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for n := first; !l.stopped.Load(); n++ {
			<-tick.C
			l.sent++
			wg.Go(func() {
				m := message{"title": fmt.Sprint(n), "body": "x"}
				if n%20 == 0 {
					m["attach"] = map[string]any{"base64": file, "filename": "f"}
				}
				path := []string{"/notify", "/notify/k"}[n%2]
				body, _ := json.Marshal(m)
				var resp *http.Response
				var err error
				for range tries {
					if resp, err = client.Post(g.url+path, "application/json", bytes.NewReader(body)); err == nil {
						break
					}
				}
				if err != nil {
					l.statuses.Store(n, 0)
					l.errs.Store(n, err)
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 200 {
					l.errs.Store(n, fmt.Errorf("%d %s %w", resp.StatusCode, text, err))
				}
				l.statuses.Store(n, resp.StatusCode)
			})
		}
	}()
	return l
}

// end stops the load, and waits for the answers that are out.
func (l *load) end() {
	l.stopped.Store(true)
	<-l.done
}

// While messages come in, the configuration is replaced fifty times, and then
// the gateway is told to end. Every request gets an answer, and every message
// that was accepted arrives once.
//
// On a reload Caddy opens its sockets anew beside the old ones, and a
// connection that waits at the old one at that moment is closed, before
// anything of it is read. A client that tries again then must not find its
// message sent twice.
func TestReloadAndStopUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	y := &tally{got: map[string]int{}}
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		y.ServeHTTP(w, r)
	})
	block := func(n int) string {
		u := "json://" + authority(s) + "/"
		return fmt.Sprintf("timeout %ds\ndefault_urls %s\nkey k {\nurl %s a\n}", 10+n, u, u)
	}
	rate := 200
	if raced() {
		rate = 40
	}
	g := start(t, "", block(0))
	warm := g.load(20, 1_000_000, 1) // what begins with the first messages is no leak
	time.Sleep(500 * time.Millisecond)
	warm.end()
	g.reload("", block(99))
	before := g.goroutines()

	l := g.load(rate, 1, 5)
	for n := range 50 {
		g.reload("", block(n%40+1))
		time.Sleep(100 * time.Millisecond)
	}
	l.end()
	l.statuses.Range(func(n, status any) bool {
		if times := y.times(n.(int)); status != 200 || times != 1 {
			err, _ := l.errs.Load(n)
			t.Errorf("message %d: status %d, arrived %d times: %v", n, status, times, err)
		}
		return true
	})
	if l.sent < 2*rate {
		t.Errorf("only %d messages were sent", l.sent)
	}
	g.settles(before)

	l = g.load(rate, 100_000, 1)
	time.Sleep(time.Second)
	if err := g.stop(); err != nil {
		t.Errorf("the gateway ended: %v", err)
	}
	l.end()
	answered := 0
	l.statuses.Range(func(n, status any) bool {
		times := y.times(n.(int))
		err, _ := l.errs.Load(n)
		switch {
		case status == 200 && times == 1:
			answered++
		case status == 0 && times == 0: // the gateway was gone
		default:
			t.Errorf("message %d: status %d, arrived %d times: %v", n, status, times, err)
		}
		return true
	})
	if answered < rate/2 {
		t.Errorf("only %d messages were answered before the end", answered)
	}
	if files := g.files(); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}

func (y *tally) times(n int) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.got[strconv.Itoa(n)]
}

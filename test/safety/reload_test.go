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

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// counter is a destination that counts the arrivals of each message. It
// answers with a delay of up to 6 times step.
type counter struct {
	step time.Duration
	mu   sync.Mutex
	got  map[string]int
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		w.WriteHeader(http.StatusBadRequest) // the file is missing
		return
	}
	time.Sleep(time.Duration(n%7) * c.step)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got[m.Title]++
}

// largeFile is the size of a file that the gateway stores in a temporary file.
const largeFile = 1<<20 + 1

// load is a stream of numbered messages and their outcomes.
type load struct {
	statuses sync.Map // status of each number; 0 if no try got a response
	errs     sync.Map
	answered atomic.Int32 // responses with status 200
	stopped  atomic.Bool
	sent     int
	done     chan struct{}
}

// load posts messages at a rate per second, numbered from first, each over a new connection,
// until end is called. A slow machine lowers the rate, since the number of concurrent requests is
// limited, and so is the number of files, which take long and memory. A request without a
// response is repeated, up to tries times in all: net/http drops a request that arrives after a
// reload on a connection from before it, which is frequent on a slow machine.
func (g *gateway) load(rate, first, tries int) *load {
	const maxWaiting, maxFiles = 64, 8
	l := &load{done: make(chan struct{})}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}
	file := bytes.Repeat([]byte("x"), largeFile)
	go func() {
		defer close(l.done)
		var wg sync.WaitGroup
		defer wg.Wait()
		waiting, files := make(chan struct{}, maxWaiting), make(chan struct{}, maxFiles)
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for n := first; !l.stopped.Load(); n++ {
			<-tick.C
			waiting <- struct{}{}
			l.sent++
			wg.Go(func() {
				defer func() { <-waiting }()
				m := message{"title": fmt.Sprint(n), "body": "x"}
				if n%20 == 0 {
					files <- struct{}{}
					defer func() { <-files }()
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
					time.Sleep(100 * time.Millisecond)
				}
				if err != nil {
					l.statuses.Store(n, 0)
					l.errs.Store(n, err)
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err == nil && resp.StatusCode == 200 {
					l.answered.Add(1)
				} else {
					l.errs.Store(n, fmt.Errorf("%d %s %v", resp.StatusCode, text, err))
				}
				l.statuses.Store(n, resp.StatusCode)
			})
		}
	}()
	return l
}

// waitAccepted waits until n more messages are accepted.
func (l *load) waitAccepted(t *testing.T, n int) {
	t.Helper()
	want := l.answered.Load() + int32(n)
	eventually(t, "the gateway accepts messages", func() bool { return l.answered.Load() >= want })
}

// end stops the load and waits for outstanding responses.
func (l *load) end() {
	l.stopped.Store(true)
	<-l.done
}

// TestReloadAndStopUnderLoad reloads the configuration 15 times, or 50 times if
// full is set or races are detected, and then stops the gateway while messages come in. Every request
// gets a response, and every accepted message arrives once.
//
// On a reload, Caddy opens new sockets beside the old ones and closes
// connections that an old socket has not accepted yet, without reading from
// them. A client that then repeats its request must not cause a second message.
func TestReloadAndStopUnderLoad(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	c := &counter{step: 30 * time.Millisecond, got: map[string]int{}}
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		c.ServeHTTP(w, r)
	})
	block := func(n int) string {
		u := "json://" + authority(s) + "/"
		return fmt.Sprintf("timeout %ds\ndefault_urls %s\nkey k {\nurl %s a\n}", 60+n, u, u)
	}
	rate, reloads := 200, amount(full || racetest.Enabled, 50, 15)
	if racetest.Enabled {
		rate = 40
	}
	g := start(t, "", block(0))
	warm := g.load(20, 1_000_000, 1) // the first messages start goroutines that remain
	warm.waitAccepted(t, 10)
	warm.end()
	g.reload("", block(99))
	before := g.goroutines()

	l := g.load(rate, 1, 30)
	for n := range reloads {
		g.reload("", block(n%40+1))
		l.waitAccepted(t, rate/20)
	}
	l.end()
	l.statuses.Range(func(n, status any) bool {
		if times := c.times(n.(int)); status != 200 || times != 1 {
			err, _ := l.errs.Load(n)
			t.Errorf("message %d: status %d, arrived %d times: %v", n, status, times, err)
		}
		return true
	})
	if l.sent < reloads*rate/25 {
		t.Errorf("only %d messages were sent", l.sent)
	}
	g.waitIdle(before)

	l = g.load(rate, 100_000, 1)
	l.waitAccepted(t, rate/2)
	if err := g.stop(); err != nil {
		t.Errorf("the gateway ended: %v", err)
	}
	l.end()
	answered := 0
	l.statuses.Range(func(n, status any) bool {
		times := c.times(n.(int))
		err, _ := l.errs.Load(n)
		switch {
		case status == 200 && times == 1:
			answered++
		case status == 0 && times == 0: // the gateway had stopped
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

func (c *counter) times(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[strconv.Itoa(n)]
}

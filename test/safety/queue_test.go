package safety

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// queueOption returns the global option that turns the queue on, in a folder.
func queueOption(folder string, lines ...string) string {
	text := "notify {\nqueue {\npath " + folder + "\n"
	for _, l := range lines {
		text += l + "\n"
	}
	return text + "}\n}"
}

// newFolder returns a path for the folder of a queue. The folder does not exist
// yet.
func newFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "queue")
}

// receiver is a destination that counts the messages that it has accepted, by
// their titles.
type receiver struct {
	url string

	mu   sync.Mutex
	got  map[string]int
	last []byte        // the first file of the last message
	hold chan struct{} // if not nil, requests wait until it is closed
	held int           // requests that wait
}

// newReceiver starts a receiver. status, if not nil, returns the status of the
// answer to a message. Only messages with the status 200 are counted.
func newReceiver(t *testing.T, status func(title string) int) *receiver {
	t.Helper()
	c := &receiver{got: map[string]int{}}
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Title       string
			Attachments []struct{ Base64 []byte }
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return // the gateway was killed while it sent
		}
		if !c.wait(r) {
			return
		}
		if status != nil {
			if code := status(m.Title); code != http.StatusOK {
				w.WriteHeader(code)
				return
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got[m.Title]++
		c.last = nil
		if len(m.Attachments) > 0 {
			c.last = m.Attachments[0].Base64
		}
	})
	t.Cleanup(c.release) // before the server is closed, which waits for its requests
	c.url = "json://" + authority(s)
	return c
}

// wait waits while the receiver is silent. It reports false if the gateway
// closes the connection meanwhile.
func (c *receiver) wait(r *http.Request) bool {
	c.mu.Lock()
	hold := c.hold
	if hold != nil {
		c.held++
	}
	c.mu.Unlock()
	if hold == nil {
		return true
	}
	defer func() {
		c.mu.Lock()
		c.held--
		c.mu.Unlock()
	}()
	select {
	case <-hold:
		return r.Context().Err() == nil
	case <-r.Context().Done():
		return false
	}
}

// silence makes requests wait until release is called.
func (c *receiver) silence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = make(chan struct{})
}

func (c *receiver) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != nil {
		close(c.hold)
		c.hold = nil
	}
}

// count returns the number of different messages that have arrived, and the
// number of repeated arrivals.
func (c *receiver) count() (arrived, again int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.got {
		again += n - 1
	}
	return len(c.got), again
}

// file returns the first file of the last message.
func (c *receiver) file() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.last)
}

// times returns the number of times a message has arrived.
func (c *receiver) times(title string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[title]
}

// waiting returns the number of requests that wait for an answer.
func (c *receiver) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// tryPost posts a message as JSON, with additional header fields (names and
// values). Unlike post, it returns an error if the gateway does not answer.
func (g *gateway) tryPost(path string, m message, header ...string) (status int, h http.Header, text string, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return 0, nil, "", err
	}
	r, err := http.NewRequest(http.MethodPost, g.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := g.client.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(all), err
}

// queueUp posts n messages with numbers as titles. The gateway stores each
// before it answers.
func (g *gateway) queueUp(path string, first, n int) {
	g.t.Helper()
	for i := first; i < first+n; i++ {
		status, _, text, err := g.tryPost(path, message{"title": fmt.Sprint(i), "body": "x"}, "Prefer", "respond-async")
		if err != nil || status != http.StatusAccepted {
			g.t.Fatalf("message %d: %d %s %v", i, status, text, err)
		}
	}
}

// waitArrived waits until missing returns no messages. It fails the test if the
// number of missing messages does not fall for a minute.
func waitArrived(t *testing.T, missing func() []string) {
	t.Helper()
	last := len(missing())
	for deadline := time.Now().Add(time.Minute); last > 0; time.Sleep(50 * time.Millisecond) {
		titles := missing()
		if len(titles) < last {
			last, deadline = len(titles), time.Now().Add(time.Minute)
		}
		if last > 0 && time.Now().After(deadline) {
			t.Fatalf("%d messages are lost, for instance %.200q", last, titles)
		}
	}
}

// missing returns the titles whose messages have not arrived.
func (c *receiver) missing(titles []string) (missing []string) {
	for _, title := range titles {
		if c.times(title) == 0 {
			missing = append(missing, title)
		}
	}
	return missing
}

// numbers returns the titles of n messages of queueUp.
func numbers(first, n int) []string {
	titles := make([]string, n)
	for i := range titles {
		titles[i] = fmt.Sprint(first + i)
	}
	return titles
}

// fails starts the gateway, which must end with an error, and returns what it
// prints.
func (g *gateway) fails() string {
	g.t.Helper()
	before := len(g.log())
	g.begin()
	select {
	case err := <-g.ended:
		g.ended <- err
		if err == nil {
			g.t.Errorf("the gateway ended without an error: %s", g.log()[before:])
		}
	case <-time.After(time.Minute):
		g.t.Fatalf("the gateway runs, although it should not start: %s", g.log()[before:])
	}
	return g.log()[before:]
}

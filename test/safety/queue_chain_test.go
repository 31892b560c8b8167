package safety

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestQueueChainKill kills the gateway while it sends a message to the first
// number of a tag, and starts it again. The second number gets the message only
// if the first one fails.
func TestQueueChainKill(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	for _, tt := range []struct {
		name          string
		status        int // of the first number, after the start
		first, second int // how often each gets the message
	}{
		{"the first number has it", http.StatusOK, 1, 0},
		{"the first number refuses it", http.StatusBadRequest, 0, 1},
		{"the first number fails for now", http.StatusServiceUnavailable, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tried atomic.Int64
			first := newReceiver(t, func(string) int {
				tried.Add(1)
				return tt.status
			})
			second := newReceiver(t, nil)
			g := start(t, queueOption(newFolder(t)), "key ops {\nurl "+first.url+"?retry=0 1:ops\nurl "+second.url+"?retry=0 2:ops\n}")
			first.silence()
			status, header, text, err := g.tryPost("/notify/ops", message{"title": "a", "body": "x", "tag": "ops"}, "Prefer", "respond-async")
			if status != http.StatusAccepted {
				t.Fatalf("status %d: %s, %v", status, text, err)
			}
			eventually(t, "the first number is being sent to", func() bool { return first.waiting() > 0 })
			g.kill()
			eventually(t, "the connection has ended", func() bool { return first.waiting() == 0 })
			first.release()
			g.run()
			eventually(t, "the first number is tried again", func() bool { return tried.Load() > 0 })
			eventually(t, "the message is delivered", func() bool {
				return g.messageState(t, header.Get("Location")) == "delivered"
			})
			if a, b := first.times("a"), second.times("a"); a != tt.first || b != tt.second {
				t.Errorf("the first number has the message %d times and the second one %d times, want %d and %d", a, b, tt.first, tt.second)
			}
		})
	}
}

// messageState returns the state of a stored message, or "" if the gateway does
// not answer.
func (g *gateway) messageState(t *testing.T, path string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, g.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	resp, err := g.client.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var m struct{ State string }
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		return ""
	}
	return m.State
}

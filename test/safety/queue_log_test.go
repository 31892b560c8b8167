package safety

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestQueueLog sends 100 messages to a destination that fails, and then works. The
// log has a line for the first failure, with the message, one when the destination is
// down and one when it is back. It once had 146 lines. To another destination, the
// gateway sends at once and not from the queue.
func TestQueueLog(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	var works atomic.Bool
	c := newReceiver(t, func(string) int {
		if works.Load() {
			return http.StatusOK
		}
		return http.StatusServiceUnavailable
	})
	g := start(t, queueOption(newFolder(t)), "key k {\nurl "+c.url+"/?retry=0\n}\nkey other {\nurl "+c.url+"/other?retry=0\n}")
	type line struct {
		Level, Msg, ID string
		IDs            []string
	}
	lines := func(text string) (all []line) {
		for s := range strings.SplitSeq(g.log(), "\n") {
			var l line
			if json.Unmarshal([]byte(s), &l) == nil && strings.Contains(l.Msg, text) {
				all = append(all, l)
			}
		}
		return all
	}
	post := func(key, title string, header ...string) (id string) {
		t.Helper()
		var answer struct{ ID string }
		status, _, text, err := g.tryPost("/notify/"+key, message{"title": title, "body": "x"}, header...)
		if err != nil || status/100 != 2 || json.Unmarshal([]byte(text), &answer) != nil || answer.ID == "" {
			t.Fatalf("%d %s %v", status, text, err)
		}
		return answer.ID
	}
	warnings := func() (n int) {
		for _, l := range lines("") {
			if l.Level == "warn" || l.Level == "error" {
				n++
			}
		}
		return n
	}
	begun := warnings() // about the configuration
	const n = 100
	want := []string{post("other", "other")}
	eventually(t, "the log has the first failure", func() bool { return len(lines("delivery failed")) > 0 })
	want = append(want, post("k", "1", "Prefer", "respond-async"))
	eventually(t, "the log has the second failure", func() bool { return len(lines("delivery failed")) > 1 })
	g.queueUp("/notify/k", 2, n-1)
	eventually(t, "the log has that the destination is down", func() bool { return len(lines("destination is down")) > 0 })
	works.Store(true)
	post("k", "later")
	post("other", "other later") // its success makes due what waits there, whose next attempt may be minutes away on a slow machine
	waitArrived(t, func() []string { return c.missing(append(numbers(1, n), "later", "other", "other later")) })
	eventually(t, "the log has that the destination is back", func() bool { return len(lines("destination is back")) > 0 })
	first, down := lines("delivery failed; it is tried again"), lines("destination is down")
	if len(first) != 2 || first[0].ID != want[0] || first[1].ID != want[1] || len(down) != 1 {
		t.Errorf("the log has %+v and %+v, want %v", first, down, want)
	}
	// One a minute may be added on a slow machine.
	if n := warnings() - begun; n > 6 {
		t.Errorf("the log has %d warnings:\n%s", n, g.log())
	}
}

package safety

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestQueueLog sends 100 messages to a destination that fails, and then works. The
// log has a line for the first failure, with the message, one when the destination is
// down and one when it is back. It once had 146 lines.
func TestQueueLog(t *testing.T) {
	t.Parallel()
	var works atomic.Bool
	c := newReceiver(t, func(string) int {
		if works.Load() {
			return http.StatusOK
		}
		return http.StatusServiceUnavailable
	})
	g := start(t, queueOption(newFolder(t)), "key k {\nurl "+c.url+"/?retry=0\n}")
	type line struct {
		Level, Msg, ID string
		IDs            []string
	}
	lines := func(text string) (all []line) {
		for _, s := range strings.Split(g.log(), "\n") {
			var l line
			if json.Unmarshal([]byte(s), &l) == nil && strings.Contains(l.Msg, text) {
				all = append(all, l)
			}
		}
		return all
	}
	const n = 100
	g.queueUp("/notify/k", 1, n)
	eventually(t, "the log has that the destination is down", func() bool { return len(lines("destination is down")) > 0 })
	works.Store(true)
	if status, _, text, err := g.tryPost("/notify/k", message{"title": "later", "body": "x"}); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, text, err)
	}
	waitArrived(t, func() []string { return c.missing(append(numbers(1, n), "later")) })
	eventually(t, "the log has that the destination is back", func() bool { return len(lines("destination is back")) > 0 })
	first, down := lines("delivery failed; it is tried again"), lines("destination is down")
	if len(first) != 1 || first[0].ID == "" || len(down) != 1 {
		t.Errorf("the log has %+v and %+v", first, down)
	}
	warnings := 0
	for _, l := range lines("") {
		if l.Level == "warn" || l.Level == "error" {
			warnings++
		}
	}
	// One a minute may be added on a slow machine.
	if warnings > 5 {
		t.Errorf("the log has %d warnings:\n%s", warnings, g.log())
	}
}

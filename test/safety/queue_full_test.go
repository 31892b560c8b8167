package safety

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestQueueDrainsFullDisk checks that a queue that has filled its disk, or whose disk
// others have filled, delivers everything that it has accepted, also after a
// kill. Of 1,974 messages, 235 once arrived, and after each restart the same 256
// were sent again.
func TestQueueDrainsFullDisk(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	disk, inside := smallDisk(t, 16)
	if !inside {
		return
	}
	c := newReceiver(t, nil)
	c.silence()
	g := start(t, queueOption(filepath.Join(disk, "queue")), "key k {\nurl "+c.url+"/?retry=0\n}")
	g.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 8

	var mu sync.Mutex
	var accepted []string
	refused := false
	var wg sync.WaitGroup
	body := strings.Repeat("text of the message ", 100)
	for i := range 8 {
		wg.Go(func() {
			for n := i; ; n += 8 {
				title := strconv.Itoa(n)
				status, _, text, err := g.tryPost("/notify/k", message{"title": title, "body": body}, "Prefer", "respond-async")
				mu.Lock()
				if err == nil && status == http.StatusAccepted {
					accepted = append(accepted, title)
				} else if err != nil || status != http.StatusServiceUnavailable {
					t.Errorf("message %s: %d %s %v", title, status, text, err)
					refused = true
				} else {
					refused = true
				}
				end := refused
				mu.Unlock()
				if end {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(accepted) < 500 {
		t.Fatalf("only %d messages were accepted", len(accepted))
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 16<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	g.kill()
	g.run()
	c.release()
	for arrived, _ := c.count(); arrived < len(accepted)/2; arrived, _ = c.count() {
		time.Sleep(time.Millisecond)
	}
	g.kill()
	g.run()
	waitArrived(t, func() []string { return c.missing(accepted) })
	arrived, again := c.count()
	t.Logf("%d messages were accepted, %d arrived, %d of them again", len(accepted), arrived, again)
	// Only those can arrive again that were sent when the gateway was killed, or
	// had arrived in the milliseconds before.
	if again > len(accepted)/4 {
		t.Errorf("%d messages arrived again", again)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "messages are accepted", func() bool {
		status, _, _, err := g.tryPost("/notify/k", message{"title": "last", "body": body}, "Prefer", "respond-async")
		return err == nil && status == http.StatusAccepted
	})
	waitArrived(t, func() []string { return c.missing([]string{"last"}) })
}

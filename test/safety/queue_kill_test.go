package safety

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestQueueKill kills the gateway 5 times while 16 clients send 500 messages,
// or 20 times and 10,000 messages if soak is set. Each accepted message
// arrives. Only messages that were in progress when the gateway was killed
// arrive more than once.
//
// A third of the messages is stored before the answer. A third has an
// idempotency key; the client repeats it until it gets an answer. The others
// are sent at once. One in 50 fails the first time.
func TestQueueKill(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	const clients, keys = 16, 4
	kills, total := amount(soak, 20, 5), amount(soak, 10_000, 500)
	var failed sync.Map // the titles of messages that have failed once
	c := newReceiver(t, func(title string) int {
		if n, _ := strconv.Atoi(title); n%50 == 7 {
			if _, again := failed.LoadOrStore(title, true); !again {
				return http.StatusServiceUnavailable
			}
		}
		return http.StatusOK
	})
	block := ""
	for k := range keys {
		block += fmt.Sprintf("key k%d {\nurl %s/%[1]d?retry=0\n}\n", k, c.url)
	}
	g := start(t, queueOption(newFolder(t)), block)
	g.client.Transport.(*http.Transport).MaxIdleConnsPerHost = clients

	var next, accepted atomic.Int64
	var titles sync.Map // the titles of the accepted messages
	var wg sync.WaitGroup
	send := func() {
		title := strconv.FormatInt(next.Add(1), 10)
		n, _ := strconv.Atoi(title)
		var header []string
		switch n % 3 {
		case 0:
			header = []string{"Prefer", "respond-async"}
		case 1:
			header = []string{"Idempotency-Key", title}
		}
		for {
			status, _, text, err := g.tryPost(fmt.Sprintf("/notify/k%d", n%keys), message{"title": title, "body": "x"}, header...)
			switch {
			case err == nil && (status == http.StatusOK || status == http.StatusAccepted):
				titles.Store(title, true)
				accepted.Add(1)
				return
			case err == nil:
				t.Errorf("message %s: %d %s", title, status, text)
				return
			}
			time.Sleep(5 * time.Millisecond) // the gateway is starting
			if n%3 != 1 {
				return // the message may have been accepted
			}
		}
	}
	for range clients {
		wg.Go(func() {
			for accepted.Load() < int64(total) && !t.Failed() {
				send()
			}
		})
	}
	for k := range kills {
		want := int64(total * (k + 1) / (kills + 1))
		eventually(t, "the gateway accepts messages", func() bool { return accepted.Load() >= want })
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		g.kill()
		g.run()
	}
	wg.Wait()
	waitArrived(t, func() (lost []string) {
		titles.Range(func(title, _ any) bool {
			if c.times(title.(string)) == 0 {
				lost = append(lost, title.(string))
			}
			return true
		})
		return lost
	})
	if err := g.stop(); err != nil {
		t.Errorf("the gateway ended: %v", err)
	}
	_, again := c.count()
	t.Logf("%d messages accepted, 0 lost, %d delivered twice", accepted.Load(), again)
	// In progress are four deliveries of the queue to each destination, and the deliveries of the
	// requests. Outcomes that were being stored are few beside them.
	const inProgress = 4*keys + clients
	if again > kills*inProgress {
		t.Errorf("%d messages were delivered twice, more than were in progress", again)
	}
}

package safety

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestQueueReload reloads the configuration 10 times, or 100 times if soak is
// set, while messages come in. Some of them are stored while they are sent.
// Each arrives once.
func TestQueueReload(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	reloads, rate := amount(soak, 100, 10), 200
	if racetest.Enabled {
		rate = 40
	}
	c := &counter{step: 10 * time.Millisecond, got: map[string]int{}}
	s := serveHTTP(t, "127.0.0.1", c.ServeHTTP)
	// The settings of the queue change as well.
	folder := newFolder(t)
	options := func(n int) string { return queueOption(folder, "wait 20ms", fmt.Sprintf("keep %dh", 1+n%5)) }
	block := func(n int) string {
		u := "json://" + authority(s) + "/"
		return fmt.Sprintf("timeout %ds\ndefault_urls %s\nkey k {\nurl %sk a\n}", 60+n%40, u, u)
	}
	g := start(t, options(0), block(0))
	l := g.load(rate, 1, 30)
	for n := range reloads {
		g.reload(options(n), block(n))
		l.waitAccepted(t, rate/25)
	}
	l.end()
	_, metrics := g.get(g.adminURL+"/metrics", "*/*")
	if !strings.Contains(metrics, `caddy_notify_messages_total{outcome="queued"}`) {
		t.Error("no message was queued")
	}
	waitArrived(t, func() (missing []string) {
		l.statuses.Range(func(n, status any) bool {
			if status == http.StatusOK && c.times(n.(int)) == 0 {
				missing = append(missing, fmt.Sprint(n))
			}
			return true
		})
		return missing
	})
	if err := g.stop(); err != nil {
		t.Errorf("the gateway ended: %v", err)
	}
	sent := 0
	l.statuses.Range(func(n, status any) bool {
		sent++
		if times := c.times(n.(int)); status != http.StatusOK || times != 1 {
			err, _ := l.errs.Load(n)
			t.Errorf("message %d: status %d, arrived %d times: %v", n, status, times, err)
		}
		return true
	})
	t.Logf("%d reloads, %d messages", reloads, sent)
	if strings.Contains(g.log(), "took longer than its claim") {
		t.Error("a delivery was made again")
	}
}

// TestQueueStop stops the gateway with caddy stop while messages wait. They stay on
// disk, and arrive after the next start.
func TestQueueStop(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	c := newReceiver(t, nil)
	c.silence()
	g := start(t, queueOption(newFolder(t)), "timeout 10m\nkey k {\nurl "+c.url+"/\n}")
	const n = 100
	g.queueUp("/notify/k", 1, n)
	eventually(t, "four deliveries are under way", func() bool { return c.waiting() == 4 })
	if out, err := exec.Command(program, "stop", "--address", g.admin).CombinedOutput(); err != nil {
		t.Fatalf("caddy stop: %v %s", err, out)
	}
	if err := <-g.ended; err != nil {
		t.Errorf("the gateway ended: %v", err)
	} else {
		g.ended <- err
	}
	if !strings.Contains(g.log(), "deliveries stay in the queue") || !strings.Contains(g.log(), fmt.Sprintf(`"deliveries":%d`, n)) {
		t.Errorf("the log does not have the number of waiting deliveries: %s", g.log())
	}
	eventually(t, "the gateway has hung up", func() bool { return c.waiting() == 0 })
	if arrived, _ := c.count(); arrived > 0 {
		t.Errorf("%d messages have arrived already", arrived)
	}
	c.release()
	g.run()
	waitArrived(t, func() []string { return c.missing(numbers(1, n)) })
	if _, again := c.count(); again > 0 {
		t.Errorf("%d messages arrived again", again)
	}
}

// TestQueueSilentDestination queues 300 messages, or 2000 if soak is set, for a
// destination that does not answer. Messages for others arrive while the first
// four deliveries to it are still in progress.
func TestQueueSilentDestination(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	silent, fine := newReceiver(t, nil), newReceiver(t, nil)
	silent.silence()
	g := start(t, queueOption(newFolder(t)), "timeout 10m\nkey silent {\nurl "+silent.url+"/\n}\nkey fine {\nurl "+fine.url+"/\n}")
	jobs := amount(soak, 2000, 300)
	g.queueUp("/notify/silent", 1, jobs)
	const others = 100
	began := time.Now()
	g.queueUp("/notify/fine", 1, others)
	waitArrived(t, func() []string { return fine.missing(numbers(1, others)) })
	t.Logf("%d messages arrived within %s", others, time.Since(began))
	if n := silent.waiting(); n > 4 {
		t.Errorf("%d deliveries to the silent destination run at once", n)
	}
	if arrived, _ := silent.count(); arrived > 0 {
		t.Errorf("the silent destination has answered %d messages", arrived)
	}
	// The destination answers again.
	silent.release()
	waitArrived(t, func() []string { return silent.missing(numbers(1, jobs)) })
	if _, again := silent.count(); again > 0 {
		t.Errorf("%d messages arrived again", again)
	}
}

package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestStandbyHangsPostgres checks that a gateway accepts no message that the synchronous standby
// does not have. The standby hangs, and then the primary is lost. Once a gateway stopped waiting
// for the standby after 5 s, which makes the server commit alone, found the message in the tables
// of the primary, and answered that it was accepted.
func TestStandbyHangsPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a fail-over")
	}
	t.Parallel()
	c := newCluster(t, startEtcd(t), true)
	primary, standby := c.ready(t)
	var keys string
	for k := range 4 {
		keys += fmt.Sprintf("key k%d {\nurl json://127.0.0.1:1/%[1]d\n}\n", k) // so that all of them wait
	}
	s := &senders{gateways: []*queueGateway{newQueueGatewayAt(t, c.dsn(), freePort(t), keys, "")}}
	s.begin(t)
	defer s.running.Wait()
	defer s.stop.Store(true)
	s.more(t, "at first")

	sender, err := strconv.Atoi(primary.query("SELECT pid FROM pg_stat_replication"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(sender, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	known, refused := s.count(), s.refused.Load()
	within(t, time.Minute, "requests are answered without the standby", func() bool {
		return s.count() > known+3 || s.refused.Load() > refused+3
	})
	primary.signal(syscall.SIGKILL)
	eventually(t, "the standby becomes the primary", standby.isPrimary)
	s.more(t, "after the fail-over")
	s.stop.Store(true)
	s.running.Wait()
	s.mu.Lock()
	all := slices.Clone(s.accepted)
	s.mu.Unlock()
	lost := 0
	for _, m := range all {
		if m.address == "" {
			t.Fatalf("message %s does not wait", m.title)
		}
		if status, _ := ask(t, request(t, http.MethodGet, m.gateway.url+m.address, "")); status != http.StatusOK {
			lost++
		}
	}
	t.Logf("%d messages accepted, %d refused, %d lost", len(all), s.refused.Load(), lost)
	if lost > 0 {
		t.Errorf("%d messages are lost", lost)
	}
}

package integration

import (
	"net/http"
	"syscall"
	"testing"
	"time"
)

// count returns how many messages with the title have arrived.
func (a *arrivals) count(title string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.got[title]
}

// TestBeatsPostgres checks that only one of two gateways with one database tells that a beat is
// late or its run too long. The beat may come to either. When one gateway is killed, the other goes
// on alone. While none can write, nobody is told.
func TestBeatsPostgres(t *testing.T) {
	t.Parallel()
	p, a := newPostgres(t), newArrivals(t)
	key := "key ops {\nurl " + a.url + "\nexpect sync every 2s grace 1s\n" +
		"expect slow every 8s grace 4s\nexpect run cron \"0 0 1 1 *\" max_run 2s\n}"
	var gateways []*queueGateway
	for range 2 {
		gateways = append(gateways, newQueueGatewayWith(t, p, key, ""))
	}
	beat := func(g *queueGateway, name string) {
		t.Helper()
		eventually(t, "the gateway takes the beat "+name, func() bool {
			resp, err := http.Get(g.url + "/notify/ops?beat=" + name)
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
	beat(gateways[0], "run&state=start")
	eventually(t, "the run that takes too long is told", func() bool {
		beat(gateways[0], "slow")
		return a.count("run has not ended after 2s") > 0
	})
	for range 3 { // each gateway looks at it again
		beat(gateways[0], "slow")
		time.Sleep(time.Second)
	}
	if told := a.count("run has not ended after 2s"); told != 1 {
		t.Fatalf("told %d times that the run takes too long", told)
	}
	beat(gateways[1], "run&exit=0")
	eventually(t, "the end of the run is told", func() bool { beat(gateways[0], "slow"); return a.count("run is back") == 1 })
	// A gateway may be killed between a delivery and its record. What is told next of the
	// beat then waits for a minute, until the other may make the delivery again.
	const afterKill = 90 * time.Second
	for n := range 4 {
		within(t, afterKill, "the missed beat is told", func() bool { beat(gateways[0], "slow"); return a.count("sync is late") > n })
		for range 3 { // each gateway looks at it again
			beat(gateways[0], "slow")
			time.Sleep(time.Second)
		}
		if told := a.count("sync is late"); told != n+1 {
			t.Fatalf("told %d times, want %d", told, n+1)
		}
		if n == 3 {
			break
		}
		beat(gateways[n%len(gateways)], "sync")
		eventually(t, "the success is told", func() bool { beat(gateways[0], "slow"); return a.count("sync is back") > n })
		if n == 1 {
			gateways[1].stop()
			gateways = gateways[:1]
		}
	}
	p.stop(syscall.SIGQUIT)
	time.Sleep(13 * time.Second) // longer than slow has, which nothing but time can show
	p.start(t)
	time.Sleep(1200 * time.Millisecond) // the gateway can look at the beat before the next comes
	beat(gateways[0], "slow")
	time.Sleep(2 * time.Second)
	if late := a.count("slow is late"); late != 0 {
		t.Errorf("told %d times of a beat that nobody could take", late)
	}
}

package outbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Messages about events and log entries are stored, and tried again if they
// fail.
func TestQueueOfEvents(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()))
	k := g.Gateway.Conf.Global.Configured("k")
	for i, source := range []string{site.SourceEvent, site.SourceLog, site.SourceOwnEvent} {
		if err := g.Gateway.Post(k, k.Targets, &notifier.Message{Body: source, Time: time.Now()}, source, true, nil); err != nil {
			t.Fatal(err)
		}
		gatewaytest.Eventually(t, func() bool {
			jobs, err := g.Rooms().Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Queued)
			return err == nil && len(jobs) == i+1 && jobs[i].Attempts > 0 && outbox.NewDeadDelivery(&jobs[i]).State.Source == source
		})
	}
}

// The numbers of tags also apply to messages about events.
func TestQueueOfEventsWithChain(t *testing.T) {
	t.Parallel()
	bad, good, last := gatewaytest.NewPager(t, http.StatusServiceUnavailable), gatewaytest.NewPager(t, http.StatusOK),
		gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, "", gatewaytest.Key("k", bad.NotifyURL()+" 1:ops", good.NotifyURL()+" 2:ops", last.NotifyURL()+" 3:ops"))
	k := g.Gateway.Conf.Global.Configured("k")
	if err := g.Gateway.Post(k, k.Select(parseTags(t, "ops")), &notifier.Message{Body: "x", Time: time.Now()}, site.SourceEvent, true,
		nil); err != nil {
		t.Fatal(err)
	}
	gatewaytest.Eventually(t, func() bool { return good.Count() == 1 })
	gatewaytest.Eventually(t, func() bool {
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		return err == nil && s.Queued+s.Sending == 0
	})
	if bad.Count() != 1 || good.Count() != 1 || last.Count() != 0 {
		t.Errorf("sent %d, %d and %d messages", bad.Count(), good.Count(), last.Count())
	}
}

package outbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// slowTransport notes when requests begin. Hosts whose names begin with "hangs" answer when release is
// closed, and others after eight seconds.
type slowTransport struct {
	release chan struct{}

	mu    sync.Mutex
	begun map[string][]time.Time
}

func newSlowTransport() *slowTransport {
	return &slowTransport{release: make(chan struct{}), begun: map[string][]time.Time{}}
}

func (s *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.begun[r.URL.Host] = append(s.begun[r.URL.Host], time.Now())
	s.mu.Unlock()
	answer := time.After(8 * time.Second)
	if strings.HasPrefix(r.URL.Host, "hangs") {
		answer = nil
	}
	select {
	case <-answer:
	case <-s.release:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// count returns how many requests to a host have begun.
func (s *slowTransport) count(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.begun[host])
}

// TestFirstMessage checks that the first message to a destination begins within a second, however many
// others hang, and arrives once, whether a client waits for it or not.
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hosts, messages int
		durable         bool
		prefer          string
	}{
		{64, 20, false, ""},
		{64, 20, true, ""},
		{64, 20, true, "respond-async"},
		{2000, 2, false, ""},
		{2000, 2, true, "respond-async"},
	} {
		t.Run(fmt.Sprintf("%d hosts, queue %t, %s", tt.hosts, tt.durable, tt.prefer), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			gatewaytest.InBubble(t, func(t *testing.T) {
				var urls []string
				for i := range tt.hosts {
					urls = append(urls, fmt.Sprintf("json://hangs%d.test/", i))
				}
				keys, pauses := []site.KeyOptions{gatewaytest.Key("hangs", urls...)}, []time.Duration{0, 4 * time.Second, 40 * time.Second}
				for i := range pauses {
					keys = append(keys, gatewaytest.Key(fmt.Sprint("new", i), fmt.Sprintf("json://new%d.test/", i)))
				}
				o := gatewaytest.Options{Global: site.Options{Keys: keys}}
				if tt.durable {
					o.Queue = &outbox.Settings{Path: dir}
				}
				g, transport := gatewaytest.New(t, o), newSlowTransport()
				g.Process.Sender = notifier.NewSender(egress.NewPoolWithTransport("test", transport), 0)
				var clients sync.WaitGroup
				post := func(key string) {
					clients.Go(func() { g.PostForm("/notify/"+key, "body=hello", "Prefer", tt.prefer) })
				}
				for range tt.messages {
					post("hangs")
				}
				sent := map[string]time.Time{}
				for i, pause := range pauses {
					synctest.Wait()
					time.Sleep(pause)
					sent[fmt.Sprintf("new%d.test", i)] = time.Now()
					post(fmt.Sprint("new", i))
				}
				time.Sleep(time.Minute)
				clients.Wait()
				close(transport.release)
				time.Sleep(time.Hour) // until nothing is under way
				transport.mu.Lock()
				defer transport.mu.Unlock()
				for host, at := range sent {
					if begun := transport.begun[host]; len(begun) != 1 || begun[0].Sub(at) >= time.Second {
						t.Errorf("the message to %s at %s was sent at %s", host, at, begun)
					}
				}
			})
		})
	}
}

// TestNoRoom checks that a delivery for which the gateway has no room in time is no attempt, and says
// nothing about its destination.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g, transport := newGateway(t, dir, gatewaytest.Key("ops", "json://answers.test/")), newSlowTransport()
		g.Process.Sender = notifier.NewSender(egress.NewPoolWithTransport("test", transport), 1)
		d, err := notifier.Parse("json://hangs.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		hangs := g.Process.Sender.Start(t.Context(), &notifier.Message{Body: "x"}, []notifier.Target{{Destination: d}},
			notifier.Options{Timeout: time.Hour})
		id := g.PostForm("/notify/ops", "body=hello", "Prefer", "respond-async").JSON(t).ID
		time.Sleep(30 * time.Minute)
		if s, r := g.State(id); s != "queued" || r.Attempts != 0 || transport.count("answers.test") > 0 {
			t.Errorf("without room: %s, %+v", s, r)
		}
		if n := g.Rooms().Outbox.Queue.Destinations.Count(); n.Failing+n.Down > 0 {
			t.Errorf("destinations: %+v", n)
		}
		hangs.Wait(nil)
		time.Sleep(time.Minute)
		if s, r := g.State(id); s != "delivered" {
			t.Errorf("with room: %s, %+v", s, r)
		}
	})
}

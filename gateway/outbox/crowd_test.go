package outbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestCrowdedQueue checks that a key whose messages wait, because its destination is down or a
// silence holds them, leaves room for messages of other keys. It gets its own room back when they
// are gone. A key that is alone may fill the queue.
func TestCrowdedQueue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		silent bool
		alone  bool
		want   int // the status of the key that fills the queue
	}{
		{name: "down", want: http.StatusTooManyRequests},
		{name: "silent", silent: true, want: http.StatusTooManyRequests},
		{name: "alone", alone: true, want: http.StatusServiceUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, down, other := t.TempDir(), gatewaytest.NewPager(t, http.StatusServiceUnavailable),
				gatewaytest.NewPager(t, http.StatusServiceUnavailable)
			const size = 512 << 10
			gatewaytest.InBubble(t, func(t *testing.T) {
				keys := []site.KeyOptions{gatewaytest.Key("noisy", down.NotifyURL())}
				if !test.alone {
					keys = append(keys, gatewaytest.Key("other", other.NotifyURL()))
				}
				g := gatewaytest.New(t, gatewaytest.Options{
					Global: site.Options{Keys: keys}, Site: site.Options{Managers: gatewaytest.Everybody()},
					Queue: &outbox.Settings{Path: dir, MaxSize: size},
				})
				if test.silent {
					g.AddSilence("noisy", "title=x&for=100h")
				}
				incident := 0
				post := func(key string, n int) gatewaytest.Reply {
					t.Helper()
					time.Sleep(time.Second)
					incident++
					return g.PostForm("/notify/"+key, fmt.Sprintf("type=failure&title=x&incident=%d&body=%s", incident, strings.Repeat("x", n)))
				}
				var refused gatewaytest.Reply
				for n := 0; refused.Status == 0 || refused.Status == http.StatusOK; n++ {
					if refused = post("noisy", 10_000); n > 100 {
						t.Fatal("the queue is never full")
					}
				}
				stats, err := g.Rooms().Outbox.Queue.Stats(t.Context())
				if err != nil || refused.Status != test.want || refused.Header.Get("Retry-After") == "" || !strings.Contains(refused.Body, "queue is") {
					t.Fatalf("status %d, %s; %+v, %v", refused.Status, refused.Body, stats, err)
				}
				if test.alone {
					return
				}
				if stats.Bytes < size/2 || stats.Bytes > size*9/10 {
					t.Errorf("it is refused with %d bytes of %d", stats.Bytes, size)
				}
				for range 5 {
					if got := post("other", 10_000); got.Status != http.StatusOK {
						t.Errorf("another key: %d %s", got.Status, got.Body)
					}
				}
				down.Answer(http.StatusOK)
				if !test.silent {
					time.Sleep(time.Hour)
					if got := post("noisy", 10_000); got.Status != http.StatusOK {
						t.Errorf("with room again: %d %s", got.Status, got.Body)
					}
				}
			})
		})
	}
}

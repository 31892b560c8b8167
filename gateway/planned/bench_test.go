package planned_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// BenchmarkPlan measures how long it takes to plan a message while 10,000 of other keys wait.
func BenchmarkPlan(b *testing.B) {
	p := gatewaytest.NewPager(b, http.StatusOK)
	var keys []site.KeyOptions
	for i := range 12 {
		keys = append(keys, gatewaytest.Key(fmt.Sprint("k", i), p.NotifyURL()))
	}
	g := gatewaytest.New(b, options(b.TempDir(), keys...))
	plan := func(key string) {
		if got := g.PostForm("/notify/"+key, "body=x&send_at=10d"); got.Status != http.StatusOK {
			b.Errorf("status %d: %s", got.Status, got.Body)
		}
	}
	var all sync.WaitGroup
	for w := range 32 {
		all.Go(func() {
			for i := w; i < 10_000; i += 32 {
				plan(fmt.Sprint("k", i%11))
			}
		})
	}
	all.Wait()
	for b.Loop() {
		plan("k11")
	}
}

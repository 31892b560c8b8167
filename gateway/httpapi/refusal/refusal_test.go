package refusal

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
)

// TestLog checks that refusals with the same reason and key are logged
// once a minute, with their count and the details of the last.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		var l Log
		add := func(key, client string) {
			l.add(history.Refusal{RefusalID: metrics.RefusalID{Key: key, Reason: metrics.RefusalTooLarge}, Status: 413, Client: client},
				zap.New(core))
		}
		add("k", "192.0.2.1")
		add("k", "192.0.2.2")
		add("", "192.0.2.3")
		add("k", "192.0.2.4")
		time.Sleep(time.Hour)
		synctest.Wait()
		var got []string
		for _, e := range logs.All() {
			f := e.ContextMap()
			got = append(got, fmt.Sprint(f["key"], " ", f["client_ip"], " ", f["count"]))
		}
		if want := []string{"k 192.0.2.1 1", "<nil> 192.0.2.3 1", "k 192.0.2.4 2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

package caddyhttp

import (
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestBeatReload checks that an expectation that has not changed keeps its deadline over a reload,
// and that an expectation that was late and is gone is told as gone.
func TestBeatReload(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, "expect nightly every 20m grace 5m"))
		gatewaytest.Until(t, "2000-01-01 00:20:00")
		h2 := newQueueGateway(t, dir, "", ruledKey(p, "expect nightly every 20m grace 5m", "dedupe 1m"))
		stopApp(t, h)
		gatewaytest.Until(t, "2000-01-01 00:25:10")
		late := "failure: nightly is late | No beat has come yet. One is expected every 20m, with a grace of 5m."
		p.WantTold(t, late)
		newQueueGateway(t, dir, "", ruledKey(p))
		stopApp(t, h2)
		time.Sleep(25 * time.Minute)
		p.WantTold(t, late,
			"success: nightly is no longer expected | The configuration does not expect this beat any more, so nobody waits for it.")
		time.Sleep(15 * time.Minute)
		p.WantTold(t, late,
			"success: nightly is no longer expected | The configuration does not expect this beat any more, so nobody waits for it.")
	})
}

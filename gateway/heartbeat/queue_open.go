package heartbeat

import (
	"sync/atomic"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// Monitor watches the beats that keys expect, and calls the watchdog.
type Monitor struct {
	*outbox.Outbox
	watchdogFails atomic.Bool // the last call has failed
	seen          atomic.Bool // this process has noted that it runs (see [monitor.see])
}

package heartbeat

import (
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Monitor watches the beats that keys expect, and calls the watchdog.
type Monitor struct {
	*outbox.Outbox
	watchdogFails atomic.Bool // the last call has failed
	seen          atomic.Bool // this process has noted that it runs (see [Monitor.see])
}

// Came returns the change for a beat that has come. If told is false, it refuses a beat
// about which a message has to be sent, and otherwise one without a message.
func (q *Monitor) Came(x *ExpectedBeat, failed, told bool, before *rules.Beat) *BeatChange {
	return &BeatChange{q: q, name: q.beatName(x), change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		*before = *b
		b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
		return false, b.Came(now, u, &x.Expect, failed) == told
	}}
}

// Emit emits an event about a beat.
func Emit(a *outbox.Engine, name string, x *ExpectedBeat, b *rules.Beat) {
	a.Emit(name, func() map[string]any {
		last := ""
		if !b.Last.IsZero() {
			last = b.Last.UTC().Format(time.RFC3339)
		}
		return map[string]any{
			"key": x.Key.Name, "beat": x.Name, "last": last, "state": string(b.State), "every": rules.FormatTime(x.Every),
		}
	})
}

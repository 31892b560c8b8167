package heartbeat

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

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

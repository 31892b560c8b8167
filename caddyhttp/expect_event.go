package caddyhttp

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// engineEmitBeat emits an event about a beat.
func engineEmitBeat(a *outbox.Engine, name string, x *expectedBeat, b *rules.Beat) {
	a.Emit(name, func() map[string]any {
		last := ""
		if !b.Last.IsZero() {
			last = b.Last.UTC().Format(time.RFC3339)
		}
		return map[string]any{
			"key": x.key.Name, "beat": x.Name, "last": last, "state": string(b.State), "every": rules.FormatTime(x.Every),
		}
	})
}

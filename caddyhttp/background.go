package caddyhttp

import (
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
)

// finish sends what the log writers have collected and waits for all messages
// in the background, unless another configuration replaces this app.
func (a *App) finish() {
	if a.shared.Process.Gateways.Newest() != &a.gateway {
		return
	}
	a.shared.Process.Logs.Flush()
	if left := a.shared.Background.Wait(dispatch.StopTimeout); left > 0 {
		a.gateway.Engine.Log.Error("messages not sent before Caddy stopped", zap.Int("messages", left))
	}
}

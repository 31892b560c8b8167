package dispatch

import (
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// Dispatcher sends messages. It holds the state that all configurations of the process share:
// connections, limits, and what is remembered of messages.
type Dispatcher struct {
	Sender     *notifier.Sender
	InFlight   site.InFlight
	Waiting    site.Waiting
	Memory     memory.Budget
	Metrics    *metrics.Metrics
	History    history.History
	Background Background
	Incidents  Incidents
	Alerts     AlertTitles
	OpenAlerts OpenAlerts // of keys that do not use the queue
	Tickets    site.Tickets
	Tally      tally.Counter

	// EmitEvent emits an event of the running configuration. It calls data only if somebody has
	// subscribed to the event, which Subscribed reports.
	EmitEvent  func(name string, data func() map[string]any)
	Subscribed func(name string) bool
}

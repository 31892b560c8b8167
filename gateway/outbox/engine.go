package outbox

import (
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Engine is what the deliveries of a configuration need: its sites, and what sends.
type Engine struct {
	site.Directory
	Shared        *dispatch.Dispatcher
	QueueSettings *Settings                   // nil for no queue
	Tracers       func() trace.TracerProvider // that of the directive tracing; nil if no site has it
	Log           *zap.Logger

	// Emit emits an event of this configuration, if somebody has subscribed to it. data is
	// called only then.
	Emit func(name string, data func() map[string]any)

	Started chan struct{} // closed when outbox is set or failed to open
	Outbox  *Outbox       // nil if it is not open
}

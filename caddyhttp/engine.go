package caddyhttp

import (
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// engine is what the deliveries of a configuration need: its sites, and what sends.
type engine struct {
	site.Directory
	shared        *dispatch.Dispatcher
	queueSettings *queueSettings              // nil for no queue
	tracers       func() trace.TracerProvider // that of the directive tracing; nil if no site has it
	log           *zap.Logger

	// emit emits an event of this configuration, if somebody has subscribed to it. data is
	// called only then.
	emit func(name string, data func() map[string]any)

	started chan struct{} // closed when outbox is set or failed to open
	outbox  *outbox       // nil if it is not open
}

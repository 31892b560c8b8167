package outbox

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
)

// resumeTrace returns the trace of a request from what is stored with its message, or nil
// if the request was not traced or this configuration does not trace.
func (a *Engine) resumeTrace(o queued.Trace) *dispatch.ResumedTrace {
	if o.Parent == "" {
		return nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": o.Parent, "tracestate": o.State})
	provider, request := a.Tracers(), trace.SpanContextFromContext(ctx)
	if provider == nil || !request.IsValid() {
		return nil
	}
	return &dispatch.ResumedTrace{Provider: provider, Request: request}
}

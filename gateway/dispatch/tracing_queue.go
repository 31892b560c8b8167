package dispatch

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-notify/caddy-notify/gateway/queued"
)

// The queue makes attempts long after the request, possibly in another process. Their
// spans are children of the request's span, so that whoever decided to record the
// request decides for them, too, and have a link to it.

// NewTraceOrigin returns the span of a request, as it is stored with a message.
func NewTraceOrigin(ctx context.Context) queued.Trace {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return queued.Trace{}
	}
	h := traceContext(ctx)
	return queued.Trace{Parent: h["traceparent"], State: h["tracestate"]}
}

// ResumedTrace is the trace of a request, with which an attempt of the queue goes on.
type ResumedTrace struct {
	Provider trace.TracerProvider
	Request  trace.SpanContext
}

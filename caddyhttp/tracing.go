package caddyhttp

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

const tracerName = "github.com/caddy-notify/caddy-notify"

// messageTrace is the span of one message and the parent of its deliveries'
// spans. It is nil, and its methods do nothing, if the request is not traced.
type messageTrace struct {
	tracer trace.Tracer
	span   trace.Span
}

// startTrace begins the span of a message or, if the queue makes the delivery, of an
// attempt. Its parent is the span of the request, which Caddy's directive tracing has
// begun; without one, the message is not traced.
func startTrace(ctx context.Context, d *delivery) (context.Context, *messageTrace) {
	parent := trace.SpanFromContext(ctx)
	provider, valid := parent.TracerProvider(), parent.SpanContext().IsValid()
	attributes := []attribute.KeyValue{attribute.String("notify.key", d.key), attribute.Int("notify.destinations", len(d.to.Targets))}
	var links []trace.Link
	if d.resumed != nil {
		provider, valid = d.resumed.provider, true
		ctx = trace.ContextWithRemoteSpanContext(ctx, d.resumed.request)
		attributes = append(attributes, attribute.Int("notify.attempt", d.tries+1))
		links = []trace.Link{{SpanContext: d.resumed.request}}
	}
	if !valid {
		return ctx, nil
	}
	if d.id != (uuid.UUID{}) {
		attributes = append(attributes, attribute.String("notify.id", d.id.String()))
	}
	t := &messageTrace{tracer: provider.Tracer(tracerName)}
	ctx, t.span = t.tracer.Start(ctx, "notify", trace.WithAttributes(attributes...), trace.WithLinks(links...))
	return ctx, t
}

// end ends the span. ok reports whether each required destination has the
// message.
func (t *messageTrace) end(ok bool) {
	if t == nil {
		return
	}
	if !ok {
		t.span.SetStatus(codes.Error, "a required destination does not have the message")
	}
	t.span.End()
}

// observer returns an observer with a span for each delivery.
func (t *messageTrace) observer() notifier.Observer {
	return notifier.Observer{Begin: t.beginDelivery, End: endDelivery}
}

func (t *messageTrace) beginDelivery(ctx context.Context, _ int, to notifier.Target) context.Context {
	ctx, _ = t.tracer.Start(ctx, "deliver "+to.Service(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("notify.service", to.Service()),
		attribute.String("notify.destination", to.String()), // without secrets
	))
	return ctx
}

// endDelivery ends the span that beginDelivery put into ctx.
func endDelivery(ctx context.Context, _ int, r notifier.Result) {
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.String("notify.status", string(r.Status)), attribute.Int("notify.attempts", r.Attempts))
	if r.Err != nil {
		span.SetStatus(codes.Error, r.Err.Error())
	}
	span.End()
}

// resolvedTraceHeader returns the function for [notifier.Options] that adds the trace
// context to requests, or nil unless propagate_trace is on.
func resolvedTraceHeader(r *site.Site) func(context.Context) map[string]string {
	if !r.PropagateTrace {
		return nil
	}
	return traceContext
}

// traceContext returns the headers that name the trace of ctx (W3C Trace
// Context). Baggage is left out, because a client can fill it.
func traceContext(ctx context.Context) map[string]string {
	h := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, h)
	return h
}

package caddyhttp

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-notify/caddy-notify/notifier"
)

const tracerName = "github.com/caddy-notify/caddy-notify"

// traceMessage begins a span for a message and sees to it that each of its
// deliveries gets one below it. They are children of the span that Caddy's
// directive tracing has begun for the request, and go where that goes;
// without one there are none.
func traceMessage(ctx context.Context, o *notifier.Options, from origin, destinations int) (context.Context, func(ok bool)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		return ctx, func(bool) {}
	}
	tracer := parent.TracerProvider().Tracer(tracerName)
	ctx, span := tracer.Start(ctx, "notify", trace.WithAttributes(
		attribute.String("notify.key", from.key),
		attribute.Int("notify.destinations", destinations),
	))
	begin := o.Begin
	o.Begin = func(ctx context.Context, t notifier.Target) (context.Context, func(notifier.Result)) {
		ctx, end := traceDelivery(ctx, tracer, t)
		if begin == nil {
			return ctx, end
		}
		ctx, outer := begin(ctx, t)
		return ctx, func(r notifier.Result) {
			end(r)
			outer(r)
		}
	}
	return ctx, func(ok bool) {
		if !ok {
			span.SetStatus(codes.Error, "a required destination does not have the message")
		}
		span.End()
	}
}

func traceDelivery(ctx context.Context, tracer trace.Tracer, t notifier.Target) (context.Context, func(notifier.Result)) {
	ctx, span := tracer.Start(ctx, "deliver "+t.Service(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("notify.service", t.Service()),
		attribute.String("notify.destination", t.String()), // without secrets
	))
	return ctx, func(r notifier.Result) {
		span.SetAttributes(attribute.String("notify.status", string(r.Status)), attribute.Int("notify.attempts", r.Attempts))
		if r.Err != nil {
			span.SetStatus(codes.Error, r.Err.Error())
		}
		span.End()
	}
}

// traceHeader are the headers that tell a destination which trace its request
// belongs to (W3C Trace Context). Baggage, which a client can fill, stays
// here.
func traceHeader(ctx context.Context) map[string]string {
	h := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, h)
	return h
}

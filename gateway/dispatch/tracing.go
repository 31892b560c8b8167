package dispatch

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

const tracerName = "github.com/caddy-notify/caddy-notify"

// MessageTrace is the span of one message and the parent of its deliveries'
// spans. It is nil, and its methods do nothing, if the request is not traced.
type MessageTrace struct {
	tracer trace.Tracer
	span   trace.Span
}

// startTrace begins the span of a message or, if the queue makes the delivery, of an
// attempt. Its parent is the span of the request, which Caddy's directive tracing has
// begun; without one, the message is not traced.
func startTrace(ctx context.Context, d *Delivery) (context.Context, *MessageTrace) {
	parent := trace.SpanFromContext(ctx)
	provider, valid := parent.TracerProvider(), parent.SpanContext().IsValid()
	resumes := d.Attempt != nil && d.Attempt.Resumed != nil
	if !valid && !resumes {
		return ctx, nil
	}
	attributes := []attribute.KeyValue{attribute.String("notify.key", d.Key), attribute.Int("notify.destinations", len(d.To.Targets))}
	var links []trace.Link
	if resumes {
		a := d.Attempt
		provider, ctx = a.Resumed.Provider, trace.ContextWithRemoteSpanContext(ctx, a.Resumed.Request)
		attributes = append(attributes, attribute.Int("notify.attempt", a.Before+1))
		links = []trace.Link{{SpanContext: a.Resumed.Request}}
	}
	if d.ID != (uuid.UUID{}) {
		attributes = append(attributes, attribute.String("notify.id", d.ID.String()))
	}
	t := &MessageTrace{tracer: provider.Tracer(tracerName)}
	ctx, t.span = t.tracer.Start(ctx, "notify", trace.WithAttributes(attributes...), trace.WithLinks(links...))
	return ctx, t
}

// End ends the span. ok reports whether each required destination has the
// message.
func (t *MessageTrace) End(ok bool) {
	if t == nil {
		return
	}
	if !ok {
		t.span.SetStatus(codes.Error, "a required destination does not have the message")
	}
	t.span.End()
}

// observer returns an observer with a span for each delivery.
func (t *MessageTrace) observer() notifier.Observer {
	return notifier.Observer{Begin: t.beginDelivery, End: endDelivery}
}

func (t *MessageTrace) beginDelivery(ctx context.Context, _ int, to notifier.Target) context.Context {
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

// traceHeader returns the function for [notifier.Options] that adds the trace
// context to requests, or nil unless propagate_trace is on.
func traceHeader(r *site.Site) func(context.Context) map[string]string {
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

// ResumedTrace is the trace of a request that an attempt of the queue continues.
type ResumedTrace struct {
	Provider trace.TracerProvider
	Request  trace.SpanContext
}

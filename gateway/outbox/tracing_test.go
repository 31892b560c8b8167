package outbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestTracingOfQueue checks that each attempt of the queue has a span with a link to that
// of the request, also after a restart, and that a request that is not recorded has none.
func TestTracingOfQueue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sampled, restart, tracing bool
	}{
		"recorded":                     {sampled: true, tracing: true},
		"after a restart":              {sampled: true, restart: true, tracing: true},
		"not recorded":                 {tracing: true},
		"tracing was turned off":       {sampled: true, restart: true},
		"not recorded, then restarted": {restart: true, tracing: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans := tracetest.NewInMemoryExporter()
			sampler := sdktrace.NeverSample()
			if tt.sampled {
				sampler = sdktrace.AlwaysSample()
			}
			provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.ParentBased(sampler)))
			p := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
			dir := t.TempDir()
			o := gatewaytest.Options{
				Site:  site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}},
				Queue: &outbox.Settings{Path: dir}, Tracer: provider,
			}
			g := gatewaytest.New(t, o)
			ctx, request := provider.Tracer("test").Start(t.Context(), "request")
			r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader("body=x"))
			r.Header.Set("Content-Type", gatewaytest.TypeForm)
			got := g.Do(r.WithContext(ctx))
			request.End()
			if got.Status != http.StatusOK {
				t.Fatalf("status %d: %s", got.Status, got.Body)
			}
			if tt.restart {
				g.Stop()
				if !tt.tracing {
					o.Tracer = nil
				}
				g = gatewaytest.New(t, o)
			}
			spans.Reset()
			retryOnce(t, g, p, queuedID(t, got), 1)
			p.Answer(http.StatusOK)
			retryOnce(t, g, p, queuedID(t, got), 0)
			var attempts []tracetest.SpanStub
			for _, span := range spans.GetSpans() {
				if span.Name == "notify" {
					attempts = append(attempts, span)
				}
			}
			if !tt.sampled || !tt.tracing {
				if len(spans.GetSpans()) > 0 {
					t.Errorf("spans: %v", spans.GetSpans())
				}
				return
			}
			if len(attempts) != 2 {
				t.Fatalf("%d spans of attempts, want 2", len(attempts))
			}
			for i, a := range attempts {
				if len(a.Links) != 1 || a.Links[0].SpanContext.SpanID() != request.SpanContext().SpanID() ||
					a.Parent.SpanID() != request.SpanContext().SpanID() {
					t.Errorf("attempt %d: links %v, parent %v", i, a.Links, a.Parent)
				}
				attributes := map[string]string{}
				for _, x := range a.Attributes {
					attributes[string(x.Key)] = fmt.Sprint(x.Value.AsInterface())
				}
				if attributes["notify.attempt"] != strconv.Itoa(i+2) || attributes["notify.id"] == "" {
					t.Errorf("attempt %d: %v", i, attributes)
				}
			}
		})
	}
}

// queuedID returns the ID of the message in an answer.
func queuedID(t *testing.T, got gatewaytest.Reply) uuid.UUID {
	t.Helper()
	_, id, _ := strings.Cut(got.Header.Get("Location"), "/messages/")
	return queueID(t, id)
}

// retryOnce lets the queue try a message again, and waits until the attempt has ended and
// this many deliveries wait.
func retryOnce(t *testing.T, g *gatewaytest.Gateway, p *gatewaytest.Pager, id uuid.UUID, wait int) {
	t.Helper()
	before := p.Count()
	if _, err := g.Rooms().Outbox.Queue.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	gatewaytest.Eventually(t, func() bool {
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		return err == nil && p.Count() > before && s.Queued == wait && s.Sending == 0
	})
}

// TestLogLinesOfMessage checks that the lines about a message that is accepted, fails, is
// tried again and arrives have its ID.
func TestLogLinesOfMessage(t *testing.T) {
	t.Parallel()
	p, good, wrong := gatewaytest.NewPager(t, http.StatusServiceUnavailable), gatewaytest.NewPager(t, http.StatusOK),
		gatewaytest.NewPager(t, http.StatusNotFound)
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:  site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL(), good.NotifyURL(), wrong.NotifyURL())}},
		Queue: &outbox.Settings{},
	})
	core, logs := observer.New(zapcore.DebugLevel)
	g.Resolved.Keys["k"].Log = zap.New(core)
	id := queuedID(t, g.Post("/notify/k", gatewaytest.TypeForm, "body=x"))
	p.Answer(http.StatusOK)
	retryOnce(t, g, p, id, 0)
	want := map[string]int{
		"message accepted": 1, "message stored": 1, "message not delivered at once": 1,
		"delivery failed; it is tried again": 1, "delivery failed": 2, "delivered": 2,
	}
	// The retry is also for the delivery that was refused.
	gatewaytest.Eventually(t, func() bool {
		return logs.FilterMessage("delivered").Len() == 2 && logs.FilterMessage("delivery failed").Len() == 2
	})
	for text, n := range want {
		lines := logs.FilterMessage(text).All()
		if len(lines) != n {
			t.Errorf("%d lines %q, want %d", len(lines), text, n)
		}
		for _, l := range lines {
			if l.ContextMap()["id"] != id.String() {
				t.Errorf("%s: %v, want the id %s", text, l.ContextMap(), id)
			}
		}
	}
	// A logger at the level INFO shows which message waits, and for how many destinations.
	if l := logs.FilterMessage("message not delivered at once").All()[0]; l.Level != zapcore.InfoLevel ||
		l.ContextMap()["queued"] != int64(1) || l.ContextMap()["destinations"] != int64(3) {
		t.Errorf("%v %v", l.Level, l.ContextMap())
	}
}

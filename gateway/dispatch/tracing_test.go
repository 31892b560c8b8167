package dispatch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestTracing checks that a message has a span below its request's span, and each delivery one
// below that, and that destinations get them only with propagate_trace.
func TestTracing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, r.Header)
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	base := "json://user:secretsecret@" + strings.TrimPrefix(s.URL, "http://")
	keys := []site.KeyOptions{gatewaytest.Key("k", base+"/ ok", base+"/refuse bad")}
	for _, tt := range []struct {
		name               string
		site, global       *bool
		traced, propagated bool
	}{
		{"no trace", new(true), nil, false, false},
		{"by default", nil, nil, true, false},
		{"propagated", new(true), nil, true, true},
		{"propagated everywhere", nil, new(true), true, true},
		{"not at this site", new(false), new(true), true, false},
	} {
		spans := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{PropagateTrace: tt.global},
			Site:   site.Options{PropagateTrace: tt.site, Keys: keys},
		})
		heard = nil
		r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader("body=x"))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		entry, err := baggage.NewMember("client", "says")
		if err != nil {
			t.Fatal(err)
		}
		bag, err := baggage.New(entry)
		if err != nil {
			t.Fatal(err)
		}
		ctx, request := baggage.ContextWithBaggage(context.Background(), bag), trace.SpanFromContext(context.Background())
		if tt.traced {
			ctx, request = provider.Tracer("test").Start(ctx, "request")
			request.End()
			spans.Reset()
		}
		if got := g.Do(r.WithContext(ctx)); got.Status != http.StatusFailedDependency {
			t.Fatalf("%s: status %d: %s", tt.name, got.Status, got.Body)
		}
		for _, header := range heard {
			if got := strings.Contains(header.Get("Traceparent"), request.SpanContext().TraceID().String()); got != tt.propagated ||
				header.Get("Baggage") != "" {
				t.Errorf("%s: the destination got %v", tt.name, header)
			}
		}
		got := spans.GetSpans()
		if !tt.traced {
			if len(got) != 0 {
				t.Errorf("%s: spans %v", tt.name, got)
			}
			continue
		}
		if len(got) != 3 {
			t.Fatalf("%s: %d spans, want 3", tt.name, len(got))
		}
		message := got[2] // the one that ends last
		if message.Name != "notify" || message.Parent.SpanID() != request.SpanContext().SpanID() || message.Status.Code != codes.Error {
			t.Errorf("%s: the message's span: %+v", tt.name, message)
		}
		failed := 0
		for _, span := range got[:2] {
			if span.Name != "deliver JSON" || span.Parent.SpanID() != message.SpanContext.SpanID() {
				t.Errorf("%s: a delivery's span: %+v", tt.name, span)
			}
			if span.Status.Code == codes.Error {
				failed++
				if set := attribute.NewSet(span.Attributes...); !set.HasValue("notify.destination") ||
					strings.Contains(set.Encoded(attribute.DefaultEncoder()), "secret") || !strings.Contains(span.Status.Description, "403") {
					t.Errorf("%s: the failed delivery's span: %+v", tt.name, span)
				}
			}
		}
		if failed != 1 {
			t.Errorf("%s: %d of 2 deliveries failed, want 1", tt.name, failed)
		}
	}
}

package routing

import (
	"context"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.opentelemetry.io/otel/trace"
)

// Tracers returns the provider of tracers of Caddy's directive tracing, or nil if no
// site has the directive. All handlers of a process have the same provider. Caddy keeps
// it in a variable of its own, which OpenTelemetry does not know either, and passes it
// only to the requests that a handler handles. So Tracers lets one handle a request of
// its own. It does not wait for one of a client, because after a restart the queue may
// send before any comes.
func (c *Routes) Tracers() (provider trace.TracerProvider) {
	var handler caddyhttp.MiddlewareHandler
	for _, server := range c.servers() {
		routes := server.Routes
		for _, named := range server.NamedRoutes {
			routes = append(slices.Clip(routes), *named)
		}
		if handler = findTracing(routes); handler != nil {
			break
		}
	}
	if handler == nil {
		return nil
	}
	// A parent that is not recorded makes a span that is not, either.
	ctx := trace.ContextWithRemoteSpanContext(context.Background(),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	r, err := http.NewRequestWithContext(context.WithValue(ctx, caddy.ReplacerCtxKey, caddy.NewReplacer()), http.MethodGet, "/", http.NoBody)
	if err != nil {
		return nil
	}
	_ = handler.ServeHTTP(discard{}, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		provider = trace.SpanFromContext(r.Context()).TracerProvider()
		return nil
	}))
	return provider
}

// findTracing returns a handler of the directive tracing in the routes, or nil.
func findTracing(routes caddyhttp.RouteList) caddyhttp.MiddlewareHandler {
	for _, route := range routes {
		for _, handler := range route.Handlers {
			if isModule(handler, "http.handlers.tracing") {
				return handler
			}
			if sub, ok := handler.(*caddyhttp.Subroute); ok {
				if found := findTracing(sub.Routes); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

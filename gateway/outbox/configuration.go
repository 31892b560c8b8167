package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Configuration is what the deliveries of a configuration need: its sites, and what sends. The
// newest one makes the deliveries. It is handed down, so that a request, an attempt and a look at
// what is due see one configuration from their beginning to their end.
type Configuration struct {
	site.Directory
	Shared        *dispatch.Dispatcher
	QueueSettings *Settings                   // nil for no queue
	Tracers       func() trace.TracerProvider // of the directive tracing; nil if no site has it
	Log           *zap.Logger

	// Emit emits an event of this configuration, if somebody has subscribed to it. data is
	// called only then.
	Emit func(name string, data func() map[string]any)

	// Subscribed reports whether somebody has subscribed to an event of this configuration.
	Subscribed func(name string) bool
}

// resumeTrace returns the trace of a request from what is stored with its message, or nil
// if the request was not traced or this configuration does not trace.
func (a *Configuration) resumeTrace(o queued.Trace) *dispatch.ResumedTrace {
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

// Watchdog is what the gateway calls at an interval while it can deliver messages, so that
// somebody notices if it cannot.
type Watchdog struct {
	URL      *url.URL
	Interval time.Duration
}

// Settings are the settings of a queue, with placeholders replaced and
// defaults set.
type Settings struct {
	Name    string // identifies the queue in the process
	Path    string // of bolt
	DSN     string // of postgres
	Module  string // the name of the module that another repository has, or ""
	Secret  string // "" for the key file
	MaxAge  time.Duration
	MaxSize int64
	Wait    time.Duration
	Keep    time.Duration

	Watchdog *Watchdog // nil for none
	NoSync   bool      // as in [bolt.Options], for tests

	OldSecrets []string // that what is stored may need

	// Open opens the store of Module.
	Open func(context.Context, *zap.Logger) (queue.Store, error)
}

// LogName returns the name of the queue for logs, without a password.
func (s *Settings) LogName() string {
	if s.DSN != "" {
		return "postgres"
	}
	return cmp.Or(s.Path, s.Module)
}

// SecretHash returns a hash of the secrets, for the comparison of settings.
func (s *Settings) SecretHash() [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(append([]string{s.Secret}, s.OldSecrets...), "\x00")))
}

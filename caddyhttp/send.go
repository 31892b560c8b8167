package caddyhttp

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// origin says where a message comes from.
type origin struct {
	source string // one of the sources below
	key    string // "" for a message without a key
}

// The sources of messages.
const (
	sourceHTTP = "http" // a client of the HTTP API
	sourceTest = "test" // a test through the admin API

	sourceEvent    = "event"     // an event of Caddy or of a plugin
	sourceOwnEvent = "own_event" // one of the gateway's own events
	sourceLog      = "log"       // entries of Caddy's log
)

// send is the way of every message to its destinations, wherever it comes
// from: it sends, and lets those know who watch, which are the metrics, the
// recent results, the trace that ctx belongs to, and who has subscribed to the
// gateway's events.
func (e *engine) send(ctx context.Context, m *notifier.Message, to selection, o notifier.Options, from origin) *notifier.Report {
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	ctx, end := traceMessage(ctx, &o, from, len(to.targets))
	report := e.sender.Send(ctx, m, to.targets, o)
	ok := report.OK() && len(to.unused) == 0
	end(ok)
	e.metrics.sent(m, report, ok)
	e.recent.add(m.Time, from, ok, to.results(report.Results))
	e.tell(from, ok, to.results(report.Results))
	return report
}

// options are what these rules say of sending.
func (r *rules) options(log *zap.Logger) notifier.Options {
	o := notifier.Options{Timeout: r.timeout, Logger: log}
	if r.propagate {
		o.Header = traceHeader
	}
	return o
}

package caddyhttp

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// The sources of messages.
const (
	sourceHTTP = "http" // a client of the HTTP API
	sourceTest = "test" // a test through the admin API

	sourceEvent    = "event"     // an event of Caddy or of a plugin
	sourceOwnEvent = "own_event" // an event of this module
	sourceLog      = "log"       // entries of Caddy's log
)

// delivery is a message with all that sending it needs.
type delivery struct {
	message  *notifier.Message
	to       *api.Selection
	settings *resolved
	logger   *zap.Logger          // gets a line for each destination; nil for none
	source   string               // one of the sources above
	key      string               // "" for a message without a key
	memory   *notifier.Allocation // of the request; nil for no limit

	// done, if set, is called with each result as soon as it is known, by
	// several goroutines at once.
	done func(i int, r notifier.Result)
}

// send sends a message from any source and records the outcome in metrics, the
// history, the trace of ctx and events.
func (s *shared) send(ctx context.Context, d delivery) *notifier.Report {
	if d.message.Time.IsZero() {
		d.message.Time = time.Now()
	}
	ctx, trace := startTrace(ctx, d.key, len(d.to.Targets))
	observers := []notifier.Observer{trace.observer()}
	if d.done != nil {
		observers = append(observers, notifier.Observer{End: func(_ context.Context, i int, r notifier.Result) { d.done(i, r) }})
	}
	sent := s.sender.Send(ctx, d.message, d.to.Targets, notifier.Options{
		Timeout:   d.settings.timeout,
		Transient: d.to.Transient,
		Logger:    d.logger,
		Observers: observers,
		Limits:    d.to.Limits,
		Memory:    d.memory,
		Header:    d.settings.traceHeader(),
	})
	report := d.to.Report(sent)
	ok := report.OK()
	trace.end(ok)
	s.metrics.sent(d.message, sent, ok)
	s.history.add(d, ok, report.Results)
	s.emit(d, ok, report.Results)
	return report
}

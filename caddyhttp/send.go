package caddyhttp

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// The sources of messages.
const (
	sourceHTTP = "http" // a client of the HTTP API
	sourceTest = "test" // a test through the admin API or a page

	sourceEvent    = "event"     // an event of Caddy or of a plugin
	sourceOwnEvent = "own_event" // an event of this module
	sourceLog      = "log"       // entries of Caddy's log
	sourceFallback = "fallback"  // a delivery that the queue has given up
	sourceSMTP     = "smtp"      // a mail
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

	// release, if set, releases what the message holds. It is called when no
	// delivery is under way.
	release func()

	id          uuid.UUID   // in the queue; zero without a queue
	idempotency idempotency // of the request

	// attempt means that the queue makes the delivery, of a message that was
	// counted before.
	attempt bool

	// done, if set, is called with each result as soon as it is known, by
	// several goroutines at once.
	done func(i int, r notifier.Result)
}

// idempotency identifies a message that is sent again.
type idempotency struct {
	key     string // of the client, unique among clients; "" for none
	request []byte // a hash of the request
}

// send sends a message from any source and records the outcome in metrics, the
// history, the trace of ctx and events.
func (s *shared) send(ctx context.Context, d delivery) *notifier.Report {
	sent, trace := s.deliver(ctx, d)
	report := d.to.Report(sent)
	trace.end(report.OK())
	s.finish(d, sent.Results, report)
	return report
}

// deliver sends a message. The caller ends the trace and calls finish.
func (s *shared) deliver(ctx context.Context, d delivery) (*notifier.Report, *messageTrace) {
	sending, trace := s.start(ctx, d)
	return sending.Wait(nil), trace
}

// start begins to send a message. The caller waits for the deliveries, ends the
// trace and calls finish.
func (s *shared) start(ctx context.Context, d delivery) (notifier.Sending, *messageTrace) {
	if d.message.Time.IsZero() {
		d.message.Time = time.Now()
	}
	ctx, trace := startTrace(ctx, d.key, len(d.to.Targets))
	var observers []notifier.Observer
	if trace != nil {
		observers = append(observers, trace.observer())
	}
	if done := d.done; done != nil { // d.done would move all of d to the heap
		observers = append(observers, notifier.Observer{End: func(_ context.Context, i int, r notifier.Result) { done(i, r) }})
	}
	var repeated func(int, *notifier.Result) zapcore.Level
	if d.id != (uuid.UUID{}) { // by the queue
		repeated = func(int, *notifier.Result) zapcore.Level { return zapcore.WarnLevel }
	}
	return s.sender.Start(ctx, d.message, d.to.Targets, notifier.Options{
		Timeout:   d.settings.timeout,
		Transient: d.to.Transient,
		Logger:    d.logger,
		Repeated:  repeated,
		Observers: observers,
		Limits:    d.to.Limits,
		Memory:    d.memory,
		Header:    d.settings.traceHeader(),
	}), trace
}

// finish records the outcome of a message. made are the deliveries that were
// made; report has all of the message's deliveries.
func (s *shared) finish(d delivery, made []notifier.Result, report *notifier.Report) {
	outcome := outcomeOfMessage(report.Results)
	s.metrics.sent(d, outcome, made)
	if d.attempt && outcome != outcomeDelivered {
		return // it is tried again, or settled records that it is not
	}
	s.history.add(d, outcome, report.Results)
	s.emit(d, outcome, report.Results)
}

// outcomeOfMessage returns the outcome of a message with these results.
func outcomeOfMessage(results []notifier.Result) string {
	outcome := outcomeDelivered
	for _, r := range results {
		switch {
		case api.Failed(r):
			return outcomeFailed
		case r.Status == api.StatusQueued:
			outcome = outcomeQueued
		}
	}
	return outcome
}

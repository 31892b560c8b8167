package caddyhttp

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// watchdogState is what the gateways that share a queue know of the calls of the watchdog.
type watchdogState struct {
	next    time.Time // when the next call is due
	success time.Time // the last one; zero for none
	since   time.Time // of the first failure in a row; zero for none
	problem string    // of the last failure, without the address; "" for none
}

func (s *watchdogState) fields(c *wire.Codec) {
	wire.Time(c, 1, &s.next)
	wire.Time(c, 2, &s.success)
	wire.Time(c, 3, &s.since)
	wire.Text(c, 4, &s.problem)
}

// maxWatchdogProblem is the maximum length of the text of a failure, in bytes.
const maxWatchdogProblem = 300

func (s *watchdogState) record() queue.Record {
	return queue.Record{Data: outbox.EncodeRecord(outbox.KindWatchdog, wire.Append(nil, s, (*watchdogState).fields)), Due: s.next}
}

// decodeWatchdog returns the state in a record. A damaged one knows nothing.
func decodeWatchdog(record []byte) (s watchdogState) {
	if len(record) == 0 || record[0] != outbox.KindWatchdog || wire.Decode(record[1:], &s, (*watchdogState).fields) != nil {
		return watchdogState{}
	}
	return s
}

// called notes the outcome of a call.
func (s *watchdogState) called(now time.Time, err error) {
	if err == nil {
		s.success, s.since, s.problem = now, time.Time{}, ""
		return
	}
	if s.problem == "" || s.since.IsZero() {
		s.since = now
	}
	s.problem = markup.TruncateBytes(markup.OneLine(err.Error()), maxWatchdogProblem)
}

// noteWatchdog stores the outcome of a call. If that fails, the log and the metrics have
// it.
func (q *monitor) noteWatchdog(ctx context.Context, outcome error) {
	err := q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{q.watchdogName()}, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		s := decodeWatchdog(old[0])
		s.called(q.Now(), outcome)
		return &queue.RuledChange{Records: []queue.Record{s.record()}}, nil
	}})
	if err != nil {
		q.Log.Debug("the outcome of the call of the watchdog cannot be stored", zap.Error(err))
	}
}

// watchdogJSON is the watchdog as the admin API shows it.
type watchdogJSON struct {
	State        string     `json:"state"` // ok, failing or, before the first call, unknown
	Interval     string     `json:"interval"`
	LastSuccess  *time.Time `json:"last_success,omitempty"`
	FailingSince *time.Time `json:"failing_since,omitempty"`
	LastError    string     `json:"last_error,omitempty"`
}

// watchdog returns what is known of the watchdog, or nil if there is none.
func (q *monitor) watchdog(ctx context.Context) (*watchdogJSON, error) {
	w := q.App.Load().QueueSettings.Watchdog
	if w == nil {
		return nil, nil
	}
	b, err := q.CallersRecord(ctx, q.watchdogName())
	if err != nil {
		return nil, err
	}
	s := decodeWatchdog(b)
	out := &watchdogJSON{"unknown", rules.FormatTime(w.Interval), site.TimeOrNil(s.success), site.TimeOrNil(s.since), s.problem}
	switch {
	case s.problem != "":
		out.State = "failing"
	case !s.success.IsZero():
		out.State = "ok"
	}
	return out, nil
}

// watchdogTrouble returns what is wrong with the watchdog, or nil.
func (q *monitor) watchdogTrouble(ctx context.Context) *view.Trouble {
	w, err := q.watchdog(ctx)
	if err != nil || w == nil || w.FailingSince == nil {
		return nil
	}
	return &view.Trouble{What: "The watchdog is not told that the gateway works", Since: *w.FailingSince, Cause: w.LastError}
}

package heartbeat

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// WatchdogState is the state of the watchdog's calls, which gateways that share a queue have in
// common.
type WatchdogState struct {
	Next    time.Time // when the next call is due
	Success time.Time // the last one; zero for none
	Since   time.Time // of the first failure in a row; zero for none
	Problem string    // of the last failure, without the address; "" for none
}

func (s *WatchdogState) fields(c *wire.Codec) {
	wire.Time(c, 1, &s.Next)
	wire.Time(c, 2, &s.Success)
	wire.Time(c, 3, &s.Since)
	wire.Text(c, 4, &s.Problem)
}

// maxWatchdogProblem is the maximum length of the text of a failure, in bytes.
const maxWatchdogProblem = 300

// WatchdogStates is the record of the state. It is due when the next call is. A damaged record is
// an empty state.
var WatchdogStates = outbox.Typed[WatchdogState]{Kind: KindWatchdog, Fields: (*WatchdogState).fields}

// called notes the outcome of a call.
func (s *WatchdogState) called(now time.Time, err error) {
	if err == nil {
		s.Success, s.Since, s.Problem = now, time.Time{}, ""
		return
	}
	if s.Problem == "" || s.Since.IsZero() {
		s.Since = now
	}
	s.Problem = markup.TruncateBytes(markup.OneLine(err.Error()), maxWatchdogProblem)
}

// note stores the outcome of a call. If that fails, only the log and the metrics have it.
func (d *watchdog) note(ctx context.Context, outcome error) {
	err := d.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{d.name()}, Decide: func(tx *queue.Tx) error {
		s := WatchdogStates.GetOrNew(tx, d.name())
		s.called(d.outbox.Queue.Now(), outcome)
		WatchdogStates.Put(tx, d.name(), s, s.Next, queue.Hash{})
		return nil
	}})
	if err != nil {
		d.outbox.Log.Debug("the outcome of the call of the watchdog cannot be stored", zap.Error(err))
	}
}

// WatchdogJSON is the watchdog as the admin API shows it.
type WatchdogJSON struct {
	State        string    `json:"state"` // ok, failing or, before the first call, unknown
	Interval     string    `json:"interval"`
	LastSuccess  time.Time `json:"last_success,omitzero"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	LastError    string    `json:"last_error,omitempty"`
}

// Watchdog returns the state of the watchdog, or nil if there is none.
func (m *Monitor) Watchdog(ctx context.Context) (*WatchdogJSON, error) {
	w := m.outbox.Current().QueueSettings.Watchdog
	if w == nil {
		return nil, nil
	}
	b, err := m.outbox.Queue.Records.Get(ctx, m.watchdog.name())
	if err != nil {
		return nil, err
	}
	s := WatchdogStates.DecodeOrNew(b)
	out := &WatchdogJSON{"unknown", rules.FormatTime(w.Interval), s.Success.UTC(), s.Since.UTC(), s.Problem}
	switch {
	case s.Problem != "":
		out.State = "failing"
	case !s.Success.IsZero():
		out.State = "ok"
	}
	return out, nil
}

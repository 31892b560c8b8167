package heartbeat

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Monitor watches the beats that keys expect, and calls the watchdog. Its records are in an
// outbox, which also stores its messages.
type Monitor struct {
	outbox.NoRefresh
	outbox.NoEnded
	outbox.NoRecheck
	outbox.NoForget

	outbox   *outbox.Outbox
	watchdog watchdog
	seen     atomic.Bool  // this process has noted that it runs (see [Monitor.see])
	seeEvery atomic.Int64 // nanoseconds until it notes that again
	unstored unstoredFailures
	began    atomic.Int64 // when it first tried to note that, in nanoseconds; 0 before

	// Needed, if set, reports whether another package needs the uptime.
	Needed func(context.Context) (bool, error)
}

// New returns the monitor of an outbox. The queue of the outbox may be set later.
func New(o *outbox.Outbox) *Monitor {
	m := &Monitor{outbox: o, watchdog: watchdog{outbox: o}}
	m.seeEvery.Store(int64(seeEvery(nil)))
	return m
}

// Started returns the change for the start of a run.
func (m *Monitor) Started(x *ExpectedBeat) *BeatChange {
	return &BeatChange{monitor: m, name: m.beatName(x), change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
		b.Start(now, u, &x.Expect)
		return false, true
	}}
}

// Came returns the change for a beat that has come. exit is its exit code; "" for 0 or none. A
// failure and the first beat after a problem are told by a message; other beats change only their
// record. withMessage means that the caller stores a message with the change. If this beat needs
// the opposite, the change returns [ErrBeatUnchanged]. before is set to the beat before the change.
// output is the end of what the job posted; "" if it is not kept.
func (m *Monitor) Came(x *ExpectedBeat, failed bool, exit, output string, withMessage bool, before *rules.Beat) *BeatChange {
	return &BeatChange{monitor: m, name: m.beatName(x), change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		*before = *b
		b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
		told := b.Came(now, u, &x.Expect, failed, exit)
		b.Posted(output)
		b.KeepOutputs(now, x.Key.Inbox)
		return false, told == withMessage
	}}
}

// Lives returns the change for a partial beat after a failure: it does not say whether all is well
// again. The change returns [ErrBeatUnchanged] if no failure was told.
func (m *Monitor) Lives(x *ExpectedBeat) *BeatChange {
	return &BeatChange{monitor: m, name: m.beatName(x), change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		return false, b.Lives(now, u, &x.Expect)
	}}
}

// emit emits an event about a beat.
func (m *Monitor) emit(name string, x *ExpectedBeat, b *rules.Beat) {
	m.outbox.Dispatcher.EmitEvent(name, func() map[string]any {
		last := ""
		if !b.Last.IsZero() {
			last = b.Last.UTC().Format(time.RFC3339)
		}
		data := map[string]any{
			"key": x.Key.Name, "beat": x.Name, "last": last, "state": string(b.State), "every": "", "cron": x.Calendar.String(), "ran": "",
			"exit": b.Exit,
		}
		if x.Calendar.IsZero() {
			data["every"] = rules.FormatTime(x.Every)
		}
		if b.Ran > 0 {
			data["ran"] = FormatRun(b.Ran)
		}
		return data
	})
}

// UptimeName returns the name of the record of the [rules.Uptime], for changes that read it.
func (m *Monitor) UptimeName() queue.Hash { return m.uptimeName() }

// SeeUptime stores that this gateway runs, and returns the uptime. The change must name
// [Monitor.UptimeName], and its caller calls [Monitor.Saw] after the transaction.
func (m *Monitor) SeeUptime(tx *queue.Tx, now time.Time) *rules.Uptime {
	u := uptimes.GetOrNew(tx, m.uptimeName())
	m.see(u, now)
	m.putUptime(tx, u)
	return u
}

// UptimeNow returns the uptime of now, including a gap that is not stored yet, and the stored one.
func (m *Monitor) UptimeNow(ctx context.Context) (now, stored *rules.Uptime, err error) {
	b, err := m.outbox.Queue.Records.Get(ctx, m.uptimeName())
	if err != nil {
		return nil, nil, err
	}
	now = uptimes.DecodeOrNew(b)
	m.see(now, m.outbox.Queue.Now())
	return now, uptimes.DecodeOrNew(b), nil
}

// Uptime returns the uptime. It stores a gap that is not stored yet, so that later reads return the
// same.
func (m *Monitor) Uptime(ctx context.Context) (*rules.Uptime, error) {
	u, stored, err := m.UptimeNow(ctx)
	if err != nil || m.seen.Load() && u.Same(stored) {
		return u, err
	}
	err = m.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{m.uptimeName()}, Decide: func(tx *queue.Tx) error {
		u = m.SeeUptime(tx, m.outbox.Queue.Now())
		return nil
	}})
	if err == nil {
		m.Saw()
	}
	return u, err
}

// Saw notes that the store knows that this gateway runs.
func (m *Monitor) Saw() { m.seen.Store(true) }

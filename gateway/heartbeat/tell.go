package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// ErrBeatUnchanged is returned when a beat is no longer in the state that a change is for, because
// somebody else has changed it.
var ErrBeatUnchanged = fmt.Errorf("the beat: %w", queue.ErrChanged)

// incidentOfBeat is the prefix of the name of a beat's incident. No client can use the name,
// because the source is part of an incident.
const incidentOfBeat = "beat:"

// BeatTime formats a time for messages about beats.
func BeatTime(t time.Time) string {
	return t.Local().Format("2006-01-02 15:04 MST")
}

// FormatRun formats the duration of a run for messages about beats.
func FormatRun(d time.Duration) string {
	precision := time.Second
	if d >= time.Hour {
		precision = time.Minute
	}
	return rules.FormatTime(max(d.Round(precision), time.Second))
}

// lateText returns the message that a beat is late, which is due at a time.
func (x *ExpectedBeat) lateText(b *rules.Beat, due time.Time) *notifier.Message {
	text := "No beat has come yet."
	if !b.Last.IsZero() {
		text = "The last beat came at " + BeatTime(b.Last) + "."
	}
	if !b.Started.IsZero() {
		text += " A run started at " + BeatTime(b.Started) + " and has not ended."
	}
	if x.Calendar.IsZero() {
		text += " One is expected every " + rules.FormatTime(x.Every)
	} else {
		text += " One was due at " + BeatTime(due)
	}
	return &notifier.Message{
		Title: x.Name + " is late", Type: notifier.Failure,
		Body: text + ", with a grace of " + rules.FormatTime(x.Grace) + ".",
	}
}

// tooLongText returns the message that a run takes too long.
func (x *ExpectedBeat) tooLongText(b *rules.Beat) *notifier.Message {
	longest := rules.FormatTime(x.MaxRun)
	return &notifier.Message{
		Title: x.Name + " has not ended after " + longest, Type: notifier.Failure,
		Body: x.Name + " started at " + BeatTime(b.Started) + " and has not ended after " + longest + ".",
	}
}

// backText returns the message that a beat came after a problem. before is the beat with the
// problem.
func (x *ExpectedBeat) backText(before *rules.Beat, now time.Time) *notifier.Message {
	what := "It was late since "
	switch before.State {
	case rules.BeatFailed:
		what = "It failed at "
	case rules.BeatTooLong:
		what = "It had not ended by "
	case rules.BeatOK, rules.BeatLate:
	}
	return &notifier.Message{
		Title: x.Name + " is back",
		Body:  "The beat has come" + afterRun(before.Running(now)) + ". " + what + BeatTime(before.Since) + ".", Type: notifier.Success,
	}
}

// goneText returns the message that a beat with a problem is no longer expected.
func goneText(name string) *notifier.Message {
	return &notifier.Message{
		Title: name + " is no longer expected",
		Body:  "The configuration does not expect this beat any more, so nobody waits for it.", Type: notifier.Success,
	}
}

// failedText turns the message of a failed beat into a message about the beat. ran is how long the
// run took; 0 if unknown.
func failedText(name string, m *notifier.Message, s Signal, ran time.Duration) {
	text := "failed"
	if ran > 0 {
		text += " after " + FormatRun(ran)
	}
	if s.Exit != "" {
		text += ", exit " + s.Exit
	}
	switch {
	case m.Title == "":
		m.Title = name + " has " + text
	case ran > 0 || s.Exit != "":
		m.Title += ": " + text
	}
	if m.Body != "" {
		return
	}
	m.Body = "The beat came with the type failure."
	if s.Exit != "" {
		m.Body = "The beat came with the exit code " + s.Exit + "."
	}
}

// Delivery returns the delivery of a message about the beat, which makes a change in the
// transaction that stores it.
func (x *ExpectedBeat) Delivery(m *notifier.Message, c *BeatChange) dispatch.Delivery {
	m.Incident = notifier.Incident{Name: incidentOfBeat + x.Name}.For(x.Key.Name, site.SourceExpect)
	d := dispatch.NewDelivery(x.Settings, site.SourceExpect, x.Site, m,
		&message.Selection{Targets: x.Settings.Devices.With(x.Key).Select(x.Tag)}).ToKey(x.Settings.Devices.With(x.Key))
	d.With = c.ruled()
	return d
}

// TellBeat stores a message about a beat with a change of the beat. The queue sends the message;
// the report is from before any delivery. The error is [ErrBeatUnchanged] if the change was
// refused. Without an error, d.Release is called when the last delivery has ended.
func (m *Monitor) TellBeat(ctx context.Context, d dispatch.Delivery, c *BeatChange) (report *notifier.Report, id string, err error) {
	m.outbox.Dispatcher.Incidents.Note(&d)
	report, id, err = m.outbox.Submit(ctx, d, outbox.Options{Begun: func([]notifier.Target) func(int, notifier.Result) {
		m.seen.Store(true)
		return nil
	}})
	if err != nil && c.refused {
		err = ErrBeatUnchanged
	}
	return report, id, err
}

// dueBeat tells that a beat is late, or that its run takes too long. It looks at the record
// first: a time in which no gateway ran may have moved the deadline.
func (m *Monitor) dueBeat(ctx context.Context, conf *outbox.Configuration, name queue.Hash, data []byte) error {
	before := beats.DecodeOrNew(data)
	x := expectedBeatOf(&conf.Directory, before)
	if x == nil {
		return m.dueGoneBeat(ctx, conf, name, before)
	}
	late, tooLong := false, false
	c := m.look(x, name, func(now time.Time, b *rules.Beat, u *rules.Uptime) bool {
		late, tooLong = b.Late(now, u), b.TooLong(now, u)
		return true
	})
	if err := c.Apply(ctx); err != nil {
		return err
	}
	if tooLong {
		overrun := m.look(x, name, func(now time.Time, b *rules.Beat, u *rules.Uptime) bool {
			tell := b.TooLong(now, u)
			b.Overrun(now)
			return tell
		})
		if err := m.tellDue(ctx, x, x.tooLongText(&c.Beat), overrun); err != nil {
			return err
		}
	}
	if !late {
		return nil
	}
	miss := m.look(x, name, func(now time.Time, b *rules.Beat, u *rules.Uptime) bool {
		tell := b.Late(now, u)
		b.Miss(now)
		return tell
	})
	return m.tellDue(ctx, x, x.lateText(&c.Beat, c.Beat.Due(&c.Uptime)), miss)
}

// look returns a change that looks at a beat in its record.
func (m *Monitor) look(x *ExpectedBeat, name queue.Hash, change func(now time.Time, b *rules.Beat, u *rules.Uptime) (ok bool)) *BeatChange {
	return &BeatChange{monitor: m, name: name, change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
		b.Arm(now, u, &x.Expect)
		return false, change(now, b, u)
	}}
}

// tellDue stores a message about a beat that did not come with the change c, unless another gateway
// has told it or the beat came.
func (m *Monitor) tellDue(ctx context.Context, x *ExpectedBeat, text *notifier.Message, c *BeatChange) error {
	_, _, err := m.TellBeat(ctx, x.Delivery(text, c), c)
	if errors.Is(err, ErrBeatUnchanged) {
		return nil
	}
	if err == nil {
		m.emit(event.BeatLate, x, &c.Beat)
	}
	return err
}

// goneTime is how long a beat is kept after the configuration ceased to expect it. Another gateway
// may have a newer configuration that expects it.
const goneTime = 10 * time.Minute

// dueGoneBeat removes a beat that is no longer expected. If the key was told of a problem, it is
// told of the end, too.
func (m *Monitor) dueGoneBeat(ctx context.Context, conf *outbox.Configuration, name queue.Hash, before *rules.Beat) error {
	remove := &BeatChange{monitor: m, name: name, change: func(now time.Time, b *rules.Beat, _ *rules.Uptime) (remove, ok bool) {
		if b.Gone.IsZero() || b.Gone.After(now) {
			b.Gone = now
		}
		return now.Sub(b.Gone) >= goneTime, true
	}}
	if before.State != rules.BeatOK && !before.Gone.IsZero() && m.outbox.Queue.Now().Sub(before.Gone) >= goneTime {
		for _, r := range conf.SitesWithID(before.Site) {
			k := r.Keys[before.Key]
			if k == nil || k.Unqueued {
				continue
			}
			x := &ExpectedBeat{before.Site, r, k, &site.ExpectedBeat{Expect: rules.Expect{Name: before.Name}}}
			_, _, err := m.TellBeat(ctx, x.Delivery(goneText(x.Name), remove), remove)
			return err
		}
		if err := remove.Apply(ctx); err != nil {
			return err
		}
		m.outbox.Log.Warn("a beat with a problem is no longer expected, and nobody is told, because its key is gone",
			zap.String("key", before.Key), zap.String("beat", before.Name))
		return nil
	}
	return remove.Apply(ctx)
}

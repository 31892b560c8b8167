package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// ErrBeatUnchanged is returned when a beat is not in the state any more for which it was
// to be changed, because somebody else has changed it.
var ErrBeatUnchanged = errors.New("the beat has changed meanwhile")

// incidentOfBeat begins the name of the incident of a beat. No client can name it, because
// the source is part of an incident.
const incidentOfBeat = "beat:"

// BeatTime returns a time as messages about beats have it.
func BeatTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04 MST") } //nolint:gosmopolitan // the server's zone is that of its users

// lateText returns the message that a beat is late.
func (x *ExpectedBeat) lateText(last time.Time) *notifier.Message {
	since := "No beat has come yet."
	if !last.IsZero() {
		since = "The last beat came at " + BeatTime(last) + "."
	}
	return &notifier.Message{
		Title: x.Name + " is late", Type: notifier.Failure,
		Body: fmt.Sprintf("%s One is expected every %s, with a grace of %s.", since, rules.FormatTime(x.Every), rules.FormatTime(x.Grace)),
	}
}

// BackText returns the message that a beat came after a problem.
func (x *ExpectedBeat) BackText(state rules.BeatState, since time.Time) *notifier.Message {
	what := "It was late since "
	if state == rules.BeatFailed {
		what = "It failed at "
	}
	return &notifier.Message{Title: x.Name + " is back", Body: "The beat has come. " + what + BeatTime(since) + ".", Type: notifier.Success}
}

// goneText returns the message that a beat with a problem is expected no more.
func goneText(name string) *notifier.Message {
	return &notifier.Message{Title: name + " is no longer expected", Body: "The configuration does not expect this beat any more, so nobody waits for it.", Type: notifier.Success}
}

// FailedText makes the message of a failing beat one about the beat.
func FailedText(name string, m *notifier.Message) {
	m.Title = cmp.Or(m.Title, name+" has failed")
	if m.Body == "" && len(m.Attachments) == 0 {
		m.Body = "The beat came with the type failure."
	}
}

// Delivery returns the delivery of a message about the beat, which makes a change in the
// transaction that stores it.
func (x *ExpectedBeat) Delivery(m *notifier.Message, c *BeatChange) dispatch.Delivery {
	m.Incident = notifier.Incident{Name: incidentOfBeat + x.Name}.For(x.Key.Name, site.SourceExpect)
	d := dispatch.NewDelivery(x.Settings, site.SourceExpect, x.Site, m, &api.Selection{Targets: x.Settings.Devices.With(x.Key).Select(x.Tag)}).ToKey(x.Settings.Devices.With(x.Key))
	d.With = c.ruled()
	return d
}

// TellBeat stores a message about a beat, and makes the change of the beat. The queue
// sends the message. The results are those before anything is sent. The error is
// [ErrBeatUnchanged] if the change was refused. Otherwise, unless there is an error,
// d.Release is called when no delivery is in progress any more.
func (m *Monitor) TellBeat(ctx context.Context, d dispatch.Delivery, c *BeatChange) (report *notifier.Report, id string, err error) {
	m.outbox.Engine.Load().Shared.Incidents.Note(&d)
	report, id, err = m.outbox.Submit(ctx, d, outbox.Options{Begun: func([]notifier.Target) func(int, notifier.Result) {
		m.seen.Store(true)
		return nil
	}})
	if err != nil && c.refused {
		err = ErrBeatUnchanged
	}
	return report, id, err
}

// dueBeat tells that a beat is late. It looks at the record first: a time in which no
// gateway ran may have moved the deadline.
func (m *Monitor) dueBeat(ctx context.Context, name queue.Hash, data []byte) error {
	app, before := m.outbox.Engine.Load(), decodeBeat(data)
	x := expectedBeatOf(&app.Directory, before)
	if x == nil {
		return m.dueGoneBeat(ctx, name, before)
	}
	late := false
	c := &BeatChange{monitor: m, name: name, change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
		b.Arm(now, u, &x.Expect)
		late = b.Late(now, u)
		return false, true
	}}
	if err := c.Apply(ctx); err != nil || !late {
		return err
	}
	c = &BeatChange{monitor: m, name: name, change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
		if !b.Late(now, u) {
			return false, false
		}
		b.Miss(now)
		return false, true
	}}
	_, _, err := m.TellBeat(ctx, x.Delivery(x.lateText(before.Last), c), c)
	if errors.Is(err, ErrBeatUnchanged) {
		return nil // another gateway has told it, or the beat came
	}
	if err == nil {
		Emit(app, event.BeatLate, x, &c.Beat)
	}
	return err
}

// goneTime is how long a beat is kept that this configuration does not expect. Another
// gateway may have a newer one, which does.
const goneTime = 10 * time.Minute

// dueGoneBeat removes a beat that nobody expects any more. If the key was told of a
// problem, it is told that, too.
func (m *Monitor) dueGoneBeat(ctx context.Context, name queue.Hash, before *rules.Beat) error {
	remove := &BeatChange{monitor: m, name: name, change: func(now time.Time, b *rules.Beat, _ *rules.Uptime) (remove, ok bool) {
		if b.Gone.IsZero() || b.Gone.After(now) {
			b.Gone = now
		}
		return now.Sub(b.Gone) >= goneTime, true
	}}
	app := m.outbox.Engine.Load()
	if before.State != rules.BeatOK && !before.Gone.IsZero() && m.outbox.Queue.Now().Sub(before.Gone) >= goneTime {
		for _, r := range app.SitesWithID(before.Site) {
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
		m.outbox.Log.Warn("a beat with a problem is no longer expected, and nobody is told, because its key is gone", zap.String("key", before.Key), zap.String("beat", before.Name))
		return nil
	}
	return remove.Apply(ctx)
}

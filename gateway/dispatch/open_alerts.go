package dispatch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// OpenAlerts is what destinations were told of the open alerts of clients of incident tools,
// so that an alert that is opened again, with nothing new, is only counted. What is forgotten
// is told again. The zero value is ready for use, and keeps the alerts in memory. See
// [NewStoredAlerts].
type OpenAlerts struct {
	store AlertStore

	mu     sync.Mutex
	alerts map[string]*openAlert // by their incidents; without a store
	missed map[AlertID]struct{}  // alerts that were closed, which the store could not be told
}

// AlertID identifies an alert.
type AlertID struct {
	Place    string // of the key; see [Delivery.Place]
	Incident string // see [Delivery.IncidentOf]
}

// AlertStore keeps alerts as records, for all gateways that share it.
type AlertStore struct {
	// Change changes the record of an alert. change gets nil if there is none, and returns
	// nil for none. It may be called several times. The record is forgotten at the time that
	// change returns.
	Change func(ctx context.Context, id AlertID, change func(record []byte) ([]byte, time.Time)) error

	// At returns a time of this machine by the clock of the store.
	At func(time.Time) time.Time
}

// NewStoredAlerts returns open alerts that a store keeps.
func NewStoredAlerts(s AlertStore) *OpenAlerts { return &OpenAlerts{store: s} }

// openAlert is an alert that is open.
type openAlert struct {
	opened  time.Time // when its first message came
	told    []toldAlert
	repeats int       // that nobody was told of
	since   time.Time // of the first of them
	heard   time.Time // when the last message about it came
	key     alertText // the idempotency key of the last message that was not a repetition; zero for none

	acknowledged bool // a client says so

	// noted is the text of the last message that opened the alert, as it is sent, and text is
	// what its client has sent: without the line about repetitions, and with the priority.
	noted, text alertText
}

// toldAlert is what a destination has.
type toldAlert struct {
	target string // the hash of the destination
	text   alertText
	at     time.Time
}

// alertText is the hash of a text, or of an idempotency key.
type alertText [sha256.Size]byte

func (t *toldAlert) fields(c *wire.Codec) {
	wire.Text(c, 1, &t.target)
	wire.Array(c, 2, t.text[:])
	wire.Time(c, 3, &t.at)
}

func (a *openAlert) fields(c *wire.Codec) {
	wire.Time(c, 1, &a.opened)
	wire.Records(c, 2, &a.told, (*toldAlert).fields)
	wire.Number(c, 3, &a.repeats)
	wire.Time(c, 4, &a.since)
	wire.Time(c, 5, &a.heard)
	wire.Array(c, 6, a.key[:])
	wire.True(c, 7, &a.acknowledged)
	wire.Array(c, 8, a.noted[:])
	wire.Array(c, 9, a.text[:])
}

// textOf returns what makes two messages about an alert with a priority the same.
func textOf(m *notifier.Message, body, priority string) alertText {
	return sha256.Sum256([]byte(string(m.Type) + "\x00" + m.Title + "\x00" + body + "\x00" + priority))
}

const (
	// lastsFor is for how long an alert goes on of which nothing is heard. One that is opened
	// again later is a new one: its client does not close alerts. A client that repeats what
	// lasts does so more often.
	lastsFor = 4 * time.Hour

	// How long a store keeps an alert of which nothing is heard. What is opened again within
	// that time says how often it was repeated before.
	keptFor         = 48 * time.Hour
	keptIfTakenCare = 31 * 24 * time.Hour
)

// forget returns when a store forgets the alert.
func (a *openAlert) forget() time.Time {
	if a.acknowledged {
		return a.heard.Add(keptIfTakenCare)
	}
	return a.heard.Add(keptFor)
}

// Opens notes that d opens its alert, and reports whether all targets of d have its message
// already. Then n is how many such messages there were since the last one that was told; 0
// for a request that is sent again with its idempotency key. Of targets that form a chain,
// one is enough. Those that lack the message are the new targets of d, and the message says
// how many were not told.
//
// A target that is quiet, because somebody takes care of the alert or has silenced it, has the
// message however long ago that was. resolved means that somebody has resolved what was open.
//
// After an error, the message is told.
func (x *OpenAlerts) Opens(ctx context.Context, d *Delivery, resolved bool, quiet func(notifier.Target) bool) (n int,
	repeats bool, err error) {
	now, text := x.at(d.Message.Time), textOf(d.Message, d.Message.Body, d.Priority)
	resolved = resolved || x.isMissed(d.alert())
	var key alertText
	if d.Idempotency.Key != "" {
		key = sha256.Sum256([]byte(d.Idempotency.Key))
	}
	var lacking []notifier.Target
	var body string
	err = x.change(ctx, d.alert(), func(a *openAlert) *openAlert {
		n, repeats, lacking, body = 0, false, d.To.Targets, d.Message.Body
		if a == nil || resolved || queue.WrittenAhead(a.heard, now) {
			a = &openAlert{opened: now, heard: now}
		}
		lasts := now.Sub(a.heard) < lastsFor
		a.heard = now
		has := func(t notifier.Target) bool {
			i := a.index(t)
			return i >= 0 && a.told[i].text == text && (lasts && now.Sub(a.told[i].at) < OpenedTime || a.acknowledged || quiet(t))
		}
		if slices.ContainsFunc(lacking, has) {
			if !notifier.Chained(lacking) {
				lacking = slices.DeleteFunc(slices.Clone(lacking), has)
			} else {
				lacking = nil
			}
			if repeats = len(lacking) == 0; repeats {
				n = a.repeat(key, now)
				return a
			}
		}
		a.key = key
		for _, t := range lacking { // until they have it
			if i := a.index(t); i >= 0 {
				a.told = slices.Delete(a.told, i, i+1)
			}
		}
		body = a.withRepetitions(body)
		a.noted, a.text = textOf(d.Message, body, ""), text
		return a
	})
	if err != nil {
		return 0, false, err
	}
	x.setMissed(d.alert(), false)
	if !repeats {
		to := *d.To
		to.Targets = lacking
		d.To, d.Message.Body, d.OpenAlerts = &to, body, x
	}
	return n, repeats, nil
}

// index returns the position of what a target has, or -1.
func (a *openAlert) index(t notifier.Target) int {
	return slices.IndexFunc(a.told, func(told toldAlert) bool { return told.target == t.Hash() })
}

// repeat counts a message that nobody is told of, with its idempotency key, and returns how
// many there are.
func (a *openAlert) repeat(key alertText, now time.Time) int {
	if key != (alertText{}) && key == a.key {
		return 0
	}
	if a.repeats++; a.repeats == 1 {
		a.since = now
	}
	return a.repeats
}

// withRepetitions adds to a text how often the alert was opened again since the last message
// that was told, and forgets that.
func (a *openAlert) withRepetitions(body string) string {
	n, since := a.repeats, a.since.In(time.Local).Format(time.DateTime)
	a.repeats, a.since = 0, time.Time{}
	line := fmt.Sprintf("%d repetitions since %s were not sent.", n, since)
	switch n {
	case 0:
		return body
	case 1:
		line = "1 repetition at " + since + " was not sent."
	}
	return strings.TrimRight(body, "\n") + "\n" + line
}

// Note notes another message about an alert: it may be closed, and somebody may take care of
// it, or nobody any more. The message says how often the alert was opened again since the last
// one that was told.
func (x *OpenAlerts) Note(ctx context.Context, d *Delivery, unacknowledged bool) error {
	state, body := StateOf(d.Message), d.Message.Body
	err := x.change(ctx, d.alert(), func(a *openAlert) *openAlert {
		if body = d.Message.Body; a == nil {
			return nil
		}
		a.heard, body = x.at(d.Message.Time), a.withRepetitions(body)
		switch {
		case state == notifier.Resolved:
			return nil
		case state == notifier.Acknowledged, unacknowledged:
			a.acknowledged = !unacknowledged
		}
		return a
	})
	d.Message.Body = body
	if state == notifier.Resolved || unacknowledged {
		x.setMissed(d.alert(), err != nil)
	}
	return err
}

// at returns a time by the clock of the store.
func (x *OpenAlerts) at(t time.Time) time.Time {
	if x.store.At == nil {
		return t
	}
	return x.store.At(t)
}

// change changes an alert. f gets nil for none, and returns nil for none. A store may call it
// several times.
func (x *OpenAlerts) change(ctx context.Context, id AlertID, f func(*openAlert) *openAlert) error {
	if x.store.Change != nil {
		return x.store.Change(ctx, id, func(record []byte) ([]byte, time.Time) {
			a := new(openAlert)
			if len(record) == 0 || wire.Decode(record, a, (*openAlert).fields) != nil {
				a = nil
			}
			if a = f(a); a == nil {
				return nil, time.Time{}
			}
			return wire.Append(nil, a, (*openAlert).fields), a.forget()
		})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	a := f(x.alerts[id.Incident])
	delete(x.alerts, id.Incident)
	if a == nil {
		return nil
	}
	for other := range x.alerts {
		if len(x.alerts) < MaxAlertTitles {
			break
		}
		delete(x.alerts, other)
	}
	if x.alerts == nil {
		x.alerts = map[string]*openAlert{}
	}
	x.alerts[id.Incident] = a
	return nil
}

// setMissed notes whether the store has to be told yet that an alert is closed.
func (x *OpenAlerts) setMissed(id AlertID, missed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case !missed:
		delete(x.missed, id)
	case x.missed == nil:
		x.missed = map[AlertID]struct{}{id: {}}
	case len(x.missed) < MaxAlertTitles:
		x.missed[id] = struct{}{}
	}
}

// isMissed reports whether an alert is closed although the store does not know that.
func (x *OpenAlerts) isMissed(id AlertID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, missed := x.missed[id]
	return missed
}

// Refresh tells the store which alerts are closed that it could not be told before. What opens
// one of them next is told.
func (x *OpenAlerts) Refresh(ctx context.Context) {
	x.mu.Lock()
	ids := make([]AlertID, 0, len(x.missed))
	for id := range x.missed {
		ids = append(ids, id)
	}
	x.mu.Unlock()
	for _, id := range ids {
		if x.change(ctx, id, func(*openAlert) *openAlert { return nil }) != nil {
			return // it is told later
		}
		x.setMissed(id, false)
	}
}

// noteTimeout bounds how long the result of a delivery waits until it is noted. A message that
// was not noted is told again.
const noteTimeout = 5 * time.Second

// openedTolerance is by how much the times of one message by the clock of a store can differ.
const openedTolerance = time.Second

// observer returns an observer that notes which targets get a message that opens an alert. A
// message that is older than the alert is about an earlier one, which was closed.
func (x *OpenAlerts) observer(id AlertID, m *notifier.Message, targets []notifier.Target) notifier.Observer {
	text, at := textOf(m, m.Body, ""), m.Time
	return notifier.Observer{End: func(ctx context.Context, i int, r notifier.Result) {
		if r.Status != notifier.Delivered {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
		defer cancel()
		_ = x.change(ctx, id, func(a *openAlert) *openAlert {
			if a == nil || at.Before(a.opened.Add(-openedTolerance)) {
				return a
			}
			has := toldAlert{targets[i].Hash(), text, at}
			if text == a.noted {
				has.text = a.text
			}
			if old := a.index(targets[i]); old >= 0 {
				a.told[old] = has
			} else {
				a.told = append(a.told, has)
			}
			return a
		})
	}}
}

// alert identifies the alert that the message is about.
func (d *Delivery) alert() AlertID { return AlertID{d.Place(), d.IncidentOf()} }

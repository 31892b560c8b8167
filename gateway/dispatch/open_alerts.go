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

// OpenAlerts remembers what destinations were told of the open alerts of incident tools' clients,
// so that an alert that is opened again with nothing new is only counted. A forgotten alert is told
// again. The zero value is ready for use, and keeps the alerts in memory. See [NewStoredAlerts].
type OpenAlerts struct {
	store AlertStore

	mu     sync.Mutex
	alerts map[string]*openAlert // by their incidents; without a store
	missed map[AlertID]struct{}  // closed alerts that are still open in the store
}

// AlertID identifies an alert.
type AlertID struct {
	Place    string // of the key; see [Delivery.Place]
	Incident string // see [Delivery.IncidentOf]
}

// AlertStore keeps alerts as records, for all gateways that share it.
type AlertStore struct {
	// Change changes the record of an alert. change gets nil if there is none, and returns nil to
	// remove it, with the time at which the record expires. It may be called several times.
	Change func(ctx context.Context, id AlertID, change func(record []byte) ([]byte, time.Time)) error

	// At converts a time of this machine to the clock of the store.
	At func(time.Time) time.Time
}

// NewStoredAlerts returns open alerts that a store keeps.
func NewStoredAlerts(s AlertStore) *OpenAlerts { return &OpenAlerts{store: s} }

// openAlert is an alert that is open.
type openAlert struct {
	opened  time.Time // when its first message came
	told    []toldAlert
	repeats int       // not told to anybody
	since   time.Time // of the first of them
	heard   time.Time // when the last message about it came
	key     alertText // the idempotency key of the last message that was not a repetition; zero for none

	acknowledged bool // a client says so

	// noted is the text of the last message that opened the alert, as it is sent. text is the text
	// as its client has sent it, with the priority and without the line about repetitions.
	noted, text alertText
}

// toldAlert is the last text that a destination has.
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

// textOf returns a hash that is the same for messages about an alert that say the same.
func textOf(m *notifier.Message, body, priority string) alertText {
	return sha256.Sum256([]byte(string(m.Type) + "\x00" + m.Title + "\x00" + body + "\x00" + priority))
}

const (
	// lastsFor is how long an alert stays open without a message. An alert that is opened again
	// later is a new one, because its client does not close alerts; clients that repeat open alerts
	// do so more often.
	lastsFor = 4 * time.Hour

	// How long a store keeps an alert without a message. An alert that is opened again within that
	// time says how often it was repeated before.
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
// already. Then n is the number of repetitions since the last message that was told; 0 for a
// request that is repeated with its idempotency key. Otherwise Opens reduces the targets of d to
// those without the message, and adds the number of repetitions to the message. In a chain, one
// target with the message is enough.
//
// A quiet target, for which the alert is acknowledged or silenced, counts as having the message,
// however old that is. resolved means that somebody has resolved the open alert.
//
// After an error, the message is told.
func (x *OpenAlerts) Opens(ctx context.Context, d *Delivery, resolved bool, quiet func(notifier.Target) bool) (n int,
	repeats bool, err error,
) {
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

// index returns the position of a target in told, or -1.
func (a *openAlert) index(t notifier.Target) int {
	return slices.IndexFunc(a.told, func(told toldAlert) bool { return told.target == t.Hash() })
}

// repeat counts a repetition with its idempotency key, and returns the number of repetitions.
func (a *openAlert) repeat(key alertText, now time.Time) int {
	if key != (alertText{}) && key == a.key {
		return 0
	}
	if a.repeats++; a.repeats == 1 {
		a.since = now
	}
	return a.repeats
}

// withRepetitions adds the number of repetitions to a text, and resets it.
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

// Note notes a message that closes or acknowledges an alert, or withdraws the acknowledgement. It
// adds the number of repetitions to the message.
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

// change changes an alert. f gets nil if there is none, and returns nil to remove it. A store may
// call f several times.
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

// setMissed notes whether the store still has to learn that an alert is closed.
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

// isMissed reports whether an alert is closed but still open in the store.
func (x *OpenAlerts) isMissed(id AlertID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, missed := x.missed[id]
	return missed
}

// Refresh closes alerts in the store that could not be closed there before. The next message that
// opens one of them is told.
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

// noteTimeout bounds how long noting the result of a delivery may take. A message that was not
// noted is told again.
const noteTimeout = 5 * time.Second

// openedTolerance is the maximum difference between the times of one message by the clock of a
// store.
const openedTolerance = time.Second

// observer returns an observer that notes which targets get a message that opens an alert. It
// ignores a message older than the alert: that is about an earlier alert, which was closed.
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

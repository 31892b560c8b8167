package dispatch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// OpenAlerts is what destinations were told of the open alerts of clients of incident tools,
// so that an alert that is opened again, with nothing new, is only counted. It is only of this
// process and of alerts that were passed to Repeats. What is forgotten is told again. The zero
// value is ready for use.
type OpenAlerts struct {
	mu     sync.Mutex
	alerts map[string]*openAlert // by their incidents
}

// openAlert is an alert that is open.
type openAlert struct {
	told    map[string]toldAlert // by the hash of the destination
	repeats int                  // that nobody was told of
	since   time.Time            // of the first of them
	heard   time.Time            // when the last message about it came
	key     string               // the idempotency key of the last message that was not a repetition

	acknowledged bool // a client says so

	// noted is the text of the last message that opened the alert, as it is sent, and text is
	// what its client has sent: without the line that Note adds, and with the priority.
	noted, text [sha256.Size]byte
}

// toldAlert is what a destination has.
type toldAlert struct {
	text [sha256.Size]byte
	at   time.Time
}

// textOf returns what makes two messages about an alert with a priority the same.
func textOf(m *notifier.Message, priority string) [sha256.Size]byte {
	return sha256.Sum256([]byte(string(m.Type) + "\x00" + m.Title + "\x00" + m.Body + "\x00" + priority))
}

// lastsFor is for how long an alert goes on of which nothing is heard. One that is opened
// again later is a new one: its client does not close alerts. A client that repeats what lasts
// does so more often.
const lastsFor = 4 * time.Hour

// Repeats reports whether all targets of d have its message already, which opens an alert
// again. Then it counts it, and n is how many there were since the last message that was
// told; 0 for a request that is sent again with its idempotency key. Of targets that form a
// chain, one is enough. Those that lack the message are the new targets of d. A target that is
// quiet, because somebody takes care of the alert or has silenced it, has the message however
// long ago that was.
func (x *OpenAlerts) Repeats(d *Delivery, quiet func(notifier.Target) bool) (n int, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a, text := x.open(d.IncidentOf()), textOf(d.Message, d.Priority)
	now := d.Message.Time
	lasts := now.Sub(a.heard) < lastsFor
	a.heard = now
	has := func(t notifier.Target) bool {
		told, ok := a.told[t.Hash()]
		return ok && told.text == text && (lasts && now.Sub(told.at) < OpenedTime || a.acknowledged || quiet(t))
	}
	defer func() {
		if !ok {
			a.key = d.Idempotency.Key
			for _, t := range d.To.Targets { // until they have it
				delete(a.told, t.Hash())
			}
		}
	}()
	if !slices.ContainsFunc(d.To.Targets, has) {
		return 0, false
	}
	if !notifier.Chained(d.To.Targets) && slices.ContainsFunc(d.To.Targets, func(t notifier.Target) bool { return !has(t) }) {
		to := *d.To
		to.Targets = slices.DeleteFunc(slices.Clone(to.Targets), has)
		d.To = &to
		return 0, false
	}
	if a.key != "" && a.key == d.Idempotency.Key {
		return 0, true
	}
	if a.repeats++; a.repeats == 1 {
		a.since = now
	}
	return a.repeats, true
}

// Acknowledge notes that a client says that somebody takes care of an alert, or nobody any
// more.
func (x *OpenAlerts) Acknowledge(incident string, acknowledged bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if a := x.alerts[incident]; a != nil {
		a.acknowledged = acknowledged
	}
}

// Note adds to a message, before it is sent, how often its alert was opened again since the
// last message that was told.
func (x *OpenAlerts) Note(d *Delivery) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a, m := x.alerts[d.IncidentOf()], d.Message
	if a == nil {
		return
	}
	a.heard = m.Time
	text := textOf(m, d.Priority)
	if a.repeats > 0 {
		m.Body = strings.TrimRight(m.Body, "\n") + "\n" + a.repetitions()
		a.repeats = 0
	}
	if StateOf(m) == notifier.Open {
		a.noted, a.text = textOf(m, ""), text
	}
}

// repetitions returns the line about how often the alert was opened again.
func (a *openAlert) repetitions() string {
	since := a.since.In(time.Local).Format(time.DateTime)
	if a.repeats == 1 {
		return "1 repetition at " + since + " was not sent."
	}
	return fmt.Sprintf("%d repetitions since %s were not sent.", a.repeats, since)
}

// open returns the alert of an incident, which it adds if there is none. If there are too
// many, it forgets any other one. The caller holds the lock.
func (x *OpenAlerts) open(incident string) *openAlert {
	if a := x.alerts[incident]; a != nil {
		return a
	}
	if x.alerts == nil {
		x.alerts = map[string]*openAlert{}
	}
	for other := range x.alerts {
		if len(x.alerts) < MaxAlertTitles {
			break
		}
		delete(x.alerts, other)
	}
	a := &openAlert{told: map[string]toldAlert{}}
	x.alerts[incident] = a
	return a
}

// Close forgets an alert: what opens it next is told.
func (x *OpenAlerts) Close(incident string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.alerts, incident)
}

// observe notes which targets get a message that opens an alert, and forgets an alert that
// is told to be over. It returns observers with one for that, if it is needed.
func (x *OpenAlerts) observe(observers []notifier.Observer, incident string, m *notifier.Message, targets []notifier.Target) []notifier.Observer {
	switch StateOf(m) {
	case notifier.Resolved:
		x.Close(incident)
	case notifier.Open:
		x.mu.Lock()
		known := x.alerts[incident]
		x.mu.Unlock()
		if known == nil {
			return observers
		}
		told := toldAlert{textOf(m, ""), m.Time}
		return append(observers, notifier.Observer{End: func(_ context.Context, i int, r notifier.Result) {
			x.mu.Lock()
			defer x.mu.Unlock()
			// An alert that was closed meanwhile, and perhaps opened again, is another one.
			if a := x.alerts[incident]; a != nil && a == known && r.Status == notifier.Delivered {
				has := told
				if has.text == a.noted {
					has.text = a.text
				}
				a.told[targets[i].Hash()] = has
			}
		}})
	}
	return observers
}

package dispatch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// The bounds of what is remembered of incidents.
const (
	maxRemembered = 10_000
	resolvedTime  = time.Hour
	OpenedTime    = 7 * 24 * time.Hour
)

// incidentTimes are times of incidents. The zero value is ready for use.
type incidentTimes struct {
	mu sync.Mutex
	at map[string]time.Time
}

// set remembers t, unless there are too many that are not older than age.
func (x *incidentTimes) set(incident string, t time.Time, age time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at == nil {
		x.at = map[string]time.Time{}
	}
	if len(x.at) >= maxRemembered {
		maps.DeleteFunc(x.at, func(_ string, at time.Time) bool { return t.Sub(at) > age })
	}
	if len(x.at) < maxRemembered && t.After(x.at[incident]) {
		x.at[incident] = t
	}
}

func (x *incidentTimes) get(incident string) (t time.Time, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t, ok = x.at[incident]
	return t, ok
}

func (x *incidentTimes) remove(incident string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.at, incident)
}

// Incidents is what this process remembers of incidents. The zero value is ready for use.
type Incidents struct {
	// resolved has the time at which each resolution came in, for an hour. An alert that came in
	// earlier but is sent later, for example because of its files, says that it is resolved.
	resolved incidentTimes

	// Opened has the time at which a destination was told that an incident is open, by incident and
	// destination. A destination of a chain is told the resolution even if a lower number has it,
	// and any destination even if a silence has begun since.
	Opened incidentTimes

	// bypassed has the time of the last message sent while the store of the queue did not answer, by
	// incident and destination. Older messages are not sent when the store answers again.
	bypassed incidentTimes
}

// Told notes the outcome of a message that was sent while the store did not answer.
func (x *Incidents) Told(incident string, m *notifier.Message, t notifier.Target, r notifier.Result) {
	if state := StateOf(m); r.Status == notifier.Delivered && (state == notifier.Open || state == notifier.Resolved) {
		x.bypassed.set(incident+"\x00"+t.Hash(), m.Time, OpenedTime)
	}
}

// Replaced reports whether the destination got a newer message while the store did not answer.
func (x *Incidents) Replaced(incident string, m *notifier.Message, t notifier.Target) bool {
	at, ok := x.bypassed.get(incident + "\x00" + t.Hash())
	return ok && at.After(m.Time)
}

// Note adapts a message to what is known of its incident, before it is sent.
func (x *Incidents) Note(d *Delivery) {
	incident, m := d.IncidentOf(), d.Message
	if incident == "" {
		return
	}
	switch StateOf(m) {
	case notifier.Resolved:
		x.resolved.set(incident, m.Time, resolvedTime)
		x.addTold(d, incident)
	case notifier.Open:
		if came, ok := x.resolved.get(incident); ok && came.After(m.Time) {
			m.Type, m.Incident.State, m.Incident.Ended = notifier.Success, notifier.Resolved, came
		}
	}
}

// addTold takes targets that know the incident as open out of their chains.
func (x *Incidents) addTold(d *Delivery, incident string) {
	if !notifier.Chained(d.To.Targets) {
		return
	}
	to := *d.To
	to.Targets = slices.Clone(to.Targets)
	for i := range to.Targets {
		t := &to.Targets[i]
		if _, ok := x.Opened.get(incident + "\x00" + t.Hash()); ok {
			t.Chain = "told " + t.Hash()
		}
	}
	d.To = &to
}

// observer returns an observer that remembers which destinations know an incident as
// open.
func (x *Incidents) observer(incident string, m *notifier.Message, targets []notifier.Target) notifier.Observer {
	return notifier.Observer{End: func(_ context.Context, i int, r notifier.Result) {
		if r.Status != notifier.Delivered {
			return
		}
		switch name := incident + "\x00" + targets[i].Hash(); StateOf(m) {
		case notifier.Open:
			x.Opened.set(name, m.Time, OpenedTime)
		case notifier.Resolved:
			x.Opened.remove(name)
		}
	}}
}

// A key without rules has no records of what its destinations know of incidents. When its silence
// begins, each gateway stores the times that it remembers, so that a destination that was told of a
// problem is told of its end.

// With returns the times of the incidents whose names begin with prefix.
func (x *incidentTimes) With(prefix string) map[string]time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[string]time.Time{}
	for name, at := range x.at {
		if strings.HasPrefix(name, prefix) {
			out[name] = at
		}
	}
	return out
}

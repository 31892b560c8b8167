package rules

import (
	"errors"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Lasting tells a problem only if it lasts: the opening of an incident is held for a time. If the
// incident is resolved before the time has passed, neither is told; otherwise its present state
// is told then. If a warning closes an incident because nothing reports it any more, that is told
// at once. By default it holds failures and warnings.
type Lasting struct {
	For time.Duration
	Scope
}

// maxHold is the longest time of a hold.
const maxHold = 24 * time.Hour

// opening are the types of messages that open an incident.
var opening = []notifier.Type{notifier.Warning, notifier.Failure}

// Check returns an error if the rule is malformed.
func (h *Lasting) Check() error {
	if h.For < minTime || h.For > maxHold {
		return errors.New("the time must be from 1s to 24h")
	}
	for _, t := range h.Types {
		if !slices.Contains(opening, t) {
			return errors.New("types: only a failure or a warning opens an incident; write failure, warning, or both")
		}
	}
	return h.Scope.Check()
}

// Open notes that the incident opens with a message of type t. before is the incident of an earlier
// opening, or nil. The rule h of its key, which may be nil, holds the opening. The third opening
// within three times the time of the rule is told at once: otherwise nobody would hear of a problem
// that comes again and again.
func (x *Incident) Open(now time.Time, t notifier.Type, before *Incident, h *Lasting) {
	if h == nil || !h.covers(t, opening) {
		return
	}
	if before != nil {
		x.Before = [2]time.Time{before.Before[1], before.Opened}
	}
	if often := within(x.Before[0], now, 3*h.For) && within(x.Before[1], now, 3*h.For); !often {
		x.HeldUntil = now.Add(h.For)
	}
}

// holdOpening decides about a message for a destination that knows nothing of the problem, if the
// opening of the incident is held. done reports whether the message is not told at all, and held
// whether it waits. If both are false, the other rules decide.
func (r *Rules) holdOpening(a *Arrival, v *Verdict) (held, done bool) {
	if r.Hold == nil {
		return false, false
	}
	now, l, s, x := a.Now, a.Lane, a.Subject, &a.Item
	first := l.heldOpening(x)
	switch {
	case x.State == notifier.Resolved:
		if first == nil || !first.Until.After(now) {
			return false, false
		}
		if x.Type != notifier.Success { // nothing says that the problem is over, so this is told
			l.endHeld(s, x, v)
			return false, false
		}
		v.Outcome, v.Hold, v.By = Over, ByHold, first.Job
		l.endHeld(s, x, v)
		return false, true
	case first != nil && (x.State == "" || r.holds(x)):
		x.Until = first.Until
	case x.Opens && s.Next.State != notifier.Open && a.Held.After(now) && r.holds(x):
		x.Until = a.Held
	default:
		return false, false
	}
	x.Hold = ByHold
	if x.tellsState() {
		l.endHeld(s, x, v)
		if s.Way.IsDigest() { // which tells an older state
			x.After = s.Way.Job
		}
	}
	return true, false
}

// holds reports whether the rule hold holds openings with the type of x.
func (r *Rules) holds(x *Item) bool { return r.Hold != nil && r.Hold.covers(x.Type, opening) }

// heldOpening returns the newest state of the incident of x that the rule hold holds, or nil.
func (l *Lane) heldOpening(x *Item) (newest *Item) {
	for i := range l.Items {
		if o := &l.Items[i]; o.tellsState() && x.concerns(o.Subject) {
			newest = o
		}
	}
	if newest == nil || newest.Hold != ByHold {
		return nil
	}
	return newest
}

// endHeld removes older states of the incident of x that the rule hold holds and, if x resolves the
// incident, the items that add to them. Older states that other rules hold have lasted, and are
// told.
func (l *Lane) endHeld(s *Subject, x *Item, v *Verdict) {
	s.Next = Mark{}
	l.Items = slices.DeleteFunc(l.Items, func(o Item) bool {
		older := o.Subject == x.Subject && o.tellsState()
		if o.Hold != ByHold {
			if older {
				s.Next = o.Mark()
			}
			return false
		}
		ends := older || o.About == x.Subject && x.State == notifier.Resolved
		if ends {
			v.Evicted = append(v.Evicted, Evicted{Item: o, Newer: true, By: x.Job})
		}
		return ends
	})
}

// keepsOpening reports whether an item is part of an opening that is still held, and sets why and
// until when. The time of a silence counts as time in which the problem has lasted.
func (r *Rules) keepsOpening(now time.Time, x *Item) bool {
	until := x.Until
	switch {
	case r.Hold == nil || x.State != "" && !r.holds(x):
		return false
	case x.Hold == BySilence && x.Opens:
		until = x.Time.Add(r.Hold.For)
	case x.Hold != ByHold:
		return false
	}
	if latest := now.Add(r.Hold.For); until.After(latest) { // the rule or the clock has changed
		until = latest
	}
	if !until.After(now) {
		return false
	}
	x.Hold, x.Until, x.After = ByHold, until, queue.JobID{}
	return true
}

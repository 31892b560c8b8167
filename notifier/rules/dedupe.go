package rules

import "time"

// Dedupe suppresses a message that repeats one that the destination has or will get: one with the
// same state of its incident, or with the same type, title and text. The window begins with the
// message that was told, and does not move.
type Dedupe struct {
	Window time.Duration
	Scope
}

// Check returns an error if the rule is malformed.
func (d *Dedupe) Check() error {
	if err := checkTime(d.Window); err != nil {
		return err
	}
	return d.Scope.Check()
}

// suppresses reports whether an item repeats a message that the destination has, or that is on its
// way.
func (d *Dedupe) suppresses(now time.Time, s *Subject, x *Item) bool {
	if d == nil || !d.covers(x.Type, nil) {
		return false
	}
	if !s.Next.none() {
		return s.Next.same(x)
	}
	if !s.Way.none() { // the message after it was cancelled
		return s.Way.same(x)
	}
	return s.Told.same(x) && within(s.Told.Time, now, d.Window)
}

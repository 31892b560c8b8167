package rules

import (
	"errors"
	"time"
)

// Quiet holds messages while its window lasts. By default, failures pass.
type Quiet struct {
	Window
	Scope
}

// Check returns an error if the rule is malformed.
func (q *Quiet) Check() error { return q.Scope.Check() }

// errAlwaysQuiet is returned for windows that leave no time to send.
var errAlwaysQuiet = errors.New("the windows cover the whole week, so that the messages would never be sent; leave a time in which they may be, or remove the URLs")

// checkQuiet returns an error if the windows of one zone and tag cover the whole week
// for a type.
func checkQuiet(rules []Quiet) error {
	for _, first := range rules {
		for _, t := range Types {
			var windows []Window
			for _, q := range rules {
				if (q.Tag == first.Tag || q.Tag == "") && q.Zone.Location().String() == first.Zone.Location().String() && q.covers(t, notFailures) {
					windows = append(windows, q.Window)
				}
			}
			if len(windows) > 0 && fullWeek(windows) {
				return errAlwaysQuiet
			}
		}
	}
	return nil
}

// quietUntil returns when the windows end that an item may not be sent in, or the
// zero time if it may be sent.
func (r *Rules) quietUntil(now time.Time, x *Item) (until time.Time) {
	for i := range r.Quiet {
		q := &r.Quiet[i]
		if !q.covers(x.Type, notFailures) || x.Passed != "" && !q.covers(x.Passed, notFailures) || !q.Has(now) {
			continue
		}
		if end := q.After(now); end.After(until) {
			until = end
		}
	}
	return until
}

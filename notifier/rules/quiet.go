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
var errAlwaysQuiet = errors.New("the windows cover the whole week, so that the " +
	"messages would never be sent; leave a time in which they may be, or remove the URLs")

// checkQuiet returns an error if the windows of one tag cover the whole week for a type, together
// with the windows of silences.
func checkQuiet(rules []Quiet, silences []SilenceWindow) error {
	for _, first := range rules {
		for _, t := range Types {
			if !first.covers(t, notFailures) {
				continue
			}
			var windows []Window
			for _, q := range rules {
				if (q.Tag == first.Tag || q.Tag == "") && q.covers(t, notFailures) {
					windows = append(windows, q.Window)
				}
			}
			for _, s := range silences {
				if (s.Tag == first.Tag || s.Tag == "") && s.Title == "" {
					windows = append(windows, s.Window)
				}
			}
			if coverWeek(windows) {
				return errAlwaysQuiet
			}
		}
	}
	return nil
}

// quietUntil returns the end of the windows in which an item must not be sent, or the zero time if
// it may be sent.
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

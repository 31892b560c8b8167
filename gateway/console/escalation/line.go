// Package escalation draws an escalation as a line: who was told of an incident and when, who is told
// next, and what a silence or an acknowledgement keeps back.
package escalation

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/console/inline"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Escalation is what a line shows.
type Escalation struct {
	Incident *rules.Incident

	// Keeps returns the silence that keeps a step from all its destinations at a time, or nil.
	Keeps func(step int, at time.Time) *rules.Silence
	Now   time.Time

	rule  *rules.Escalate // of the key; nil if it has none any more
	names map[int]string  // of the destinations of each step
}

// Has reports whether an incident has, or had, steps.
func Has(x *rules.Incident) bool { return len(x.Escalation.Steps())+len(x.Begun) > 0 }

// namesOf returns the names of the destinations of each step of a key.
func namesOf(k *site.Key) map[int]string {
	all, out := map[int][]string{}, map[int]string{}
	for _, t := range k.Targets {
		if n := rules.StepOf(t.Tags); n > 0 {
			all[n] = append(all[n], strings.TrimPrefix(t.Name(), "Device "))
		}
	}
	for n, of := range all {
		out[n] = inline.Names(of)
	}
	return out
}

// name returns the name of a step.
func (e *Escalation) name(step int) string {
	return cmp.Or(e.names[step], "step "+strconv.Itoa(step))
}

// Line returns the line of an incident, or nil if it has no steps. k is its key, nil if it is gone.
// Without names, the steps have their numbers.
func (e *Escalation) Line(k *site.Key, named bool) *view.Line {
	x := e.Incident
	if !Has(x) {
		return nil
	}
	if e.rule, e.names = nil, nil; k != nil && k.Rules != nil {
		e.rule = k.Rules.Escalate
	}
	if k != nil && named {
		e.names = namesOf(k)
	}
	points := e.past()
	switch x.Stage() {
	case notifier.Resolved:
		points = append(points, e.untold()...)
	case notifier.Acknowledged:
		points = append(append(points, e.untold()...), view.Point{Kind: view.PointNow})
		points = append(points, e.again()...)
	case notifier.Open:
		points = append(append(points, view.Point{Kind: view.PointNow}), e.future()...)
	}
	return view.NewLine(e.band(points), e.Now)
}

// outcomes are the kinds of points, and words, for the outcomes of steps.
var outcomes = map[rules.StepOutcome]view.Point{
	rules.StepTold: {Kind: view.PointTold, Words: "told"}, rules.StepFailed: {Kind: view.PointFailed, Words: "not reached"},
	rules.StepSending: {Kind: view.PointSending, Words: "being sent"}, rules.StepSilenced: {Kind: view.PointSilent, Words: "silenced"},
}

// past returns what has happened.
func (e *Escalation) past() (out []view.Point) {
	x, round := e.Incident, 1
	for i, s := range x.Begun {
		p := outcomes[s.Outcome]
		if p.Kind == view.PointSending && !x.Sends() {
			p.Kind, p.Words = view.PointUntold, "not told"
		}
		if p.Who, p.At = e.name(s.Step), s.At; i > 0 && s.Round != round || i == 0 && s.Round > 1 {
			p.Note = "round " + strconv.Itoa(s.Round)
		}
		round = s.Round
		out = append(out, p)
	}
	if x.IsAcknowledged() {
		out = append(out, view.Point{
			Kind: view.PointTaken, Who: cmp.Or(x.Acknowledged.By, "somebody"), Words: "acknowledged", At: x.Acknowledged.At,
		})
	}
	if at := x.Escalation.EndedAt; x.Escalation.Exhausted {
		if at.IsZero() {
			at = x.Changed
		}
		out = append(out, view.Point{Kind: view.PointNobody, Words: "all rounds ended", At: at})
	}
	if !x.IsOpen() && !(x.Own && x.IsAcknowledged()) {
		out = append(out, view.Point{Kind: view.PointResolved, Who: x.ResolvedBy, Words: "resolved", At: x.Resolved})
	}
	slices.SortStableFunc(out, func(a, b view.Point) int { return a.At.Compare(b.At) })
	return out
}

// untold returns the steps that never began.
func (e *Escalation) untold() (out []view.Point) {
	steps := e.Incident.Escalation.Steps()
	for n := range e.names {
		if !slices.Contains(steps, n) && !e.Incident.IsOpen() { // a resolved incident has forgotten them
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	for _, n := range steps {
		if !slices.ContainsFunc(e.Incident.Begun, func(s rules.BegunStep) bool { return s.Step == n }) {
			out = append(out, view.Point{Kind: view.PointUntold, Who: e.name(n), Words: "not told"})
		}
	}
	return out
}

// again returns the first step, which begins after an acknowledgement.
func (e *Escalation) again() []view.Point {
	x := e.Incident
	steps, at := x.Escalation.Steps(), x.Acknowledged.Until
	if len(steps) == 0 || at.IsZero() || e.rule == nil {
		return nil
	}
	return e.restart(steps[0], at)
}

// restart returns a step that begins at a time if the incident is still open, or after the silence
// that holds then.
func (e *Escalation) restart(step int, at time.Time) []view.Point {
	return []view.Point{{Kind: view.PointAgain, Who: e.name(step), At: e.loud(at), Note: "if it is still open"}}
}

// loud returns the first time from at on at which no silence keeps all steps back.
func (e *Escalation) loud(at time.Time) time.Time {
	for range rules.MaxSilences {
		s := e.silence(at)
		if s == nil {
			break
		}
		at = s.Until
	}
	return at
}

// silence returns the silence that keeps all steps back at a time, or nil. Of several, it is the one
// that ends first.
func (e *Escalation) silence(at time.Time) (found *rules.Silence) {
	for _, n := range e.Incident.Escalation.Steps() {
		s := e.Keeps(n, at)
		if s == nil {
			return nil
		}
		if found == nil || s.Until.Before(found.Until) {
			found = s
		}
	}
	return found
}

// waiting returns the rounds and steps that wait, in their order.
func (e *Escalation) waiting() (out [][2]int) {
	for _, j := range e.Incident.Escalation.Waiting {
		out = append(out, [2]int{j.Round, j.Step})
	}
	slices.SortFunc(out, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// future returns what comes next for an open incident.
func (e *Escalation) future() (out []view.Point) {
	x := &e.Incident.Escalation
	if x.Exhausted || len(x.Steps()) == 0 || e.rule == nil {
		return nil
	}
	waiting, at := e.waiting(), x.Next
	if x.Silenced && !e.Incident.Own { // the steps begin anew
		return e.restart(x.Steps()[0], at)
	}
	for _, w := range waiting {
		round, step := w[0], w[1]
		if e.silence(at) != nil {
			if !e.Incident.Own {
				step = x.Steps()[0]
			}
			return append(out, e.restart(step, at)...)
		}
		p := view.Point{Kind: view.PointLater, Who: e.name(step), At: at}
		if s := e.Keeps(step, at); s != nil {
			p.Kind, p.Words, p.At, p.Until = view.PointSilent, "silent until", s.Until, true
		} else {
			at = at.Add(e.wait(step))
		}
		if p.Kind == view.PointLater && !slices.ContainsFunc(out, func(p view.Point) bool { return p.Kind == view.PointNext }) {
			p.Kind = view.PointNext
		}
		if round > max(x.Round, 1) {
			p.Note = "round " + strconv.Itoa(round) + " of " + strconv.Itoa(waiting[len(waiting)-1][0])
			if p.Kind == view.PointLater {
				p.Kind = view.PointAgain
			}
			return append(out, p)
		}
		out = append(out, p)
	}
	return append(out, view.Point{Kind: view.PointNobody, Words: "then nobody", At: at})
}

// wait returns how long a step lasts.
func (e *Escalation) wait(step int) time.Duration {
	i := slices.Index(e.Incident.Escalation.Steps(), step)
	return e.rule.After[min(max(i, 0), len(e.rule.After)-1)]
}

// band adds the beginning and the end of the silence that keeps all steps back now, or that will.
func (e *Escalation) band(points []view.Point) []view.Point {
	if !e.Incident.IsOpen() {
		return points
	}
	s := e.silence(e.Now)
	for i := 0; s == nil && i < len(points); i++ {
		if p := &points[i]; p.Kind == view.PointAgain {
			s = e.silence(p.At.Add(-time.Nanosecond))
		}
	}
	if s == nil {
		return points
	}
	begins := view.Point{Kind: view.PointBegins, Words: "silence begins", At: s.Begins()}
	if !begins.At.After(e.Now) {
		begins.Words = "silent since"
	}
	points = insert(points, begins, e.Now)
	points = insert(points, view.Point{Kind: view.PointEnds, Words: "silence ends", At: e.loud(s.Until)}, e.Now)
	within := false
	for i := range points {
		switch points[i].Kind {
		case view.PointBegins:
			within = true
		case view.PointEnds:
			within = false
		}
		points[i].Silent = within
	}
	return points
}

// insert adds a point before those that are later. Points without a time, such as now, stay with
// those before them.
func insert(points []view.Point, p view.Point, now time.Time) []view.Point {
	at := func(o view.Point) time.Time {
		switch {
		case o.Kind == view.PointNow:
			return now
		case o.Until:
			return time.Time{}
		}
		return o.At
	}
	i := slices.IndexFunc(points, func(o view.Point) bool {
		return at(o).After(p.At) || at(o).Equal(p.At) && (o.Kind == view.PointAgain || o.Kind == view.PointNow)
	})
	if i < 0 {
		i = len(points)
	}
	return slices.Insert(points, i, p)
}

package view

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
)

// PointKind is what a point of a line stands for.
type PointKind string

// The kinds of points. The first ones are steps.
const (
	PointTold    PointKind = "told"    // somebody has the message
	PointFailed  PointKind = "failed"  // nobody could be reached
	PointSending PointKind = "sending" // nobody has the message yet
	PointSilent  PointKind = "silent"  // a silence keeps it from everybody of the step
	PointNext    PointKind = "next"    // begins next
	PointLater   PointKind = "later"   // begins after others
	PointUntold  PointKind = "untold"  // does not begin, because somebody takes care of it, or it is over
	PointAgain   PointKind = "again"   // begins anew: after a silence or an acknowledgement, or in another round

	PointNow      PointKind = "now"
	PointBegins   PointKind = "begins" // of a silence that keeps all steps back
	PointEnds     PointKind = "ends"   // of such a silence
	PointTaken    PointKind = "taken"  // somebody has acknowledged the incident
	PointResolved PointKind = "resolved"
	PointNobody   PointKind = "nobody" // all rounds have ended
)

// Point is a point of a line.
type Point struct {
	Kind   PointKind
	Who    string    // who is told, or who has acknowledged or resolved it; "" for nobody
	Words  string    // what happens there
	At     time.Time // when; zero if unknown, or if it does not happen
	Until  bool      // At is the end of a silence
	Note   string    // more words, after the time
	Silent bool      // a silence of all steps holds from this point to the next one

	Clock    string // At on the clock, with the day if it is another one
	Soon     bool   // At is less than an hour away
	To, From Way    // from the point before, and to the next one
	Band     bool   // a silence of all steps holds from the point before to this one
}

// Way is a way between two points.
type Way string

// The ways. The zero value is none.
const (
	Gone  Way = "gone"
	Ahead Way = "ahead"
)

// Line is an escalation, in the order of time.
type Line struct {
	Points []Point
	Now    time.Time

	Brief         bool // for a row of a list
	Before, After int  // points that a brief line leaves out at its ends
}

// NewLine returns the line with some points.
func NewLine(points []Point, now time.Time) *Line {
	var before *Point
	for i := range points {
		p := &points[i]
		p.To, p.From, p.Band, p.Clock = "", "", false, clockOf(p.At, now)
		p.Soon = p.At.Sub(now) < time.Hour
		if before != nil {
			if p.To = Ahead; p.Kind == PointNow || !p.At.IsZero() && !p.Until && !p.At.After(now) {
				p.To = Gone
			}
			before.From, p.Band = p.To, before.Silent
		}
		before = p
	}
	return &Line{Points: points, Now: now}
}

// HasBand reports whether the line shows a silence.
func (l *Line) HasBand() bool {
	return l != nil && slices.ContainsFunc(l.Points, func(p Point) bool { return p.Kind == PointBegins })
}

// The number of points that a short line has at most before now, and after it.
const (
	maxBefore = 3
	maxAfter  = 4
)

// Short returns the line for a row of a list: the last points before now and the first ones after it.
func (l *Line) Short() *Line {
	if l == nil {
		return nil
	}
	now := slices.IndexFunc(l.Points, func(p Point) bool { return p.Kind == PointNow })
	if now < 0 {
		now = len(l.Points)
	}
	begin, end := max(now-maxBefore, 0), min(now+1+maxAfter, len(l.Points))
	out := NewLine(slices.Clone(l.Points[begin:end]), l.Now)
	out.Brief, out.Before, out.After = true, begin, len(l.Points)-end
	return out
}

// clockOf returns a time of the clock, with the day if it is another one.
func clockOf(t, now time.Time) string {
	if t, now = t.UTC(), now.UTC(); t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format("2 Jan, 15:04")
	}
	return t.Format("15:04")
}

// marks are the marks of points, drawn around the origin. Each is told by its form, not by its colour
// alone.
var marks = map[PointKind]string{
	PointTold:     `<circle r="7"/><path d="M-3 0l2 2.5 4-5"/>`,
	PointFailed:   `<circle r="7"/><path d="M-2.5-2.5l5 5m0-5l-5 5"/>`,
	PointSending:  `<circle r="6"/><path d="M-3 0h.1M0 0h.1M3 0h.1"/>`,
	PointSilent:   `<circle r="6"/><path d="M-4 4l8-8"/>`,
	PointNext:     `<circle r="6"/><circle r="2"/>`,
	PointLater:    `<circle r="6"/>`,
	PointUntold:   `<circle r="6"/><path d="M-3 0h6"/>`,
	PointAgain:    `<circle r="6"/>`,
	PointNow:      `<path d="M0-9v18"/>`,
	PointBegins:   `<path d="M3-7h-3v14h3"/>`,
	PointEnds:     `<path d="M-3-7h3v14h-3"/>`,
	PointTaken:    `<circle r="7"/><path d="M-3 0l2 2.5 4-5"/>`,
	PointResolved: `<circle r="7"/><path d="M-3 0l2 2.5 4-5"/>`,
	PointNobody:   `<rect x="-5" y="-5" width="10" height="10"/>`,
}

// Picture returns the point and the ways to its neighbours. The style sheet lays them out from left to
// right, or downwards on a phone.
func (p *Point) Picture() template.HTML {
	var out strings.Builder
	out.WriteString(`<svg class="rail" aria-hidden="true">`)
	side := func(name string, way Way, silent bool) {
		if silent && way != "" {
			fmt.Fprintf(&out, `<rect class="band %s"/>`, name)
		}
		if way != "" {
			fmt.Fprintf(&out, `<rect class="way %s %s"/>`, way, name)
		}
	}
	side("to", p.To, p.Band)
	side("from", p.From, p.Silent)
	fmt.Fprintf(&out, `<g class="point">%s</g></svg>`, marks[p.Kind])
	return template.HTML(out.String()) //nolint:gosec // it consists of constants
}

package view

import (
	"strconv"
	"strings"
	"time"
)

// IncidentWeek are the incidents that were opened in the last seven days, today last.
type IncidentWeek struct {
	Days [7]IncidentDay
	Cut  bool          // there are more
	Keep time.Duration // how long those that are resolved are kept
}

// IncidentDay are the incidents that were opened on a day.
type IncidentDay struct {
	Begin     time.Time
	Address   string // of the list of them
	Here      bool   // the page has that list
	Escalated int
	Failures  int // that did not escalate
	Others    int
}

// Opened returns the number of all.
func (d IncidentDay) Opened() int { return d.Escalated + d.Failures + d.Others }

// words returns the numbers of a day or a week in words.
func (d IncidentDay) words() string {
	var parts []string
	if d.Escalated > 0 {
		parts = append(parts, strconv.Itoa(d.Escalated)+" escalated")
	}
	if d.Failures > 0 {
		other := ""
		if d.Escalated > 0 {
			other = "other "
		}
		parts = append(parts, Count(d.Failures, other+"failure", other+"failures"))
	}
	if d.Others > 0 {
		parts = append(parts, Count(d.Others, "warning", "warnings"))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Name says in words what the bar of the day shows.
func (d IncidentDay) Name() string { return d.Begin.Format("Monday 2 January") + ": " + d.words() }

// Sum says in words what the bars show.
func (w *IncidentWeek) Sum() string {
	var sum IncidentDay
	for _, d := range w.Days {
		sum.Escalated, sum.Failures, sum.Others = sum.Escalated+d.Escalated, sum.Failures+d.Failures, sum.Others+d.Others
	}
	text := sum.words()
	if w.Cut {
		text = "at least " + text
	}
	if w.Keep < 7*24*time.Hour {
		text += "; those that are resolved are kept for " + Length(w.Keep)
	}
	return text
}

// The measures of the bars, in pixels. Above a bar stands how many were opened, below it the day, and
// below that how many escalated.
const (
	weekTop    = 16
	weekBottom = 64
	weekStep   = 46
	weekInset  = 8 // of a bar in its place
	weekLeast  = 3 // height of a part that is not empty
)

// WeekBar is a day in the picture.
type WeekBar struct {
	IncidentDay
	X, Middle, Left int // its place, and its bar
	Label, Top      int // the base line of its number, and the top of its bar
	Parts           []WeekPart
}

// WeekPart is a part of a bar. Escalated ones are filled, other failures striped, and warnings hollow.
type WeekPart struct {
	Class     string
	Y, Height int
}

// Striped reports whether the part has stripes.
func (p WeekPart) Striped() bool { return p.Class == "failure" }

// Bars returns the days as bars.
func (w *IncidentWeek) Bars() []WeekBar {
	most := 1
	for _, d := range w.Days {
		most = max(most, d.Opened())
	}
	out := make([]WeekBar, len(w.Days))
	for i, d := range w.Days {
		b := WeekBar{IncidentDay: d, X: i * weekStep, Middle: i*weekStep + weekStep/2, Left: i*weekStep + weekInset, Top: weekBottom}
		for _, x := range []struct {
			class string
			n     int
		}{{"escalated", d.Escalated}, {"failure", d.Failures}, {"other", d.Others}} {
			if x.n > 0 {
				height := max(x.n*(weekBottom-weekTop-2*weekLeast)/most, weekLeast)
				b.Top -= height
				b.Parts = append(b.Parts, WeekPart{x.class, b.Top, height})
			}
		}
		b.Label = b.Top - 4
		out[i] = b
	}
	return out
}

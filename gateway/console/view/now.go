package view

import (
	"fmt"
	"strconv"
	"time"
)

// NowPage is the first page of the console: the situation.
type NowPage struct {
	Root     string // as in KeysPage
	Now      time.Time
	Sentence string // the situation
	State    State  // of the situation, for the colour of the sentence: Failing, Waiting or Fine
	Keys     int    // of the site
	Last     time.Time
	Stored   bool   // there is a queue, so that what was delivered is remembered
	Lost     int    // deliveries that were given up; -1 if unknown
	Waiting  int    // deliveries
	Problem  string // why the page does not show all; "" if it does
	Done     string // what a button has done; "" for nothing
	MayAdd   bool   // keys can be saved here

	Watchdog  *Trouble
	Incidents []IncidentRow
	AllOpen   string // the address of all incidents; "" for none
	More      int    // incidents that are not shown
	Down      []DownDestination
	MoreDown  int
	Rows      []ListedKey
	MoreKeys  int
}

// DownDestination is a destination that fails.
type DownDestination struct {
	Named
	URL    string // with its secrets masked
	Keys   []KeyLink
	Health Health
	Waits  *Waits // nil if nothing waits
	Bar    *Bar   // nil for none
}

// Urgent reports whether somebody has to do something: the destination is down, or has refused
// what was sent to it, so that nothing is tried again.
func (d DownDestination) Urgent() bool { return d.Health.Urgent() }

var nowParts = newParts(source{templates: []string{"now.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p NowPage) view() view { return view{title: "Now", parts: nowParts, wide: true} }

// Moment is a time with how far it is from the time of its page.
type Moment struct {
	Time time.Time
	Text string // such as "12 s ago" or "in 4 min"
}

// NewMoment returns a time as a page shows it that was made at now.
func NewMoment(t, now time.Time) Moment { return Moment{t, relative(t, now)} }

// relative returns how far t is from now. page.js does the same.
func relative(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < 0:
		return "in " + lasting(-d)
	case d < time.Second:
		return "now"
	default:
		return lasting(d) + " ago"
	}
}

// lasting returns a duration in one unit, such as "14 min".
func lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(int(d.Seconds()), 1))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

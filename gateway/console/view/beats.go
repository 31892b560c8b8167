package view

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// BeatState is the state of a beat.
type BeatState string

// The states of beats, the worst first.
const (
	BeatFailed  BeatState = "failed"
	BeatTooLong BeatState = "too_long" // its run has not ended in time
	BeatLate    BeatState = "late"
	BeatInGrace BeatState = "in_grace" // it is due, and not late yet
	BeatRunning BeatState = "running"
	BeatNew     BeatState = "new" // no run has come yet, and none is due
	BeatOnTime  BeatState = "on_time"
)

// BeatStates are the states, the worst first.
var BeatStates = []BeatState{BeatFailed, BeatTooLong, BeatLate, BeatInGrace, BeatRunning, BeatNew, BeatOnTime}

// beatWords are the words for the states on a page.
var beatWords = map[BeatState]string{
	BeatFailed: "Failed", BeatTooLong: "Not ended", BeatLate: "Late", BeatInGrace: "Due", BeatRunning: "Running", BeatNew: "No run yet",
	BeatOnTime: "On time",
}

// Word returns the state as a page shows it.
func (s BeatState) Word() string { return beatWords[s] }

// Colour returns the state of a key in whose colour a beat is shown.
func (s BeatState) Colour() State {
	switch s {
	case BeatFailed, BeatTooLong, BeatLate:
		return Failing
	case BeatInGrace:
		return Waiting
	case BeatNew, BeatRunning:
		return Silent
	case BeatOnTime:
	}
	return Fine
}

// Beat is a beat that a key expects.
type Beat struct {
	Name, Grace string
	Address     string // of its page
	Key         string // "" on a page of the key
	KeyAddress  string
	State       BeatState
	Now         time.Time // of the page
	How         string    // how often it is expected, such as "every 1d"
	Since       time.Time // start of the problem
	Last        time.Time // when the last one arrived; zero for never
	Ran         string    // how long the last run took; "" if unknown
	Exit        string    // the exit code of the last one; "" for 0 or none
	Started     time.Time // when the present run started; zero for none
	RunEnds     time.Time // when it takes too long; zero for never
	Due         time.Time // when the next one is due; zero if unknown
	Late        time.Time // when it is late; zero if unknown
	Runs        []Run     // the last ones, the latest last
}

// Overdue reports whether the next beat is due and has not come.
func (b *Beat) Overdue() bool { return !b.Due.IsZero() && !b.Due.After(b.Now) }

// Output returns what the last job posted; "" if it is not shown.
func (b *Beat) Output() string {
	for i := len(b.Runs) - 1; i >= 0; i-- {
		if r := &b.Runs[i]; r.Output != "" {
			return r.Output
		}
	}
	return ""
}

// Newest returns the runs, the latest first.
func (b *Beat) Newest() []Run {
	out := slices.Clone(b.Runs)
	slices.Reverse(out)
	return out
}

// Sum returns the runs in words: how many there are of each outcome, and how long they took.
func (b *Beat) Sum() string {
	if len(b.Runs) == 0 {
		return "no run yet"
	}
	counts := map[RunOutcome]int{}
	var shortest, longest *Run
	for i := range b.Runs {
		r := &b.Runs[i]
		if counts[r.Outcome]++; r.Took == 0 || r.Outcome == RunRunning {
			continue
		}
		if shortest == nil || r.Took < shortest.Took {
			shortest = r
		}
		if longest == nil || r.Took > longest.Took {
			longest = r
		}
	}
	var parts []string
	for _, o := range runOutcomes {
		if n := counts[o]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+o.Word())
		}
	}
	text := strings.Join(parts, ", ")
	switch {
	case longest == nil:
	case shortest.Ran == longest.Ran:
		text += "; took " + longest.Ran
	default:
		text += "; took " + shortest.Ran + " to " + longest.Ran
	}
	return text
}

// BeatsPage lists the beats of a site, the worst first, or shows one with its runs.
type BeatsPage struct {
	Root    string // see KeysPage
	Address string // of the list of all
	Key     string // whose beats are listed; "" for all
	State   BeatState
	Tallies []BeatTally
	Beats   []Beat
	More    int    // beats that are not listed
	One     bool   // the page has one beat, with its runs
	Texts   bool   // the key of that beat keeps what jobs post
	Problem string // why beats are not shown; "" if they are
	Lacks   []CopiedLine
}

// BeatTally is the number of beats in a state.
type BeatTally struct {
	State   BeatState
	Count   int
	Address string // of the list of these; "" for the list that is shown
}

var beatsParts = newParts(source{templates: []string{"beats.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p BeatsPage) view() view {
	title := "Beats"
	if p.One && len(p.Beats) == 1 {
		title = "Beat " + p.Beats[0].Name
	}
	return view{title: title, parts: beatsParts, wide: true}
}

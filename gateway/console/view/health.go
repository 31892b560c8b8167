package view

import "time"

// State is the health of a key or a destination.
type State string

// The states, the worst first.
const (
	Down    State = "down"    // several attempts in a row have failed
	Failing State = "failing" // the last attempt has failed
	Waiting State = "waiting" // deliveries wait
	Silent  State = "silent"  // nothing was sent for a long time, or ever
	Fine    State = "fine"    // the last attempt succeeded
)

// States are all states, the worst first.
var States = []State{Down, Failing, Waiting, Silent, Fine}

// Health is the state of a key or a destination at a glance.
type Health struct {
	State        State
	Since        time.Time // for Down and Failing; zero if unknown
	Cause        string    // one line; "" for none
	Waiting      int       // waiting deliveries
	WaitingSince time.Time // time of the oldest of them
	Delivered    time.Time // time of the last success; zero if unknown
	Troubles     []Trouble // troubles of a key itself, not of its destinations
}

// Trouble is a problem, such as a beat that did not arrive.
type Trouble struct {
	What  string // a sentence without its end, followed by the time
	Since time.Time
	Cause string // one line; "" for none
}

// Urgent reports whether somebody must do something about a destination: it is down, or it has
// failed and nothing will be tried again.
func (h Health) Urgent() bool {
	return h.State == Down || h.State == Failing && h.Waiting == 0
}

// Colour returns the state in whose colour the health is shown. A failure that is tried again has
// the colour of Waiting.
func (h Health) Colour() State {
	if h.State == Failing && !h.Urgent() {
		return Waiting
	}
	return h.State
}

// rank is the position of a state among all, 0 for the worst.
func (s State) rank() int {
	for i, state := range States {
		if s == state {
			return i
		}
	}
	return len(States)
}

// Worse reports whether s is a worse state than other.
func (s State) Worse(other State) bool { return s.rank() < other.rank() }

// stateWords are the words for the states on a page.
var stateWords = map[State]string{Down: "Down", Failing: "Failing", Waiting: "Waiting", Silent: "Unused", Fine: "Fine"}

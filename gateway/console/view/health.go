package view

import "time"

// State is the health of a key or a destination.
type State string

// The states, the worst first.
const (
	Down    State = "down"    // several attempts in a row have failed
	Failing State = "failing" // the last attempt has failed
	Waiting State = "waiting" // deliveries wait
	Silent  State = "silent"  // nothing was sent for long, or ever
	Fine    State = "fine"    // the last attempt succeeded
)

// States are all states, the worst first.
var States = []State{Down, Failing, Waiting, Silent, Fine}

// Health tells at a glance how a key or a destination is.
type Health struct {
	State        State
	Since        time.Time // of Down and Failing; zero if unknown
	Cause        string    // one line; "" for none
	Waiting      int       // deliveries
	WaitingSince time.Time // the oldest of them
	Delivered    time.Time // the last success; zero if unknown
	Troubles     []Trouble // of a key, besides those of its destinations
}

// Trouble is something that is wrong, such as a beat that did not come.
type Trouble struct {
	What  string // a sentence without its end, which the time follows
	Since time.Time
	Cause string // one line; "" for none
}

// Urgent reports whether somebody has to do something about a destination: it is down, or it
// has failed and nothing waits that is tried again.
func (h Health) Urgent() bool {
	return h.State == Down || h.State == Failing && h.Waiting == 0
}

// Colour returns the state in whose colour the health is shown: what fails and is tried again
// waits.
func (h Health) Colour() State {
	if h.State == Failing && !h.Urgent() {
		return Waiting
	}
	return h.State
}

// rank is the place of a state among all, 0 for the worst.
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

// stateWords have the word for each state on a page.
var stateWords = map[State]string{Down: "Down", Failing: "Failing", Waiting: "Waiting", Silent: "Unused", Fine: "Fine"}

package view

import "time"

// QueuePage shows the waiting deliveries by destination, the worst first.
type QueuePage struct {
	Root     string       // see KeysPage
	Problem  string       // why the queue is not shown, or why nothing can be stored; "" if all is well
	Lacks    []CopiedLine // lines of the Caddyfile with which there is a queue
	Done     string       // what a button has done; "" for nothing
	Numbers  bool         // there is a queue
	Waiting  int          // deliveries of all sites
	Held     int          // deliveries that rules hold, and deliveries behind an earlier one of their incident
	Sending  int
	GivenUp  int
	Oldest   time.Time // time of the oldest waiting message; zero for none
	Size     string    // size of waiting messages and of the rules' records
	Hurry    string    // address of the form that tries all now; "" if nothing waits
	All      *Waits    // deliveries that wait for destinations of the site; nil for none
	Troubled []TroubledDestinations
	More     int // destinations left out
}

// TroubledDestinations are the destinations in one state.
type TroubledDestinations struct {
	State        State
	Destinations []QueuedDestination
}

// ByState divides destinations by their states, in their order.
func ByState(all []QueuedDestination) (out []TroubledDestinations) {
	for _, d := range all {
		if n := len(out); n == 0 || out[n-1].State != d.Health.State {
			out = append(out, TroubledDestinations{State: d.Health.State})
		}
		last := &out[len(out)-1]
		last.Destinations = append(last.Destinations, d)
	}
	return out
}

// QueuedDestination is a destination with waiting deliveries or failures.
type QueuedDestination struct {
	Named
	URL    string // with its secrets masked
	Tags   []string
	Keys   []KeyLink
	Health Health
	Waits  Waits
	Bar    *Bar // nil for none

	Silences []SilenceLink // one for each of the keys
}

// KeyLink links to the page of a key.
type KeyLink struct{ Name, Address string }

var queueParts = newParts(source{templates: []string{"queue.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p QueuePage) view() view { return view{title: "Queue", parts: queueParts, wide: true} }

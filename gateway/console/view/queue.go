package view

import "time"

// QueuePage shows what waits, by destination, the worst first.
type QueuePage struct {
	Root         string // as in KeysPage
	Problem      string // why the queue is not shown, or why nothing can be stored; "" if all is well
	Done         string // what a button has done; "" for nothing
	Numbers      bool   // there is a queue
	Waiting      int    // deliveries, of all sites
	Held         int    // deliveries that rules hold, and those after an earlier one of their incident
	Sending      int
	GivenUp      int
	Oldest       time.Time // of the messages that wait; zero if none waits
	Size         string    // of what waits, and of what rules remember
	Hurry        string    // where the form is sent that tries all now; "" if there is nothing
	All          *Waits    // what waits for the destinations of the site; nil for nothing
	Destinations []QueuedDestination
	More         int // destinations that are not shown
}

// QueuedDestination is a destination that something waits for, or that fails.
type QueuedDestination struct {
	Named
	URL    string // with its secrets masked
	Keys   []KeyLink
	Health Health
	Waits  Waits
	Bar    *Bar // nil for none
}

// KeyLink leads to the page of a key.
type KeyLink struct{ Name, Address string }

var queueParts = newParts(source{templates: []string{"queue.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p QueuePage) view() view { return view{title: "Queue", parts: queueParts, wide: true} }

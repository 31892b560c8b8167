package view

// KeysPage lists keys, the worst first.
type KeysPage struct {
	Root        string // the address of the folder with add/, cfg/ and notify/, relative to the page
	Search      string // a part of a name; "" for all keys
	State       State  // state of the keys; "" for all
	All         int    // number of keys
	Found       int    // number of keys that the search finds
	First, Last int    // numbers of the first and the last key on the page, from 1
	Keys        []ListedKey
	Tallies     []Tally
	Problem     string // troubles of a key itself, not of its destinations
	Previous    string // the address of the previous page; "" for none
	Next        string
	MayAdd      bool         // keys can be saved here
	Hint        string       // what the health is based on
	Lacks       []CopiedLine // lines of the Caddyfile that would bring more

	Watchdog *Trouble // why the watchdog of the gateway is not called; nil if all is well
}

// Tally is the number of keys in a state.
type Tally struct {
	State   State
	Count   int
	Address string // address of the list of these keys; "" for the list that is shown
}

// ListedKey is a key in the list.
type ListedKey struct {
	Name     string
	Address  string // address of its page
	Send     string // the address of the page for sending to it
	Fixed    bool   // it is in the configuration of the gateway
	Services string // the names of its destinations
	URLs     int
	Problem  string // why it cannot be used
	Health   *Health
	Hurry    string // the address for trying its waiting deliveries; "" if there are none
	Bar      *Bar   // nil for none
	Last     Moment // time of the last delivery; without a time, Text says why
}

// Waits has the deliveries that wait for a destination, with buttons.
type Waits struct {
	Address     string // address that the forms are sent to
	Destination string // the field destination
	Label       string // name of the destination, for screen readers
	Count       int    // number of deliveries
}

var keysParts = newParts(source{templates: []string{"keys.html"}, styles: []string{mainStyle}, policy: policyForms})

// PreviousName is the text of the link to the previous page.
func (p KeysPage) PreviousName() string { return "Previous keys" }

// NextName is the text of the link to the next page.
func (p KeysPage) NextName() string { return "Next keys" }

func (p KeysPage) view() view { return view{title: "Keys", parts: keysParts, wide: true} }

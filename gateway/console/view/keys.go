package view

// KeysPage lists keys, the worst first.
type KeysPage struct {
	Root        string // the address of the folder that has add/, cfg/ and notify/, relative to the page
	Search      string // a part of a name; "" for all keys
	State       State  // of the keys; "" for all
	All         int    // keys
	Found       int    // keys that the search finds
	First, Last int    // the numbers of the first and the last key on the page, from 1 on
	Keys        []ListedKey
	Tallies     []Tally
	Problem     string // why the health is not shown; "" if it is
	Previous    string // the address of the page before; "" for none
	Next        string
	MayAdd      bool   // keys can be saved here
	Hint        string // what the health is made of, or what would make it better

	Watchdog *Trouble // why the watchdog of the gateway is not called; nil if all is well
}

// Tally is how many keys have a state.
type Tally struct {
	State   State
	Count   int
	Address string // of the list of these keys; "" for the list that is shown
}

// ListedKey is a key in the list.
type ListedKey struct {
	Name     string
	Address  string // of its page
	Send     string // the address of the page that sends to it
	Fixed    bool   // it is in the configuration of the gateway
	Services string // the names of its destinations
	URLs     int
	Problem  string // why it cannot be used
	Health   *Health
	Hurry    string // the address that tries what waits; "" if nothing does
	Bar      *Bar   // nil for none
	Last     Moment // of the last delivery; without a time, Text says why
}

// Waits is what waits for a destination, if anything does, with buttons.
type Waits struct {
	Address     string // that the forms are sent to
	Destination string // the field destination
	Label       string // of the destination, for screen readers
	Count       int    // deliveries
}

var keysParts = newParts(source{templates: []string{"keys.html"}, styles: []string{mainStyle}, policy: policyForms})

// PreviousName and NextName are the texts of the links to other pages.
func (p KeysPage) PreviousName() string { return "Previous keys" }

// NextName is like PreviousName.
func (p KeysPage) NextName() string { return "Next keys" }

func (p KeysPage) view() view { return view{title: "Keys", parts: keysParts, wide: true} }

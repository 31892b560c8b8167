package view

import "time"

// SilencesPage lists the silences of the keys of a site, and makes one.
type SilencesPage struct {
	Root     string // as in KeysPage
	Done     string // what a button has done; "" for nothing
	Problem  string // why silences are not shown, or cannot be made; "" if all is well
	Action   string // the address that the forms are sent to; "" if none can be made
	User     string // who is logged in; "" for a field with the name
	Silences []ListedSilence
	Keys     []string    // to choose from
	New      SilenceForm // what the form begins with
	Lengths  []Choice    // how long it can last
}

// SilenceForm has the fields of a silence to make.
type SilenceForm struct {
	Key, Title, Incident, Tag string
	Reach                     []string // the destinations that the tag stands for; none if that is not known
}

// ListedSilence is a silence.
type ListedSilence struct {
	ID         string
	Key        string
	KeyAddress string    // of the page of the key
	From       time.Time // when it begins; zero if it has begun
	Until      time.Time
	Incident   string
	Tag        string
	Title      string
	Reason     string
	Who        string
	Messages   int  // that it has kept from a destination
	Configured bool // it stands in the configuration
	Told       bool // its beginning and its end are told
}

var silencesParts = newParts(source{templates: []string{"silences.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p SilencesPage) view() view { return view{title: "Silences", parts: silencesParts, wide: true} }

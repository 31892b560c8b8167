package view

import "time"

// SilenceLink is a link to the page that silences a destination. The zero value is none.
type SilenceLink struct {
	Address string
	Text    string // such as "Silence", or "Silence 2 with chat" if others have the tag, too
	Label   string // for screen readers: it names what is silenced
}

// SilencesPage lists the silences of the keys of a site, and makes one.
type SilencesPage struct {
	Root     string       // see KeysPage
	Done     string       // what a button has done; "" for nothing
	Problem  string       // why silences are not shown or cannot be made; "" if all is well
	Lacks    []CopiedLine // lines of the Caddyfile with which they can
	Action   string       // the address that the forms are sent to; "" if none can be made
	User     string       // who is logged in; "" for a field with the name
	Silences []ListedSilence
	Keys     []string    // to choose from
	New      SilenceForm // initial values of the form
	Offer    *SilenceOffer
	Lengths  []Choice // choices of its length
	Longer   []Choice // how much longer a silence can last, as in SilenceOffer
}

// SilenceOffer offers to silence what the form names.
type SilenceOffer struct {
	Problem string   // why that cannot be silenced; "" if it can
	Matches string   // what it matches now, such as "3 open incidents, 14 messages of the last day"
	Reach   []string // the destinations that get nothing; none for all
	Ends    []Choice // when it can end, as the value of the field for or until
}

// SilenceForm has the fields of a silence to make.
type SilenceForm struct {
	Key, Title, Incident, Tag string
}

// Given reports whether the form names something to silence.
func (f SilenceForm) Given() bool { return f.Title+f.Incident+f.Tag != "" }

// ListedSilence is a silence.
type ListedSilence struct {
	ID         string
	Key        string
	KeyAddress string    // address of the key's page
	From       time.Time // when it begins; zero if it has begun
	Until      time.Time
	Incident   string
	Tag        string
	Title      string
	Reason     string
	Who        string
	Messages   int  // messages that it has kept from a destination
	Configured bool // it is part of the configuration
	Told       bool // its beginning and its end are notified
	ToEnd      bool // it ends when its incident is resolved, and at Until at the latest
}

var silencesParts = newParts(source{templates: []string{"silences.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p SilencesPage) view() view { return view{title: "Silences", parts: silencesParts, wide: true} }
